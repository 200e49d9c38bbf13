"""Tool arguments as models write them: accepted when the meaning is clear, else explained."""

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

ACCEPTED = {
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


@table("text", ACCEPTED)
def test_arguments_with_a_clear_meaning_are_accepted(text):
    assert read_arguments(TOOL, text) == ACCEPTED[text]


MISFITS = {
    "": "'name' is a required property",
    '{"name": null}': "name: None is not of type 'string'",
    '{"name": "Ada", "seats": "three"}': "seats: 'three' is not of type 'integer'",
    '{"name": "Ada", "seats": 10}': "seats: 10 is greater than the maximum of 9",
    '{"name": "Ada", "room": "green"}': "room: 'green' is not one of ['red', 'blue']",
    '{"name": "Ada", "table": 1}': "Additional properties are not allowed ('table' was unexpected)",
    '{"name": "Ada", "guests": [{}]}': "guests.0: 'age' is a required property",
    "[1]": "they are not a JSON object",
}


@table("text", MISFITS)
def test_error_names_the_invalid_argument(text):
    answer = read_arguments(TOOL, text)
    assert isinstance(answer, Result)
    assert answer.recorded.is_error
    error = answer.content["error"]
    assert error.startswith(f"Invalid arguments for book: {MISFITS[text]}. book takes name, seats ")


MALFORMED = {
    "truncated": '{"name": "Ada',
    "plain text": "name = Ada",
    "two objects": "{} {}",
    "python": "{'name': 'Ada'}",
    "lone surrogate": r'{"name": "\ud800"}',
    "lone surrogate, unescaped": '{"name": "\ud800"}',
    "deeply nested": "[" * 100_000,
    "infinite number": '{"price": 1e999}',
}


@table("how", MALFORMED)
def test_malformed_json_is_reported(how):
    answer = read_arguments(TOOL, MALFORMED[how])
    assert isinstance(answer, Result)
    assert answer.content["error"].startswith("Invalid JSON in the arguments of book: ")
    assert answer.text
