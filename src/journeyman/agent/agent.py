"""The agent: runs the turns of a conversation, stores them, and has them reviewed."""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from journeyman.agent.conversation import Conversation, Prices, SessionRecorder
from journeyman.agent.dispatch import Decide, Dispatch, interrupted_result, no_approver
from journeyman.agent.loop import Loop
from journeyman.agent.snapshots import TurnSnapshots
from journeyman.agent.tools.toolbox import Toolbox
from journeyman.agent.turn import (
    END_REASONS,
    STOPPED_BY_USER,
    FinishedTurn,
    Turn,
    TurnBudget,
    TurnStopped,
)
from journeyman.experience.opening import Opening, leading_system_count
from journeyman.gate.decision import Approver
from journeyman.hosts.runner import RunBegan, RunLimits, RunOpening, RunStep
from journeyman.learning.opening_text import opening_length
from journeyman.logs.chat import conversation_fragment
from journeyman.models.model import JsonObject, Model
from journeyman.records import Provenance, Tokens
from journeyman.records.errors import WrongInput
from journeyman.store.store import Store

if TYPE_CHECKING:
    from journeyman.agent.review.reviewer import BackgroundReview

SOURCE = "journeyman"

OpeningFor = Callable[[str, Sequence[JsonObject]], Opening]
"""Returns the opening for a task and the tools of the session."""

_TASK_PROMPT = (
    "You are an agent that gets work done with tools, in the folder {workspace}. Paths are "
    "relative to it. Do the task step by step: call a tool, look at its result, go on. Check what "
    "you did before you say that it is done. When the task is done, or cannot be done, say so in "
    "a few words; do not claim what no result shows."
)


def system_prompt(workspace: Path, knowledge: str = "", briefing: str = "") -> str:
    """The prompt for work in a folder. It is built once per session, so that all requests begin
    with the same bytes.
    """
    parts = (_TASK_PROMPT.format(workspace=workspace.name or str(workspace)), knowledge, briefing)
    return "\n\n".join(part.strip() for part in parts if part.strip())


@dataclass(kw_only=True, eq=False)
class Agent:
    """An agent with its model, tools and limits. It runs one conversation at a time and stores
    everything it says and does before it continues. `facts` are recorded about each new session;
    `system_prompt` and `opening` return what it starts with. `clock` is the time of day; time
    limits are measured with `timer`, if there is one.
    """

    store: Store
    model: Model
    toolbox: Toolbox
    system_prompt: Callable[[], str]
    decide: Decide
    opening: OpeningFor = lambda task, _tools: Opening(task=task)
    facts: Mapping[str, Any] = field(default_factory=dict)
    ask: Approver = no_approver
    limits: RunLimits = RunLimits()  # noqa: RUF009 - frozen
    prices: Prices = lambda _model, _tokens: None
    background_review: "BackgroundReview | None" = None
    snapshots: TurnSnapshots | None = None
    clock: Callable[[], float] = time.time
    timer: Callable[[], float] | None = None
    on_close: Callable[[], None] = lambda: None
    _conversation: Conversation | None = None

    def __post_init__(self) -> None:
        self._recorder = SessionRecorder(self.store, self.prices)

    def run_conversation(
        self,
        user_message: str,
        conversation_history: Sequence[Mapping[str, Any]] | None = None,
        *,
        on_step: Callable[[RunStep], None] = lambda _step: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Turn:
        """Run one turn on a user message, in the agent's current conversation. A history that
        differs from the current conversation starts a new one.
        """
        if not isinstance(user_message, str) or not user_message.strip():
            raise WrongInput("There is nothing to do: the task is empty. Describe the task.")
        if self.background_review is not None:
            self.background_review.cancel()
        current, opening, history = self._conversation, None, conversation_history
        if current is None or (history is not None and current.chat != [*history]):
            current, opening = self._start_session(user_message, history or ())
        # Stored with the first step, so that a session that ends abruptly does not look as if it
        # had ended well with the previous turn.
        current.session = msgspec.structs.replace(current.session, end_reason="running")
        self._conversation = current
        budget = TurnBudget(self.limits, self.timer or self.clock)

        def must_stop() -> bool:
            return cancelled() or budget.is_out_of_time

        loop = Loop(
            conversation=current,
            model=self.model,
            tools=self.toolbox.definitions,
            dispatch=Dispatch(
                self.toolbox, self.decide, self.ask, self._provenance(current), must_stop
            ),
            recorder=self._recorder,
            budget=budget,
            clock=self.clock,
            cancelled=must_stop,
            on_step=on_step,
        )
        stopped, changed_files = STOPPED_BY_USER, False
        if self.snapshots is not None:
            self.snapshots.begin(current.session)
        try:
            message = current.next_message("user", user_message, self.clock())
            self._recorder.save(current, message)
            shown = None if opening is None else _run_opening(opening)
            on_step(RunBegan(session=current.session.id, model=self.model.name, opening=shown))
            stopped = loop.run()
        except KeyboardInterrupt:
            # It may have arrived after a step was stored and before it was noted here: reload.
            current.messages = list(self.store.sessions.messages(current.session.id))
        except BaseException:
            self._conversation = None
            raise
        finally:
            if self.snapshots is not None:
                changed_files = self.snapshots.end()
        self._finish_turn(current, stopped, loop.calls)
        return Turn(
            runner=SOURCE,
            status=stopped.status,
            text=loop.reply.text if stopped.status in ("done", "cut") else "",
            session=current.session.id,
            model=self.model.name,
            tokens=budget.tokens,
            turns=budget.requests,
            calls=loop.calls,
            denied=tuple(loop.denied),
            reason=stopped.reason,
            changed_files=changed_files,
            seconds=round(budget.seconds, 3),
            messages=current.chat,
        )

    @property
    def knows_cost(self) -> bool:
        """Whether the cost of requests is known. A cost limit only takes effect if it is."""
        return self.prices(self.model.name, Tokens(input_tokens=1, output_tokens=1)) is not None

    def wait_for_review(self, timeout_s: float | None = None) -> bool:
        """Wait for a running review to end; return whether none is running."""
        return self.background_review is None or self.background_review.wait(timeout_s)

    def close(self) -> None:
        """Release the agent's resources; a running review is cancelled."""
        if self.background_review is not None:
            self.background_review.cancel()
        self.on_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _start_session(
        self, task: str, history: Sequence[Mapping[str, Any]]
    ) -> tuple[Conversation, Opening]:
        at = self.clock()
        opening = self.opening(task, self.toolbox.definitions)
        system = {"role": "system", "content": self.system_prompt()}
        chat = [*history] if leading_system_count(history) else [system, *history]
        # Some servers accept only one system message.
        injected = opening.inject(chat, one_system=True)
        day = datetime.fromtimestamp(at, UTC)
        facts: dict[str, Any] = {
            "id": f"{day:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
            "source": SOURCE,
            "agent": SOURCE,
            "model": self.model.name,
            "title": " ".join(task.split())[:120],
            "opening": "" if opening.is_empty else opening.id,
            "outcome": None,
        }
        recorded = conversation_fragment(injected, {**facts, **self.facts}, now=at)
        # The history may contain an opening of its own.
        lead = max(leading_system_count(injected), opening_length(recorded.messages))
        details: dict[str, Any] = {"lead": lead, "warm": not opening.is_empty}
        if not opening.is_empty:
            details["opening"] = {
                "id": opening.id,
                "template": opening.template,
                "patterns": [pattern.id for pattern in opening.patterns],
            }
        session = msgspec.structs.replace(recorded.session, started_at=at, details=details)
        conversation = Conversation(session, recorded.messages, lead=lead)
        self._recorder.begin(conversation)
        return conversation, opening

    def _finish_turn(self, conversation: Conversation, stopped: TurnStopped, calls: int) -> None:
        """Give every call a result, store how the turn ended, and pass it to the review."""
        for call in conversation.open_calls:
            result = interrupted_result(call.name)
            answer = conversation.result_message(call, result, self.clock())
            self._recorder.save(conversation, answer)
        self._recorder.end(conversation, END_REASONS.get(stopped.status, "error"), self.clock())
        if self.background_review is not None and stopped.status == "done":
            self.background_review.consider(
                FinishedTurn(
                    session=conversation.session,
                    messages=tuple(conversation.messages),
                    lead=conversation.lead,
                    tools=tuple(self.toolbox.definitions),
                    new_calls=calls,
                )
            )

    def _provenance(self, conversation: Conversation) -> Provenance:
        own = conversation.messages[conversation.lead :]
        return Provenance(
            origin="agent",
            context=f"turn {1 + sum(message.role == 'user' for message in own)}",
            session=conversation.session.id,
            platform=conversation.session.platform,
            model=self.model.name,
        )


def _run_opening(opening: Opening) -> RunOpening:
    if opening.is_empty:
        return RunOpening(note=opening.note or "as requested")
    return RunOpening(
        id=opening.id,
        summary=opening.summary,
        examples=tuple(
            f"{pattern.intent}\nwhy: {reason}"
            for pattern, reason in zip(opening.patterns, opening.reasons, strict=True)
        ),
    )
