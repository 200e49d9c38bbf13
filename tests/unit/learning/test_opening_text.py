"""Journeyman's openings are recognised in recordings, and nothing else is mistaken for one."""

import random
import string
from collections.abc import Sequence
from typing import Any

import msgspec
from tests.tables import table

from journeyman.experience.opening import Choice, Opening
from journeyman.learning.opening_text import (
    call_ids,
    is_own_call_id,
    opening_length,
    without_opening_text,
)
from journeyman.logs.chat import read_message
from journeyman.records import Message, Pattern, Step, ToolCall

LOOK = Step(tool="get_user", arguments='{"user_id": "<id:1>"}', result='{"name": "Ada"}')
WRONG = Step(tool="book", arguments='{"seats": "2"}', result="Error: seats")
BOOK = Step(tool="book", arguments='{"seats": 2}', result="Booked.")


def choice(*steps: Step, intent: str) -> Choice:
    return Choice(pattern=Pattern(intent=intent, steps=steps), reason="It fits.")


OPENING = Opening(
    task="Book a seat",
    choices=(
        choice(LOOK, intent="Who is it?"),
        choice(WRONG, BOOK, intent="Two seats"),
        choice(LOOK, BOOK, intent="A seat for Ada"),
    ),
    addendum="Ask first.",
)

SYSTEM = {"role": "system", "content": "Be kind."}


def call(call_id: str, name: str = "get_user") -> dict[str, Any]:
    function = {"name": name, "arguments": "{}"}
    asked = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [asked]}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "found"}


TURN = [
    {"role": "user", "content": "Book a seat"},
    call("call_1"),
    result("call_1"),
    {"role": "assistant", "content": "Done with get_user."},  # learned from the examples
    {"role": "user", "content": "Thank you"},
]
# The same turn as Responses items and as Anthropic messages.
ITEMS = [
    TURN[0],
    {"type": "function_call", "call_id": "call_1", "name": "get_user", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": "found"},
    *TURN[3:],
]
BLOCKS = [
    TURN[0],
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "call_1", "name": "get_user", "input": {}}],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "found"}],
    },
    *TURN[3:],
]


def recorded(messages: Sequence[dict[str, Any]]) -> list[Message]:
    """Record messages as the readers of OpenAI and Anthropic chats do."""
    return [
        record
        for index, message in enumerate(messages)
        for record in read_message(message, f"m{index}", index * 10)
    ]


def recorded_items(items: Sequence[dict[str, Any]]) -> list[Message]:
    """Record items as the reader of Codex rollouts does."""
    records = []
    for position, item in enumerate(items):
        fields: dict[str, Any] = {"key": f"@{position}", "position": position}
        if item.get("type") == "function_call":
            asked = ToolCall(id=item["call_id"], name=item["name"], arguments=item["arguments"])
            records.append(Message(role="assistant", tool_calls=(asked,), **fields))
        elif item.get("type") == "function_call_output":
            output = {"tool_call_id": item["call_id"], "text": item["output"]}
            records.append(Message(role="tool", **output, **fields))
        else:
            kind = "harness" if item["role"] == "system" else "plain"
            records.append(Message(role=item["role"], text=item["content"], kind=kind, **fields))
    return records


RECORDED = {
    "openai": recorded(OPENING.inject(TURN)),
    "openai with a system message": recorded(OPENING.inject([SYSTEM, *TURN])),
    "openai with two": recorded(OPENING.inject([SYSTEM, SYSTEM, *TURN])),
    "responses": recorded_items(OPENING.inject(ITEMS, "responses")),
    "anthropic with the note": recorded(
        [{"role": "system", "content": OPENING.system}, *OPENING.inject(BLOCKS, "anthropic")]
    ),
    "anthropic": recorded(OPENING.inject(BLOCKS, "anthropic")),
}


@table("name", RECORDED)
def test_opening_is_recognised_by_its_ids(name):
    messages = RECORDED[name]
    assert messages[opening_length(messages) :] == messages[-5:]


def test_unusual_openings():
    # The text form is not followed by example messages.
    text = OPENING.messages("text")
    in_system = recorded([{"role": "system", "content": f"Be kind.\n\n{text}"}, *TURN])
    assert opening_length(in_system) == 0
    in_user = recorded([SYSTEM, {"role": "user", "content": f"{text}\n\nBook"}, *TURN[1:]])
    assert opening_length(in_user) == 0

    # Harness messages do not hide an opening.
    note, *examples = recorded(OPENING.messages())
    reminder = Message(key="r", position=1, role="user", kind="harness", text="<reminder>")
    messages = [note, reminder]
    for message in examples[:-1]:
        messages += [message, reminder]
    assert opening_length([*messages, *recorded(TURN)]) == len(messages) - 1


def test_openings_without_a_turn_and_after_another():
    messages = recorded(OPENING.messages())
    assert opening_length(messages) == len(messages) == 17
    other = Opening(task="t", choices=(choice(BOOK, intent="One seat"),))
    messages = recorded(other.inject(OPENING.inject([SYSTEM, *TURN])))
    assert messages[opening_length(messages) :] == messages[-5:]


@table(
    "messages",
    [
        [],
        recorded([SYSTEM]),
        recorded([SYSTEM, *TURN]),
        recorded([{"role": "system", "content": OPENING.system}]),
        recorded([{"role": "system", "content": OPENING.system}, *TURN[:3]]),
        recorded([SYSTEM, TURN[0], call("call_1"), result("call_1"), *OPENING.messages()[1:]]),
    ],
    ids=[
        *("nothing", "system", "no opening", "note alone", "no ids", "other call first"),
    ],
)
def test_messages_without_an_opening(messages):
    assert opening_length(messages) == 0


def test_end_of_an_opening():
    # An imitated closing sentence does not extend the opening.
    one = Opening(task="t", choices=(choice(BOOK, intent="One seat"),))
    messages = recorded(one.inject([SYSTEM, *TURN]))
    assert messages[opening_length(messages)].text == "Book a seat"

    # If the host dropped the last sentence, the rest of the opening is recognised.
    lost_sentence = recorded([*OPENING.messages()[:-1], *TURN])
    assert lost_sentence[opening_length(lost_sentence) :] == lost_sentence[-5:]

    # An answer in place of the last sentence is not part of the opening.
    messages = recorded([*OPENING.messages()[:-1], {"role": "assistant", "content": "Hello!"}])
    assert [one.text for one in messages[opening_length(messages) :]] == ["Hello!"]

    # A model that copies an id does not extend the opening.
    copied = call_ids(OPENING.id, 1)[0]
    turn = [TURN[0], call(copied), result(copied), TURN[3]]
    messages = recorded([*OPENING.messages(), *turn])
    assert messages[opening_length(messages) :] == messages[-4:]


def test_sentences_surrounded_by_newlines():
    messages = recorded(OPENING.messages())
    spaced = [msgspec.structs.replace(one, text=f"\n{one.text}\n") for one in messages]
    assert opening_length(spaced) == len(messages)


@table(
    ("call_id", "own"),
    [
        ("jmGVDvp7W", True),
        ("jmGVDvp7w", False),
        ("jmGVDvq7W", False),
        ("jnGVDvp7W", False),
        ("jmGVDvp7W0", False),
        ("jmGVDvp7W\n", False),
        ("jmGVDvp", False),
        ("", False),
        ("call_abcdefgh", False),
        ("\ud800", False),
        ("jm٣٣٣٣٣٣٣", False),
    ],
)
def test_own_call_ids(call_id, own):
    assert is_own_call_id(call_id) is own


def test_random_ids_are_rarely_mistaken_for_own_ids():
    draw = random.Random(20)
    letters = string.ascii_letters + string.digits
    # One random id in 3,844 has our prefix. Of these, one in 3,844 may pass.
    passed = sum(is_own_call_id("jm" + "".join(draw.choices(letters, k=7))) for _ in range(100_000))
    assert 5 < passed < 60


TEXT = OPENING.messages("text")


@table(
    ("text", "left"),
    [
        ("Book a seat", "Book a seat"),
        ("  Book a seat\n", "  Book a seat\n"),
        ("", ""),
        (TEXT, ""),
        (f"{TEXT}\n\nBook a seat", "Book a seat"),
        (f"Book a seat\n\n{TEXT}\n", "Book a seat"),
        (f"Book\n{TEXT}\na seat", "Book\n\na seat"),
        (f"a\n{TEXT}\nb\n{TEXT}\nc", "a\n\nb\n\nc"),
        (f"Book a seat\n\n{TEXT[:-40]}", "Book a seat"),
        (f"Book a seat\n\n{TEXT[:90]}", "Book a seat"),
        (TEXT.replace("\n", "\r\n") + "\r\nBook a seat", "Book a seat"),
        (TEXT.replace("\n", " ") + " Book a seat", "Book a seat"),
    ],
    ids=[
        *("none", "spaces", "empty", "alone", "before", "after", "between", "twice"),
        *("truncated", "truncated early", "other line endings", "one line"),
    ],
)
def test_text_form_is_removed(text, left):
    assert without_opening_text(text) == left


def test_marks_inside_an_example_are_ignored():
    end = TEXT.split("\n")[-1]
    inner = Step(tool="read", result=f"{TEXT}\n{end}\nmore")
    outer = Opening(task="t", choices=(choice(inner, intent=end),), addendum=end)
    assert without_opening_text(f"{outer.messages('text')}\n\nBook a seat") == "Book a seat"
