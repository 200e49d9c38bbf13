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
from journeyman.hosts.proxy.answers import Answer, decompressed, read_answer
from journeyman.hosts.proxy.forwarding import Relayed
from journeyman.hosts.proxy.requests import ModelRequest
from journeyman.hosts.proxy.sessions import SOURCE, Conversation, History, Marks, marks_of
from journeyman.logs.chat import ROLES, parse_usage
from journeyman.records.errors import JourneymanError

log = logging.getLogger("journeyman.proxy")

_STOP_S = 10.0


class AnsweredRequest(Struct, frozen=True, kw_only=True):
    """A request with the opening that was added to it, and its answer, to be recorded."""

    conversation: Conversation
    request: ModelRequest
    relayed: Relayed
    folder: str
    opening: str
    asked_at: float
    answered_at: float


class Recorder:
    """Reads answers, and records sessions, in a thread of its own. What cannot be stored is tried
    again with the next answer of its session. `on_recorded` is called after each.
    """

    def __init__(
        self,
        journeyman: Journeyman,
        *,
        records: bool = True,
        on_recorded: Callable[[], None] = lambda: None,
    ) -> None:
        self._journeyman = journeyman
        self._records = records
        self._on_recorded = on_recorded
        self._queue: queue.SimpleQueue[AnsweredRequest | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="proxy-recorder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def add(self, answered: AnsweredRequest) -> None:
        answered.conversation.answers += 1
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
                self._read(answered)
            except JourneymanError as error:
                log.warning("A session could not be recorded: %s", error)
            except Exception as error:  # noqa: BLE001 - one answer must not end the recording
                log.warning("A session could not be recorded: %s: %s", type(error).__name__, error)

    def _read(self, answered: AnsweredRequest) -> None:
        conversation = answered.conversation
        request, relayed = answered.request, answered.relayed
        marks = [marks_of(message) for message in request.messages]
        sent = [mark for ones in marks for mark in ones]
        answer = Answer()
        answer_marks: Marks = ()
        try:
            body = decompressed(b"".join(relayed.copy or ()), relayed.encoding)
            if body is not None:
                answer = read_answer(request.form, body, is_stream=relayed.is_stream)
            answer_marks = marks_of(answer.message or {})
            conversation.history.extend(sent, answer_marks)
        finally:
            conversation.read_answers += 1
        if self._records:
            self._record(answered, marks, answer)
            conversation.recorded.extend(sent, answer_marks)
            self._on_recorded()

    def _record(self, answered: AnsweredRequest, marks: Sequence[Marks], answer: Answer) -> None:
        """Add what is new to the recorded session. The opening is not in it: it was never the
        agent's.
        """
        conversation, request = answered.conversation, answered.request
        model = answer.model or request.model
        usage = parse_usage(answer.usage, uuid4().hex, model=model, at=answered.answered_at)
        if usage is not None:
            conversation.unsaved_usage.append(usage)
        messages = request.messages[conversation.recorded.first_new(marks) :]
        if request.system and not conversation.recorded.sent:
            messages = [{"role": "system", "content": request.system}, *messages]
        new = [
            {**message, "timestamp": answered.asked_at}
            for message in messages
            if message.get("role") in ROLES
        ]
        if answer.message is not None:
            new.append({**answer.message, "timestamp": answered.answered_at, "model": model})
        if not new:
            return
        self._journeyman.record(
            new,
            source=SOURCE,
            session_id=conversation.id,
            model=request.model,
            cwd=answered.folder,
            usage=conversation.unsaved_usage,
            append=True,
        )
        conversation.unsaved_usage = []
        if answered.opening:
            sessions = self._journeyman.sessions
            sessions.note_opening(conversation.id, answered.opening, source=SOURCE)
