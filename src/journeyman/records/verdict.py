"""Verdicts: whether a call worked, and the evidence."""

from typing import Literal

from msgspec import Struct

from journeyman.records.message import Refuser
from journeyman.records.session import SessionId

VerdictStatus = Literal["ok", "failed", "invalid", "refused", "interrupted", "unknown"]
"""`failed`: the tool ran and did not succeed. `invalid`: it could not be called like this.
`refused`: a person, a policy or a hook refused it, so it did not run. `interrupted`: it was
stopped, or never started because of another call. `unknown`: there is no evidence, as when no
result was recorded or the call is still running."""

VerdictKind = Literal[
    "",
    "exit_code",
    "exception",
    "not_found",
    "timeout",
    "permission",
    "network",
    "invalid_arguments",
    "unknown_tool",
    "conflict",
    "limit",
    "syntax",
    "tests",
    "no_match",
    "partial",
    "masked",
    "declined",
    "policy",
    "pending",
    "cancelled",
    "sibling",
    "background",
    "error",
]
"""The kind of ending; empty if there is nothing to add. `no_match`: a search or a test whose exit
code means no. `masked`: a command that hid its failure behind a successful exit code. `error`: a
failure without further details."""


class Verdict(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The status of a call, the rule that decided it, and the text that the rule matched. `by` is
    who refused a refused call.
    """

    status: VerdictStatus
    rule: str
    kind: VerdictKind = ""
    by: Refuser = ""
    evidence: str = ""

    @property
    def counts(self) -> bool:
        """Whether the call is evidence for the reliability of its tool."""
        return self.status in ("ok", "failed", "invalid")

    @property
    def is_error(self) -> bool:
        """Whether the call counts as an error. A search without matches does not."""
        return self.status in ("failed", "invalid") and self.kind != "no_match"


JUDGED_CALLS_VERSION = 3
"""Raise this with every change of what is stored about a judged call."""


class JudgedCall(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A call's verdict, with the parts of the call that counting needs. `index` is the call's
    position among all calls of its session. `turn` counts the model's answers in the session from
    1: the one that made the call; 0 if it is unknown. `at` is when the call ended, or else when it
    was made.
    """

    call_id: str
    tool: str
    verdict: Verdict
    index: int = 0
    generation: int = 0
    model: str = ""
    turn: int = 0
    at: float | None = None


class JudgedSession(Struct, frozen=True, kw_only=True):
    """A session with the verdicts on its agent's calls, in order."""

    id: SessionId
    source: str
    model: str
    messages: int
    tags: tuple[str, ...]
    project: str = ""
    platform: str = ""
    opening: str = ""
    started_at: float | None = None
    calls: tuple[JudgedCall, ...]
