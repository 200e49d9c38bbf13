"""One turn: how far it may go, the steps that a person watching sees, and what it came to."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import Struct

from journeyman.agent.tools.tool import Result
from journeyman.models.model import JsonObject, Reply
from journeyman.records import Call, Message, Session, SessionId, Tokens, ToolCall, Usage
from journeyman.templates.shown.opening import Opening

Stop = Literal[
    "done",
    "turns",
    "tokens",
    "cost",
    "time",
    "interrupted",
    "repeating",
    "context_full",
    "model_failed",
    "cut",
    "empty",
]
"""Why a turn ended: the agent was done, a limit was reached, the user stopped it, it made the same
calls with the same results again and again, the window was full, no reply could be had, the last
reply was cut off, or the model said nothing."""

END_REASONS: dict[Stop, str] = {
    "done": "agent_stop",
    "turns": "max_turns",
    "tokens": "limitsExceeded",
    "cost": "costLimitExceeded",
    "time": "timeout",
    "interrupted": "interrupted",
    "repeating": "error",
    "context_full": "context_window_exceeded",
    "model_failed": "error",
    "cut": "error",
    "empty": "error",
}
"""How the end of a turn is recorded, in the words that the gate for learning knows."""


class Limits(Struct, frozen=True, kw_only=True):
    """Limits on one turn; None is no limit. `turns` counts requests to the model."""

    turns: int | None = 40
    tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    same_again: int = 4


class Spent:
    """What a turn has used so far, as far as the model told; None where it told nothing."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._began = clock()
        self.api_calls = 0
        self.tokens: int | None = None
        self.cost_usd: float | None = None

    def add(self, usage: Usage) -> None:
        """Count one request."""
        self.api_calls += 1
        total = msgspec.convert(usage, Tokens, from_attributes=True).total
        if total is not None:
            self.tokens = (self.tokens or 0) + total
        if usage.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + usage.cost_usd

    @property
    def is_late(self) -> bool:
        """Whether the time is over: then a request or a call that is still going on is given up."""
        limit = self._limits.seconds
        return limit is not None and self._clock() - self._began >= limit

    def over(self, least: int = 0) -> tuple[Stop, str] | None:
        """The limit that is reached, or would be with `least` more tokens, and a sentence on it."""
        limits, tokens, cost = self._limits, self.tokens or 0, self.cost_usd or 0.0
        if self.is_late:
            return "time", f"The limit of {limits.seconds:g} seconds is reached."
        if limits.turns is not None and self.api_calls >= limits.turns:
            return "turns", f"The limit of {limits.turns} requests to the model is reached."
        if limits.tokens is not None and tokens + least >= limits.tokens:
            used = f"{tokens:,} tokens are used"
            if tokens < limits.tokens:
                used += f", and the next request alone takes about {least:,} or more"
            return "tokens", f"{used}; the limit is {limits.tokens:,}."
        if limits.cost_usd is not None and cost >= limits.cost_usd:
            return "cost", f"About ${cost:.4f} are spent; the limit is ${limits.cost_usd:.4f}."
        return None


class Begun(Struct, frozen=True, kw_only=True):
    """A turn begins. `opening` is what a new session starts with; None where it goes on."""

    session: SessionId
    opening: Opening | None = None


class Replied(Struct, frozen=True, kw_only=True):
    """The model answered; the answer is saved."""

    reply: Reply


class Called(Struct, frozen=True, kw_only=True):
    """A call was made or refused; its result is saved."""

    call: ToolCall
    result: Result

    @property
    def joined(self) -> Call:
        """The call with its result, as it is judged."""
        return Call(
            id=self.call.id,
            tool=self.call.name,
            arguments=self.call.arguments,
            result=self.result.text,
            recorded=self.result.recorded,
        )


class Compressed(Struct, frozen=True, kw_only=True):
    """The conversation became too long and goes on in a new session, with a summary of the old."""

    parent: SessionId
    child: SessionId
    messages: int


class Stopped(Struct, frozen=True, kw_only=True):
    """The turn is over: why, and a sentence for people where it did not simply end."""

    stop: Stop
    note: str = ""


Step = Begun | Replied | Called | Compressed | Stopped


class Finished(Struct, frozen=True, kw_only=True):
    """A finished turn as a review gets it; `tokens` is what its last request and reply took."""

    session: Session
    messages: tuple[Message, ...]
    lead: int
    tools: tuple[JsonObject, ...]
    new_calls: int = 0
    tokens: int | None = None


class Turn(Struct, frozen=True, kw_only=True):
    """The end of a turn. `session` is the one it ended in, `began_in` where it began, which is
    another when the conversation was compressed. `tokens` and `cost_usd` are as far as the model
    told. `opening` is what a new session started with; `changed_files` says that undo has something
    to do.
    """

    session: SessionId
    began_in: SessionId
    stop: Stop
    final_response: str = ""
    note: str = ""
    messages: list[dict[str, Any]] = []
    api_calls: int = 0
    calls: int = 0
    tokens: int | None = None
    cost_usd: float | None = None
    opening: Opening | None = None
    changed_files: bool = False

    @property
    def completed(self) -> bool:
        return self.stop == "done"
