"""How far one turn may go, and how far it has gone. A limit that is reached ends the turn in order;
it is not an error.
"""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from journeyman.records import Usage

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


class Limits(Struct, frozen=True, kw_only=True):
    """Limits on one turn; None is no limit. `turns` counts requests to the model."""

    turns: int | None = 40
    tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    same_again: int = 4


class Spent:
    """What a turn has used so far; None where the model has told nothing yet. Limits on tokens and
    cost hold for what is known; the other limits always hold.
    """

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
        parts = (
            usage.input_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.output_tokens,
        )
        known = [part for part in parts if part is not None]
        if known:
            self.tokens = (self.tokens or 0) + sum(known)
        if usage.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + usage.cost_usd

    @property
    def is_late(self) -> bool:
        """Whether the time is over: then a request or a call that is still going on is given up."""
        limit = self._limits.seconds
        return limit is not None and self._clock() - self._began >= limit

    def left(self, least: int) -> int | None:
        """The tokens that a reply may have when the request itself takes at least so many; None
        without a limit.
        """
        limit = self._limits.tokens
        return None if limit is None else limit - (self.tokens or 0) - least

    def over(self, least: int = 0) -> tuple[Stop, str] | None:
        """The limit that is reached, or would be by a request that takes at least so many tokens,
        with a sentence about it; or None.
        """
        limits, tokens, cost = self._limits, self.tokens or 0, self.cost_usd or 0.0
        if self.is_late:
            return "time", f"The limit of {limits.seconds:g} seconds is reached."
        if limits.turns is not None and self.api_calls >= limits.turns:
            return "turns", f"The limit of {limits.turns} requests to the model is reached."
        if limits.tokens is not None and tokens >= limits.tokens:
            return "tokens", f"{tokens:,} tokens are used; the limit is {limits.tokens:,}."
        if limits.tokens is not None and tokens + least >= limits.tokens:
            used = f"{tokens:,} tokens are used, and" if tokens else "The limit is too low:"
            note = f"{used} the next request alone takes about {least:,} or more"
            return "tokens", f"{note}; the limit is {limits.tokens:,}."
        if limits.cost_usd is not None and cost >= limits.cost_usd:
            return "cost", f"About ${cost:.4f} are spent; the limit is ${limits.cost_usd:.4f}."
        return None
