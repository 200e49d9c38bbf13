"""The agent: runs the turns of a conversation, stores them, and has them reviewed."""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from journeyman.agent.conversation import Conversation, Prices, SessionRecorder, read_chat
from journeyman.agent.dispatch import Decide, Dispatch, interrupted_result, no_approver
from journeyman.agent.loop import STOPPED_BY_USER, Loop
from journeyman.agent.snapshots import TurnSnapshots
from journeyman.agent.tools.toolbox import Toolbox
from journeyman.agent.turn import (
    END_REASONS,
    FinishedTurn,
    Limits,
    ModelReplied,
    Step,
    ToolCalled,
    Turn,
    TurnBegun,
    TurnBudget,
    TurnStopped,
)
from journeyman.experience.opening import Opening, leading_system_count
from journeyman.gate.decision import Approver
from journeyman.learning.opening_text import opening_length
from journeyman.models.model import JsonObject, Model
from journeyman.records import Provenance, Session, SessionId, Tokens
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


class SessionSetup(Struct, frozen=True, kw_only=True):
    """What new sessions start with, and what is recorded about them."""

    system_prompt: Callable[[], str]
    opening: OpeningFor = lambda task, _tools: Opening(task=task)
    platform: str = "library"
    workspace: str = ""
    project: str = ""
    tags: tuple[str, ...] = ()


@dataclass(kw_only=True, eq=False)
class Agent:
    """An agent with its model, tools and limits. It runs one conversation at a time and stores
    everything it says and does before it continues. `clock` is the time of day; time limits are
    measured with `timer`, if there is one.
    """

    store: Store
    model: Model
    toolbox: Toolbox
    setup: SessionSetup
    decide: Decide
    ask: Approver = no_approver
    limits: Limits = Limits()  # noqa: RUF009 - frozen
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
        on_step: Callable[[Step], None] = lambda _step: None,
        on_text: Callable[[str], None] = lambda _text: None,
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
            dispatch=Dispatch(self.toolbox, self.decide, self.ask, self._provenance(), must_stop),
            recorder=self._recorder,
            budget=budget,
            clock=self.clock,
            cancelled=must_stop,
            on_text=on_text,
        )
        stopped = TurnStopped(stop="interrupted", note=STOPPED_BY_USER)
        response, calls, is_complete, changed_files = "", 0, False, False
        if self.snapshots is not None:
            self.snapshots.begin(current.session)
        try:
            message = current.input_message("user", user_message, self.clock())
            self._recorder.save(current, message)
            on_step(TurnBegun(session=current.session.id, opening=opening))
            for step in loop.run():
                calls += isinstance(step, ToolCalled)
                response = step.reply.text if isinstance(step, ModelReplied) else response
                stopped = step if isinstance(step, TurnStopped) else stopped
                on_step(step)
            is_complete = True
        except KeyboardInterrupt:
            # It may have arrived after a step was stored and before it was noted here: reload.
            current.messages = list(self.store.sessions.messages(current.session.id))
            is_complete = True
        finally:
            if not is_complete:
                self._conversation = None
            if self.snapshots is not None:
                changed_files = self.snapshots.end()
        self._finish_turn(current, stopped, calls)
        return Turn(
            session=current.session.id,
            stop=stopped.stop,
            final_response=response if stopped.stop in ("done", "cut") else "",
            note=stopped.note,
            messages=current.chat,
            api_calls=budget.api_calls,
            calls=calls,
            tokens=budget.tokens,
            cost_usd=budget.cost_usd,
            usage=budget.usage,
            opening=opening,
            changed_files=changed_files,
        )

    @property
    def session(self) -> Session | None:
        """The current session."""
        return None if self._conversation is None else self._conversation.session

    @property
    def knows_cost(self) -> bool:
        """Whether the cost of requests is known. A cost limit only takes effect if it is."""
        return self.prices(self.model.name, Tokens(input_tokens=1, output_tokens=1)) is not None

    def wait_for_review(self, timeout_s: float | None = None) -> bool:
        """Wait for a running review to end; return whether none is running."""
        return self.background_review is None or self.background_review.wait(timeout_s)

    def close(self) -> None:
        """Release the agent's resources; a running review is cancelled."""
        self.on_close()

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _start_session(
        self, task: str, history: Sequence[Mapping[str, Any]]
    ) -> tuple[Conversation, Opening]:
        at, setup = self.clock(), self.setup
        opening = setup.opening(task, self.toolbox.definitions)
        system = {"role": "system", "content": setup.system_prompt()}
        leading_count = leading_system_count(history)
        chat = [*history] if leading_count else [system, *history]
        # Some servers accept only one system message.
        injected = opening.inject(chat, one_system=True)
        messages = read_chat(injected, at)
        before_history = injected[: len(injected) - len(history) + leading_count]
        # The history may contain an opening of its own.
        lead = max(len(read_chat(before_history, at)), opening_length(messages))
        details: dict[str, Any] = {
            "lead": lead,
            "provider": self.model.provider,
            "tools": list(self.toolbox.names),
            "warm": not opening.is_empty,
        }
        if not opening.is_empty:
            details["opening"] = {
                "id": opening.id,
                "template": opening.template,
                "patterns": [pattern.id for pattern in opening.patterns],
            }
        session = Session(
            id=_dated_id(at),
            source=SOURCE,
            agent=SOURCE,
            model=self.model.name,
            cwd=setup.workspace,
            project=setup.project,
            platform=setup.platform,
            title=" ".join(task.split())[:120],
            started_at=at,
            tags=setup.tags,
            opening="" if opening.is_empty else opening.id,
            details=details,
        )
        conversation = Conversation(session, messages, lead=lead)
        self._recorder.begin(conversation)
        return conversation, opening

    def _finish_turn(self, conversation: Conversation, stopped: TurnStopped, calls: int) -> None:
        """Give every call a result, store how the turn ended, and pass it to the review."""
        for call in conversation.open_calls:
            result = interrupted_result(call.name)
            answer = conversation.result_message(call, result, self.clock())
            self._recorder.save(conversation, answer)
        self._recorder.end(conversation, END_REASONS[stopped.stop], self.clock())
        if self.background_review is not None and stopped.stop == "done":
            self.background_review.consider(
                FinishedTurn(
                    session=conversation.session,
                    messages=tuple(conversation.messages),
                    lead=conversation.lead,
                    tools=tuple(self.toolbox.definitions),
                    new_calls=calls,
                )
            )

    def _provenance(self) -> Provenance:
        conversation = self._conversation
        assert conversation is not None
        messages = conversation.messages[conversation.lead :]
        turn = 1 + sum(message.role == "user" for message in messages)
        return Provenance(
            origin="agent",
            context=f"turn {turn}",
            session=conversation.session.id,
            platform=self.setup.platform,
            model=self.model.name,
        )


def _dated_id(now: float) -> SessionId:
    day = datetime.fromtimestamp(now, UTC)
    return SessionId(f"{day:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}")
