"""One turn of an agent: how much of its limits it has used, how it ended, and its result."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from journeyman.hosts.runner import RunLimits, RunResult, RunStatus
from journeyman.models.model import JsonObject
from journeyman.records import Message, Session, Tokens, Usage

END_REASONS: Mapping[RunStatus, str] = MappingProxyType(
    {
        "done": "agent_stop",
        "turns": "max_turns",
        "tokens": "limitsExceeded",
        "cost": "costLimitExceeded",
        "time": "timeout",
        "interrupted": "interrupted",
        "context_full": "context_window_exceeded",
    }
)
"""The end reason that is stored for a status, if it is not `error`. A session that ends with
`error` does not teach."""

NO_USAGE = (
    "The model's server does not report its token usage, so the limit on tokens or cost cannot be "
    "enforced. The run was stopped after the first request; limit its requests (--turns) and time "
    "(--seconds) instead."
)


class TurnStopped(Struct, frozen=True, kw_only=True):
    """How a turn ended. `reason` explains it to people, unless the agent was simply done."""

    status: RunStatus
    reason: str = ""


STOPPED_BY_USER = TurnStopped(status="interrupted", reason="It was stopped by the user.")


class TurnBudget:
    """What a turn has used of its limits: the time, requests to the model, and tokens, as far as
    the model reports them.
    """

    def __init__(self, limits: RunLimits, clock: Callable[[], float]) -> None:
        self.limits = limits
        self.requests = 0
        self.tokens = Tokens()
        self._clock, self._began_at = clock, clock()

    def add(self, usage: Usage) -> None:
        """Count one request."""
        self.requests += 1
        sums = {}
        for name in Tokens.__struct_fields__:
            known = [getattr(tokens, name) for tokens in (self.tokens, usage)]
            known = [count for count in known if count is not None]
            sums[name] = sum(known) if known else None
        self.tokens = Tokens(**sums)

    @property
    def seconds(self) -> float:
        return self._clock() - self._began_at

    @property
    def is_out_of_time(self) -> bool:
        """Whether the time limit is reached; a request or call in progress is then cancelled."""
        return self.limits.seconds is not None and self.seconds >= self.limits.seconds

    def find_exceeded(self, next_tokens: int = 0) -> TurnStopped | None:
        """Return how the turn ends at the limit that is reached, or that a request of `next_tokens`
        would reach, if there is one.
        """
        limits, tokens, cost = self.limits, self.tokens.total, self.tokens.cost_usd or 0.0
        if self.is_out_of_time:
            reason = f"The limit of {limits.seconds:g} seconds is reached."
            return TurnStopped(status="time", reason=reason)
        if limits.turns is not None and self.requests >= limits.turns:
            reason = f"The limit of {limits.turns} requests to the model is reached."
            return TurnStopped(status="turns", reason=reason)
        is_counted = limits.tokens is not None or limits.cost_usd is not None
        if is_counted and self.requests and tokens is None:
            return TurnStopped(status="tokens", reason=NO_USAGE)
        if limits.tokens is not None and (tokens or 0) + next_tokens >= limits.tokens:
            needed = f"{tokens or 0:,} tokens are used, and the next request needs {next_tokens:,}"
            reason = f"{needed} or more; the limit is {limits.tokens:,}."
            return TurnStopped(status="tokens", reason=reason)
        if limits.cost_usd is not None and cost >= limits.cost_usd:
            reason = f"About ${cost:.4f} was spent; the limit is ${limits.cost_usd:.4f}."
            return TurnStopped(status="cost", reason=reason)
        return None


class FinishedTurn(Struct, frozen=True, kw_only=True):
    """A finished turn as input to a review."""

    session: Session
    messages: tuple[Message, ...]
    lead: int
    tools: tuple[JsonObject, ...]
    new_calls: int = 0


class Turn(RunResult, frozen=True, kw_only=True):
    """The result of a turn, with the `messages` of the conversation so far, in OpenAI's format."""

    messages: Sequence[dict[str, Any]] = ()

    @property
    def final_response(self) -> str:
        return self.text
