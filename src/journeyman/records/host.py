"""Hosts: other programs' agents that Journeyman plugs into, what their sessions started with, and
what happened on the way; and the marks around an opening in a text.
"""

import re
from typing import Literal, get_args

from msgspec import Struct

Host = Literal["hermes", "claude-code", "codex", "opencode"]
HOSTS: tuple[Host, ...] = get_args(Host)

HostState = Literal["warm", "cold", "off"]
"""A session is `warm` if it was given an opening, `cold` if not, and `off` if it must not get one,
because it is held out for comparison."""

HELD_OUT = "it is held out for a fair comparison (hosts.holdout)"
"""Why a session has no opening that was left without one at random."""

REPORTED_USAGE = "host/"
"""What the keys of usage begin with that a host reported, because its log does not have it."""

EventKind = Literal["opening", "hint", "gate", "failure"]


def source_of(host: str) -> str:
    """Return the name under which a host's sessions are stored."""
    return host.replace("-", "_")


class HostSession(Struct, frozen=True, kw_only=True):
    """What a session of a host started with. `opening` is the id of its first opening, `content`
    all of its openings as JSON, `tokens` their size, and `shown` names the parts that the session
    has seen.
    """

    host: str
    session_id: str
    state: HostState
    at: float
    reason: str = ""
    opening: str = ""
    tokens: int = 0
    shown: tuple[str, ...] = ()
    content: str = "[]"


class HostEvent(Struct, frozen=True, kw_only=True):
    """Something that Journeyman did in a host's session, how it ended, how long it took and how
    many tokens it added to the session. A `gate` event includes the wait for a person; calls that
    passed without a question are not events.
    """

    at: float
    host: str
    session_id: str
    kind: EventKind
    outcome: str
    ms: float = 0.0
    tokens: int = 0
    detail: str = ""


_MARK_WORDS = "[Journeyman "
BEGIN_MARK = re.compile(r"\[Journeyman ([0-9a-f]{16}):\]")
"""The line before an opening in a text. It holds a digest of the opening, so that no text inside
can end it early, and a recorded session shows which opening it had."""


def begin_mark(opening_id: str) -> str:
    return f"{_MARK_WORDS}{opening_id}:]"


def end_mark(opening_id: str) -> str:
    return f"[end of {opening_id}]"


def marked_opening(text: str) -> str:
    """Return the id of the first opening in a text, or "" if there is none."""
    if _MARK_WORDS not in text:
        return ""
    mark = BEGIN_MARK.search(text)
    return mark[1] if mark else ""
