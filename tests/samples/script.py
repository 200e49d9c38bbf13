"""Scripted sessions. A script is data that says what an agent does; `play` executes its calls and
records the results. Tools have neutral names (shell, read, write, edit, search, subagent).
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any, Literal

from msgspec import Struct

Fate = Literal["run", "refused", "cancelled", "lost"]
"""What happens to a call. `run`: it is executed. The others never reach the tool: the user refuses
it, a parallel call failed first, or the session ends before there is a result."""

FailureKind = Literal["nonzero_exit", "missing_file", "unread_file", "no_match", "many_matches"]
InvalidKind = Literal["unknown_tool", "bad_arguments"]
ResultKind = Literal["ok", "refused", "cancelled"] | FailureKind | InvalidKind


class CallRequest(Struct, frozen=True, kw_only=True):
    """One call that the agent requests. `refusal` is what the user says when refusing it;
    `subagent` is what a subagent does.
    """

    tool: str
    arguments: dict[str, Any]
    fate: Fate = "run"
    refusal: str = ""
    subagent: tuple["AgentMessage", ...] = ()


class AgentMessage(Struct, frozen=True, kw_only=True):
    """One message of the agent; without requests it is an answer to the user."""

    text: str = ""
    thought: str = ""
    requests: tuple[CallRequest, ...] = ()


class UserMessage(Struct, frozen=True, kw_only=True):
    """A message of the user; the bug that it reports is added to the project first."""

    text: str
    bug: str = ""


class Compression(Struct, frozen=True, kw_only=True):
    """The harness replaces the conversation so far with a summary."""

    summary: str


ScriptStep = AgentMessage | UserMessage | Compression


class Script(Struct, frozen=True, kw_only=True):
    """A whole session before it is played."""

    source: str
    project: str
    title: str
    steps: tuple[ScriptStep, ...]
    reward: float | None = None

    @property
    def name(self) -> str:
        return f"{self.source} {self.title}"

    @property
    def bugs(self) -> list[str]:
        return [step.bug for step in self.steps if isinstance(step, UserMessage) and step.bug]


class CallResult(Struct, frozen=True, kw_only=True):
    """The result of a call. `text` is what the tool printed or read; `before` and `after` are the
    file before and after a write or an edit; `before` is None for a new file.
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
        """Whether the call was attempted and failed."""
        return self.kind not in ("ok", "refused", "cancelled")

    @property
    def output(self) -> str:
        """Standard output followed by standard error, as on a terminal."""
        return "\n".join(part.rstrip("\n") for part in (self.text, self.errors) if part.strip())


class PlayedCall(Struct, frozen=True, kw_only=True):
    """A call with its result, which is None if it was lost."""

    request: CallRequest
    result: CallResult | None
    at: float
    subagent: tuple["SessionEvent", ...] = ()


class SessionEvent(Struct, frozen=True, kw_only=True):
    """A played step; `calls` are the calls of an agent message."""

    at: float
    step: ScriptStep
    calls: tuple[PlayedCall, ...] = ()

    @property
    def output_tokens(self) -> int:
        """The approximate number of tokens that the agent produced."""
        if not isinstance(self.step, AgentMessage):
            return 0
        arguments = "".join(str(call.request.arguments) for call in self.calls)
        return estimate_tokens(self.step.text, self.step.thought, arguments)

    @property
    def input_tokens(self) -> int:
        """The approximate number of tokens of the user's text, the summary or the results."""
        if isinstance(self.step, UserMessage):
            return estimate_tokens(self.step.text)
        if isinstance(self.step, Compression):
            return estimate_tokens(self.step.summary)
        results = [call.result for call in self.calls if call.result]
        return estimate_tokens(*(f"{r.text}{r.errors}{r.after}" for r in results))


class PlayedSession(Struct, frozen=True, kw_only=True):
    """A script with what happened when it was played."""

    script: Script
    events: tuple[SessionEvent, ...]


def play(
    script: Script, perform: Callable[[CallRequest], CallResult], *, started_at: float
) -> PlayedSession:
    """Execute a script. The same script always has the same timestamps."""
    clock = _timestamps(script.name, started_at)
    return PlayedSession(script=script, events=_play_steps(script.steps, perform, clock))


def _timestamps(name: str, now: float) -> Iterator[float]:
    for tick in count(1):
        now = round(now + 0.5 + stable_number(f"{name} {tick}", 12_000) / 1000, 3)
        yield now


def _play_steps(
    steps: Sequence[ScriptStep],
    perform: Callable[[CallRequest], CallResult],
    clock: Iterator[float],
) -> tuple[SessionEvent, ...]:
    def play_call(request: CallRequest) -> PlayedCall:
        subagent = _play_steps(request.subagent, perform, clock)
        result: CallResult | None = None
        if request.fate in ("refused", "cancelled"):
            result = CallResult(kind=request.fate)
        elif request.subagent:
            result = CallResult(kind="ok", text=request.subagent[-1].text)
        elif request.fate == "run":
            result = perform(request)
        return PlayedCall(request=request, result=result, at=next(clock), subagent=subagent)

    return tuple(
        SessionEvent(
            at=next(clock),
            step=step,
            calls=tuple(map(play_call, step.requests)) if isinstance(step, AgentMessage) else (),
        )
        for step in steps
    )


def estimate_tokens(*texts: str) -> int:
    """The approximate number of tokens in some texts."""
    return 1 + sum(len(text) for text in texts) // 4


def stable_number(key: str, limit: int) -> int:
    """A pseudo-random number, at least 0 and below the limit, that depends only on the key."""
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % limit


class SessionIds:
    """Ids for one session, derived from its name.

    All of them contain the same `stamp` of eight hexadecimal digits, so that replacing one string
    gives a finished log new ids.
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


def iso_time(at: float) -> str:
    """A time in the format of the recorders: 2026-10-05T09:12:33.120Z."""
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
