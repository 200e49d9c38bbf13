"""A review: the agent is forked on a snapshot of the conversation, with the same bytes in front so
that the provider's cache serves them, and may do nothing but keep what was learned. In the
background it gives way as soon as a new turn begins.
"""

import logging
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any

import msgspec
from msgspec import Struct

from journeyman.agent.compression import estimated_tokens
from journeyman.agent.conversation import Conversation, Prices, Recording
from journeyman.agent.dispatch import Decide, Dispatch, nobody
from journeyman.agent.knowledge.knowledge import Knowledge
from journeyman.agent.loop import Loop
from journeyman.agent.review.evidence import Grounds
from journeyman.agent.review.journal import journal_entry
from journeyman.agent.review.rules import Rules, Similarity
from journeyman.agent.tools.knowledge_tools import knowledge_tools
from journeyman.agent.tools.tool import Invocation, Tool
from journeyman.agent.tools.toolbox import Toolbox
from journeyman.agent.turn import Called, Finished, Limits, Replied, Spent, Stop, Stopped
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

INSTRUCTION = (
    "The turn is over. This is a review of it, which the user does not see; do not go on with the "
    "task. Is there something that would help in later sessions: a wish or a fact that the user "
    "stated (memory, target user or memory), or a way of doing this kind of task that was seen to "
    "work here (a skill)? Usually there is nothing, and changing nothing is right: then answer "
    "“Nothing to keep.” Otherwise read what is there (skills_list, skill_view) before you write, "
    "and give as evidence the user's words, quoted, or the id of the call that worked. Do not keep "
    "guesses, passing failures, secrets, or what is kept already. Only memory, skills_list, "
    "skill_view and skill_manage can be used now."
)

ALLOWED = ("memory", "skills_list", "skill_view", "skill_manage")

logger = logging.getLogger(__name__)

MOST_ITERATIONS = 16
WAIT_S = 2.0
"""How long a new turn waits for a review to give way."""
TASK = "background_review"

_SHOWN_CHARACTERS = 300
_LOOKED_AT = 500
_LATELY_S = 30 * 86400.0
_COUNTED, _GUESSED = 0.85, 0.6
"""How much of a window the conversation may take, where its tokens are counted and where they are
guessed; the rest is for the review."""
_ENDED: dict[Stop, ReviewStatus] = {
    "interrupted": "cancelled",
    "model_failed": "failed",
    "context_full": "failed",
}


class Reviewed(Struct, frozen=True, kw_only=True):
    """What a review came to, with what it wrote, newest first."""

    review: Review
    entries: tuple[JournalEntry, ...] = ()


@dataclass(kw_only=True, eq=False)
class Reviewer:
    """Reviews finished turns. Of the agent's `tools` only memory and skills ever run here."""

    store: Store
    model: Model
    knowledge: Knowledge
    tools: Sequence[Tool]
    decide: Decide
    similarity: Similarity
    find_risky: Callable[[str], str]
    prices: Prices
    clock: Callable[[], float]
    platform: str = "library"

    def review(self, finished: Finished, cancelled: Callable[[], bool] = lambda: False) -> Reviewed:
        """Review a turn to its end. Only a database that does not work is an error."""
        begun = Review(
            id=ReviewId(secrets.token_hex(4)),
            session=finished.session.id,
            started_at=self.clock(),
            model=self.model.name,
        )
        self.store.reviews.begin(begun)
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
            entries = tuple(self.store.reviews.writes(begun.id))
            ended = msgspec.structs.replace(
                begun,
                ended_at=self.clock(),
                status="changed" if entries else _ENDED.get(stopped.stop, "unchanged"),
                error=stopped.note if stopped.stop in ("model_failed", "context_full") else "",
                iterations=spent.api_calls,
                details={"steps": steps, "stop": stopped.stop},
            )
            self.store.reviews.finish(ended)
        return Reviewed(review=ended, entries=entries)

    def _loop(
        self, begun: Review, finished: Finished, cancelled: Callable[[], bool]
    ) -> tuple[Loop, Spent]:
        messages = fitting(finished, self.model.context_tokens)
        conversation = Conversation(finished.session, messages, lead=finished.lead)
        # Not in the user's name: a wish to keep something, said as the user's, forces writes.
        conversation.add(conversation.said("system", INSTRUCTION, self.clock(), kind="harness"))
        session = finished.session
        origin = Provenance(
            origin="background_review",
            context=f"review {begun.id}",
            session=session.id,
            parent=session.lineage.parent if session.lineage else "",
            platform=self.platform,
            model=self.model.name,
        )
        toolbox = self._toolbox(begun.id, Grounds(finished.messages, finished.lead))
        spent = Spent(Limits(turns=MOST_ITERATIONS), self.clock)
        loop = Loop(
            conversation=conversation,
            model=self.model,
            tools=finished.tools,
            dispatch=Dispatch(toolbox, self._decided, nobody, lambda: origin, cancelled),
            recording=_Booking(self.store, self.prices, begun.id),
            spent=spent,
            clock=self.clock,
            new_id=lambda: session.id,
            cancelled=cancelled,
            compresses=False,
        )
        return loop, spent

    def _decided(self, tool: str, arguments: dict[str, object]) -> Decision:
        if tool not in ALLOWED:
            return Decision(
                answer="refuse",
                rule="review.only_knowledge",
                reason=f"A review may not use {tool}, only {', '.join(ALLOWED)}.",
            )
        return self.decide(tool, arguments)

    def _toolbox(self, review: ReviewId, grounds: Grounds) -> Toolbox:
        """The agent's tools, with those for memory and skills under the rules of a review."""
        rules = Rules(
            grounds=grounds,
            texts=self._texts,
            changed_lines=self._changed_lines,
            similarity=self.similarity,
            find_risky=self.find_risky,
        )

        def check(write: Write, invocation: Invocation) -> None:
            rules.check(write, str(invocation.arguments.get("evidence") or ""))

        def keep(write: Write, invocation: Invocation) -> None:
            at = self.clock()
            entry = journal_entry(write, invocation, self.knowledge, at, review)
            self.store.reviews.add_write(entry)
            rules.written(write)

        bound = knowledge_tools(self.knowledge, keep=keep, check=check, viewed=rules.viewed)
        own = {tool.name: tool for tool in bound}
        return Toolbox([own.get(tool.name, tool) for tool in self.tools])

    def _texts(self, kind: str) -> Sequence[str]:
        if kind == "skill":
            return [f"{one.name} {one.description}" for one in self.knowledge.skills.list()]
        memory = self.knowledge.memory
        return [*memory.entries("memory"), *memory.entries("user")]

    def _changed_lines(self, path: str) -> int:
        since = self.clock() - _LATELY_S
        return sum(
            entry.write.changed_lines
            for entry in self.store.reviews.writes(limit=_LOOKED_AT)
            if entry.write.path == path
            and entry.review is not None
            and entry.undone_at is None
            and entry.at >= since
            and entry.write.before is not None
        )


class _Booking(Recording):
    """Keeps no messages, and books what a review uses to the reviewed session, if it is there."""

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


@dataclass(eq=False)
class BackgroundReview:
    """Decides when a turn is reviewed, and does it in a thread. `tell` gets the line for people;
    `since` counts the turns and calls of earlier agents that no review has followed.
    """

    reviewer: Reviewer
    _: KW_ONLY
    every_turns: int
    every_calls: int
    tell: Callable[[str], None] = lambda _line: None
    tells_all: bool = False
    since: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        self._turns, self._calls = self.since
        self._stop, self._done = threading.Event(), threading.Event()
        self._done.set()  # not the thread itself is asked: a join that Ctrl-C breaks off forgets it

        self._told_failure = False

    def consider(self, finished: Finished) -> None:
        """Count a finished turn, and review it if it is time and no review is at work."""
        self._turns += 1
        self._calls += finished.new_calls
        if self._turns < self.every_turns and self._calls < self.every_calls:
            return
        if not self._done.is_set():
            return
        self._stop, self._done = threading.Event(), threading.Event()
        threading.Thread(
            target=self._run,
            args=(finished, self._stop, self._done),
            name="background-review",
            daemon=True,
        ).start()

    def cancel(self) -> None:
        """Ask a running review to give way, and wait a moment until it has."""
        self._stop.set()
        self._done.wait(WAIT_S)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until a running review is done; whether it is."""
        return self._done.wait(timeout_s)

    def _run(self, finished: Finished, stop: threading.Event, done: threading.Event) -> None:
        try:
            self._say(self.reviewer.review(finished, stop.is_set))
        except Exception as error:
            # One turn of a background loop: the conversation must go on, whatever happened here.
            logger.exception("A background review failed")
            self._say_failure(error)
        finally:
            done.set()

    def _say(self, reviewed: Reviewed) -> None:
        review = reviewed.review
        if review.status != "cancelled":  # else what it would have seen is still due
            self._turns = self._calls = 0
        if review.status == "failed":
            logger.warning("The review failed: %s", review.error)
            self._say_failure(review.error)
        elif reviewed.entries:
            changes = "; ".join(entry.write.summary for entry in reversed(reviewed.entries))
            self.tell(f"Review: {changes} (undo: journeyman review undo {review.id})")
        elif self.tells_all and review.status == "unchanged":
            self.tell("Review: nothing to keep.")

    def _say_failure(self, error: object) -> None:
        if not self._told_failure:  # the next ones are likely the same
            self.tell(f"The review failed: {error}")
        self._told_failure = True


def fitting(finished: Finished, window: int | None) -> Sequence[Message]:
    """The messages of a turn, or the lead and as many of the last as fit the window."""
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


def _told(step: Called | Replied) -> dict[str, Any]:
    if isinstance(step, Replied):
        return {"said": step.reply.text[:_SHOWN_CHARACTERS]}
    return {
        "tool": step.call.name,
        "arguments": step.call.arguments[:_SHOWN_CHARACTERS],
        "result": step.result.text[:_SHOWN_CHARACTERS],
    }
