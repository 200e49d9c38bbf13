"""Which tools a job's agent has. Nobody is present, the answer is delivered for it, and schedules
are the user's: tools for these never; tools that run commands only by choice when the model is
somewhere else.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from ipaddress import ip_address
from urllib.parse import urlsplit

from journeyman.records.errors import WrongInput

_SCHEDULING = "a job makes or changes no jobs; schedules are made with `journeyman jobs`"
_MESSAGING = "the answer of a job is delivered for it; choose the places with --deliver"
_CLARIFYING = "nobody is present while a job runs; put all that it needs into its prompt"

NEVER: Mapping[str, str] = {
    **dict.fromkeys(
        ("cron", "cronjob", "cronjobs", "cron_create", "cron_delete", "cron_list", "croncreate",
         "crondelete", "cronlist", "schedule", "schedule_job", "schedule_task", "scheduler", "job",
         "jobs", "remind", "reminder", "schedulewakeup"),
        _SCHEDULING,
    ),
    **dict.fromkeys(
        ("message", "messages", "send", "send_message", "sendmessage", "send_email", "send_mail",
         "send_notification", "send_file", "notify", "notification", "push_notification",
         "pushnotification", "reply", "post_message", "text_to_speech"),
        _MESSAGING,
    ),
    **dict.fromkeys(
        ("ask", "ask_user", "ask_human", "ask_question", "ask_followup_question",
         "askuserquestion", "clarify", "clarification", "request_input", "request_user_input",
         "user_input", "human_input"),
        _CLARIFYING,
    ),
}  # fmt: skip
"""Tools that no job has, with the reason; names in small letters."""

BY_CHOICE = ("terminal", "execute_code")
USUAL = "usual"

_EMBEDDED = "embedded"


def chosen_tools(
    available: Sequence[str], wanted: Sequence[str] | None, *, remote: bool
) -> tuple[str, ...]:
    """The tools of a job, in the order of those available. `wanted` None means the usual ones,
    and so does the name `usual` among others. Raises WrongInput for a name that cannot be had.
    """
    usual = [
        name for name in available if not _why_never(name) and not (remote and name in BY_CHOICE)
    ]
    if wanted is None:
        return tuple(usual)
    chosen: set[str] = set()
    for name in wanted:
        chosen.update(usual if name == USUAL else [_checked(name, available)])
    return tuple(name for name in available if name in chosen)


def check_tools(wanted: Sequence[str] | None, available: Sequence[str]) -> None:
    """Raise WrongInput for a name that cannot be had."""
    for name in wanted or ():
        if name != USUAL:
            _checked(name, available)


def is_remote(base_url: str, provider: str) -> bool:
    """Whether a model is asked over a network: all but the embedded one and loopback addresses."""
    if provider == _EMBEDDED:
        return False
    try:
        host = (urlsplit(base_url).hostname or "").rstrip(".")
    except ValueError:
        return True
    # Programs do not agree where the host of such an address begins.
    if not host or "\\" in base_url:
        return True
    if host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        address = ip_address(host)
    except ValueError:
        return True
    mapped = getattr(address, "ipv4_mapped", None)
    return not (mapped or address).is_loopback


def _why_never(name: str) -> str:
    return NEVER.get(name.strip().lower().replace("-", "_"), "")


def _checked(name: str, available: Sequence[str]) -> str:
    why = _why_never(name)
    if why:
        raise WrongInput(f"A job cannot have the tool {name!r}: {why}.")
    if name not in available:
        allowed = [one for one in available if not _why_never(one)]
        close = get_close_matches(name, [*allowed, USUAL], n=3)
        hint = f"Did you mean {' or '.join(close)}?" if close else f"There are: {_listed(allowed)}."
        raise WrongInput(f"A job was to have the tool {name!r}, and there is none. {hint}")
    return name


def _listed(names: Sequence[str]) -> str:
    return ", ".join((*names, USUAL))
