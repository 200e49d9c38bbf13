"""Which model and which tools a job has, checked before anything is spent."""

from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from msgspec import Struct

from journeyman.models.model import Model
from journeyman.records.errors import JobBlocked, WrongInput
from journeyman.records.job import Job

_LONGEST_WORD = 12
"""Characters per word: a prompt without blanks is measured by these."""
USUAL = "usual"
_COMMANDS = ("terminal", "execute_code")


class Route(Struct, frozen=True, kw_only=True):
    """The model to ask. An empty provider is the one of the settings."""

    model: str
    provider: str


def is_simple(job: Job, words: int) -> bool:
    """Whether a job is nothing but a prompt of this many words at most."""
    text = job.prompt.strip()
    is_short = len(text.split()) <= words and len(text) <= words * _LONGEST_WORD
    return is_short and not job.skills and not job.script


def check_window(model: Model, *, minimum: int, setting: str) -> tuple[str, ...]:
    """A remark where the window is not known. Raises JobBlocked when it is too small for a job."""
    named = f"{model.name} ({model.provider})" if model.provider else model.name
    window = model.context_tokens
    if window is None:
        return (
            f"The context window of {named} could not be found out; jobs need at least "
            f"{minimum:,} tokens. The job runs all the same. To settle it, set {setting} in "
            "config.toml.",
        )
    if window < minimum:
        raise JobBlocked(
            f"The job was to run on {named}, whose context window is {window:,} tokens; jobs need "
            f"at least {minimum:,}. Nothing was spent. If the model really has more, set {setting} "
            "in config.toml; otherwise choose another model, for this job with --model or for all "
            "with model.name."
        )
    return ()


def chosen_tools(
    available: Sequence[str], wanted: Sequence[str] | None, *, remote: bool
) -> tuple[str, ...]:
    """The tools of a job; None and `usual` stand for the usual ones. Raises WrongInput."""
    usual = [name for name in available if not (remote and name in _COMMANDS)]
    if wanted is None:
        return tuple(usual)
    check_tools(wanted, available)
    chosen = {*wanted, *(usual if USUAL in wanted else ())}
    return tuple(name for name in available if name in chosen)


def check_tools(wanted: Sequence[str] | None, available: Sequence[str]) -> None:
    """Raise WrongInput for a name that there is not."""
    for name in wanted or ():
        if name not in (USUAL, *available):
            known = ", ".join((*available, USUAL))
            raise WrongInput(f"A job was to have the tool {name!r}. There are only: {known}.")


def is_remote(base_url: str, provider: str) -> bool:
    """Whether a model is asked over a network: all but the embedded one and loopback addresses."""
    if provider == "embedded":
        return False
    try:
        host = (urlsplit(base_url).hostname or "").rstrip(".")
        # Programs do not agree where the host of such an address begins.
        if "\\" in base_url:
            return True
        if f".{host}".endswith(".localhost"):
            return False
        address = ip_address(host)
    except ValueError:
        return True
    return not (getattr(address, "ipv4_mapped", None) or address).is_loopback
