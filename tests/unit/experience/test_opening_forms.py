"""Examples in each message form, and patterns that cannot be shown."""

import msgspec
from tests.tables import table

from journeyman.experience import opening as forms
from journeyman.learning.opening_text import closing_sentence
from journeyman.records import Pattern, Step

LOOK = Step(tool="get_user", arguments='{"user_id": "<id:1>"}', result='{"name": "Ada"}')
BOOK = Step(tool="book", arguments='{"seats": 2}', result="Booked.")
HOLD = Step(tool="book", arguments='{"seats": "2"}', result="Held.")


def pattern(*steps: Step, intent: str = "Book two seats") -> Pattern:
    return Pattern(intent=intent, steps=steps)


def shown(*steps: Step, intent: str = "Book two seats") -> list[Pattern]:
    return [forms.as_example(pattern(*steps, intent=intent))]


def test_unacceptable_texts_are_repaired():
    # A pattern without an intent can be shown.
    assert forms.why_not_shown(pattern(LOOK, intent="")) == ""

    # Characters that no host accepts are replaced.
    step = Step(tool="run", arguments='{"a\ud800": "\\udfff"}', result="x\x00\udfff\x1b[0m")
    example = forms.as_example(pattern(step, intent="\ud83d go"))
    assert example.intent == "\ufffd go"
    assert example.steps[0].arguments == '{"a\ufffd":"\ufffd"}'
    assert example.steps[0].result == "x\ufffd\ufffd\x1b[0m"


@table(
    "arguments",
    [
        "",
        "null",
        '["a"]',
        '"{}"',
        "{'a': 1}",
        '{"a": 1',
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": "\n"}',
        "\ufeff{}",
        '{"a": ' + "9" * 5000 + "}",
        '{"a":' * 20_000,
    ],
    ids=[
        *("empty", "null", "list", "text", "quotes", "cut", "nan", "infinity", "overflow"),
        *("raw line break", "mark", "digits", "too deep"),
    ],
)
def test_arguments_that_cannot_be_shown(arguments):
    one = pattern(msgspec.structs.replace(LOOK, arguments=arguments))
    assert forms.why_not_shown(one) == "the arguments of get_user are not a JSON object"


@table(
    ("unfit", "reason"),
    [
        (pattern(), "it has no calls"),
        (
            pattern(LOOK, Step(tool="web.search")),
            "no host accepts 'web.search' as the name of a tool",
        ),
    ],
    ids=["empty", "name"],
)
def test_patterns_that_cannot_be_shown(unfit, reason):
    assert forms.why_not_shown(unfit) == reason


@table(
    ("steps", "sentence"),
    [
        ((LOOK,), "That worked, and the work went on."),
        ((LOOK, LOOK), "Done with get_user."),
        ((LOOK, BOOK), "Done with get_user, then book."),
        (
            tuple(Step(tool=f"t{number}") for number in range(7)),
            "Done with t0, then t1, then t2, then t3, then t4, and 2 more.",
        ),
    ],
    ids=["one", "same", "two", "many"],
)
def test_closing_sentence(steps, sentence):
    assert closing_sentence(steps) == sentence


def test_openai_form():
    def asked(id_, arguments):
        function = {"name": "book", "arguments": arguments}
        calls = [{"id": id_, "type": "function", "function": function}]
        return {"role": "assistant", "content": None, "tool_calls": calls}

    assert list(forms.example_messages("openai", shown(HOLD, BOOK), ["id1", "id2"])) == [
        {"role": "user", "content": "Book two seats"},
        asked("id1", '{"seats":"2"}'),
        {"role": "tool", "tool_call_id": "id1", "content": "Held."},
        asked("id2", '{"seats":2}'),
        {"role": "tool", "tool_call_id": "id2", "content": "Booked."},
        {"role": "assistant", "content": "Done with book."},
    ]


def test_responses_form():
    assert list(forms.example_messages("responses", shown(LOOK), ["id1"])) == [
        {"type": "message", "role": "user", "content": "Book two seats"},
        {
            "type": "function_call",
            "call_id": "id1",
            "name": "get_user",
            "arguments": '{"user_id":"<id:1>"}',
        },
        {"type": "function_call_output", "call_id": "id1", "output": '{"name": "Ada"}'},
        {
            "type": "message",
            "role": "assistant",
            "content": "That worked, and the work went on.",
        },
    ]


def test_anthropic_form():
    messages = list(forms.example_messages("anthropic", shown(HOLD, BOOK), ["id1", "id2"]))
    assert [message["role"] for message in messages] == ["user", "assistant"] * 3
    assert messages[1]["content"] == [
        {"type": "tool_use", "id": "id1", "name": "book", "input": {"seats": "2"}}
    ]
    first, second = messages[2]["content"], messages[4]["content"]
    assert first == [{"type": "tool_result", "tool_use_id": "id1", "content": "Held."}]
    assert second == [{"type": "tool_result", "tool_use_id": "id2", "content": "Booked."}]


def test_text_form():
    lines = Step(tool="run", arguments='{"command": "ls\\n"}', result="a\r\nb\u2028c\n")
    assert forms.numbered_text([*shown(HOLD, BOOK), *shown(lines, intent="List\nall")]) == (
        "Example 1 of 2\n"
        "User: Book two seats\n"
        'Call: book {"seats":"2"}\n'
        "Result: Held.\n"
        'Call: book {"seats":2}\n'
        "Result: Booked.\n"
        "Assistant: Done with book.\n"
        "\n"
        "Example 2 of 2\n"
        "User: List\n"
        "  all\n"
        'Call: run {"command":"ls\\n"}\n'
        "Result: a\n"
        "  b\n"
        "  c\n"
        "Assistant: That worked, and the work went on."
    )
