"""Reviews of finished turns: a fork of the agent continues a copy of the conversation and may only
write what was learned to memory and skills. It begins with the same bytes, so that the provider's
cache serves them. A background review is cancelled as soon as a new turn begins.
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

from journeyman.agent.conversation import Conversation, Prices, SessionRecorder
from journeyman.agent.dispatch import Decide, Dispatch, no_approver
from journeyman.agent.knowledge.knowledge import Knowledge, Target
from journeyman.agent.loop import Loop
from journeyman.agent.review.evidence import SessionEvidence
from journeyman.agent.review.journal import journal_entry
from journeyman.agent.review.rules import WriteRules
from journeyman.agent.tools.knowledge_tools import knowledge_tools
from journeyman.agent.tools.tool import Invocation, Tool
from journeyman.agent.tools.toolbox import Toolbox
from journeyman.agent.turn import STOPPED_BY_USER, FinishedTurn, TurnBudget, TurnStopped
from journeyman.gate.decision import Decision
from journeyman.hosts.runner import RunCall, RunLimits, RunStatus, RunStep, RunText
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
ALLOWED_TOOLS = ("memory", "skills_list", "skill_view", "skill_manage")
MAX_REQUESTS = 16
_LEFT_ALONE = " Do not write to memory with the target {}: the settings forbid it."
_CANCEL_WAIT_S = 2.0
"""How long a new turn waits for a cancelled review."""

_STEP_CHARACTERS = 300
_STATUS: dict[RunStatus, ReviewStatus] = {
    "interrupted": "cancelled",
    "model_failed": "failed",
    "context_full": "failed",
    "done": "unchanged",
}
"""The status of a review without a write; after any other stop it is incomplete."""


class ReviewResult(Struct, frozen=True, kw_only=True):
    """A finished review with its writes, newest first."""

    review: Review
    entries: tuple[JournalEntry, ...] = ()


@dataclass(kw_only=True, eq=False)
class Reviewer:
    """Reviews finished turns. Of the agent's `tools`, only those for memory and skills may run."""

    store: Store
    model: Model
    knowledge: Knowledge
    tools: Sequence[Tool]
    decide: Decide
    similarity: Callable[[str, Sequence[str]], Sequence[float]]
    find_risk: Callable[[str], str]
    prices: Prices
    clock: Callable[[], float]
    platform: str = "library"
    left_alone: Sequence[Target] = ()
    """The parts of memory that reviews do not write."""

    def review(
        self, turn: FinishedTurn, cancelled: Callable[[], bool] = lambda: False
    ) -> ReviewResult:
        """Review a turn to the end. Only a failing database raises an error."""
        id_, model = ReviewId(secrets.token_hex(4)), self.model.name
        review = Review(id=id_, session=turn.session.id, started_at=self.clock(), model=model)
        self.store.reviews.begin(review)
        steps: list[dict[str, Any]] = []
        budget = TurnBudget(RunLimits(turns=MAX_REQUESTS), self.clock)
        stopped = STOPPED_BY_USER
        try:
            loop = self._loop(id_, turn, budget, cancelled)
            loop.on_step = lambda step: steps.append(_step_details(step))
            stopped = loop.run()
        except JourneymanError as error:
            stopped = TurnStopped(status="model_failed", reason=str(error))
        finally:  # also on an interrupt: no review may stay unfinished
            entries = tuple(self.store.reviews.writes(id_))
            status = _STATUS.get(stopped.status, "incomplete")
            review = msgspec.structs.replace(
                review,
                ended_at=self.clock(),
                status="changed" if entries else status,
                error="" if stopped.status == "interrupted" else stopped.reason,
                iterations=budget.requests,
                details={"steps": steps, "stop": stopped.status},
            )
            self.store.reviews.finish(review)
        return ReviewResult(review=review, entries=entries)

    def _loop(
        self,
        review: ReviewId,
        turn: FinishedTurn,
        budget: TurnBudget,
        cancelled: Callable[[], bool],
    ) -> Loop:
        session = turn.session
        conversation = Conversation(session, turn.messages, lead=turn.lead)
        # A system message: the same instruction in the user's name would provoke needless writes.
        text = "".join([INSTRUCTION, *map(_LEFT_ALONE.format, self.left_alone)])
        instruction = conversation.next_message("system", text, self.clock(), kind="harness")
        conversation.messages.append(instruction)
        origin = Provenance(
            origin="background_review",
            context=f"review {review}",
            session=session.id,
            parent=session.lineage.parent if session.lineage else "",
            platform=self.platform,
            model=self.model.name,
        )
        toolbox = self._toolbox(review, SessionEvidence(turn.messages, turn.lead))
        return Loop(
            conversation=conversation,
            model=self.model,
            tools=turn.tools,
            dispatch=Dispatch(toolbox, self._decide_in_review, no_approver, origin, cancelled),
            recorder=_ReviewRecorder(self.store, self.prices, review),
            budget=budget,
            clock=self.clock,
            cancelled=cancelled,
        )

    def _decide_in_review(self, tool: Tool, arguments: dict[str, object]) -> Decision:
        target, reason = arguments.get("target"), ""
        if tool.name not in ALLOWED_TOOLS:
            reason = f"A review cannot use {tool.name}, only {', '.join(ALLOWED_TOOLS)}."
        elif tool.name == "memory" and target in self.left_alone:
            reason = f"The settings keep reviews from writing the target {target}."
        if not reason:
            return self.decide(tool, arguments)
        return Decision(answer="refuse", rule="review.only_knowledge", reason=reason)

    def _toolbox(self, review: ReviewId, session_evidence: SessionEvidence) -> Toolbox:
        """The agent's tools, with those for memory and skills bound to the rules of a review."""
        rules = WriteRules(
            session_evidence=session_evidence,
            existing_texts=self._existing_texts,
            similarity=self.similarity,
            find_risk=self.find_risk,
        )

        def check(write: Write, invocation: Invocation) -> None:
            rules.check(write, str(invocation.arguments.get("evidence") or ""))

        def record(write: Write, invocation: Invocation) -> None:
            at = self.clock()
            entry = journal_entry(write, invocation, self.knowledge, at, review)
            self.store.reviews.add_write(entry)
            rules.note_write(write)

        bound = knowledge_tools(self.knowledge, keep=record, check=check, viewed=rules.note_view)
        by_name = {tool.name: tool for tool in bound}
        return Toolbox([by_name.get(tool.name, tool) for tool in self.tools])

    def _existing_texts(self, kind: str) -> Sequence[str]:
        if kind == "skill":
            skills = self.knowledge.skills.list()
            return [f"{skill.name} {skill.description}" for skill in skills]
        memory = self.knowledge.memory
        return [*memory.entries("memory"), *memory.entries("user")]


class _ReviewRecorder(SessionRecorder):
    """Stores no messages, and books the usage of a review to the reviewed session, if it exists."""

    def __init__(self, store: Store, prices: Prices, review: ReviewId) -> None:
        super().__init__(store, prices)
        self._review = review

    def save(
        self, conversation: Conversation, message: Message, usage: Usage | None = None
    ) -> None:
        if usage is not None:
            with suppress(UnknownSession):
                self._store.usage.add(conversation.session.id, usage)
        conversation.messages.append(message)

    def usage(self, key: str, reply: Reply, at: float, task: str = "background_review") -> Usage:
        return super().usage(f"review-{self._review}-{key}", reply, at, task)


@dataclass(eq=False)
class BackgroundReview:
    """Decides when a turn is reviewed, and reviews it in a thread. `notify` receives a line for
    people, with `reports_all` even if nothing was kept. `unreviewed` counts the turns and calls of
    earlier agents since the last review.
    """

    reviewer: Reviewer
    _: KW_ONLY
    every_turns: int
    every_calls: int
    notify: Callable[[str], None] = lambda _line: None
    reports_all: bool = False
    unreviewed: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        self._turns, self._calls = self.unreviewed
        # An event rather than Thread.join, which forgets the thread when Ctrl-C interrupts it.
        self._stop, self._done = threading.Event(), threading.Event()
        self._done.set()

    def consider(self, turn: FinishedTurn) -> None:
        """Count a finished turn, and review it if a review is due and none is running."""
        self._turns += 1
        self._calls += turn.new_calls
        is_due = self._turns >= self.every_turns or self._calls >= self.every_calls
        if is_due and self._done.is_set():
            self._stop, self._done = threading.Event(), threading.Event()
            arguments = (turn, self._stop, self._done)
            threading.Thread(
                target=self._run, args=arguments, name="background-review", daemon=True
            ).start()

    def cancel(self) -> None:
        """Cancel a running review, and wait briefly for it to end."""
        self._stop.set()
        self._done.wait(_CANCEL_WAIT_S)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for a running review to end; return whether none is running."""
        return self._done.wait(timeout_s)

    def _run(self, turn: FinishedTurn, stop: threading.Event, done: threading.Event) -> None:
        try:
            result = self.reviewer.review(turn, stop.is_set)
            if result.review.status != "cancelled":  # a cancelled review is still due
                self._turns = self._calls = 0
            if line := self._line(result):
                self.notify(line)
        except Exception as error:
            # A background thread: the conversation must continue even if this fails.
            logging.getLogger(__name__).exception("A background review failed")
            self.notify(f"The review failed: {error}")
        finally:
            done.set()

    def _line(self, result: ReviewResult) -> str:
        """Return what a person is told of a review; empty if nothing."""
        review = result.review
        if review.status == "failed":
            return f"The review failed: {review.error}"
        if result.entries:
            changes = "; ".join(entry.write.summary for entry in reversed(result.entries))
            return f"Review: {changes} (undo: journeyman review undo {review.id})"
        if self.reports_all and review.status == "unchanged":
            return "Review: nothing to keep."
        if self.reports_all and review.status == "incomplete":
            return f"The review is incomplete: {review.error}"
        return ""


def _step_details(step: RunStep) -> dict[str, Any]:
    if isinstance(step, RunText):
        return {"said": step.text[:_STEP_CHARACTERS]}
    assert isinstance(step, RunCall)
    return {
        "tool": step.call.tool,
        "arguments": step.call.arguments[:_STEP_CHARACTERS],
        "result": (step.call.result or "")[:_STEP_CHARACTERS],
    }
