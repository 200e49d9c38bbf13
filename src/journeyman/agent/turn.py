"""One turn of an agent: its limits, the steps it reports, and its result."""

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from journeyman.agent.tools.tool import Result
from journeyman.experience.opening import Opening
from journeyman.models.model import JsonObject, Reply
from journeyman.records import Call, Message, Session, SessionId, Tokens, ToolCall, Usage

StopReason = Literal[
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
"""Why a turn ended: the agent was done, a limit was reached, the user stopped it, it kept repeating
the same calls with the same results, the context window was full, the model was unavailable, the
last reply was cut off, or the model returned an empty reply."""

NO_USAGE = (
    "The model's server does not report its token usage, so the limit on tokens or cost cannot be "
    "enforced. The run was stopped after the first request; limit --turns and --seconds instead."
)

END_REASONS: dict[StopReason, str] = {
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
"""The end reason that is stored for each stop. A session that ends with `error` does not teach."""


class Limits(Struct, frozen=True, kw_only=True):
    """Limits on one turn; None means no limit. `turns` counts requests to the model; the turn stops
    when the same calls have given the same results `same_again` times in a row.
    """

    turns: int | None = 40
    tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    same_again: int = 4


class TurnBudget:
    """What a turn has used of its limits. Tokens and cost are None until the model reports some."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self.limits = limits
        self._clock = clock
        self._started_at = clock()
        self.api_calls = 0
        self.tokens: int | None = None
        self.usage = Tokens()

    @property
    def cost_usd(self) -> float | None:
        return self.usage.cost_usd

    def add(self, usage: Usage) -> None:
        """Count one request."""
        self.api_calls += 1
        if usage.total is not None:
            self.tokens = (self.tokens or 0) + usage.total
        self.usage = Tokens(
            **{
                name: _sum(getattr(self.usage, name), getattr(usage, name))
                for name in Tokens.__struct_fields__
            }
        )

    @property
    def is_out_of_time(self) -> bool:
        """Whether the time limit is reached; a request or call in progress is then cancelled."""
        limit = self.limits.seconds
        return limit is not None and self._clock() - self._started_at >= limit

    def find_exceeded(self, next_tokens: int = 0) -> tuple[StopReason, str] | None:
        """Return the limit that is reached, or that a request of `next_tokens` would reach, with a
        sentence about it.
        """
        limits, tokens, cost = self.limits, self.tokens or 0, self.cost_usd or 0.0
        is_limited = limits.tokens is not None or limits.cost_usd is not None
        if is_limited and self.api_calls and self.tokens is None:
            return "tokens", NO_USAGE
        if self.is_out_of_time:
            return "time", f"The limit of {limits.seconds:g} seconds is reached."
        if limits.turns is not None and self.api_calls >= limits.turns:
            return "turns", f"The limit of {limits.turns} requests to the model is reached."
        if limits.tokens is not None and tokens + next_tokens >= limits.tokens:
            needed = f"{tokens:,} tokens are used, and the next request needs {next_tokens:,}"
            return "tokens", f"{needed} or more; the limit is {limits.tokens:,}."
        if limits.cost_usd is not None and cost >= limits.cost_usd:
            return "cost", f"About ${cost:.4f} was spent; the limit is ${limits.cost_usd:.4f}."
        return None


def _sum(first: float | None, second: float | None) -> Any:
    """Return the sum of what is known; None if nothing is."""
    return second if first is None else first + (second or 0)


class TurnBegun(Struct, frozen=True, kw_only=True):
    """A turn began. `opening` is the opening of a new session; None if the session continues."""

    session: SessionId
    opening: Opening | None = None


class ModelReplied(Struct, frozen=True, kw_only=True):
    """The model replied; the reply is saved."""

    reply: Reply


class ToolCalled(Struct, frozen=True, kw_only=True):
    """A call ran or was refused; its result is saved."""

    call: ToolCall
    result: Result

    @property
    def joined(self) -> Call:
        """The call with its result, in the form that is judged."""
        return Call(
            id=self.call.id,
            tool=self.call.name,
            arguments=self.call.arguments,
            result=self.result.text,
            recorded=self.result.recorded,
        )


class TurnStopped(Struct, frozen=True, kw_only=True):
    """The turn is over. `note` explains the reason to people, unless the agent was simply done."""

    stop: StopReason
    note: str = ""


Step = TurnBegun | ModelReplied | ToolCalled | TurnStopped


class FinishedTurn(Struct, frozen=True, kw_only=True):
    """A finished turn as input to a review."""

    session: Session
    messages: tuple[Message, ...]
    lead: int
    tools: tuple[JsonObject, ...]
    new_calls: int = 0


class Turn(Struct, frozen=True, kw_only=True):
    """The result of a turn. `tokens` and `cost_usd` are None if the model reported none; `usage`
    has them by kind: input, output, cache read and written, and reasoning. `opening` is that of a
    new session; `changed_files` means that undo has work to do.
    """

    session: SessionId
    stop: StopReason
    final_response: str = ""
    note: str = ""
    messages: list[dict[str, Any]] = []
    api_calls: int = 0
    calls: int = 0
    tokens: int | None = None
    cost_usd: float | None = None
    usage: Tokens = Tokens()
    opening: Opening | None = None
    changed_files: bool = False

    @property
    def completed(self) -> bool:
        return self.stop == "done"
