"""The agent: begins conversations or takes them up again, runs their turns, has them reviewed."""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from journeyman.agent.conversation import Conversation, Prices, Recording, read_chat
from journeyman.agent.dispatch import Ask, Decide, Dispatch, interrupted, nobody
from journeyman.agent.loop import BY_USER, Loop
from journeyman.agent.tools.toolbox import Toolbox
from journeyman.agent.turn import (
    END_REASONS,
    Begun,
    Called,
    Finished,
    Limits,
    Replied,
    Spent,
    Step,
    Stopped,
    Turn,
)
from journeyman.agent.undo import TurnSnapshots
from journeyman.logs.repositories import find_project
from journeyman.models.model import JsonObject, Model
from journeyman.records import Message, Provenance, Session, SessionId, Tokens
from journeyman.records.errors import WrongInput
from journeyman.store.store import Store
from journeyman.templates.shown.opening import Opening, leading
from journeyman.templates.shown.wording import after_opening

if TYPE_CHECKING:
    from journeyman.agent.review.reviewer import BackgroundReview

SOURCE = "journeyman"

Warm = Callable[[str, Sequence[JsonObject]], Opening]
"""The opening for a task and the tools that the session has."""

_Hooks = tuple[Callable[[Step], None], Callable[[str], None], Callable[[], bool]]

_WORK = (
    "You are an agent that gets work done with tools, in the folder {workspace}. Paths are "
    "relative to it. Do the task step by step: call a tool, look at its result, go on. Check what "
    "you did before you say that it is done. When the task is done, or cannot be done, say so in "
    "a few words; do not claim what no result shows."
)

_KILLED = (
    "The program ended before the result was saved, so it may or may not have run. Look at what is "
    "there before you do it again."
)


def system_prompt(workspace: Path, knowledge: str = "", briefing: str = "") -> str:
    """The prompt for work in a folder, made once: all requests begin with the same bytes."""
    parts = (_WORK.format(workspace=workspace.name or str(workspace)), knowledge, briefing)
    return "\n\n".join(part.strip() for part in parts if part.strip())


@dataclass(kw_only=True, eq=False)
class Agent:
    """An agent with its model, its tools and its limits. One conversation at a time; what it says
    and does is in the store before it goes on. `clock` is the time of day, limits go by `timer`.
    """

    store: Store
    model: Model
    toolbox: Toolbox
    decide: Decide
    system: Callable[[], str]
    ask: Ask = nobody
    warm: Warm = lambda task, _tools: Opening(task=task)
    limits: Limits = Limits()  # noqa: RUF009 - frozen
    prices: Prices = lambda _model, _tokens: None
    reviewing: "BackgroundReview | None" = None
    snapshots: TurnSnapshots | None = None
    platform: str = "library"
    workspace: str = ""
    tags: tuple[str, ...] = ()
    asked_model: str = ""
    clock: Callable[[], float] = time.time
    timer: Callable[[], float] | None = None
    new_id: Callable[[], SessionId] | None = None
    on_close: Callable[[], None] = lambda: None
    _conversation: Conversation | None = None

    def __post_init__(self) -> None:
        self._recording = Recording(self.store, self.prices)
        self._new_id = self.new_id or (lambda: _dated_id(self.clock()))

    def run_conversation(
        self,
        user_message: str,
        conversation_history: Sequence[Mapping[str, Any]] | None = None,
        *,
        on_step: Callable[[Step], None] = lambda _step: None,
        on_text: Callable[[str], None] = lambda _text: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Turn:
        """One turn on what the user says, in the agent's own conversation or, with a history that
        is not where its own stands, in a new one. After an error the session can be resumed.
        """
        if not isinstance(user_message, str) or not user_message.strip():
            raise WrongInput("There is nothing to do: say what the agent is to do.")
        self._make_way()
        own, opening, history = self._conversation, None, conversation_history
        if own is None or (history is not None and own.chat != [*history]):
            own, opening = self._begun(user_message, history or ())
        return self._turn(own, user_message, (on_step, on_text, cancelled), opening)

    def resume(
        self,
        session_id: str,
        user_message: str = "",
        *,
        on_step: Callable[[Step], None] = lambda _step: None,
        on_text: Callable[[str], None] = lambda _text: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Turn:
        """Go on with a session that was interrupted, or with what the user says now. A call whose
        result was not saved is never made again: the model is told that it may have run.
        """
        self._make_way()
        conversation = self._taken_up(session_id)
        self._conversation = conversation
        for call in conversation.open_calls:
            self._keep(conversation.answered(call, interrupted(call.name, _KILLED), self.clock()))
        last = conversation.messages[-1] if conversation.messages else None
        is_over = last is None or (
            last.role == "assistant" and not last.tool_calls and bool(last.text.strip())
        )
        if is_over and not user_message.strip():
            raise WrongInput(
                f"The session {conversation.session.id} has nothing left to do. Say what it is to "
                "go on with."
            )
        return self._turn(conversation, user_message, (on_step, on_text, cancelled), None)

    @property
    def session(self) -> Session | None:
        """The session that the agent is in."""
        return None if self._conversation is None else self._conversation.session

    @property
    def knows_cost(self) -> bool:
        """Whether the cost of a request can be told: only then a limit on it holds."""
        return self.prices(self.model.name, Tokens(input_tokens=1, output_tokens=1)) is not None

    def wait_for_review(self, timeout_s: float | None = None) -> bool:
        """Wait until a review that is running is done; whether none runs any more."""
        return self.reviewing is None or self.reviewing.wait(timeout_s)

    def close(self) -> None:
        """Let go of what the agent holds; a review that is still running gives way."""
        self.on_close()

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _make_way(self) -> None:
        if self.reviewing is not None:
            self.reviewing.cancel()

    def _begun(
        self, task: str, history: Sequence[Mapping[str, Any]]
    ) -> tuple[Conversation, Opening]:
        at = self.clock()
        opening = self.warm(task, self.toolbox.definitions)
        system = {"role": "system", "content": self.system()}
        front = leading(history)
        given = [*history] if front else [system, *history]
        # One system message: not every server takes a second.
        injected = opening.inject(given, one_system=True)
        messages = read_chat(injected, at)
        before = injected[: len(injected) - len(history) + front]
        about = {
            "id": opening.id,
            "template": opening.template,
            "patterns": [pattern.id for pattern in opening.patterns],
        }
        # A history may have brought an opening along.
        lead = max(len(read_chat(before, at)), after_opening(messages))
        session = Session(
            id=self._new_id(),
            source=SOURCE,
            agent=SOURCE,
            model=self.model.name,
            cwd=self.workspace,
            project=find_project(self.workspace) if self.workspace else "",
            title=" ".join(task.split())[:120],
            started_at=at,
            tags=self.tags,
            details={
                "lead": lead,
                "provider": self.model.provider,
                "asked_model": self.asked_model,
                "platform": self.platform,
                "tools": list(self.toolbox.names),
                "warm": not opening.is_empty,
                **({} if opening.is_empty else {"opening": about}),
            },
        )
        conversation = Conversation(session, messages, lead=lead)
        self._recording.begin(conversation)
        return conversation, opening

    def _taken_up(self, session_id: str) -> Conversation:
        session = self.store.sessions.get(session_id).session
        if session.source != SOURCE:
            raise WrongInput(
                f"The session {session.id} was recorded by {session.source}, and only sessions of "
                "this agent can be taken up. Start a new one: `journeyman run TASK`."
            )
        if session.cwd != self.workspace:
            raise WrongInput(
                f"The session {session.id} was at work in {session.cwd or 'no folder'}, and this "
                f"agent is in {self.workspace or 'none'}. Resume it in its own folder."
            )
        seen = {session.id}
        while later := [
            one
            for one in self.store.sessions.children(session.id)
            if one.lineage
            and one.lineage.kind == "compression"
            and one.id not in seen
            and self.store.sessions.get(one.id).messages
        ]:
            session = later[0]
            seen.add(session.id)
        lead = session.details.get("lead", 0)
        return Conversation(session, self.store.sessions.messages(session.id), lead=lead)

    def _turn(
        self, conversation: Conversation, user_message: str, hooks: _Hooks, opening: Opening | None
    ) -> Turn:
        on_step, on_text, cancelled = hooks
        # Said with the first step, so that a session that is never heard of again is not taken
        # for one that ended well the turn before.
        conversation.session = msgspec.structs.replace(conversation.session, end_reason="running")
        self._conversation = conversation
        spent = Spent(self.limits, self.timer or self.clock)

        def must_stop() -> bool:
            return cancelled() or spent.is_late

        loop = Loop(
            conversation=conversation,
            model=self.model,
            tools=self.toolbox.definitions,
            dispatch=Dispatch(self.toolbox, self.decide, self.ask, self._origin, must_stop),
            recording=self._recording,
            spent=spent,
            clock=self.clock,
            new_id=self._new_id,
            cancelled=must_stop,
            on_text=on_text,
            same_again=self.limits.same_again,
        )
        began_in = conversation.session.id
        stopped, said, calls = Stopped(stop="interrupted", note=BY_USER), "", 0
        is_settled = False
        if self.snapshots is not None:
            self.snapshots.begin(conversation.session, user_message)
        try:
            if user_message.strip():
                self._keep(conversation.said("user", user_message, self.clock()))
            on_step(Begun(session=began_in, opening=opening))
            for step in loop.run():
                self._conversation = loop.conversation
                calls += isinstance(step, Called)
                said = step.reply.text if isinstance(step, Replied) else said
                stopped = step if isinstance(step, Stopped) else stopped
                on_step(step)
            is_settled = True
        except KeyboardInterrupt:
            # It may have come between keeping a step and knowing it: what is kept counts.
            loop.conversation = self._taken_up(began_in)
            is_settled = True
        finally:
            if not is_settled:
                self._conversation = None
            changed_files = self.snapshots is not None and self.snapshots.end()
        self._settle(loop, stopped, calls)
        return Turn(
            session=loop.conversation.session.id,
            began_in=began_in,
            stop=stopped.stop,
            final_response=said if stopped.stop in ("done", "cut") else "",
            note=stopped.note,
            messages=loop.conversation.chat,
            api_calls=spent.api_calls,
            calls=calls,
            tokens=spent.tokens,
            cost_usd=spent.cost_usd,
            opening=opening,
            changed_files=changed_files,
        )

    def _settle(self, loop: Loop, stopped: Stopped, calls: int) -> None:
        """Leave the session so that it can be taken up again, and hand it to the review."""
        conversation = self._conversation = loop.conversation
        for call in conversation.open_calls:
            self._keep(conversation.answered(call, interrupted(call.name), self.clock()))
        self._recording.end(conversation, END_REASONS[stopped.stop], self.clock())
        if self.reviewing is not None and stopped.stop == "done":
            self.reviewing.consider(
                Finished(
                    session=conversation.session,
                    messages=tuple(conversation.messages),
                    lead=conversation.lead,
                    tools=tuple(self.toolbox.definitions),
                    new_calls=calls,
                    tokens=loop.last.total,
                )
            )

    def _keep(self, message: Message) -> None:
        assert self._conversation is not None
        self._recording.keep(self._conversation, message)

    def _origin(self) -> Provenance:
        conversation = self._conversation
        assert conversation is not None
        session, own = conversation.session, conversation.messages[conversation.lead :]
        return Provenance(
            origin="agent",
            context=f"turn {sum(one.role == 'user' for one in own)}",
            session=session.id,
            parent=session.lineage.parent if session.lineage else "",
            platform=self.platform,
            model=self.model.name,
        )


def _dated_id(now: float) -> SessionId:
    day = datetime.fromtimestamp(now, UTC)
    return SessionId(f"{day:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}")
