"""Calls read from objects and lines of JSON."""

import json

import pytest
from tests.tables import table

from journeyman.outcomes.judge import UNREADABLE, call_from_fields, verdict_on_line
from journeyman.records.errors import NotACall


def test_a_call_from_an_object() -> None:
    call = call_from_fields({"tool": "Bash", "arguments": {"command": "ls"}, "result_text": "a"})
    assert (call.tool, json.loads(call.arguments), call.result) == ("Bash", {"command": "ls"}, "a")

    # A value that is not text is encoded as JSON.
    call = call_from_fields({"tool": "q", "arguments": "{}", "result_text": {"error": "no"}})
    assert (call.arguments, call.result) == ("{}", '{"error":"no"}')

    # A missing result is not an empty one.
    assert call_from_fields({"tool": "q"}).result is None
    assert call_from_fields({"tool": "q", "result_text": ""}).result == ""

    # The verdict fields of a line are ignored.
    line = {"tool": "q", "arguments": {}, "result_text": "fine", "is_error": True, "exit_code": 1}
    assert verdict_on_line(json.dumps(line).encode()).status == "ok"

    # A value that JSON cannot represent is rejected.
    with pytest.raises(NotACall, match="JSON cannot"):
        call_from_fields({"tool": "q", "arguments": {"x": object()}})


@table("fields", [{}, {"tool": None}, {"tool": 7}, {"result_text": "x"}])
def test_a_call_needs_a_tool(fields: dict[str, object]) -> None:
    with pytest.raises(NotACall, match='needs "tool"'):
        call_from_fields(fields)


@table("line", [b"", b"nonsense", b"[]", b"7", b'{"a": 1}', b"\xff", b"[" * 9999])
def test_an_unreadable_line_is_unknown_with_a_reason(line: bytes) -> None:
    verdict = verdict_on_line(line)
    assert (verdict.status, verdict.rule) == ("unknown", UNREADABLE)
    assert verdict.evidence
