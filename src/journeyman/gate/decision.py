"""Decisions on calls, and access to the rules in `rules.toml` that lead to them."""

import re
import tomllib
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec
from msgspec import Struct

Answer = Literal["allow", "ask", "refuse"]

Risk = Literal[
    "read",
    "search",
    "write",
    "command",
    "code",
    "recall",
    "knowledge",
    "templates",
    "report",
    "unknown",
]
"""What a tool's calls can do, and so how the gate reads their arguments. `read` reads the file at
`path`. `search` reads the files below `path`, by default the whole workspace. `write` changes the
file at `path` or the files that `patch` names. `command` runs the shell line in `command`, `code`
the Python in `code`. `recall` reads what the agent has stored. `knowledge` changes memory and
skills, `templates` the templates, as `action` says. `report` only addresses a person. A person is
asked about every call of an `unknown` tool."""

Network = Literal["off", "ask", "on"]
"""Whether commands have network access: never, when a person grants it to a call, or always."""

_WEIGHT = {"allow": 0, "ask": 1, "refuse": 2}


class Decision(Struct, frozen=True, kw_only=True):
    """What happens with a call, the id of the deciding rule, and its reason as shown to people."""

    answer: Answer
    rule: str = ""
    reason: str = ""
    network: bool = False
    """Whether the call needs the network: approval grants it for this call only."""


ALLOW = Decision(answer="allow")


def strongest(decisions: Iterable[Decision]) -> Decision:
    """Return the strictest decision, the first of several equally strict ones."""
    return max(decisions, key=lambda decision: _WEIGHT[decision.answer], default=ALLOW)


Audience = Literal["all", "agent", "hosts", "nobody"]


class GateRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule in `rules.toml`; the file explains the fields."""

    id: str
    reason: str
    answer: Answer = "ask"
    commands: str = ""
    unless: tuple[str, ...] = ()
    argument: str = ""
    when: str = ""
    network: bool = False
    asks: Audience = "all"
    examples: tuple[str, ...] = ()

    @property
    def decision(self) -> Decision:
        return Decision(answer=self.answer, rule=self.id, reason=self.reason, network=self.network)


class _RulesFile(Struct, frozen=True, forbid_unknown_fields=True):
    steering: tuple[str, ...]
    secrets: tuple[str, ...]
    harmless: tuple[str, ...]
    notes: tuple[str, ...]
    tracked: tuple[str, ...]
    popular: dict[str, str]
    vocabulary: dict[str, str]
    patterns: dict[str, tuple[str, ...]]
    rule: tuple[GateRule, ...]


@cache
def rules_file() -> _RulesFile:
    text = files(__package__).joinpath("rules.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _RulesFile)


@cache
def vocabulary(kind: str) -> frozenset[str]:
    """The words listed under a name in `rules.toml`."""
    return frozenset(rules_file().vocabulary[kind].split())


@cache
def pairs(kind: str) -> dict[str, str]:
    """The `key:value` words listed under a name in `rules.toml`."""
    return dict(pair.split(":") for pair in vocabulary(kind))


@cache
def pattern(kind: str) -> re.Pattern[str]:
    """A pattern that matches whatever one of the listed patterns matches."""
    return re.compile("|".join(rules_file().patterns[kind]), re.IGNORECASE)


@cache
def rule(name: str) -> GateRule:
    """The rule with this id."""
    return next(rule for rule in rules_file().rule if rule.id == name)


class ApprovalRequest(Struct, frozen=True, kw_only=True):
    """A call that a person has to approve. An approver that waits polls `cancelled`."""

    tool: str
    arguments: dict[str, object]
    rule: str
    reason: str
    session: str = ""
    cancelled: Callable[[], bool] = lambda: False


Approver = Callable[[ApprovalRequest], bool | None]
"""Asks a person for approval: True, False, or None if no one can answer, which counts as no."""

Notify = Callable[[str], None]
"""Receives one line of text for the user."""
