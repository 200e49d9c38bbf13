"""One review: the agent is forked on a snapshot of the conversation, with the same model and the
same bytes in front so that the provider's cache serves them, and may do nothing but keep what was
learned. Its messages are kept nowhere; what it wrote and what it used is.
"""

import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from journeyman.agent.agent import Finished
from journeyman.agent.compressing import estimated_tokens
from journeyman.agent.conversation import Conversation
from journeyman.agent.dispatch import Decide, Dispatch, nobody
from journeyman.agent.knowledge.knowledge import Knowledge
from journeyman.agent.limits import Limits, Spent, Stop
from journeyman.agent.loop import Loop
from journeyman.agent.recording import Prices, Recording
from journeyman.agent.review.grounds import Grounds
from journeyman.agent.review.rules import Rules, Similarity
from journeyman.agent.review.wording import ALLOWED, INSTRUCTION, denial
from journeyman.agent.steps import Called, Replied, Stopped
from journeyman.agent.tools.journaled import journal_entry
from journeyman.agent.tools.knowledge import knowledge_tools
from journeyman.agent.tools.tool import Invocation, Result, Tool
from journeyman.agent.tools.toolbox import Toolbox
from journeyman.gate.decision import Decision
from journeyman.models.model import Model, Reply
from journeyman.records import (
    JournalEntry,
    Message,
    Provenance,
    Review,
    ReviewId,
    Usage,
    Write,
)
from journeyman.records.errors import JourneymanError, UnknownSession
from journeyman.records.knowledge import ReviewStatus
from journeyman.store.store import Store

MOST_ITERATIONS = 16
TASK = "background_review"

_SHOWN_CHARACTERS = 300
_LOOKED_AT = 500
_LATELY_S = 30 * 86400.0
_COUNTED, _GUESSED = 0.85, 0.6
"""How much of a window the conversation may take, where its tokens are counted and where they are
guessed; the rest is for the review."""
_FAILED: frozenset[Stop] = frozenset({"model_failed", "context_full"})


class Reviewed(Struct, frozen=True, kw_only=True):
    """What a review came to, with what it wrote, newest first."""

    review: Review
    entries: tuple[JournalEntry, ...] = ()


class Reviewer:
    """Reviews finished turns. `tools` are the agent's, for their definitions; of them only memory
    and skills ever run here.
    """

    def __init__(
        self,
        *,
        store: Store,
        model: Model,
        knowledge: Knowledge,
        tools: Iterable[Tool],
        decide: Decide,
        similarity: Similarity,
        find_risky: Callable[[str], str],
        prices: Prices,
        clock: Callable[[], float],
        platform: str = "library",
    ) -> None:
        self._store, self._model, self._knowledge = store, model, knowledge
        self._tools, self._decide = tuple(tools), decide
        self._similarity, self._find_risky, self._prices = similarity, find_risky, prices
        self._clock, self._platform = clock, platform

    def review(self, finished: Finished, cancelled: Callable[[], bool] = lambda: False) -> Reviewed:
        """Review a turn to its end. What the model or the rules refuse is no error; a database that
        does not work is.
        """
        begun = Review(
            id=ReviewId(secrets.token_hex(4)),
            session=finished.session.id,
            started_at=self._clock(),
            model=self._model.name,
        )
        self._store.reviews.begin(begun)
        steps: list[dict[str, Any]] = []
        loop, spent = self._loop(begun, finished, cancelled)
        stopped = Stopped(stop="interrupted")
        try:
            for step in loop.run():
                if isinstance(step, Called | Replied):
                    steps.append(_told(step))
                elif isinstance(step, Stopped):
                    stopped = step
        except JourneymanError as error:
            stopped = Stopped(stop="model_failed", note=str(error))
        finally:  # also when it is interrupted: no review stays at work for ever
            entries = tuple(self._store.reviews.writes(begun.id))
            ended = msgspec.structs.replace(
                begun,
                ended_at=self._clock(),
                status=_status(stopped.stop, changed=bool(entries)),
                error=stopped.note if stopped.stop in _FAILED else "",
                iterations=spent.api_calls,
                details={"steps": steps, "stop": stopped.stop},
            )
            self._store.reviews.finish(ended)
        return Reviewed(review=ended, entries=entries)

    def _loop(
        self, begun: Review, finished: Finished, cancelled: Callable[[], bool]
    ) -> tuple[Loop, Spent]:
        messages = fitting(finished, self._model.context_tokens)
        conversation = Conversation(finished.session, messages, lead=finished.lead)
        # Not in the user's name: a wish to keep something, said as the user's, forces writes.
        conversation.add(conversation.said("system", INSTRUCTION, self._clock(), kind="harness"))
        session = finished.session
        origin = Provenance(
            origin="background_review",
            context=f"review {begun.id}",
            session=session.id,
            parent=session.lineage.parent if session.lineage else "",
            platform=self._platform,
            model=self._model.name,
        )
        toolbox = self._toolbox(begun.id, Grounds(finished.messages, finished.lead))
        spent = Spent(Limits(turns=MOST_ITERATIONS), self._clock)
        loop = Loop(
            conversation,
            model=self._model,
            tools=finished.tools,
            dispatch=Dispatch(toolbox, self._decided, nobody, lambda: origin, cancelled),
            recording=_Booking(self._store, self._prices, begun.id),
            spent=spent,
            clock=self._clock,
            new_id=lambda: session.id,
            cancelled=cancelled,
            compresses=False,
        )
        return loop, spent

    def _decided(self, tool: str, arguments: dict[str, object]) -> Decision:
        if tool not in ALLOWED:
            return Decision(answer="refuse", rule="review.only_knowledge", reason=denial(tool))
        return self._decide(tool, arguments)

    def _toolbox(self, review: ReviewId, grounds: Grounds) -> Toolbox:
        """The agent's tools, with those for memory and skills under the rules of a review."""
        rules = Rules(grounds, self, self._similarity, self._find_risky)

        def check(write: Write, invocation: Invocation) -> None:
            rules.check(write, str(invocation.arguments.get("evidence") or ""))

        def keep(write: Write, invocation: Invocation) -> None:
            at = self._clock()
            entry = journal_entry(write, invocation, self._knowledge, at, review)
            self._store.reviews.add_write(entry)
            rules.written(write)

        bound = knowledge_tools(self._knowledge, keep=keep, check=check, viewed=rules.viewed)
        own = {tool.name: tool for tool in bound}
        return Toolbox([own.get(tool.name, tool) for tool in self._tools])

    def texts(self, kind: str) -> Sequence[str]:
        """What is written already; see `rules.Already`."""
        if kind == "skill":
            return [f"{one.name} {one.description}" for one in self._knowledge.skills.list()]
        memory = self._knowledge.memory
        return [*memory.entries("memory"), *memory.entries("user")]

    def changed_lines(self, path: str) -> int:
        """How many lines of a file reviews have changed in the last weeks; see `rules.Already`."""
        since = self._clock() - _LATELY_S
        return sum(
            entry.write.changed_lines
            for entry in self._store.reviews.writes(limit=_LOOKED_AT)
            if entry.write.path == path
            and entry.review is not None
            and entry.undone_at is None
            and entry.at >= since
            and entry.write.before is not None
        )


class _Booking(Recording):
    """Keeps no messages, and books what a review uses to the session that it reviews. That session
    may be deleted meanwhile; then there is nothing to book to.
    """

    def __init__(self, store: Store, prices: Prices, review: ReviewId) -> None:
        super().__init__(store, prices)
        self._accounts = store.accounts
        self._review = review

    def keep(
        self, conversation: Conversation, message: Message, usage: Usage | None = None
    ) -> None:
        if usage is not None:
            with suppress(UnknownSession):
                self._accounts.add(conversation.session.id, usage)
        conversation.add(message)

    def usage(self, key: str, reply: Reply, at: float, task: str = TASK) -> Usage:
        return super().usage(f"review-{self._review}-{key}", reply, at, task)


def fitting(finished: Finished, window: int | None) -> Sequence[Message]:
    """The messages of a turn; where they are too many for the window, the lead and as many of the
    last as fit, from a user's or an agent's message on.
    """
    messages, lead = finished.messages, finished.lead
    used = estimated_tokens(messages) if finished.tokens is None else finished.tokens
    if window is None or used <= window * (_GUESSED if finished.tokens is None else _COUNTED):
        return messages
    room = window * _GUESSED - estimated_tokens(messages[:lead])
    start = len(messages)
    while start > lead and (room := room - estimated_tokens(messages[start - 1 : start])) > 0:
        start -= 1
    while start < len(messages) and messages[start].role == "tool":
        start += 1
    return [*messages[:lead], *messages[start:]]


def _status(stop: Stop, *, changed: bool) -> ReviewStatus:
    if changed:
        return "changed"
    if stop == "interrupted":
        return "cancelled"
    return "failed" if stop in _FAILED else "unchanged"


def _told(step: Called | Replied) -> dict[str, Any]:
    if isinstance(step, Replied):
        return {"said": step.reply.text[:_SHOWN_CHARACTERS]}
    result: Result = step.result
    return {
        "tool": step.call.name,
        "arguments": step.call.arguments[:_SHOWN_CHARACTERS],
        "result": result.text[:_SHOWN_CHARACTERS],
    }
