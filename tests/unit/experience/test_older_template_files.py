"""Importing template files of older programs."""

import json
from typing import Any

from tests.tables import table

from journeyman.experience.opening import why_not_shown
from journeyman.experience.template_files import decode
from journeyman.learning.opening_text import NO_RESULT
from journeyman.learning.sanitizer import clipped_intent
from journeyman.records import ImportedTemplate, Step


def read(document: object, name: str | None = "old") -> ImportedTemplate:
    return decode(json.dumps(document).encode(), name=name)


def entry(**changes: object) -> dict[str, Any]:
    return {
        "tool_name": "get_user_details",
        "arguments": {"user_id": "mia"},
        "result_summary": "found",
        "result_success": True,
        "context_hint": "Look up who is asking.",
    } | changes


SHAPES: dict[str, dict[str, Any]] = {
    "examples with hints": {"version": 1, "examples": [entry()]},
    "patterns with metrics": {
        "version": 2,
        "metrics": {"success_rate": 0.9},
        "patterns": [
            {
                "tool": "get_user_details",
                "args": {"user_id": "mia"},
                "result": "found",
                "success": True,
                "intent": "Look up who is asking.",
            }
        ],
    },
    "examples by turn": {
        "task_type": "mixed",
        "usage_count": 12,
        "examples": [
            {
                "tool_name": "get_user_details",
                "arguments": '{"user_id": "mia"}',
                "result": "found",
                "success": True,
                "turn_number": 3,
                "context": "Look up who is asking.",
            }
        ],
    },
}


@table("shape", SHAPES)
def test_every_shape_gives_the_same_pattern(shape: str) -> None:
    decoded = read(SHAPES[shape])
    (pattern,) = decoded.template.patterns
    assert pattern.intent == "Look up who is asking."
    assert pattern.steps == (
        Step(tool="get_user_details", arguments='{"user_id": "mia"}', result="found"),
    )
    assert decoded.template.origin == "imported"
    assert decoded.template.used == SHAPES[shape].get("usage_count", 0)
    assert decoded.skipped == ()


def test_metadata_of_a_file() -> None:
    decoded = read(
        {
            "template_id": "t-1",
            "name": " Flights ",
            "task_type": "Research",
            "description": "For flights.",
            "tags": ["air", " air ", "travel"],
            "created_at": "2024-05-01T00:00:00Z",
            "source_session_id": "s1",
            "version": 2,
            "examples": [entry(timestamp=1714521600)],
        },
        name=None,
    )
    template = decoded.template
    assert (template.name, template.version, template.task_type) == ("Flights", 1, "research")
    assert (template.tags, template.description) == (("air", "travel"), "For flights.")
    assert template.created_at == 1714521600
    (pattern,) = template.patterns
    assert pattern.at == 1714521600


LEFT_OUT = [
    entry(result_success=False),
    entry(result_success=0),
    entry(result_success="yes"),
    entry(result_success=None, result_summary=None),
    entry(result_success=None, result_summary="Error: user not found"),
    entry(tool_name=None, tool=""),
    entry(tool_name=None),
    entry(tool_name=["x"]),
    "just text",
]


@table("left_out", LEFT_OUT)
def test_skipped_examples_are_reported(left_out: object) -> None:
    decoded = read({"examples": [entry(tool_name="good"), left_out]})
    assert [pattern.steps[-1].tool for pattern in decoded.template.patterns] == ["good"]
    (skipped,) = decoded.skipped
    assert skipped.startswith("example 2: it is no call, did not succeed, or its success is unk")


@table("arguments", [[1], "{broken", "[1]", 5])
def test_arguments_that_are_not_an_object_are_not_shown(arguments: object) -> None:
    (pattern,) = read({"examples": [entry(arguments=arguments)]}).template.patterns
    assert why_not_shown(pattern) == "the arguments of get_user_details are not a JSON object"


def test_success_flags_and_results() -> None:
    # Without a flag, the result decides.
    unflagged = entry(result_summary='{"user": "mia"}')
    del unflagged["result_success"]
    assert read({"examples": [unflagged]}).skipped == ()

    # A flag may be 1, as in databases.
    assert read({"examples": [entry(result_success=1)]}).skipped == ()

    # Without a summary, the result is used.
    (pattern,) = read({"examples": [entry(result_summary=None, result="full")]}).template.patterns
    assert pattern.steps[0].result == "full"


def test_context_count_and_addendum_are_kept() -> None:
    before = "The customer wants to change a booking."
    decoded = read(
        {
            "system_prompt_addendum": " Prefer read-only calls. ",
            "patterns": [entry(preceding_context=before, success_count=7, context_hint=None)],
        }
    )
    assert decoded.template.addendum == "Prefer read-only calls."
    (pattern,) = decoded.template.patterns
    assert (pattern.intent, pattern.times) == (before, 7)

    # With a hint too, both are kept; as messages, what the user said last.
    messages = [{"role": "user", "content": before}, {"role": "assistant", "content": "Sure."}]
    for context in (before, messages):
        (pattern,) = read({"patterns": [entry(preceding_context=context)]}).template.patterns
        assert clipped_intent(pattern.intent) == f"{before} … Look up who is asking."

    # It was seen at least once.
    for count in (0, -3, None, "many"):
        (pattern,) = read({"patterns": [entry(success_count=count)]}).template.patterns
        assert pattern.times == 1, count


STUBS = [
    *(None, "[Old tool output cleared to save context space]"),
    "[terminal] ran `npm test` -> exit 0, 47 lines output",
]
RESULTS = ["ok", "[]", "(no output)", '{"result": 3}', "[1, 2]", "found", "[INFO] build succeeded"]


@table("result", STUBS + RESULTS)
def test_stubs_are_not_results(result: str | None) -> None:
    (pattern,) = read({"examples": [entry(result_summary=result)]}).template.patterns
    assert pattern.steps[0].result == (NO_RESULT if result in STUBS else result)
