"""Playing a script: every call is executed, every event gets its time from a scripted clock."""

from typing import Protocol

from journeyman.testing.sample_data import pick
from journeyman.testing.script import (
    Act,
    Ask,
    Compress,
    Compressed,
    Event,
    Heard,
    Played,
    Reply,
    Result,
    Script,
    Turn,
    UserSays,
)


class Bench(Protocol):
    """Where calls are executed."""

    def perform(self, ask: Ask) -> Result:
        """Execute one call."""
        ...


class ScriptedClock:
    """Seconds that pass by rule: the same session always takes the same time."""

    def __init__(self, name: str, started_at: float) -> None:
        self._name = name
        self._now = started_at
        self._ticks = 0

    def after(self, least_ms: int, most_ms: int) -> float:
        """The time some milliseconds later."""
        self._ticks += 1
        waited = least_ms + pick(f"{self._name} {self._ticks}", most_ms - least_ms)
        self._now = round(self._now + waited / 1000, 3)
        return self._now


def play(script: Script, bench: Bench, *, started_at: float) -> Played:
    """Execute a script from its first word to its last."""
    clock = ScriptedClock(script.name, started_at)
    events: list[Event] = []
    for step in script.steps:
        if isinstance(step, UserSays):
            events.append(Heard(at=clock.after(4_000, 90_000), text=step.text))
        elif isinstance(step, Compress):
            events.append(Compressed(at=clock.after(9_000, 30_000), summary=step.summary))
        else:
            events.append(_take_turn(step, bench, clock))
    return Played(script=script, events=tuple(events))


def _take_turn(act: Act, bench: Bench, clock: ScriptedClock) -> Turn:
    asked_at = clock.after(1_500, 14_000)
    return Turn(at=asked_at, act=act, replies=tuple(_reply(a, bench, clock) for a in act.asks))


def _reply(ask: Ask, bench: Bench, clock: ScriptedClock) -> Reply:
    if ask.fate == "lost":
        return Reply(ask=ask, result=None, at=clock.after(5_000, 20_000))
    if ask.fate == "refused":
        return Reply(ask=ask, result=Result(kind="refused"), at=clock.after(3_000, 40_000))
    if ask.fate == "cancelled":
        return Reply(ask=ask, result=Result(kind="cancelled"), at=clock.after(5, 40))
    if ask.malformed:
        return Reply(ask=ask, result=Result(kind="bad_arguments"), at=clock.after(5, 40))
    if ask.tool == "subagent":
        turns = tuple(_take_turn(act, bench, clock) for act in ask.inner)
        result = Result(kind="ok", text=ask.inner[-1].text)
        return Reply(ask=ask, result=result, at=clock.after(200, 900), inner=turns)
    result = bench.perform(ask)
    return Reply(ask=ask, result=result, at=clock.after(30, 2_400))
