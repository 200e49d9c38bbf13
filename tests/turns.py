"""Sessions for tests, written as turns: the user's messages, the agent's messages and calls, and
their results. The real judge judges them.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from journeyman import Journeyman
from journeyman.experience.opening import episode_pattern
from journeyman.learning.episodes import mine
from journeyman.learning.opening_text import is_own_call_id
from journeyman.outcomes.judge import judge
from journeyman.records import (
    Episode,
    JudgedCall,
    Message,
    MessageKind,
    MinedSession,
    Pattern,
    PatternId,
    ResultFlags,
    Role,
    Session,
    SessionId,
    Step,
    ToolCall,
    join_calls,
)
from journeyman.records.defaults import TRIVIAL_TOOLS


class Turn(NamedTuple):
    """A message, with an optional call and its result."""

    role: Role
    text: str = ""
    kind: MessageKind = "plain"
    tool: str = ""
    arguments: str = "{}"
    result: str | None = None
    is_error: bool | None = None
    call_id: str = ""
    status: str | None = None


def user(text: str, kind: MessageKind = "plain") -> Turn:
    return Turn("user", text, kind)


def agent(text: str) -> Turn:
    return Turn("assistant", text)


def call(
    tool: str, arguments: Any = None, result: str | None = "fine", *, says: str = "", **other: Any
) -> Turn:
    """A call that succeeded; see `failed` for one that did not."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return Turn("assistant", says, "plain", tool, written, result, **{"is_error": False, **other})


def failed(tool: str, arguments: Any = None, result: str = "it broke", **other: Any) -> Turn:
    return call(tool, arguments, result, is_error=True, **other)


def refused(tool: str, arguments: Any, words: str) -> Turn:
    """A call that the person refused, with their words, as the harness records it."""
    return failed(tool, arguments, words, status="not_run")


def messages(*turns: Turn, start: float = 1_000.0) -> list[Message]:
    made: list[Message] = []
    for number, turn in enumerate(turns):
        at = start + number
        call_id = turn.call_id or f"c{number}"
        calls = (ToolCall(id=call_id, name=turn.tool, arguments=turn.arguments),)
        made.append(
            Message(
                key=f"m{number}",
                position=2 * number,
                role=turn.role,
                text=turn.text,
                kind=turn.kind,
                tool_calls=calls if turn.tool else (),
                at=at,
            )
        )
        if turn.tool and turn.result is not None:
            flags = ResultFlags(is_error=turn.is_error, status=turn.status)
            recorded = None if flags == ResultFlags() else flags
            made.append(
                Message(
                    key=f"r{number}",
                    position=2 * number + 1,
                    role="tool",
                    text=turn.result,
                    tool_call_id=call_id,
                    recorded=recorded,
                    at=at,
                )
            )
    return made


def judged(said: Sequence[Message]) -> list[JudgedCall]:
    """The verdicts on the agent's own calls."""
    return [
        JudgedCall(call_id=one.id, tool=one.tool, verdict=judge(one), index=one.index)
        for one in join_calls(said)
        if one.asked_by == "assistant" and not is_own_call_id(one.id)
    ]


def mined(*turns: Turn, session: Session | None = None, start: float = 1_000.0) -> MinedSession:
    """What is learned from a session of these turns."""
    of = session or Session(id=SessionId("s1"), source="test", model="m", outcome=1.0)
    said = messages(*turns, start=start)
    return mine(of, said, judged(said), trivial=frozenset(TRIVIAL_TOOLS), digest="d")


def patterns(*turns: Turn) -> list[Pattern]:
    """The requests of these turns that teach, each as its example."""
    return [episode_pattern(one) for one in mined(*turns).episodes if one.teaches]


def learned(jm: Journeyman) -> list[Episode]:
    """All episodes in the store."""
    rows = jm._store.episodes.rows()
    return list(jm._store.episodes.by_row([one.row for one in rows]).values())


def pattern(intent: str = "Book a seat", *tools: str, session: str = "s1", **other: Any) -> Pattern:
    """A handmade pattern with an id that names it."""
    steps = tuple(
        Step(tool=tool, arguments='{"id": 1}', result="ok") for tool in tools or ("book",)
    )
    fields = {"tokens": 100, "sessions": (SessionId(session),), "steps": steps, **other}
    made = PatternId(f"{intent}/{'-'.join(step.tool for step in fields['steps'])}")
    return Pattern(id=made, intent=intent, **fields)


def chat(*turns: Turn) -> list[dict[str, Any]]:
    """The turns in the OpenAI message format, for `Journeyman.record`. Failures are visible only in
    the text.
    """
    made: list[dict[str, Any]] = []
    for number, turn in enumerate(turns):
        message: dict[str, Any] = {"role": turn.role, "content": turn.text or None}
        if turn.tool:
            function = {"name": turn.tool, "arguments": turn.arguments}
            call_id = turn.call_id or f"c{number}"
            message["tool_calls"] = [{"id": call_id, "type": "function", "function": function}]
        made.append(message)
        if turn.tool and turn.result is not None:
            text = json.dumps({"error": turn.result}) if turn.is_error else turn.result
            made.append({"role": "tool", "tool_call_id": call_id, "content": text})
    return made
