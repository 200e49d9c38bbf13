"""What a command that needs a model says if none is configured, or one without an address: an error
that lists the servers and API keys of this machine, and how to choose one.
"""

import os

from journeyman.cli import formatting
from journeyman.facade.journeyman import Journeyman
from journeyman.models.discovery import FoundEndpoint, find_endpoints, looked_for
from journeyman.models.factory import NO_MODEL, is_in_process, no_endpoint
from journeyman.records.errors import BadSetting
from journeyman.text.display import readable

_MOST_MODELS = 5
"""Models of one server that are listed."""


def require_model(journeyman: Journeyman, name: str) -> None:
    """Raise BadSetting if the model that is named or configured cannot be used, with what this
    machine has instead.
    """
    model = journeyman.settings.model
    name = name or model.name
    if model.base_url or (name and model.api_key) or is_in_process(name):
        return
    found = find_endpoints(os.environ)
    if not found:
        raise BadSetting(f"{no_endpoint(readable(name)) if name else NO_MODEL} {looked_for()}")
    problem = no_endpoint(readable(name)) if name else "No model is configured."
    raise BadSetting(f"{problem} {_choices_message(found, name)}")


def _choices_message(found: list[FoundEndpoint], name: str) -> str:
    lines = ["This machine has:", *(f"  {_description(endpoint)}" for endpoint in found)]
    endpoint = next((one for one in found if name in one.models), found[0])
    if name not in endpoint.models:
        name = next(iter(endpoint.models), "NAME")
    lines.append("To choose one, for example:")
    lines.append(f"  journeyman config set model.base_url {endpoint.base_url}")
    lines.append(f"  journeyman config set model.name {readable(name)}")
    lines.append("Or pass --model embedded to try things out.")
    return "\n".join(lines)


def _description(endpoint: FoundEndpoint) -> str:
    if endpoint.key_variable:
        return f"an API key for {endpoint.name} ({endpoint.key_variable})"
    models = formatting.join_names([*map(readable, endpoint.models)], _MOST_MODELS)
    return f"{endpoint.name} at {endpoint.base_url}: {models}"
