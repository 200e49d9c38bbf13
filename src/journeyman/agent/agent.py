"""The agent: begins conversations or takes them up again, runs their turns and hands them to the
review. Its parts are given to it; it knows no settings and no surface.
"""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from journeyman.agent.conversation import Conversation, read_chat
from journeyman.agent.dispatch import Ask, Decide, Dispatch, interrupted, nobody
from journeyman.agent.limits import Limits, Spent
from journeyman.agent.loop import BY_USER, Loop
from journeyman.agent.recording import Prices, Recording
from journeyman.agent.steps import Begun, Called, Replied, Step, Stopped
from journeyman.agent.tools.toolbox import Toolbox
from journeyman.agent.turn import END_REASONS, Turn
from journeyman.logs.repositories import find_project
from journeyman.models.model import JsonObject, Model
from journeyman.records import Message, Provenance, Session, SessionId, Tokens
from journeyman.records.errors import WrongInput
from journeyman.store.store import Store
from journeyman.templates.mining.own_openings import after_opening
from journeyman.templates.shown.opening import Opening, leading

SOURCE = "journeyman"

Warm = Callable[[str, Sequence[JsonObject]], Opening]
"""The opening for a task and the tools that the session has."""

_Hooks = tuple[Callable[[Step], None], Callable[[str], None], Callable[[], bool]]

_KILLED = (
    "The program ended before the result was saved, so it may or may not have run. Look at what is "
    "there before you do it again."
)


class Finished(Struct, frozen=True, kw_only=True):
    """A finished turn as a review gets it: all that the last request had, and the answer to it.
    `tokens` is what these took, None where the model did not say.
    """

    session: Session
    messages: tuple[Message, ...]
    lead: int
    tools: tuple[JsonObject, ...]
    new_calls: int = 0
    tokens: int | None = None


class Reviewing(Protocol):
    """What reviews finished turns in the background."""

    def cancel(self) -> None:
        """A new turn begins: a review that is still running must not stand in its way."""
        ...

    def consider(self, finished: Finished) -> None:
        """A turn is over: review it now, later or not at all. Never raises, never waits."""
        ...

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for a review that is running; whether none is any more."""
        ...


def cold(_task: str, _tools: Sequence[JsonObject]) -> Opening:
    """No opening."""
    return Opening(task=_task)


class Agent:
    """An agent with its model, its tools and its limits. One conversation at a time; what it says
    and does is in the store before it goes on.
    """

    def __init__(
        self,
        *,
        store: Store,
        model: Model,
        toolbox: Toolbox,
        decide: Decide,
        system: Callable[[], str],
        ask: Ask = nobody,
        warm: Warm = cold,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        prices: Prices = lambda _model, _tokens: None,
        reviewing: Reviewing | None = None,
        platform: str = "library",
        workspace: str = "",
        tags: tuple[str, ...] = (),
        asked_model: str = "",
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] | None = None,
        new_id: Callable[[], SessionId] | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_close = on_close
        self.model = model
        self._store, self._toolbox, self._decide, self._ask = store, toolbox, decide, ask
        self._system, self._warm, self._limits = system, warm, limits
        self._recording, self._prices = Recording(store, prices), prices
        self._reviewing = reviewing
        self._platform, self._workspace, self._tags = platform, workspace, tags
        self._asked_model = asked_model
        self._clock, self._timer = clock, timer or clock
        self._new_id = new_id or (lambda: _dated_id(clock()))
        self._conversation: Conversation | None = None

    def run_conversation(
        self,
        user_message: str,
        conversation_history: Sequence[Mapping[str, Any]] | None = None,
        *,
        on_step: Callable[[Step], None] = lambda _step: None,
        on_text: Callable[[str], None] = lambda _text: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Turn:
        """One turn on what the user says. Without a history the agent goes on with its own
        conversation, or begins one; with a history it begins one that has it, unless that is where
        its own stands. If an error ends the turn, the agent lets go of the session, which can be
        resumed.
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
            self._keep(conversation.answered(call, interrupted(call.name, _KILLED), self._clock()))
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
        return self._prices(self.model.name, Tokens(input_tokens=1, output_tokens=1)) is not None

    def wait_for_review(self, timeout_s: float | None = None) -> bool:
        """Wait until a review that is running is done; whether none runs any more."""
        return self._reviewing is None or self._reviewing.wait(timeout_s)

    def close(self) -> None:
        """Let go of what the agent holds; a review that is still running gives way."""
        self._on_close()

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _make_way(self) -> None:
        if self._reviewing is not None:
            self._reviewing.cancel()

    def _begun(
        self, task: str, history: Sequence[Mapping[str, Any]]
    ) -> tuple[Conversation, Opening]:
        at = self._clock()
        opening = self._warm(task, self._toolbox.definitions)
        system = {"role": "system", "content": self._system()}
        front = leading(history)
        given = [*history] if front else [system, *history]
        # One system message: not every server takes a second.
        injected = opening.inject(given, one_system=True)
        messages = read_chat(injected, at)
        before = injected[: len(injected) - len(history) + front]
        # A history may have brought an opening along.
        lead = max(len(read_chat(before, at)), after_opening(messages))
        session = Session(
            id=self._new_id(),
            source=SOURCE,
            agent=SOURCE,
            model=self.model.name,
            cwd=self._workspace,
            project=find_project(self._workspace) if self._workspace else "",
            title=" ".join(task.split())[:120],
            started_at=at,
            tags=self._tags,
            details=self._details(opening, lead),
        )
        conversation = Conversation(session, messages, lead=lead)
        self._recording.begin(conversation)
        return conversation, opening

    def _details(self, opening: Opening, lead: int) -> dict[str, Any]:
        """What a later look at the session needs and no other field holds."""
        details: dict[str, Any] = {
            "lead": lead,
            "provider": self.model.provider,
            "asked_model": self._asked_model,
            "platform": self._platform,
            "tools": list(self._toolbox.names),
            "warm": not opening.is_empty,
        }
        if not opening.is_empty:
            details["opening"] = {
                "id": opening.id,
                "template": opening.template,
                "patterns": [pattern.id for pattern in opening.patterns],
            }
        return details

    def _taken_up(self, session_id: str) -> Conversation:
        session = self._store.sessions.get(session_id).session
        if session.source != SOURCE:
            raise WrongInput(
                f"The session {session.id} was recorded by {session.source}, and only sessions of "
                "this agent can be taken up. Start a new one: `journeyman run TASK`."
            )
        if session.cwd != self._workspace:
            raise WrongInput(
                f"The session {session.id} was at work in {session.cwd or 'no folder'}, and this "
                f"agent is in {self._workspace or 'none'}. Resume it in its own folder."
            )
        seen = {session.id}
        while later := [
            one
            for one in self._store.sessions.children(session.id)
            if one.lineage
            and one.lineage.kind == "compression"
            and one.id not in seen
            and self._store.sessions.get(one.id).messages
        ]:
            session = later[0]
            seen.add(session.id)
        lead = session.details.get("lead", 0)
        return Conversation(session, self._store.sessions.messages(session.id), lead=lead)

    def _turn(
        self, conversation: Conversation, user_message: str, hooks: _Hooks, opening: Opening | None
    ) -> Turn:
        on_step, on_text, cancelled = hooks
        # Said with the first step, so that a session that is never heard of again is not taken
        # for one that ended well the turn before.
        conversation.session = msgspec.structs.replace(conversation.session, end_reason="running")
        self._conversation = conversation
        spent = Spent(self._limits, self._timer)

        def must_stop() -> bool:
            return cancelled() or spent.is_late

        loop = Loop(
            conversation,
            model=self.model,
            tools=self._toolbox.definitions,
            dispatch=Dispatch(self._toolbox, self._decide, self._ask, self._origin, must_stop),
            recording=self._recording,
            spent=spent,
            clock=self._clock,
            new_id=self._new_id,
            cancelled=must_stop,
            on_text=on_text,
            same_again=self._limits.same_again,
        )
        began_in = conversation.session.id
        stopped, said, calls = Stopped(stop="interrupted", note=BY_USER), "", 0
        is_settled = False
        try:
            if user_message.strip():
                self._keep(conversation.said("user", user_message, self._clock()))
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
        )

    def _settle(self, loop: Loop, stopped: Stopped, calls: int) -> None:
        """Leave the session so that it can be taken up again, and hand it to the review."""
        conversation = self._conversation = loop.conversation
        for call in conversation.open_calls:
            self._keep(conversation.answered(call, interrupted(call.name), self._clock()))
        self._recording.end(conversation, END_REASONS[stopped.stop], self._clock())
        if self._reviewing is not None and stopped.stop == "done":
            self._reviewing.consider(
                Finished(
                    session=conversation.session,
                    messages=tuple(conversation.messages),
                    lead=conversation.lead,
                    tools=tuple(self._toolbox.definitions),
                    new_calls=calls,
                    tokens=loop.last_tokens,
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
            platform=self._platform,
            model=self.model.name,
        )


def _dated_id(now: float) -> SessionId:
    day = datetime.fromtimestamp(now, UTC)
    return SessionId(f"{day:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}")
