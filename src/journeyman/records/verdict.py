"""Verdicts: what became of a call, and on what evidence."""

from typing import Literal

from msgspec import Struct

from journeyman.records.session import SessionId

Status = Literal["ok", "failed", "invalid", "refused", "interrupted", "unknown"]
"""`failed`: the tool was called and did not do it. `invalid`: it could not be called like that.
`refused`: a person or a policy said no. `interrupted`: it was stopped, or never begun because of
another call. `unknown`: nothing says, as when no result was recorded."""

Kind = Literal[
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
"""What kind of ending it was; empty when there is nothing to say. `no_match`: a search or a test
that answered no by its exit code. `masked`: a command that hid its failure behind a good exit
code. `error`: a failure that says no more than that."""


class Verdict(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What became of a call, the rule that says so and the words it saw."""

    status: Status
    rule: str
    kind: Kind = ""
    evidence: str = ""

    @property
    def counts(self) -> bool:
        """Whether the call says something about how reliable its tool is."""
        return self.status in ("ok", "failed", "invalid")

    @property
    def is_error(self) -> bool:
        """Whether the call counts as an error. A search that found nothing does not."""
        return self.status in ("failed", "invalid") and self.kind != "no_match"


class JudgedCall(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A call's verdict, with as much of the call as counting needs. `index` is the call's place
    among all calls of its session.
    """

    call_id: str
    tool: str
    verdict: Verdict
    index: int = 0
    generation: int = 0
    model: str = ""


class JudgedSession(Struct, frozen=True, kw_only=True):
    """A session with the verdicts on its agent's calls, in order."""

    id: SessionId
    source: str
    model: str
    messages: int
    tags: tuple[str, ...]
    project: str = ""
    calls: tuple[JudgedCall, ...]
