"""What a command that needs a model does if none is configured, or one without an address: it uses
the server on this machine that lists the model, or offers what it finds, on a terminal as a
question, elsewhere in its error.
"""

import os
import sys
from collections.abc import Mapping

import click

from journeyman import config_file
from journeyman.cli import context, formatting
from journeyman.facade.journeyman import Journeyman
from journeyman.models.discovery import FoundEndpoint, find_endpoints, looked_for
from journeyman.models.factory import NO_MODEL, is_in_process, no_endpoint
from journeyman.records.errors import BadSetting
from journeyman.settings import BY_KEY
from journeyman.text.display import readable

_MOST_MODELS = 5
"""Models of one server that are offered."""


def with_model(journeyman: Journeyman, name: str) -> Journeyman:
    """Return a Journeyman that has a model: this one if it can use the model that is named or
    configured, else one with the server on this machine that lists this model, or with the model
    that the person chooses. Raise BadSetting if there is none, or no one to ask.
    """
    model = journeyman.settings.model
    name = name or model.name
    if model.base_url or (name and model.api_key) or is_in_process(name):
        return journeyman
    found = find_endpoints(os.environ)
    if name:
        return _with_settings({"model.base_url": _server_of(name, found).base_url})
    if not found:
        raise BadSetting(f"{NO_MODEL} {looked_for()}")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadSetting(f"No model is configured. {_choices_message(found)}")
    try:
        chosen = _ask(found)
        is_kept = click.confirm("Remember this choice in config.toml?", default=True, err=True)
    except click.Abort as abort:
        click.echo(err=True)
        raise KeyboardInterrupt from abort
    if is_kept:
        for key, value in chosen.items():
            config_file.set_value(journeyman.configuration.file, key, value)
    return _with_settings(chosen)


def _with_settings(chosen: Mapping[str, str]) -> Journeyman:
    variables = {BY_KEY[key].variable: value for key, value in chosen.items()}
    return context.open_journeyman(environ={**os.environ, **variables})


def _server_of(name: str, found: list[FoundEndpoint]) -> FoundEndpoint:
    """Return the server on this machine that lists this model, and say so. Raise BadSetting."""
    for endpoint in found:
        if name in endpoint.models:
            where = f"{endpoint.name} at {endpoint.base_url}"
            click.echo(f"Using {readable(name)} of {where}, which lists it.", err=True)
            return endpoint
    message = no_endpoint(readable(name))
    raise BadSetting(f"{message} {_choices_message(found) if found else looked_for()}")


def _choices_message(found: list[FoundEndpoint]) -> str:
    lines = ["This machine has:", *(f"  {_description(endpoint)}" for endpoint in found)]
    name = next(iter(found[0].models), "NAME")
    lines.append("To choose one, for example:")
    lines.append(f"  journeyman config set model.base_url {found[0].base_url}")
    lines.append(f"  journeyman config set model.name {readable(name)}")
    lines.append("Or pass --model embedded to try things out.")
    return "\n".join(lines)


def _description(endpoint: FoundEndpoint) -> str:
    if endpoint.key_variable:
        return f"an API key for {endpoint.name} ({endpoint.key_variable})"
    models = formatting.join_names([*map(readable, endpoint.models)], _MOST_MODELS)
    return f"{endpoint.name} at {endpoint.base_url}: {models}"


def _ask(found: list[FoundEndpoint]) -> dict[str, str]:
    """Ask which model to use; return the settings that select it."""
    choices = [
        (endpoint, model) for endpoint in found for model in endpoint.models[:_MOST_MODELS] or ("",)
    ]
    click.echo("No model is configured. Found:", err=True)
    for number, (endpoint, model) in enumerate(choices, start=1):
        text = f"{readable(model)} ({endpoint.name})" if model else _description(endpoint)
        click.echo(f"  {number}. {text}", err=True)
    number = click.prompt("Which one?", type=click.IntRange(1, len(choices)), default=1, err=True)
    endpoint, model = choices[number - 1]
    if not model:
        model = click.prompt(f"Name of the model at {endpoint.name}", err=True)
    return {"model.base_url": endpoint.base_url, "model.name": model}
