"""The loop of the agent: ask the model, run the calls it asks for, save, until it is done."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from journeyman.agent import compression
from journeyman.agent.compression import estimated_tokens
from journeyman.agent.conversation import Conversation, Recording
from journeyman.agent.dispatch import Dispatch
from journeyman.agent.turn import Called, Compressed, Replied, Spent, Step, Stopped
from journeyman.models.model import Cancelled, JsonObject, Model, Reply
from journeyman.records import Message, SessionId, Tokens
from journeyman.records.errors import ContextFull, ModelUnavailable

BY_USER = "It was stopped by the user."


@dataclass(kw_only=True, eq=False)
class Loop:
    """One turn of an agent. `conversation` is where it has come to: another one after each
    compression. `same_again` is how often the same calls may give the same results.
    """

    conversation: Conversation
    model: Model
    tools: Sequence[JsonObject]
    dispatch: Dispatch
    recording: Recording
    spent: Spent
    clock: Callable[[], float]
    new_id: Callable[[], SessionId]
    cancelled: Callable[[], bool]
    on_text: Callable[[str], None] = lambda _text: None
    same_again: int = 4
    compresses: bool = True
    last: Tokens = Tokens()  # noqa: RUF009 - frozen
    """What the last request and its reply took."""
    _is_full: bool = False
    _rounds: list[object] = field(default_factory=list)
    """The last rounds of calls with their results, as long as they are all the same."""

    def run(self) -> Iterator[Step]:
        """The steps of the turn, each saved before it is told; the last one is Stopped."""
        stopped = self._must_stop()
        while stopped is None:
            stopped = (yield from self._round()) or self._must_stop()
        yield stopped

    def _round(self) -> Generator[Step, None, Stopped | None]:
        """One request with its calls, or a compression; why the turn is over, where it is."""
        try:
            if self._is_full or self._is_filling:
                yield self._compress()
                self._is_full = False
                return None
            message, reply = self._ask()
        except Cancelled:
            return self._must_stop() or Stopped(stop="interrupted", note=BY_USER)
        except ContextFull as error:
            if not self.compresses or self.conversation.is_short:
                return Stopped(stop="context_full", note=str(error))
            self._is_full = True
            return None
        except ModelUnavailable as error:
            return Stopped(stop="model_failed", note=str(error))
        yield Replied(reply=reply)
        if not message.tool_calls:
            return _end(reply)
        results = []
        for place, result in self.dispatch.run(message.tool_calls):
            call = message.tool_calls[place]
            answer = self.conversation.answered(call, result, self.clock())
            self.recording.keep(self.conversation, answer)
            results.append((call.name, call.arguments, result.text))
            yield Called(call=call, result=result)
        results.sort()
        self._rounds = [*(one for one in self._rounds if one == results), results]
        if (times := len(self._rounds)) < self.same_again:
            return None
        note = f"The same calls gave the same results {times} times in a row."
        return Stopped(stop="repeating", note=note)

    @property
    def _is_filling(self) -> bool:
        window = self.model.context_tokens if self.compresses else None
        return compression.is_due(self.conversation, self.last.total, window)

    def _must_stop(self) -> Stopped | None:
        last = self.last
        prompt = (last.input_tokens, last.cache_read_tokens, last.cache_write_tokens)
        # What the next request takes at least: what the last one had, or before it a low guess.
        least = sum(filter(None, prompt)) or estimated_tokens(self.conversation.messages) // 2
        if over := self.spent.over(least):
            return Stopped(stop=over[0], note=over[1])
        return Stopped(stop="interrupted", note=BY_USER) if self.cancelled() else None

    def _ask(self) -> tuple[Message, Reply]:
        reply = self.model.ask(
            self.conversation.chat, self.tools, on_text=self.on_text, cancelled=self.cancelled
        )
        at = self.clock()
        message = self.conversation.heard(reply, at)
        usage = self.recording.usage(message.key, reply, at)
        self.recording.keep(self.conversation, message, usage)
        self.spent.add(usage)
        self.last = reply.tokens
        return message, msgspec.structs.replace(reply, tool_calls=message.tool_calls)

    def _compress(self) -> Compressed:
        """Go on in a new session. What the summary used is booked to the old one."""
        old, at = self.conversation, self.clock()
        reply = compression.ask_summary(old, self.model, self.tools, self.cancelled)
        usage = None
        if reply is not None:
            key = f"compression-{old.messages[-1].key}"
            usage = self.recording.usage(key, reply, at, task="compression")
            self.spent.add(usage)
        summary = "" if reply is None else reply.text
        window = self.model.context_tokens
        child = compression.continued(old, summary, self.new_id(), at, window)
        self.recording.continue_in(old, child, at, usage)
        self.conversation, self.last = child, Tokens()
        parent, size = old.session.id, len(old.messages)
        return Compressed(parent=parent, child=child.session.id, messages=size)


def _end(reply: Reply) -> Stopped:
    if reply.finish_reason in ("length", "content_filter"):
        by = "its longest length" if reply.finish_reason == "length" else "a filter"
        return Stopped(stop="cut", note=f"The model's reply was cut off by {by}.")
    if reply.text.strip():
        return Stopped(stop="done")
    return Stopped(stop="empty", note="The model ended its turn without a word.")
