"""The agent loop: ask the model, run the calls it requests, save, and repeat until it is done."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from journeyman.agent import compression
from journeyman.agent.compression import estimated_tokens
from journeyman.agent.conversation import Conversation, SessionRecorder
from journeyman.agent.dispatch import Dispatch
from journeyman.agent.turn import (
    ContextCompressed,
    ModelReplied,
    Step,
    ToolCalled,
    TurnBudget,
    TurnStopped,
)
from journeyman.models.model import Cancelled, JsonObject, Model, Reply
from journeyman.records import Message, SessionId, Tokens
from journeyman.records.errors import ContextFull, ModelUnavailable

STOPPED_BY_USER = "It was stopped by the user."


@dataclass(kw_only=True, eq=False)
class Loop:
    """One turn of an agent. `conversation` is replaced by its successor after each compression."""

    conversation: Conversation
    model: Model
    tools: Sequence[JsonObject]
    dispatch: Dispatch
    recorder: SessionRecorder
    budget: TurnBudget
    clock: Callable[[], float]
    new_id: Callable[[], SessionId]
    cancelled: Callable[[], bool]
    on_text: Callable[[str], None] = lambda _text: None
    compresses: bool = True
    last_tokens: Tokens = Tokens()  # noqa: RUF009 - frozen
    """The tokens of the last request and its reply."""
    _is_full: bool = False
    _equal_rounds: list[object] = field(default_factory=list)
    """The latest rounds of calls with their results, as long as all of them are equal."""

    def run(self) -> Iterator[Step]:
        """Yield the steps of the turn, each after it is saved; the last one is TurnStopped."""
        stopped = self._find_stop()
        while stopped is None:
            stopped = (yield from self._round()) or self._find_stop()
        yield stopped

    def _round(self) -> Generator[Step, None, TurnStopped | None]:
        """Make one request and run its calls, or compress. Return why the turn ended, if it did."""
        try:
            if self._is_full or self._needs_compression:
                yield self._compress()
                self._is_full = False
                return None
            message, reply = self._ask()
        except Cancelled:
            return self._find_stop() or TurnStopped(stop="interrupted", note=STOPPED_BY_USER)
        except ContextFull as error:
            if not self.compresses or not self.conversation.can_be_compressed:
                return TurnStopped(stop="context_full", note=str(error))
            self._is_full = True
            return None
        except ModelUnavailable as error:
            return TurnStopped(stop="model_failed", note=str(error))
        yield ModelReplied(reply=reply)
        if not message.tool_calls:
            return _end_of_turn(reply)
        results = []
        for index, result in self.dispatch.run(message.tool_calls):
            call = message.tool_calls[index]
            answer = self.conversation.result_message(call, result, self.clock())
            self.recorder.save(self.conversation, answer)
            results.append((call.name, call.arguments, result.text))
            yield ToolCalled(call=call, result=result)
        results.sort()
        return self._find_repetition(results)

    def _find_repetition(self, results: object) -> TurnStopped | None:
        self._equal_rounds = [*(past for past in self._equal_rounds if past == results), results]
        times = len(self._equal_rounds)
        if times < self.budget.limits.same_again:
            return None
        note = f"The same calls gave the same results {times} times in a row."
        return TurnStopped(stop="repeating", note=note)

    @property
    def _needs_compression(self) -> bool:
        window = self.model.context_tokens if self.compresses else None
        return compression.is_due(self.conversation, self.last_tokens.total, window)

    def _find_stop(self) -> TurnStopped | None:
        last = self.last_tokens
        prompt = (last.input_tokens, last.cache_read_tokens, last.cache_write_tokens)
        # The next request is at least as large as the last; before the first, use a low estimate.
        next_tokens = sum(filter(None, prompt)) or estimated_tokens(self.conversation.messages) // 2
        if exceeded := self.budget.find_exceeded(next_tokens):
            stop, note = exceeded
            return TurnStopped(stop=stop, note=note)
        if self.cancelled():
            return TurnStopped(stop="interrupted", note=STOPPED_BY_USER)
        return None

    def _ask(self) -> tuple[Message, Reply]:
        reply = self.model.ask(
            self.conversation.chat, self.tools, on_text=self.on_text, cancelled=self.cancelled
        )
        at = self.clock()
        message = self.conversation.reply_message(reply, at)
        usage = self.recorder.usage(message.key, reply, at)
        self.recorder.save(self.conversation, message, usage)
        self.budget.add(usage)
        self.last_tokens = reply.tokens
        return message, msgspec.structs.replace(reply, tool_calls=message.tool_calls)

    def _compress(self) -> ContextCompressed:
        """Continue in a new session. The usage of the summary is booked to the old one."""
        old, at = self.conversation, self.clock()
        reply = compression.request_summary(old, self.model, self.tools, self.cancelled)
        usage = None
        if reply is not None:
            key = f"compression-{old.messages[-1].key}"
            usage = self.recorder.usage(key, reply, at, task="compression")
            self.budget.add(usage)
        summary = "" if reply is None else reply.text
        window = self.model.context_tokens
        child = compression.successor(old, summary, self.new_id(), at, window)
        self.recorder.continue_in(old, child, at, usage)
        self.conversation, self.last_tokens = child, Tokens()
        parent, size = old.session.id, len(old.messages)
        return ContextCompressed(parent=parent, child=child.session.id, messages=size)


def _end_of_turn(reply: Reply) -> TurnStopped:
    if reply.finish_reason in ("length", "content_filter"):
        by = "its length limit" if reply.finish_reason == "length" else "a content filter"
        return TurnStopped(stop="cut", note=f"The model's reply was cut off by {by}.")
    if reply.text.strip():
        return TurnStopped(stop="done")
    return TurnStopped(stop="empty", note="The model ended its turn with an empty reply.")
