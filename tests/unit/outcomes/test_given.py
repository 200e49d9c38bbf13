"""Calls as they are handed in."""

import json

import pytest
from tests.tables import table

from journeyman.outcomes.judge import UNREADABLE, given_call, verdict_on_line
from journeyman.records.errors import NotACall


def test_a_call_from_an_object() -> None:
    # A call from an object.
    call = given_call({"tool": "Bash", "arguments": {"command": "ls"}, "result_text": "a"})
    assert (call.tool, json.loads(call.arguments), call.result) == ("Bash", {"command": "ls"}, "a")

    # What is no text is taken as JSON.
    call = given_call({"tool": "q", "arguments": "{}", "result_text": {"error": "no"}})
    assert (call.arguments, call.result) == ("{}", '{"error":"no"}')

    # A missing result is not an empty one.
    assert given_call({"tool": "q"}).result is None
    assert given_call({"tool": "q", "result_text": ""}).result == ""

    # The answer that a line carries is not looked at.
    line = {"tool": "q", "arguments": {}, "result_text": "fine", "is_error": True, "exit_code": 1}
    assert verdict_on_line(json.dumps(line).encode()).status == "ok"

    # What JSON cannot hold is no call.
    with pytest.raises(NotACall, match="JSON cannot"):
        given_call({"tool": "q", "arguments": {"x": object()}})


@table("given", [{}, {"tool": None}, {"tool": 7}, {"result_text": "x"}])
def test_without_a_tool_it_is_no_call(given: dict[str, object]) -> None:
    with pytest.raises(NotACall, match='needs "tool"'):
        given_call(given)


@table("line", [b"", b"nonsense", b"[]", b"7", b'{"a": 1}', b"\xff", b"[" * 9999])
def test_a_line_that_is_no_call_is_unknown_and_says_why(line: bytes) -> None:
    verdict = verdict_on_line(line)
    assert (verdict.status, verdict.rule) == ("unknown", UNREADABLE)
    assert verdict.evidence
