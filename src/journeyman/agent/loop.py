"""The agent loop: ask the model, run the calls it requests, save, and repeat until it is done."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import msgspec

from journeyman.agent.conversation import Conversation, SessionRecorder
from journeyman.agent.dispatch import Dispatch
from journeyman.agent.turn import ModelReplied, Step, ToolCalled, TurnBudget, TurnStopped
from journeyman.models.model import Cancelled, JsonObject, Model, Reply
from journeyman.records import Message, Tokens
from journeyman.records.errors import ContextFull, ModelUnavailable

STOPPED_BY_USER = "It was stopped by the user."
_CHARACTERS_PER_TOKEN = 4
"""An estimate for text whose tokens no model has counted yet."""


@dataclass(kw_only=True, eq=False)
class Loop:
    """One turn of an agent."""

    conversation: Conversation
    model: Model
    tools: Sequence[JsonObject]
    dispatch: Dispatch
    recorder: SessionRecorder
    budget: TurnBudget
    clock: Callable[[], float]
    cancelled: Callable[[], bool]
    on_text: Callable[[str], None] = lambda _text: None
    _last_tokens: Tokens = Tokens()  # noqa: RUF009 - frozen
    _equal_rounds: list[object] = field(default_factory=list)
    """The latest rounds of calls with their results, as long as all of them are equal."""

    def run(self) -> Iterator[Step]:
        """Yield the steps of the turn, each after it is saved; the last one is TurnStopped."""
        stopped = self._find_stop()
        while stopped is None:
            stopped = (yield from self._round()) or self._find_stop()
        yield stopped

    def _round(self) -> Generator[Step, None, TurnStopped | None]:
        """Make one request and run its calls. Return why the turn ended, if it did."""
        try:
            message, reply = self._ask()
        except Cancelled:
            return self._find_stop() or TurnStopped(stop="interrupted", note=STOPPED_BY_USER)
        except ContextFull as error:
            return TurnStopped(stop="context_full", note=str(error))
        except ModelUnavailable as error:
            return TurnStopped(stop="model_failed", note=str(error))
        yield ModelReplied(reply=reply)
        if not message.tool_calls:
            return _end_of_turn(reply)
        results = []
        for call, result in self.dispatch.run(message.tool_calls):
            answer = self.conversation.result_message(call, result, self.clock())
            self.recorder.save(self.conversation, answer)
            results.append((call.name, call.arguments, result.text))
            yield ToolCalled(call=call, result=result)
        return self._find_repetition(results)

    def _find_repetition(self, results: object) -> TurnStopped | None:
        self._equal_rounds = [*(past for past in self._equal_rounds if past == results), results]
        times = len(self._equal_rounds)
        if times < self.budget.limits.same_again:
            return None
        note = f"The same calls gave the same results {times} times in a row."
        return TurnStopped(stop="repeating", note=note)

    def _find_stop(self) -> TurnStopped | None:
        next_tokens = self._next_tokens
        if exceeded := self.budget.find_exceeded(next_tokens):
            stop, note = exceeded
            return TurnStopped(stop=stop, note=note)
        if self.cancelled():
            return TurnStopped(stop="interrupted", note=STOPPED_BY_USER)
        # Some servers silently drop the beginning of a request that does not fit.
        window = self.model.context_tokens if self._last_tokens.total else None
        if window is not None and next_tokens > window:
            note = f"The next request needs about {next_tokens:,} tokens; {self.model.name} has a "
            note += f"context window of {window:,}. Start a new run with a smaller task."
            return TurnStopped(stop="context_full", note=note)
        return None

    @property
    def _next_tokens(self) -> int:
        """The tokens of the next request: those of the last one, and what was added since."""
        messages: Sequence[Message] = self.conversation.messages
        if self._last_tokens.total:
            messages = [*takewhile(lambda item: item.role != "assistant", reversed(messages))]
        in_calls = sum(len(call.arguments) for item in messages for call in item.tool_calls)
        in_texts = sum(len(item.text) for item in messages)
        return (self._last_tokens.total or 0) + (in_calls + in_texts) // _CHARACTERS_PER_TOKEN

    def _ask(self) -> tuple[Message, Reply]:
        reply = self.model.ask(
            self.conversation.chat, self.tools, on_text=self.on_text, cancelled=self.cancelled
        )
        at = self.clock()
        message = self.conversation.reply_message(reply, at)
        usage = self.recorder.usage(message.key, reply, at)
        self.recorder.save(self.conversation, message, usage)
        self.budget.add(usage)
        self._last_tokens = reply.tokens
        return message, msgspec.structs.replace(reply, tool_calls=message.tool_calls)


def _end_of_turn(reply: Reply) -> TurnStopped:
    if reply.finish_reason in ("length", "content_filter"):
        by = "its length limit" if reply.finish_reason == "length" else "a content filter"
        return TurnStopped(stop="cut", note=f"The model's reply was cut off by {by}.")
    if reply.text.strip():
        return TurnStopped(stop="done")
    return TurnStopped(stop="empty", note="The model ended its turn with an empty reply.")
