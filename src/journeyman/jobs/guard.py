"""Selects and checks the model and the tools of a job before anything is spent."""

from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from msgspec import Struct

from journeyman.agent.tools.tool import Tool
from journeyman.records.errors import JobBlocked, WrongInput
from journeyman.records.job import Job

_MAX_WORD_LENGTH = 12
"""Limits a prompt without spaces, together with the number of words."""
DEFAULT_TOOLS = "usual"
"""Stands for the default tools in a list of tools."""


class ModelRoute(Struct, frozen=True, kw_only=True):
    """The model to use. An empty provider is the one in the settings."""

    model: str
    provider: str


def is_simple(job: Job, max_words: int) -> bool:
    """Return whether a job is only a prompt of up to `max_words` words."""
    text = job.prompt.strip()
    is_short = len(text.split()) <= max_words and len(text) <= max_words * _MAX_WORD_LENGTH
    return is_short and not job.skills and not job.script


def check_window(window: int | None, *, minimum: int, model: str, place: str) -> tuple[str, ...]:
    """Return a remark if the context window is unknown. Raise JobBlocked if it is too small.
    `place` is where a person states the window.
    """
    if window is None:
        return (
            f"The context window of {model} is unknown; jobs need at least {minimum:,} tokens. The "
            f"job runs anyway. To state the window, set {place}.",
        )
    if window < minimum:
        raise JobBlocked(
            f"The job cannot run on {model}: its context window is {window:,} tokens, and jobs "
            f"need at least {minimum:,}. Nothing was spent. If the model has a larger window, set "
            f"{place}; otherwise choose another model with --model."
        )
    return ()


def select_tools(
    available: Sequence[Tool], requested: Sequence[str] | None, *, remote: bool
) -> tuple[str, ...]:
    """Return the tools of a job. None and `usual` stand for the default tools, which for a remote
    model leave out commands. Raise WrongInput for an unknown tool.
    """
    defaults = [tool.name for tool in available if not (remote and tool.runs_commands)]
    if requested is None:
        return tuple(defaults)
    check_tools(requested, available)
    selected = {*requested, *(defaults if DEFAULT_TOOLS in requested else ())}
    return tuple(tool.name for tool in available if tool.name in selected)


def check_tools(requested: Sequence[str] | None, available: Sequence[Tool]) -> None:
    """Raise WrongInput for an unknown tool."""
    valid = [*(tool.name for tool in available), DEFAULT_TOOLS]
    for name in requested or ():
        if name not in valid:
            raise WrongInput(
                f"A job cannot use the tool {name!r}. Valid tools are: {', '.join(valid)}."
            )


def is_remote(base_url: str, provider: str) -> bool:
    """Return whether requests to a model leave this machine: all models except the embedded one and
    those at loopback addresses.
    """
    if provider == "embedded":
        return False
    try:
        host = (urlsplit(base_url).hostname or "").rstrip(".")
        # URL parsers disagree on the host of an address with a backslash.
        if "\\" in base_url:
            return True
        if f".{host}".endswith(".localhost"):
            return False
        address = ip_address(host)
    except ValueError:
        return True
    return not (getattr(address, "ipv4_mapped", None) or address).is_loopback
