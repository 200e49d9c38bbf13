"""Which session a request belongs to.

Claude Code, Codex and opencode name their session in a header, and record it themselves. Other
agents send their whole conversation with every request: a request continues the session whose last
request it begins with. Where an agent has shortened or edited its conversation, shared call ids
decide, then shared answers. Nothing that depends on a credential is stored: credentials change
within a session, and two conversations differ by their answers.
"""

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Self

from msgspec import Struct

from journeyman.hosts.proxy.requests import Injection, ModelRequest, spoken_text
from journeyman.logs.fields import as_text, only_text
from journeyman.records import Message, Usage
from journeyman.records.errors import JourneymanError
from journeyman.records.host import Host

log = logging.getLogger("journeyman.proxy")

SOURCE: Host = "proxy"

_MAX_GROUPS = 300
_MAX_ALIKE = 64
"""How many sessions that began with the same request are kept in memory."""
_BATCH = 64
_LOAD_S = 1.0
_REPEATS, _CONTINUES = 1_000_000, 2_000_000
"""A request that is the last one again, or continues it, belongs to its session, whatever messages
it shares with others."""

Marks = tuple[str, ...]
"""What identifies a message: the ids of its calls and results, or else a digest of its text."""


class NamedSession(Struct, frozen=True, kw_only=True):
    """A session that its agent names, and records by itself."""

    host: Host
    id: str
    is_subagent: bool = False


def named_session(headers: Mapping[str, str]) -> NamedSession | None:
    """Return the session that a request names in its headers, if its agent is known to do so."""
    agent = headers.get("user-agent", "")
    if id_ := headers.get("x-claude-code-session-id"):
        is_subagent = "x-claude-code-agent-id" in headers
        return NamedSession(host="claude-code", id=id_, is_subagent=is_subagent)
    if (id_ := headers.get("session-id")) and "x-codex-turn-metadata" in headers:
        is_subagent = headers.get("thread-id", id_) != id_
        return NamedSession(host="codex", id=id_, is_subagent=is_subagent)
    if (id_ := headers.get("x-session-id")) and agent.startswith("opencode/"):
        is_subagent = "x-parent-session-id" in headers
        return NamedSession(host="opencode", id=id_, is_subagent=is_subagent)
    return None


def marks_of(message: Mapping[str, Any]) -> Marks:
    """Return the marks of a message of a chat or of Anthropic's API."""
    role, content = message.get("role"), message.get("content")
    if role in ("tool", "function"):
        return _result_marks([only_text(message.get("tool_call_id"))])
    parts = content if isinstance(content, list) else ()
    blocks = [block for block in parts if isinstance(block, dict)]
    results = [only_text(block.get("tool_use_id")) for block in blocks if _is(block, "tool_result")]
    calls = message.get("tool_calls")
    uses = [*(calls if isinstance(calls, list) else ()), *(b for b in blocks if _is(b, "tool_use"))]
    ids = [only_text(use.get("id")) for use in uses if isinstance(use, dict)]
    not_text = ("tool_result", "tool_use", "thinking", "redacted_thinking", "reasoning")
    texts = [block for block in blocks if block.get("type") not in not_text]
    text = as_text(texts if isinstance(content, list) else content)
    return (*_result_marks(results), *_text_marks(role, ids, text))


def marks_of_stored(message: Message) -> Marks:
    """Return the marks of a message as it was recorded."""
    if message.role == "tool":
        return _result_marks([message.tool_call_id])
    return _text_marks(message.role, [call.id for call in message.tool_calls], message.text)


def _result_marks(ids: Iterable[str]) -> Marks:
    return tuple(f"result {id_}" for id_ in ids if id_)


def _text_marks(role: Any, call_ids: Sequence[str], text: str) -> Marks:
    if any(call_ids):
        return (f"call {' '.join(call_ids)}",)
    text = spoken_text(text) if role == "user" else text.strip()
    if not text or role not in ("user", "assistant"):
        return ()
    return (f"{'said' if role == 'assistant' else 'asked'} {_digest(text)}",)


class History:
    """The marks of a conversation as far as it is known: the last request, and its answer."""

    def __init__(self, sent: Iterable[str] = (), answer: Marks = ()) -> None:
        self.sent = list(sent)
        self.answer = answer
        self._known = {*self.sent, *answer}

    @classmethod
    def stored(cls, messages: Iterable[Message]) -> Self:
        """Return the history of a recorded session."""
        marks = [mark for message in messages for mark in marks_of_stored(message)]
        answer = tuple(takewhile(_is_answer, reversed(marks)))[::-1]
        return cls(marks[: len(marks) - len(answer)], answer)

    def extend(self, sent: Sequence[str], answer: Marks = ()) -> None:
        self.sent, self.answer = list(sent), answer
        self._known.update(sent, answer)

    def knows_calls(self, marks: Marks) -> bool:
        """Whether the calls of a message are known."""
        return any(_has_id(mark) and mark in self._known for mark in marks)

    def rank(self, marks: Sequence[str]) -> int:
        """Return how well a request continues this conversation; 0 if it does not."""
        shared = _shared_count(marks, self.sent)
        if shared == len(self.sent):
            following = [*marks[shared : shared + 1], *self.answer[:1]]
            if len({*filter(_has_id, following)}) > 1:
                return 0  # the same request was answered twice, and this goes on from the other
            if shared == len(marks):
                return _REPEATS + shared
            return _CONTINUES + shared + _shared_count(marks[shared:], self.answer)
        # It was shortened or edited. What a person says may well be said in two conversations.
        later = marks[1:]
        telling = [mark for mark in later if _has_id(mark)] or [*filter(_is_answer, later)]
        return sum(mark in self._known for mark in telling)

    def first_new(self, marks: Sequence[Marks]) -> int:
        """Return the index of the first message of a request that is not known."""
        if not self.sent:
            return 0
        places = [(mark, index) for index, ones in enumerate(marks) for mark in ones]
        shared = _shared_count([mark for mark, _ in places], self.sent)
        if shared < len(self.sent):
            return max((index + 1 for mark, index in places if mark in self._known), default=0)
        index = places[shared][1] if shared < len(places) else len(marks)
        if self.answer:  # the agent repeats the answer in its own form
            index += sum(
                1 for _ in takewhile(lambda ones: all(map(_is_answer, ones)), marks[index:])
            )
        return index


class Conversation:
    """A session as the proxy knows it: what has passed, and what of it is recorded, which only the
    recorder changes. `opening` is decided with its first request.
    """

    def __init__(self, host: Host, id_: str, recorded: History | None = None) -> None:
        self.host = host
        self.id = id_
        self.setup = ""
        self.folder = ""
        self.recorded = recorded or History()
        self.history = History(self.recorded.sent, self.recorded.answer)
        self.is_answered = recorded is not None
        self.unread_answers: list[Callable[[], Marks]] = []
        """They return the marks of answers that are passed on now, as far as these have come."""
        self.unsaved_usage: list[Usage] = []
        self.is_noted = False
        self.opening: asyncio.Task[Injection | None] | None = None

    def rank(self, marks: Sequence[str], setup: str, *, is_fresh: bool) -> int:
        """Return how well a request belongs to this session; 0 if it does not."""
        if is_fresh and marks == self.history.sent:
            # The same first request again: a retry, unless it was answered or still is being.
            is_retry = not (self.is_answered or self.unread_answers) and setup == self.setup
            return int(is_retry)
        history = self.history
        if not history.answer and self.unread_answers and len(marks) > len(history.sent):
            # The agent may have read the answer before the proxy has.
            following = marks[len(history.sent)]
            answers = [read() for read in self.unread_answers]
            answers.sort(key=lambda answer: following in answer)
            history = History(history.sent, answers[-1])
        return history.rank(marks)


class Conversations:
    """Finds the session of a request to one upstream. `load` returns recorded sessions by ids."""

    def __init__(
        self, upstream: str, load: Callable[[Sequence[str]], Mapping[str, History]] | None
    ) -> None:
        self._upstream = upstream
        self._load = load
        self._named: OrderedDict[tuple[str, str], Conversation] = OrderedDict()
        self._groups: OrderedDict[str, list[Conversation]] = OrderedDict()
        """The sessions that began with the same request, the latest last."""
        self._counts: dict[str, int] = {}
        self._finding = asyncio.Lock()

    def named(self, session: NamedSession) -> Conversation:
        """Return the session that an agent named."""
        key = session.host, session.id
        if key not in self._named:
            self._named[key] = Conversation(session.host, session.id)
        self._named.move_to_end(key)
        if len(self._named) > _MAX_GROUPS:
            self._named.popitem(last=False)
        return self._named[key]

    async def find(self, request: ModelRequest, credential: str) -> Conversation:
        """Return the session that a request continues or begins. The credential only tells two
        agents apart that begin with the same words at the same time.
        """
        marks = [mark for message in request.messages for mark in marks_of(message)]
        key = _digest(repr([self._upstream, request.task or marks[:1]]))
        is_fresh, setup = request.is_fresh, ""
        if is_fresh:
            setup = _digest(repr([credential, request.form, request.system, request.tools]))
        async with self._finding:
            if key not in self._groups:
                self._groups[key] = await self._loaded(key)
            self._groups.move_to_end(key)
            group = self._groups[key]
            ranks = [one.rank(marks, setup, is_fresh=is_fresh) for one in group]
            if any(ranks):  # of equals, the latest
                found = group.pop(max(range(len(group)), key=lambda index: (ranks[index], index)))
            else:
                found = self._begun(key, marks, setup)
            group.append(found)
            del group[:-_MAX_ALIKE]
            while len(self._groups) > _MAX_GROUPS:
                self._counts.pop(self._groups.popitem(last=False)[0], None)
        return found

    def _begun(self, key: str, marks: Sequence[str], setup: str) -> Conversation:
        self._counts[key] += 1
        begun = Conversation(SOURCE, _session_id(key, self._counts[key]))
        begun.history, begun.setup = History(marks), setup
        return begun

    async def _loaded(self, key: str) -> list[Conversation]:
        """Return the recorded sessions that began with the same request."""
        found: list[Conversation] = []
        self._counts[key], number = 0, 0
        while self._load is not None:
            numbers = range(number + 1, number + 1 + _BATCH)
            ids = [_session_id(key, number) for number in numbers]
            try:
                batch = await asyncio.wait_for(asyncio.to_thread(self._load, ids), _LOAD_S)
            except (JourneymanError, TimeoutError) as error:
                log.warning("Recorded sessions could not be read: %s", error or "it took too long")
                self._counts[key] = int(time.time() * 1_000)  # an id that none of them has
                break
            for number, id_ in zip(numbers, ids, strict=True):
                if id_ in batch:  # some may have been deleted
                    found.append(Conversation(SOURCE, id_, batch[id_]))
                    self._counts[key] = number
            if ids[-1] not in batch:
                break
        return found


def _session_id(key: str, number: int) -> str:
    return _digest(f"{key} {number}")


def _digest(text: str) -> str:
    encoded = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(encoded, digest_size=12).hexdigest()


def _shared_count(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many marks two conversations have in common at their beginning."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _is_answer(mark: str) -> bool:
    return mark.startswith(("call ", "said "))


def _has_id(mark: str) -> bool:
    return mark.startswith(("call ", "result "))


def _is(block: Mapping[str, Any], kind: str) -> bool:
    return block.get("type") == kind
