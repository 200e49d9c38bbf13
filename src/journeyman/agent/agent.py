"""The agent: starts or resumes conversations, runs their turns, and has them reviewed."""

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
from journeyman.agent.required_actions import stop_without_action
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
from journeyman.agent.undo import TurnSnapshots
from journeyman.gate.decision import Approver
from journeyman.models.model import JsonObject, Model
from journeyman.records import Message, Provenance, Session, SessionId, Tokens
from journeyman.records.errors import WrongInput
from journeyman.settings import EMBEDDED
from journeyman.store.store import Store
from journeyman.templates.opening import Opening, leading_system_count
from journeyman.templates.opening_text import opening_length

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

_RESULT_LOST = (
    "The program ended before the result was saved, so it may or may not have run. Look at what is "
    "there before you do it again."
)


def system_prompt(workspace: Path, knowledge: str = "", briefing: str = "") -> str:
    """The prompt for work in a folder. It is built once per session, so that all requests begin
    with the same bytes.
    """
    parts = (_TASK_PROMPT.format(workspace=workspace.name or str(workspace)), knowledge, briefing)
    return "\n\n".join(part.strip() for part in parts if part.strip())


class SessionSetup(Struct, frozen=True, kw_only=True):
    """What new sessions start with, and what is recorded about them. `requested_model` is the model
    name that the caller asked for.
    """

    system_prompt: Callable[[], str]
    opening: OpeningFor = lambda task, _tools: Opening(task=task)
    platform: str = "library"
    workspace: str = ""
    project: str = ""
    tags: tuple[str, ...] = ()
    requested_model: str = ""
    about: str = ""
    """The task, if that is not the whole user message."""
    new_id: Callable[[], SessionId] | None = None


class _TurnHooks(Struct, frozen=True):
    on_step: Callable[[Step], None]
    on_text: Callable[[str], None]
    cancelled: Callable[[], bool]


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
        self._new_id = self.setup.new_id or (lambda: _dated_id(self.clock()))

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
        differs from the current conversation starts a new one. After an error, the session can be
        resumed.
        """
        if not isinstance(user_message, str) or not user_message.strip():
            raise WrongInput("There is nothing to do: the task is empty. Describe the task.")
        self._cancel_review()
        current, opening, history = self._conversation, None, conversation_history
        if current is None or (history is not None and current.chat != [*history]):
            current, opening = self._start_session(user_message, history or ())
        hooks = _TurnHooks(on_step, on_text, cancelled)
        return self._run_turn(current, user_message, hooks, opening)

    def resume(
        self,
        session_id: str,
        user_message: str = "",
        *,
        on_step: Callable[[Step], None] = lambda _step: None,
        on_text: Callable[[str], None] = lambda _text: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Turn:
        """Continue an interrupted session, or continue with a new user message. A call without a
        stored result is never repeated: the model is informed that it may have run.
        """
        self._cancel_review()
        conversation = self._load_session(session_id)
        self._conversation = conversation
        self._close_open_calls(conversation, _RESULT_LOST)
        last = conversation.messages[-1] if conversation.messages else None
        is_over = last is None or (
            last.role == "assistant" and not last.tool_calls and bool(last.text.strip())
        )
        if is_over and not user_message.strip():
            raise WrongInput(
                f"The session {conversation.session.id} has nothing left to do. Add a message to "
                "continue it."
            )
        hooks = _TurnHooks(on_step, on_text, cancelled)
        return self._run_turn(conversation, user_message, hooks, None)

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

    def _cancel_review(self) -> None:
        if self.background_review is not None:
            self.background_review.cancel()

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
            "asked_model": setup.requested_model,
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
            id=self._new_id(),
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

    def _load_session(self, session_id: str) -> Conversation:
        """Load a session, or the last one that continues it after compressions."""
        session = self.store.sessions.get(session_id).session
        if session.source != SOURCE:
            raise WrongInput(
                f"The session {session.id} was recorded by {session.source}; only sessions of this "
                "agent can be resumed. Start a new one: `journeyman run TASK`."
            )
        if session.cwd != self.setup.workspace:
            raise WrongInput(
                f"The session {session.id} ran in {session.cwd or 'no folder'}, but this agent "
                f"works in {self.setup.workspace or 'none'}. Resume the session in its own folder."
            )
        visited = {session.id}
        while successors := [
            child
            for child in self.store.sessions.children(session.id)
            if child.lineage
            and child.lineage.kind == "compression"
            and child.id not in visited
            and self.store.sessions.get(child.id).messages
        ]:
            session = successors[0]
            visited.add(session.id)
        lead = session.details.get("lead", 0)
        return Conversation(session, self.store.sessions.messages(session.id), lead=lead)

    def _run_turn(
        self,
        conversation: Conversation,
        user_message: str,
        hooks: _TurnHooks,
        opening: Opening | None,
    ) -> Turn:
        # Stored with the first step, so that a session that ends abruptly does not look as if it
        # had ended well with the previous turn.
        conversation.session = msgspec.structs.replace(conversation.session, end_reason="running")
        self._conversation = conversation
        budget = TurnBudget(self.limits, self.timer or self.clock)
        loop = self._loop(conversation, budget, hooks)
        began_in = conversation.session.id
        stopped = TurnStopped(stop="interrupted", note=STOPPED_BY_USER)
        response, calls = "", 0
        is_complete = False
        if self.snapshots is not None:
            self.snapshots.begin(conversation.session, user_message)
        try:
            if user_message.strip():
                self._save(conversation.input_message("user", user_message, self.clock()))
            hooks.on_step(TurnBegun(session=began_in, opening=opening))
            for step in loop.run():
                self._conversation = loop.conversation
                calls += isinstance(step, ToolCalled)
                response = step.reply.text if isinstance(step, ModelReplied) else response
                stopped = step if isinstance(step, TurnStopped) else stopped
                hooks.on_step(step)
            is_complete = True
        except KeyboardInterrupt:
            # It may have arrived after a step was stored and before it was noted here: reload.
            loop.conversation = self._load_session(began_in)
            is_complete = True
        finally:
            if not is_complete:
                self._conversation = None
            changed_files = self.snapshots is not None and self.snapshots.end()
        if stopped.stop == "done" and not calls and self.model.provider == EMBEDDED:
            stopped = stop_without_action(self.setup.about or user_message) or stopped
        self._finish_turn(loop, stopped, calls)
        return Turn(
            session=loop.conversation.session.id,
            began_in=began_in,
            stop=stopped.stop,
            final_response=response if stopped.stop in ("done", "cut", "nothing_done") else "",
            note=stopped.note,
            messages=loop.conversation.chat,
            api_calls=budget.api_calls,
            calls=calls,
            tokens=budget.tokens,
            cost_usd=budget.cost_usd,
            usage=budget.usage,
            opening=opening,
            changed_files=changed_files,
        )

    def _loop(self, conversation: Conversation, budget: TurnBudget, hooks: _TurnHooks) -> Loop:
        def must_stop() -> bool:
            return hooks.cancelled() or budget.is_out_of_time

        return Loop(
            conversation=conversation,
            model=self.model,
            tools=self.toolbox.definitions,
            dispatch=Dispatch(self.toolbox, self.decide, self.ask, self._provenance, must_stop),
            recorder=self._recorder,
            budget=budget,
            clock=self.clock,
            new_id=self._new_id,
            cancelled=must_stop,
            on_text=hooks.on_text,
        )

    def _finish_turn(self, loop: Loop, stopped: TurnStopped, calls: int) -> None:
        """Leave the session in a state that can be resumed, and pass it to the review."""
        conversation = self._conversation = loop.conversation
        self._close_open_calls(conversation)
        self._recorder.end(conversation, END_REASONS[stopped.stop], self.clock())
        if self.background_review is not None and stopped.stop == "done":
            self.background_review.consider(
                FinishedTurn(
                    session=conversation.session,
                    messages=tuple(conversation.messages),
                    lead=conversation.lead,
                    tools=tuple(self.toolbox.definitions),
                    new_calls=calls,
                    tokens=loop.last_tokens.total,
                )
            )

    def _close_open_calls(self, conversation: Conversation, *why: str) -> None:
        for call in conversation.open_calls:
            result = interrupted_result(call.name, *why)
            self._save(conversation.result_message(call, result, self.clock()))

    def _save(self, message: Message) -> None:
        assert self._conversation is not None
        self._recorder.save(self._conversation, message)

    def _provenance(self) -> Provenance:
        conversation = self._conversation
        assert conversation is not None
        session, messages = conversation.session, conversation.messages[conversation.lead :]
        return Provenance(
            origin="agent",
            context=f"turn {sum(message.role == 'user' for message in messages)}",
            session=session.id,
            parent=session.lineage.parent if session.lineage else "",
            platform=self.setup.platform,
            model=self.model.name,
        )


def _dated_id(now: float) -> SessionId:
    day = datetime.fromtimestamp(now, UTC)
    return SessionId(f"{day:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}")
