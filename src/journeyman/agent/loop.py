"""The agent loop: ask the model, run the calls it requests, save, and repeat until it is done."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from journeyman.agent.conversation import Conversation, SessionRecorder
from journeyman.agent.dispatch import Dispatch
from journeyman.agent.turn import STOPPED_BY_USER, TurnBudget, TurnStopped
from journeyman.hosts.runner import DeniedCall, RunCall, RunStep, RunText
from journeyman.models.model import Cancelled, JsonObject, Model, Reply
from journeyman.records import Call, ToolCall
from journeyman.records.errors import ContextFull, ModelUnavailable

_MOST_EQUAL_ROUNDS = 4
"""A turn ends when the same calls have given the same results this many times in a row."""
_CHARACTERS_PER_TOKEN = 4
"""An estimate for text whose tokens no model has counted yet."""


@dataclass(kw_only=True, eq=False)
class Loop:
    """One turn of an agent. Each step is saved before it is reported to `on_step`. `reply` is the
    latest one of the model.
    """

    conversation: Conversation
    model: Model
    tools: Sequence[JsonObject]
    dispatch: Dispatch
    recorder: SessionRecorder
    budget: TurnBudget
    clock: Callable[[], float]
    cancelled: Callable[[], bool]
    on_step: Callable[[RunStep], None] = lambda _step: None
    reply: Reply = Reply()  # noqa: RUF009 - frozen
    calls: int = 0
    denied: list[DeniedCall] = field(default_factory=list)
    _counted: tuple[int, int] = (0, 0)
    """How many messages the model has counted, and their tokens."""
    _equal_rounds: list[object] = field(default_factory=list)
    """The latest rounds of calls with their results, as long as all of them are equal."""

    def run(self) -> TurnStopped:
        """Run the turn, and return how it ended."""
        while True:
            if stopped := self._find_stop():
                return stopped
            try:
                calls = self._ask()
            except Cancelled:
                return self._find_stop() or STOPPED_BY_USER
            except ContextFull as error:
                return TurnStopped(status="context_full", reason=str(error))
            except ModelUnavailable as error:
                return TurnStopped(status="model_failed", reason=str(error))
            if not calls:
                return _end_of_turn(self.reply)
            results = [self._run_call(call) for call in calls]
            self._equal_rounds = [past for past in self._equal_rounds if past == results]
            self._equal_rounds.append(results)
            if len(self._equal_rounds) == _MOST_EQUAL_ROUNDS:
                reason = (
                    f"The same calls gave the same results {_MOST_EQUAL_ROUNDS} times in a row."
                )
                return TurnStopped(status="repeating", reason=reason)

    def _ask(self) -> tuple[ToolCall, ...]:
        """Have the model reply, and return the calls that it requests."""
        conversation = self.conversation
        reply = self.model.ask(conversation.chat, self.tools, cancelled=self.cancelled)
        at = self.clock()
        message = conversation.next_message(
            "assistant",
            reply.text,
            at,
            reasoning=reply.reasoning,
            tool_calls=reply.tool_calls,
            model=reply.model,
            finish_reason=reply.finish_reason,
        )
        usage = self.recorder.usage(message.key, reply, at)
        self.recorder.save(conversation, message, usage)
        self.reply = reply
        self.budget.add(usage)
        if total := reply.tokens.total:
            self._counted = len(conversation.messages), total
        if reply.text.strip():
            self.on_step(RunText(text=reply.text.strip()))
        return message.tool_calls

    def _run_call(self, call: ToolCall) -> object:
        """Run one call, and return what makes it equal to another."""
        result = self.dispatch.run(call)
        answer = self.conversation.result_message(call, result, self.clock())
        self.recorder.save(self.conversation, answer)
        self.calls += 1
        is_denied = result.recorded.status == "blocked"
        if is_denied:
            self.denied.append(DeniedCall(tool=call.name, reason=answer.text))
        joined = Call(
            id=call.id,
            tool=call.name,
            arguments=call.arguments,
            result=answer.text,
            recorded=result.recorded,
        )
        self.on_step(RunCall(call=joined, denied=is_denied))
        return call.name, call.arguments, answer.text

    def _find_stop(self) -> TurnStopped | None:
        counted, known_tokens = self._counted
        new = self.conversation.messages[counted:]
        in_calls = sum(len(call.arguments) for item in new for call in item.tool_calls)
        characters = in_calls + sum(len(item.text) for item in new)
        next_tokens = known_tokens + characters // _CHARACTERS_PER_TOKEN
        if exceeded := self.budget.find_exceeded(next_tokens):
            return exceeded
        if self.cancelled():
            return STOPPED_BY_USER
        # Some servers silently drop the beginning of a request that does not fit.
        window = self.model.context_tokens if known_tokens else None
        if window is not None and next_tokens > window:
            reason = f"The next request needs about {next_tokens:,} tokens; {self.model.name} has "
            reason += f"a context window of {window:,}. Start a new run with a smaller task."
            return TurnStopped(status="context_full", reason=reason)
        return None


def _end_of_turn(reply: Reply) -> TurnStopped:
    if reply.finish_reason in ("length", "content_filter"):
        by = "its length limit" if reply.finish_reason == "length" else "a content filter"
        return TurnStopped(status="cut", reason=f"The model's reply was cut off by {by}.")
    if reply.text.strip():
        return TurnStopped(status="done")
    return TurnStopped(status="empty", reason="The model ended its turn with an empty reply.")
