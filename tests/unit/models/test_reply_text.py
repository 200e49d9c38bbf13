"""Replies read back: calls in tags, fences and bare, broken ones kept as they came."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.models.chat_text import chat_text
from journeyman.models.reply_text import new_ids, read_reply, settled

TOOLS = {"terminal", "read_file"}


def read(reply: str, tools: set[str] = TOOLS) -> tuple[str, list[tuple[str, str]]]:
    text, calls = read_reply(reply, tools, (f"id{n}" for n in itertools.count()))
    assert [call.id for call in calls] == [f"id{n}" for n in range(len(calls))]
    return text, [(call.name, call.arguments) for call in calls]


LS = '{"name": "terminal", "arguments": {"command": "ls"}}'
READ = '{"name": "read_file", "arguments": {"path": "a"}}'
RUNS_LS = ("terminal", '{"command": "ls"}')
READS_A = ("read_file", '{"path": "a"}')


@table(
    ("reply", "text", "calls"),
    [
        pytest.param("Hello.\n", "Hello.", [], id="text"),
        pytest.param("", "", [], id="nothing"),
        pytest.param(f"<tool_call>{LS}</tool_call>", "", [RUNS_LS], id="a call"),
        pytest.param(
            f"I look.\n<tool_call>\n{LS}\n</tool_call>\n", "I look.", [RUNS_LS], id="both"
        ),
        pytest.param(
            f"<tool_call>{LS}</tool_call><tool_call>{READ}</tool_call>",
            "",
            [RUNS_LS, READS_A],
            id="two calls",
        ),
        pytest.param(
            f"a<tool_call>{LS}</tool_call>b<tool_call>{READ}</tool_call>c",
            "a\nb\nc",
            [RUNS_LS, READS_A],
            id="words between",
        ),
        pytest.param(f"<tool_call>{LS}", "", [RUNS_LS], id="not closed"),
        pytest.param(f"<tool_call>{LS}<tool_call>{READ}", "", [RUNS_LS, READS_A], id="none closed"),
        pytest.param(
            '<tool_call>{"name": "strange", "arguments": {}}</tool_call>',
            "",
            [("strange", "{}")],
            id="unknown tool",
        ),
        pytest.param(
            '<tool_call>{"name": "terminal"}</tool_call>', "", [("terminal", "{}")], id="none given"
        ),
        pytest.param(
            '<tool_call>{"name": "terminal", "arguments": "{\\"command\\": \\"ls\\"}"}</tool_call>',
            "",
            [RUNS_LS],
            id="arguments as text",
        ),
        pytest.param(
            '<tool_call>{"name": "terminal", "arguments": {"command": "echo </tool_call>"}}'
            "</tool_call>",
            "",
            [("terminal", '{"command": "echo </tool_call>"}')],
            id="a tag inside",
        ),
        pytest.param(
            '<tool_call>{"name": "terminal", "arguments": {\'command\': \'ls\'}}</tool_call>',
            "",
            [("terminal", "{'command': 'ls'}")],
            id="single quotes",
        ),
        pytest.param(
            '<tool_call>{"name": "terminal", "arguments": {"command": "ls",}}</tool_call>',
            "",
            [("terminal", '{"command": "ls",}')],
            id="trailing comma",
        ),
        pytest.param(
            '<tool_call>{"name": "terminal", "arguments": {"command": "l',
            "",
            [("terminal", '{"command": "l')],
            id="cut off",
        ),
        pytest.param(
            '<tool_call>{"name": "terminal", "arguments": {"command": "ls"}',
            "",
            [RUNS_LS],
            id="cut off after the arguments",
        ),
        pytest.param(
            "<tool_call>{'name': 'terminal'}</tool_call>",
            "<tool_call>{'name': 'terminal'}</tool_call>",
            [],
            id="no name",
        ),
        pytest.param('<tool_call>{"na', '<tool_call>{"na', [], id="cut off before the name"),
        pytest.param("<tool_call>[1]</tool_call>", "<tool_call>[1]</tool_call>", [], id="a list"),
        pytest.param(
            f"<tool_call>junk</tool_call> <tool_call>{LS}</tool_call>",
            "<tool_call>junk</tool_call>",
            [RUNS_LS],
            id="junk, then a call",
        ),
        pytest.param(
            f"<tool_call>{'[' * 100_000}", f"<tool_call>{'[' * 100_000}", [], id="endless"
        ),
        pytest.param(f"Look:\n```json\n{LS}\n```\n", "Look:", [RUNS_LS], id="fence"),
        pytest.param(f"```\n{LS}\n```\n```\n{READ}\n```", "", [RUNS_LS, READS_A], id="fences"),
        pytest.param(
            '```json\n{"name": "Ada", "arguments": {}}\n```',
            '```json\n{"name": "Ada", "arguments": {}}\n```',
            [],
            id="a fence of something else",
        ),
        pytest.param(f" {LS} ", "", [RUNS_LS], id="bare"),
        pytest.param(f"{LS}\n{READ}", "", [RUNS_LS, READS_A], id="two bare"),
        pytest.param(f"{LS} and words", f"{LS} and words", [], id="bare, then words"),
        pytest.param(
            '{"name": "terminal", "version": 2}',
            '{"name": "terminal", "version": 2}',
            [],
            id="an answer in JSON",
        ),
        pytest.param(
            '{"name": "Ada", "arguments": {}}', '{"name": "Ada", "arguments": {}}', [], id="a name"
        ),
        pytest.param(
            '{"name": "terminal", "arguments": {"command": "l',
            "",
            [("terminal", '{"command": "l')],
            id="bare and cut off",
        ),
    ],
)
def test_reading(reply: str, text: str, calls: list[tuple[str, str]]) -> None:
    assert read(reply) == (text, calls)


def test_without_tools_all_is_text() -> None:
    assert read(f"<tool_call>{LS}</tool_call>", set()) == (f"<tool_call>{LS}</tool_call>", [])


def test_what_was_rendered_is_read_back() -> None:
    arguments = {"command": 'echo "é" </tool_call> <|im_end|>\n'}
    call = {"name": "terminal", "arguments": json.dumps(arguments)}
    rendered = chat_text(
        [{"role": "assistant", "content": "I look.", "tool_calls": [{"function": call}]}]
    )
    turn = rendered.split("<|im_start|>assistant\n")[1].removesuffix("<|im_end|>\n")
    text, [(name, read_back)] = read(turn)
    assert (text, name, json.loads(read_back)) == ("I look.", "terminal", arguments)


pieces = st.sampled_from(
    [
        *("words", " ", "\n", "<", "<tool", "<tool_call>", "</tool_call>", "`", "```"),
        *("```json\n", "```python\n", "{", "}", LS, READ, '{"name": "terminal", "arguments": '),
    ]
)


@given(st.lists(pieces, max_size=12), st.sampled_from([TOOLS, set()]))
def test_what_is_settled_stays(coming: list[str], tools: set[str]) -> None:
    text, _ = read("".join(coming), tools)
    told = ""
    for size in range(len(coming) + 1):
        certain = settled("".join(coming[:size]), tools)
        assert certain.startswith(told)
        told = certain
    assert text.startswith(told)


def test_words_are_settled_at_once() -> None:
    assert settled("One two", TOOLS) == "One two"
    assert settled("One <to", TOOLS) == "One"
    assert settled("One <top", TOOLS) == "One <top"
    assert settled("See ```python\nx", TOOLS) == "See ```python\nx"
    assert settled('See ```json\n{"a"', TOOLS) == "See"


@table(
    ("messages", "first"),
    [
        pytest.param([], "call_0001", id="first"),
        pytest.param(
            [{"role": "assistant", "tool_calls": [{"id": "x"}, {"id": "y"}]}], "call_0003"
        ),
        pytest.param(
            [{"role": "assistant", "tool_calls": [{"id": "call_0002"}]}], "call_0003", id="taken"
        ),
        pytest.param([{"role": "tool", "tool_call_id": "call_0001"}], "call_0002", id="answered"),
    ],
)
def test_ids_are_new_and_the_same_each_time(messages: list[dict[str, object]], first: str) -> None:
    ids = list(itertools.islice(new_ids(messages), 3))
    assert ids[0] == first
    assert len(set(ids)) == 3
    assert ids == list(itertools.islice(new_ids(messages), 3))
