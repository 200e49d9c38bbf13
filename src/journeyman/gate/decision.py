"""A decision on a call, and the rows of `rules.toml` by which it is made."""

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec
from msgspec import Struct

Answer = Literal["allow", "ask", "refuse"]
_WEIGHT = {"allow": 0, "ask": 1, "refuse": 2}


class Decision(Struct, frozen=True, kw_only=True):
    """What is to happen with a call, by which rule, and why in words for a person."""

    answer: Answer
    rule: str = ""
    reason: str = ""
    network: bool = False
    """Whether the call needs the network: a person's yes gives it to this one call."""


ALLOW = Decision(answer="allow")


def strongest(decisions: Iterable[Decision]) -> Decision:
    """The strongest of some decisions; of equals the first."""
    return max(decisions, key=lambda one: _WEIGHT[one.answer], default=ALLOW)


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of `rules.toml`, which says what the fields mean."""

    id: str
    reason: str
    answer: Answer = "ask"
    commands: str = ""
    unless: tuple[str, ...] = ()
    argument: str = ""
    when: str = ""
    network: bool = False
    learning: bool = False
    examples: tuple[str, ...] = ()

    @property
    def decision(self) -> Decision:
        return Decision(answer=self.answer, rule=self.id, reason=self.reason, network=self.network)


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    steering: tuple[str, ...]
    secrets: tuple[str, ...]
    harmless: tuple[str, ...]
    popular: dict[str, str]
    known: dict[str, str]
    patterns: dict[str, tuple[str, ...]]
    rule: tuple[Rule, ...]


@cache
def rules_file() -> _File:
    text = files(__package__).joinpath("rules.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _File)


@cache
def known(kind: str) -> frozenset[str]:
    """The words of a kind, from `rules.toml`."""
    return frozenset(rules_file().known[kind].split())


@cache
def pairs(kind: str) -> dict[str, str]:
    """The words of a kind that are pairs."""
    return dict(one.split(":") for one in known(kind))


@cache
def pattern(kind: str) -> re.Pattern[str]:
    """What any of the patterns of a kind matches."""
    return re.compile("|".join(rules_file().patterns[kind]), re.IGNORECASE)


@cache
def rule(name: str) -> Rule:
    """The row with an id."""
    return next(row for row in rules_file().rule if row.id == name)
