"""What a turn came to."""

from typing import Any

from msgspec import Struct

from journeyman.agent.limits import Stop
from journeyman.records import SessionId
from journeyman.templates.shown.opening import Opening

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


class Turn(Struct, frozen=True, kw_only=True):
    """The end of a turn. `session` is the one it ended in, which is another than it began in when
    the conversation was compressed; `began_in` is that one. `note` says what to know when it did
    not simply end. `tokens` and `cost_usd` are what the turn used, as far as the model told.
    `opening` is what the session was started with, where it began with this turn.
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

    @property
    def completed(self) -> bool:
        return self.stop == "done"
