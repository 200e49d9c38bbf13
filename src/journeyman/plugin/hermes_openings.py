"""Openings for Hermes' sessions: asked for once, then put into every request of the session with
the same bytes, in the three forms of requests that Hermes sends. A session that could not be given
one in time stays cold. Only the standard library.
"""

import copy
import os
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from journeyman.plugin.client import Unanswered
from journeyman.plugin.hermes_link import Link, Recent

WAIT_S = 2.0
"""How long the first request of a session may wait for its opening."""


FORMS = {
    "chat_completions": "openai",
    "codex_responses": "responses",
    "anthropic_messages": "anthropic",
}
"""The form of an opening for each of Hermes' API modes. In others a session stays cold."""

_CONVERSATION = {"openai": "messages", "responses": "input", "anthropic": "messages"}
_CRON_PREAMBLE = re.compile(r"\s*\[(?:IMPORTANT|SYSTEM): .{0,4000}?\]\s*?\n\s*?\n", re.S)
_REVIEW = "Review the conversation above"
_ANSWERS = ("function_call", "reasoning")


class GivenOpening(NamedTuple):
    """What a session starts with, in one form. It has no id if the session is cold."""

    id: str = ""
    system: str = ""
    examples: tuple[dict[str, Any], ...] = ()


COLD = GivenOpening()


class Origin(NamedTuple):
    """Where a request comes from. `turn` is the id of the turn, `calls` the number of requests in
    it so far.
    """

    session: str
    turn: str = ""
    model: str = ""
    platform: str = ""
    calls: int = 0


class RememberedSession:
    """What this process knows of one session."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.given: dict[str, GivenOpening] = {}
        self.task = ""
        self.is_first_turn = False


class RequestOpenings:
    """Puts openings into the requests of sessions. `database` is where Hermes keeps sessions."""

    def __init__(self, link: Link, database: Callable[[], str]) -> None:
        self._link = link
        self._database = database
        self._guard = threading.Lock()
        self._sessions: Recent[str, RememberedSession] = Recent()
        self._turns: Recent[str, str] = Recent()
        """The newest session of each turn: a compression may give the conversation a new id."""

    def note_turn(self, session: str, user_message: object, *, is_first: bool) -> None:
        """Note the user's words at the beginning of a turn, before anything is added to them."""
        conversation = self._conversation(session)
        conversation.is_first_turn = is_first
        if is_first:
            conversation.task = task_text(user_message)

    def add(self, request: dict[str, Any], form: str, origin: Origin) -> GivenOpening:
        """Put the session's opening into a request, and return it."""
        parent = self._parent(origin)
        conversation = self._conversation(origin.session)
        with conversation.lock:
            given = conversation.given.get(form)
            if given is None:
                given = self._decided(request, form, origin, parent, conversation)
                conversation.given[form] = given
        if given.id:
            # In place too: each of several plugins gets this dict, and the last answer counts.
            request.update(with_opening(request, form, given.system, list(given.examples)))
        return given

    def _decided(
        self,
        request: dict[str, Any],
        form: str,
        origin: Origin,
        parent: str,
        conversation: RememberedSession,
    ) -> GivenOpening:
        if any(not given.id for given in conversation.given.values()):
            return COLD  # in another form
        messages = messages_of(request, form)
        # A person can have messages put before every session; they are not answers.
        is_first_request = conversation.is_first_turn and origin.calls <= 1 and not parent
        asked = {
            "session": origin.session,
            "task": conversation.task or first_task(messages),
            "tools": request.get("tools"),
            "fresh": is_first_request or is_fresh(messages),
            "form": form,
            "parent": parent,
            "model": origin.model,
            "platform": origin.platform,
            "cwd": working_folder(),
            "path": self._database(),
        }
        try:
            return _read(self._link.ask("opening", asked, timeout_s=WAIT_S))
        except Unanswered as error:
            self._link.fail(origin.session, "opening", str(error))
        # A conversation that goes on under another id keeps what it has.
        return self._conversation(parent).given.get(form, COLD) if parent else COLD

    def _parent(self, origin: Origin) -> str:
        """Return the session that this one continues, if a compression gave the conversation a new
        id within the turn. The id of a turn begins with the id that the session had at first.
        """
        if not origin.turn:
            return ""
        with self._guard:
            before = self._turns.get(origin.turn) or origin.turn.partition(":")[0]
            self._turns[origin.turn] = origin.session
        return before if before != origin.session else ""

    def _conversation(self, session: str) -> RememberedSession:
        with self._guard:
            found = self._sessions.get(session) or RememberedSession()
            self._sessions[session] = found
        return found


def working_folder() -> str:
    """Return the folder in which Hermes runs commands."""
    folder = os.environ.get("TERMINAL_CWD", "")
    return folder if os.path.isabs(folder) else os.getcwd()  # noqa: PTH109, PTH117


def _read(answer: dict[str, Any]) -> GivenOpening:
    """Return an answer as an opening. Raise Unanswered if it is not what was asked for."""
    if answer.get("state") in ("cold", "off"):
        return COLD
    id_, system, messages = (answer.get(name) for name in ("id", "system", "messages"))
    if not (isinstance(id_, str) and isinstance(system, str) and isinstance(messages, list)):
        raise Unanswered("the answer is not understood; is it of another version?", reached=True)
    return GivenOpening(id=id_, system=system, examples=tuple(messages))


def messages_of(request: Mapping[str, Any], form: str) -> list[dict[str, Any]]:
    """Return the messages of a request."""
    messages = request.get(_CONVERSATION[form])
    found = messages if isinstance(messages, list) else []
    return [message for message in found if isinstance(message, dict)]


def is_fresh(messages: list[dict[str, Any]]) -> bool:
    """Whether the model has not answered yet."""
    return not any(
        message.get("role") == "assistant" or message.get("type") in _ANSWERS
        for message in messages
    )


def first_task(messages: list[dict[str, Any]]) -> str:
    """Return what the user asks for first."""
    users = (message for message in messages if message.get("role") == "user")
    return task_text(next(users, {}).get("content"))


def is_review(messages: list[dict[str, Any]]) -> bool:
    """Whether a request is Hermes' background review of a session."""
    users = [message for message in messages if message.get("role") == "user"]
    return bool(users) and task_text(users[-1].get("content")).startswith(_REVIEW)


def task_text(content: object) -> str:
    """Return the task in a user's message. Hermes puts a paragraph in brackets before the task of a
    scheduled job, which would make it similar to every other job.
    """
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        content = "\n".join(part for part in parts if isinstance(part, str))
    text = content if isinstance(content, str) else ""
    preamble = _CRON_PREAMBLE.match(text)
    rest = text[preamble.end() :].strip() if preamble else ""
    return rest or text.strip()


def with_opening(
    request: Mapping[str, Any], form: str, system: str, examples: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the fields of a request that an opening changes. The text follows Hermes' own system
    text, and the examples come before the conversation. There is still one system message, because
    some servers accept no second one.
    """
    shown = copy.deepcopy(examples)
    if form == "anthropic":
        return {
            "system": _joined(request.get("system"), system),
            "messages": [*shown, *request["messages"]],
        }
    if form == "responses":
        # Hermes checks its items, and takes messages of users only without a type.
        for item in shown:
            if item.get("type") == "message":
                del item["type"]
        return {
            "instructions": _joined(request.get("instructions"), system),
            "input": [*shown, *request["input"]],
        }
    messages = list(request["messages"])
    at = 0
    while at < len(messages) and messages[at].get("role") in ("system", "developer"):
        at += 1
    if at == 0:
        return {"messages": [{"role": "system", "content": system}, *shown, *messages]}
    last = messages[at - 1]
    noted = {**last, "content": _joined(last.get("content"), system)}
    return {"messages": [*messages[: at - 1], noted, *shown, *messages[at:]]}


def _joined(content: object, text: str) -> object:
    """Return a system text with another one after it."""
    if not text:
        return content
    if isinstance(content, list):
        return [*content, {"type": "text", "text": text}]
    return f"{content}\n\n{text}" if content else text
