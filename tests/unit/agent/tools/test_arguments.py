"""Arguments as models write them, and the answers to those that do not fit."""

import json

from tests.tables import table

from journeyman.agent.tools.tool import Result, Tool, worked
from journeyman.agent.tools.toolbox import read_arguments

TOOL = Tool(
    name="book",
    description="Book a table.",
    parameters={
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "seats": {"type": "integer", "minimum": 1, "maximum": 9},
            "price": {"type": "number"},
            "outside": {"type": "boolean"},
            "room": {"type": "string", "enum": ["red", "blue"]},
            "guests": {
                "type": "array",
                "items": {"type": "object", "required": ["age"], "properties": {}},
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    run=lambda call: worked(),
)

MEANT = {
    '{"name": "Ada"}': {"name": "Ada"},
    ' {"name": "Ada", "seats": 3, "outside": true}\n': {
        "name": "Ada",
        "seats": 3,
        "outside": True,
    },
    '{"name": "Ada", "seats": "3", "price": " 2.5 ", "outside": "True"}': {
        "name": "Ada",
        "seats": 3,
        "price": 2.5,
        "outside": True,
    },
    '{"name": "Ada", "seats": 3.0}': {"name": "Ada", "seats": 3},
    '{"name": "Ada", "seats": null}': {"name": "Ada"},
    '{"name": "5"}': {"name": "5"},
    json.dumps('{"name": "Ada"}'): {"name": "Ada"},
}


@table("text", MEANT)
def test_what_is_meant_is_taken(text):
    assert read_arguments(TOOL, text) == MEANT[text]


MISFITS = {
    "": "'name' is missing",
    "{}": "'name' is missing",
    '{"name": null}': "'name' should be of type string",
    '{"name": ["Ada"]}': "'name' should be of type string",
    '{"name": "Ada", "seats": "three"}': "'seats' should be of type integer",
    '{"name": "Ada", "seats": 2.5}': "'seats' should be of type integer",
    '{"name": "Ada", "seats": 0}': "'seats' should be at least 1",
    '{"name": "Ada", "seats": 10}': "'seats' should be at most 9",
    '{"name": "Ada", "room": "green"}': "'room' should be one of 'red', 'blue'",
    '{"name": "Ada", "table": 1}': "'table' is no parameter",
    '{"name": "Ada", "table": 1, "x": 2}': "'table', 'x' are no parameters",
    '{"name": "Ada", "guests": [{}]}': "'guests.0.age' is missing",
    "[1]": "they are not a JSON object",
    "null": "they are not a JSON object",
    "7": "they are not a JSON object",
}


@table("text", MISFITS)
def test_what_does_not_fit_is_named(text):
    answer = read_arguments(TOOL, text)
    assert isinstance(answer, Result)
    assert answer.recorded.is_error
    error = answer.content["error"]
    assert error.startswith(f"Invalid arguments for book: {MISFITS[text]}. book takes name, seats ")


MALFORMED = {
    "cut": '{"name": "Ada',
    "words": "name = Ada",
    "two objects": "{} {}",
    "python": "{'name': 'Ada'}",
    "half a character": r'{"name": "\ud800"}',
    "half a character, raw": '{"name": "\ud800"}',
    "deep": "[" * 100_000,
    "too large a number": '{"price": 1e999}',
}


@table("how", MALFORMED)
def test_what_is_no_json_is_said_so(how):
    answer = read_arguments(TOOL, MALFORMED[how])
    assert isinstance(answer, Result)
    assert answer.content["error"].startswith("Invalid JSON in the arguments of book: ")
    assert answer.text
