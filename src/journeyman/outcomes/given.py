"""Calls as people and programs hand them in: objects with `tool`, `arguments` and `result_text`,
one by one or as lines of a file. Other fields are not looked at, so that a judge can be measured
on calls that carry their answer.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from journeyman.outcomes.judge import judge
from journeyman.records import Call, Verdict
from journeyman.records.errors import NotACall

UNREADABLE = "unreadable_line"
"""The rule of the verdict on a line that is no call."""

_MARK = b"\xef\xbb\xbf"
"""What some programs put before UTF-8."""

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def given_call(given: Mapping[str, Any]) -> Call:
    """The call that was handed in. Raises NotACall."""
    tool = given.get("tool")
    if not isinstance(tool, str):
        found = "no tool" if tool is None else f"a tool that is no text ({tool!r:.40})"
        raise NotACall(
            f'A call to judge has {found}. It needs "tool", "arguments" and "result_text".'
        )
    arguments = _text(given.get("arguments"))
    return Call(
        id="",
        tool=tool,
        arguments="{}" if arguments is None else arguments,
        result=_text(given.get("result_text")),
    )


def verdict_on_line(line: bytes) -> Verdict:
    """The verdict on a call in one line of JSON. A line that is no call is unknown, and the
    evidence says why.
    """
    if not line.strip():
        return _unreadable("The line is empty.")
    try:
        given = _decode(line.removeprefix(_MARK))
    except (ValueError, RecursionError) as error:
        return _unreadable(f"The line is not JSON: {error}")
    if not isinstance(given, dict):
        return _unreadable("The line is JSON, but not an object.")
    try:
        return judge(given_call(given))
    except NotACall as error:
        return _unreadable(str(error))


def _unreadable(reason: str) -> Verdict:
    return Verdict(status="unknown", rule=UNREADABLE, evidence=reason)


def _text(value: Any) -> str | None:
    """A value as a harness would have shown it: text as it is, all else as JSON."""
    if value is None or isinstance(value, str):
        return value
    try:
        return _encode(value).decode()
    except TypeError as error:
        raise NotACall(f"A call to judge holds what JSON cannot: {error}") from error
