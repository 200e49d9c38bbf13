"""The checks that other tests rely on find what is wrong, each broken list by its own fault."""

from typing import Any

from tests.tables import table
from tests.validators import anthropic_faults, openai_faults, responses_faults, text_faults

ID, OTHER = "abcDEF123", "abcDEF456"


def say(role: str, content: Any = "text") -> dict[str, Any]:
    return {"role": role, "content": content}


def ask(*ids: str, name: str = "look", arguments: str = "{}") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    calls = [{"id": one, "type": "function", "function": function} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def tell(call_id: str, content: Any = "found") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


ALSO_OPENAI = {
    "two calls": [say("user"), ask(ID, OTHER), tell(OTHER), tell(ID), say("assistant")],
    "two systems in front": [say("system"), say("system"), say("user"), say("assistant")],
    "calls in turn": [say("system"), say("user"), ask(ID), tell(ID), ask(OTHER), tell(OTHER)],
    "no calls": [say("user"), say("assistant"), say("user", [{"type": "text", "text": "x"}])],
    "nothing": [],
}
NOT_OPENAI = {
    "unanswered call": ([say("user"), ask(ID), say("assistant")], "no results"),
    "unanswered at the end": ([say("user"), ask(ID)], "no results"),
    "half answered": ([say("user"), ask(ID, OTHER), tell(ID), ask("xxxxxxxxx")], "no results"),
    "answered later": ([say("user"), ask(ID), say("user"), tell(ID)], "no results"),
    "result of nothing": ([say("user"), tell(ID)], "not asked"),
    "duplicate id": ([say("user"), ask(ID), tell(ID), ask(ID), tell(ID)], "twice"),
    "two users": ([say("user"), say("user")], "user follows user"),
    "two assistants": ([say("user"), say("assistant"), say("assistant")], "follows assistant"),
    "user after tool": ([say("user"), ask(ID), tell(ID), say("user")], "user follows tool"),
    "assistant first": ([say("assistant")], "follows start"),
    "system in the middle": ([say("user"), say("system")], "system follows user"),
    "id of ten": ([say("user"), ask("abcDEF1234"), tell("abcDEF1234")], "the id"),
    "id with a dash": ([say("user"), ask("abc-EF123"), tell("abc-EF123")], "the id"),
    "empty content": ([say("user", " \n")], "no content"),
    "no content": ([say("user"), say("assistant", None)], "no content"),
    "empty part": ([say("user", [{"type": "text", "text": ""}])], "no content"),
    "empty result": ([say("user"), ask(ID), tell(ID, "")], "empty result"),
    "bad name": ([say("user"), ask(ID, name="a.b"), tell(ID)], "the name"),
    "long name": ([say("user"), ask(ID, name="a" * 65), tell(ID)], "the name"),
    "a list": ([say("user"), ask(ID, arguments="[]"), tell(ID)], "no JSON object"),
    "no JSON": ([say("user"), ask(ID, arguments="{"), tell(ID)], "no JSON object"),
    "role": ([say("function")], "unknown role"),
    "no calls": ([say("user"), {**say("assistant"), "tool_calls": []}], "empty list"),
    "half character": ([say("user", "\ud800")], "not to be sent"),
    "escaped": ([say("user"), ask(ID, arguments='{"a":"\\ud800"}'), tell(ID)], "no JSON object"),
    "not a number": ([say("user", "x") | {"weight": float("nan")}], "not to be sent"),
}


@table("name", ALSO_OPENAI)
def test_what_is_right_for_openai(name):
    assert openai_faults(ALSO_OPENAI[name]) == []


@table("name", NOT_OPENAI)
def test_what_is_wrong_for_openai(name):
    messages, fault = NOT_OPENAI[name]
    assert fault in openai_faults(messages)[0]


def message(role: str, content: Any = "text") -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}


def call(call_id: str, **other: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "a", "arguments": "{}", **other}


def output(call_id: str, text: str = "found") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


NOT_RESPONSES = {
    "unanswered call": ([message("user"), call(ID), message("assistant")], "no results"),
    "duplicate id": ([message("user"), call(ID), output(ID), call(ID), output(ID)], "twice"),
    "result of nothing": ([message("user"), output(ID)], "not asked"),
    "two users": ([message("user"), message("user")], "follows user"),
    "system in the middle": ([message("user"), message("developer")], "follows user"),
    "id of ten": ([message("user"), call(f"{ID}4"), output(f"{ID}4")], "the id"),
    "own id": ([message("user"), call(ID, id="fc_1"), output(ID)], "not given out"),
    "bad name": ([message("user"), call(ID, name=""), output(ID)], "the name"),
    "no JSON": ([message("user"), call(ID, arguments="x"), output(ID)], "no JSON object"),
    "empty content": ([message("user", "")], "no content"),
    "empty result": ([message("user"), call(ID), output(ID, "")], "empty result"),
    "item": ([{"type": "item_reference", "id": "x"}], "unknown item"),
}


def test_what_is_right_for_responses():
    items = [message("system"), message("user"), call(ID), output(ID), message("assistant")]
    assert responses_faults(items) == []
    assert responses_faults([say("user")]) == []
    at_once = [message("user"), call(ID), call(OTHER), output(OTHER), output(ID)]
    assert responses_faults(at_once) == []


@table("name", NOT_RESPONSES)
def test_what_is_wrong_for_responses(name):
    items, fault = NOT_RESPONSES[name]
    assert fault in responses_faults(items)[0]


def use(call_id: str = ID, **other: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": {}, **other}


def result(call_id: str = ID, content: str = "found") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


TEXT = {"type": "text", "text": "text"}
ALSO_ANTHROPIC = {
    "a call": [say("user"), say("assistant", [TEXT, use()]), say("user", [result(), TEXT])],
    "two calls": [
        say("user"),
        say("assistant", [use(), use(OTHER)]),
        say("user", [result(OTHER), result()]),
    ],
    "nothing": [],
}
NOT_ANTHROPIC = {
    "unanswered call": ([say("user"), say("assistant", [use()]), say("user")], "waiting"),
    "unanswered at the end": ([say("user"), say("assistant", [use()])], "no results"),
    "result of nothing": ([say("user", [result()])], "waiting"),
    "duplicate id": ([say("user"), say("assistant", [use(), use()])], "twice"),
    "two users": ([say("user"), say("user")], "turn"),
    "assistant first": ([say("assistant")], "turn"),
    "system": ([say("system")], "turn"),
    "id of ten": ([say("user"), say("assistant", [use(f"{ID}4")])], "the id"),
    "bad name": ([say("user"), say("assistant", [use(name="a b")])], "the name"),
    "text as input": ([say("user"), say("assistant", [use(input="{}")])], "no object"),
    "empty content": ([say("user", "")], "empty text"),
    "empty text block": ([say("user", [{"type": "text", "text": " "}])], "empty text"),
    "no blocks": ([say("user", [])], "no content"),
    "no content": ([say("user", None)], "no content"),
    "empty result": (
        [say("user"), say("assistant", [use()]), say("user", [result(content="")])],
        "empty result",
    ),
    "result not first": (
        [say("user"), say("assistant", [use()]), say("user", [TEXT, result()])],
        "not first",
    ),
    "a user's call": ([say("user", [use()])], "no assistant"),
    "unknown block": ([say("user", [{"type": "tool"}])], "unknown type"),
}


@table("name", ALSO_ANTHROPIC)
def test_what_is_right_for_anthropic(name):
    assert anthropic_faults(ALSO_ANTHROPIC[name]) == []


@table("name", NOT_ANTHROPIC)
def test_what_is_wrong_for_anthropic(name):
    messages, fault = NOT_ANTHROPIC[name]
    assert fault in anthropic_faults(messages)[0]


BEGIN = "=== Journeyman: examples begin here (0123456789abcdef) ==="
END = "=== Journeyman: examples end here (0123456789abcdef) ==="
NOTE = "Journeyman shows 1 example of it"
GOOD = f"{BEGIN}\n{NOTE}\nExample 1 of 1\nUser: x\n{END}"


def test_what_is_right_as_text():
    assert text_faults(GOOD) == []
    assert text_faults("") == []


@table(
    ("text", "fault"),
    [
        (f"x\n{GOOD}", "no marks"),
        (f"{GOOD}\n", "no marks"),
        (GOOD.replace("abcdef) ===\nJ", "abcde0) ===\nJ"), "no marks"),
        (GOOD.replace("User: x", END), "a mark inside"),
        (GOOD.replace("Example 1 of 1\n", ""), "1 examples announced"),
        (GOOD.replace(NOTE, "Hello"), "0 examples announced"),
        (GOOD.replace("User: x", "\udfff"), "not to be sent"),
    ],
    ids=["before", "after", "other mark", "inside", "missing", "not announced", "half"],
)
def test_what_is_wrong_as_text(text, fault):
    assert fault in text_faults(text)[0]
