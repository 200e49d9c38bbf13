"""Scripted sessions: what an agent does, and what came of it. A script is data; `play` executes its
calls. Tools have neutral names (shell, read, write, edit, search, subagent).
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any, Literal

from msgspec import Struct

Fate = Literal["run", "refused", "cancelled", "lost"]
"""`run`: the call is executed. The others never reach the tool: the user refuses, a sibling call
failed first, or the session ends before there is a result."""

Failed = Literal["nonzero_exit", "missing_file", "unread_file", "no_match", "many_matches"]
Wrong = Literal["unknown_tool", "bad_arguments"]
ResultKind = Literal["ok", "refused", "cancelled"] | Failed | Wrong


class Ask(Struct, frozen=True, kw_only=True):
    """One call as the agent wants it. `said` is what the user says when refusing. `inner` is what
    a subagent does.
    """

    tool: str
    arguments: dict[str, Any]
    fate: Fate = "run"
    said: str = ""
    inner: tuple["Act", ...] = ()


class Act(Struct, frozen=True, kw_only=True):
    """One message of the agent; without asks it is an answer to the user."""

    text: str = ""
    thought: str = ""
    asks: tuple[Ask, ...] = ()


class UserSays(Struct, frozen=True, kw_only=True):
    """A message of the user; the bug that it reports is put into the project first."""

    text: str
    bug: str = ""


class Compress(Struct, frozen=True, kw_only=True):
    """The harness replaces what was said so far by a summary."""

    summary: str


Step = Act | UserSays | Compress


class Script(Struct, frozen=True, kw_only=True):
    """A whole session before it is played."""

    source: str
    project: str
    title: str
    steps: tuple[Step, ...]
    reward: float | None = None

    @property
    def name(self) -> str:
        return f"{self.source} {self.title}"

    @property
    def bugs(self) -> list[str]:
        return [step.bug for step in self.steps if isinstance(step, UserSays) and step.bug]


class Result(Struct, frozen=True, kw_only=True):
    """What a call gave. `text` is what the tool printed or read, `before` and `after` are the
    file around a write or an edit; `before` is None for a new file.
    """

    kind: ResultKind
    text: str = ""
    errors: str = ""
    exit_code: int | None = None
    before: str | None = None
    after: str = ""
    matches: int = 0

    @property
    def failed(self) -> bool:
        """True when the call was carried out, or tried, and went wrong."""
        return self.kind not in ("ok", "refused", "cancelled")

    @property
    def output(self) -> str:
        """Output and error output one after the other, as people see them on a terminal."""
        return "\n".join(part.rstrip("\n") for part in (self.text, self.errors) if part.strip())


class Reply(Struct, frozen=True, kw_only=True):
    """A call with its result; no result when it was lost."""

    ask: Ask
    result: Result | None
    at: float
    inner: tuple["Event", ...] = ()


class Event(Struct, frozen=True, kw_only=True):
    """A step, played; the replies are those to the calls of an `Act`."""

    at: float
    step: Step
    replies: tuple[Reply, ...] = ()

    @property
    def spoken_tokens(self) -> int:
        """About how many tokens the agent produced."""
        if not isinstance(self.step, Act):
            return 0
        arguments = "".join(str(reply.ask.arguments) for reply in self.replies)
        return estimate_tokens(self.step.text, self.step.thought, arguments)

    @property
    def heard_tokens(self) -> int:
        """About how many tokens the user's words, a summary or the results have."""
        if isinstance(self.step, UserSays):
            return estimate_tokens(self.step.text)
        if isinstance(self.step, Compress):
            return estimate_tokens(self.step.summary)
        results = [reply.result for reply in self.replies if reply.result]
        return estimate_tokens(*(f"{r.text}{r.errors}{r.after}" for r in results))


class Played(Struct, frozen=True, kw_only=True):
    """A session as it happened."""

    script: Script
    events: tuple[Event, ...]


def play(script: Script, perform: Callable[[Ask], Result], *, started_at: float) -> Played:
    """Execute a script from its first word to its last. The same session always takes the same
    time.
    """
    clock = _times(script.name, started_at)
    return Played(script=script, events=_play_steps(script.steps, perform, clock))


def _times(name: str, now: float) -> Iterator[float]:
    for tick in count(1):
        now = round(now + 0.5 + pick(f"{name} {tick}", 12_000) / 1000, 3)
        yield now


def _play_steps(
    steps: Sequence[Step], perform: Callable[[Ask], Result], clock: Iterator[float]
) -> tuple[Event, ...]:
    def reply(ask: Ask) -> Reply:
        inner = _play_steps(ask.inner, perform, clock)
        result: Result | None = None
        if ask.fate in ("refused", "cancelled"):
            result = Result(kind=ask.fate)
        elif ask.inner:
            result = Result(kind="ok", text=ask.inner[-1].text)
        elif ask.fate == "run":
            result = perform(ask)
        return Reply(ask=ask, result=result, at=next(clock), inner=inner)

    return tuple(
        Event(
            at=next(clock),
            step=step,
            replies=tuple(map(reply, step.asks)) if isinstance(step, Act) else (),
        )
        for step in steps
    )


def estimate_tokens(*texts: str) -> int:
    """About how many tokens a text has."""
    return 1 + sum(len(text) for text in texts) // 4


def pick(key: str, limit: int) -> int:
    """A number from 0 up to, but without, the limit: random to look at, fixed by the key."""
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % limit


class Ids:
    """Ids for one session, made from its name.

    All of them contain the same `stamp` of eight hexadecimal digits, so that a finished log can
    be given fresh ids by replacing one piece of text.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0
        self.stamp = self._hex(8)
        rest = self._hex(23)
        self.session = f"{self.stamp}-{rest[:4]}-4{rest[4:7]}-a{rest[7:10]}-{rest[11:]}"

    def uuid(self) -> str:
        h = self._hex(22)
        return f"{h[:8]}-{h[8:12]}-4{h[12:15]}-b{h[15:18]}-{h[18:]}{self.stamp}"

    def token(self, prefix: str, length: int) -> str:
        """An id such as `toolu_01…`: a prefix, then `length` characters that end in the stamp."""
        return f"{prefix}{self._hex(length - 8)}{self.stamp}"

    def _hex(self, length: int) -> str:
        self._count += 1
        key = f"{self._name} {self._count}".encode()
        return hashlib.blake2b(key, digest_size=32).hexdigest()[:length]


def iso(at: float) -> str:
    """A time as the recorders write it: 2026-10-05T09:12:33.120Z."""
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
