"""Records the sessions of agents that keep no logs. Only what is new in a request is added, so that
nothing is lost when an agent shortens its conversation, and nothing that was recorded is replaced.
"""

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from uuid import uuid4

from msgspec import Struct

from journeyman.facade.journeyman import Journeyman
from journeyman.hosts.proxy.answers import Answer
from journeyman.hosts.proxy.requests import ModelRequest
from journeyman.hosts.proxy.sessions import SOURCE, Conversation, History, marks_of
from journeyman.logs.chat import ROLES, parse_usage
from journeyman.records.errors import JourneymanError

log = logging.getLogger("journeyman.proxy")

_STOP_S = 10.0


class AnsweredRequest(Struct, frozen=True, kw_only=True):
    """A request with the opening that was added to it, and its answer, to be recorded."""

    conversation: Conversation
    request: ModelRequest
    answer: Answer
    opening: str
    asked_at: float
    answered_at: float


class Recorder:
    """Records sessions in a thread of its own. What cannot be stored is tried again with the next
    answer of its session. `on_recorded` is called after each.
    """

    def __init__(
        self, journeyman: Journeyman, on_recorded: Callable[[], None] = lambda: None
    ) -> None:
        self._journeyman = journeyman
        self._on_recorded = on_recorded
        self._queue: queue.SimpleQueue[AnsweredRequest | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="proxy-recorder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def add(self, answered: AnsweredRequest) -> None:
        self._queue.put(answered)

    def stop(self) -> None:
        """Record what is waiting, and stop."""
        self._queue.put(None)
        self._thread.join(_STOP_S)

    def load(self, ids: Sequence[str]) -> dict[str, History]:
        """Return the recorded sessions among these."""
        sessions = self._journeyman.sessions
        found = [one.session.id for one in sessions.with_ids(ids) if one.session.source == SOURCE]
        return {id_: History.stored(sessions.messages(id_)) for id_ in found}

    def _run(self) -> None:
        while (answered := self._queue.get()) is not None:
            try:
                self._record(answered)
            except JourneymanError as error:
                log.warning("A session could not be recorded: %s", error)
            except Exception as error:  # noqa: BLE001 - one answer must not end the recording
                log.warning("A session could not be recorded: %s: %s", type(error).__name__, error)

    def _record(self, answered: AnsweredRequest) -> None:
        """Add what is new to the recorded session. The opening is not in it: it was never the
        agent's.
        """
        conversation, request, answer = answered.conversation, answered.request, answered.answer
        recorded, model = conversation.recorded, answer.model or request.model
        marks = [marks_of(message) for message in request.messages]
        answer_marks = marks_of(answer.message or {})
        usage = parse_usage(answer.usage, uuid4().hex, model=model, at=answered.answered_at)
        if usage is not None:
            conversation.unsaved_usage.append(usage)
        messages = request.messages[recorded.first_new(marks) :]
        if request.system and not recorded.sent:
            messages = [{"role": "system", "content": request.system}, *messages]
        new = [
            {**message, "timestamp": answered.asked_at}
            for message in messages
            if message.get("role") in ROLES
        ]
        if answer.message is not None and not recorded.knows_calls(answer_marks):
            new.append({**answer.message, "timestamp": answered.answered_at, "model": model})
        if not new:
            return
        self._journeyman.record(
            new,
            source=SOURCE,
            session_id=conversation.id,
            model=request.model,
            cwd=conversation.folder,
            usage=conversation.unsaved_usage,
            append=True,
        )
        conversation.unsaved_usage = []
        recorded.extend([mark for ones in marks for mark in ones], answer_marks)
        self._on_recorded()
        if answered.opening and not conversation.is_noted:
            sessions = self._journeyman.sessions
            sessions.note_opening(conversation.id, answered.opening, source=SOURCE)
            conversation.is_noted = True
