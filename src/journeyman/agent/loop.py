"""The loop of the agent: ask the model, run the calls it asks for, save, and again, until it is
done or a limit says stop. It yields what happens as typed steps; it prints nothing and knows no
provider.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from journeyman.agent import compressing
from journeyman.agent.conversation import Conversation
from journeyman.agent.dispatch import Dispatch
from journeyman.agent.limits import Spent
from journeyman.agent.recording import Recording
from journeyman.agent.steps import Called, Compressed, Replied, Step, Stopped
from journeyman.models.model import Cancelled, JsonObject, Model, Reply
from journeyman.records import Message, SessionId, Tokens, Usage
from journeyman.records.errors import ContextFull, ModelUnavailable


class Loop:
    """One turn of an agent. `conversation` is where it has come to: another one after each
    compression. `same_again` is how often the same calls may give the same results.
    """

    def __init__(
        self,
        conversation: Conversation,
        *,
        model: Model,
        tools: Sequence[JsonObject],
        dispatch: Dispatch,
        recording: Recording,
        spent: Spent,
        clock: Callable[[], float],
        new_id: Callable[[], SessionId],
        cancelled: Callable[[], bool],
        on_text: Callable[[str], None] = lambda _text: None,
        same_again: int = 4,
        compresses: bool = True,
    ) -> None:
        self.conversation = conversation
        self._model, self._tools, self._dispatch = model, tools, dispatch
        self._recording, self._spent = recording, spent
        self._clock, self._new_id = clock, new_id
        self._cancelled, self._on_text = cancelled, on_text
        self._same_again, self._compresses = same_again, compresses
        self._last = Tokens()  # what the last request and its reply took
        self._is_kept_short = False  # because few tokens are left

    def run(self) -> Iterator[Step]:
        """The steps of the turn, each saved before it is told; the last one is Stopped."""
        rounds: list[object] = []
        is_full = False
        while True:
            if stopped := self._must_stop():
                yield stopped
                return
            try:
                if is_full or self._is_filling:
                    yield self._compress()
                    is_full = False
                    if stopped := self._must_stop():  # the summary was a request, too
                        yield stopped
                        return
                message, reply = self._ask()
            except Cancelled:
                yield self._must_stop() or Stopped(stop="interrupted", note=BY_USER)
                return
            except ContextFull as error:
                if is_full or not self._compresses or self.conversation.is_short:
                    yield Stopped(stop="context_full", note=str(error))
                    return
                is_full = True
                continue
            except ModelUnavailable as error:
                yield Stopped(stop="model_failed", note=str(error))
                return
            yield Replied(reply=reply)
            if not message.tool_calls:
                yield _end(reply, self._spent if self._is_kept_short else None)
                return
            results = []
            for place, result in self._dispatch.run(message.tool_calls):
                call = message.tool_calls[place]
                self._keep(self.conversation.answered(call, result, self._clock()))
                results.append((call.name, call.arguments, result.text))
                yield Called(call=call, result=result)
            rounds.append(sorted(results))
            if _goes_round(rounds, self._same_again):
                note = f"The same calls gave the same results {len(rounds)} times in a row."
                yield Stopped(stop="repeating", note=note)
                return

    @property
    def last_tokens(self) -> int | None:
        """What the last request and its reply took together, None where the model did not say."""
        return self._last.total

    @property
    def _is_filling(self) -> bool:
        window = self._model.context_tokens if self._compresses else None
        return compressing.is_due(self.conversation, self.last_tokens, window)

    def _must_stop(self) -> Stopped | None:
        if over := self._spent.over(self._least):
            return Stopped(stop=over[0], note=over[1])
        return Stopped(stop="interrupted", note=BY_USER) if self._cancelled() else None

    @property
    def _least(self) -> int:
        """What the next request takes at least: what the last one had, its reply apart, which may
        have been thought and not sent again; or, before there was one, a low guess.
        """
        last = (
            self._last.input_tokens,
            self._last.cache_read_tokens,
            self._last.cache_write_tokens,
        )
        guessed = compressing.estimated_tokens(self.conversation.messages) // 2
        return sum(filter(None, last)) or guessed

    def _ask(self) -> tuple[Message, Reply]:
        left = self._spent.left(self._least)
        # Only where it matters: servers refuse lengths that their models do not have.
        self._is_kept_short = left is not None and left < _SHORT_REPLY
        reply = self._model.ask(
            self.conversation.chat,
            self._tools,
            max_tokens=max(1, left or 0) if self._is_kept_short else None,
            on_text=self._on_text,
            cancelled=self._cancelled,
        )
        at = self._clock()
        message = self.conversation.heard(reply, at)
        self._keep(message, self._recording.usage(message.key, reply, at))
        self._last = reply.tokens
        return message, msgspec.structs.replace(reply, tool_calls=message.tool_calls)

    def _keep(self, message: Message, usage: Usage | None = None) -> None:
        self._recording.keep(self.conversation, message, usage)
        if usage is not None:
            self._spent.add(usage)

    def _compress(self) -> Compressed:
        """Go on in a new session. What the summary used is booked to the old one."""
        old, at = self.conversation, self._clock()
        reply = compressing.ask_summary(old, self._model, self._tools, self._cancelled)
        usage = None
        if reply is not None:
            key = f"compression-{old.messages[-1].key}"
            usage = self._recording.usage(key, reply, at, task="compression")
            self._spent.add(usage)
        summary = "" if reply is None else reply.text
        window = self._model.context_tokens
        child = compressing.continued(old, summary, self._new_id(), at, window)
        self._recording.continue_in(old, child, at, usage)
        self.conversation, self._last = child, Tokens()
        parent, size = old.session.id, len(old.messages)
        return Compressed(parent=parent, child=child.session.id, messages=size)


_SHORT_REPLY = 4096
BY_USER = "It was stopped by the user."


def _end(reply: Reply, kept_short: Spent | None) -> Stopped:
    if reply.finish_reason == "length" and kept_short is not None:
        used = f"{kept_short.tokens or 0:,} tokens are used"
        return Stopped(stop="tokens", note=f"{used}; the reply was cut off by the limit on them.")
    if reply.finish_reason in ("length", "content_filter"):
        by = "its longest length" if reply.finish_reason == "length" else "a filter"
        return Stopped(stop="cut", note=f"The model's reply was cut off by {by}.")
    if reply.text.strip():
        return Stopped(stop="done")
    return Stopped(stop="empty", note="The model ended its turn without a word.")


def _goes_round(rounds: list[object], most: int) -> bool:
    """Whether the last rounds of calls were all the same; only those are remembered."""
    if len(rounds) > 1 and rounds[-1] != rounds[-2]:
        del rounds[:-1]
    return len(rounds) >= most
