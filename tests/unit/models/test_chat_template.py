"""Messages and tools as text: its format, that it only ever grows, and that nothing inside a
message can forge a turn.
"""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.models.chat_template import (
    chat_text,
    prompt_text,
)

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "Read a text file. Lines are numbered.",
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "limit": {"type": "integer"},
                    "mode": {"type": "string", "enum": ["text", "raw"]},
                    "lines": {"type": "array", "items": {"type": "integer"}},
                    "also": {"type": ["string", "integer"]},
                    "more": {},
                },
                "required": ["path"],
            },
        },
    },
    {"type": "function", "function": {"name": "skills_list"}},
]


def calls(*pairs: tuple[str, str], text: str | None = None) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [
            {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(pairs)
        ],
    }


def test_a_conversation_with_tools() -> None:
    messages = [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "Read a.txt and b.txt."},
        calls(("read_file", '{"path":"a.txt","limit":2}'), ("read_file", "{}"), text="I look."),
        {"role": "tool", "tool_call_id": "c0", "content": "one"},
        {"role": "tool", "tool_call_id": "c1", "content": "two"},
        {"role": "system", "content": "Be short."},
        {"role": "assistant", "content": "Done."},
    ]
    assert prompt_text(messages, TOOLS) == (
        "<|im_start|>system\n"
        "You help.\n"
        "\n"
        "Tools:\n"
        'read_file(path: string, limit?: integer, mode?: "text"|"raw", lines?: integer[], '
        "also?: string|integer, more?: any): Read a text file.\n"
        "skills_list()\n"
        "\n"
        'To use a tool, reply with <tool_call>{"name": ..., "arguments": {...}}</tool_call>. '
        "When the task is done, reply in words.<|im_end|>\n"
        "<|im_start|>user\n"
        "Read a.txt and b.txt.<|im_end|>\n"
        "<|im_start|>assistant\n"
        "I look.\n"
        '<tool_call>{"name": "read_file", "arguments": {"path": "a.txt", "limit": 2}}</tool_call>'
        '<tool_call>{"name": "read_file", "arguments": {}}</tool_call><|im_end|>\n'
        "<|im_start|>user\n"
        "<tool_response>one</tool_response><|im_end|>\n"
        "<|im_start|>user\n"
        "<tool_response>two</tool_response><|im_end|>\n"
        "<|im_start|>system\n"
        "Be short.<|im_end|>\n"
        "<|im_start|>assistant\n"
        "Done.<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_many_tools_are_listed_until_there_are_example_calls() -> None:
    many = [{"name": f"tool_{number}"} for number in range(17)]
    request = {"role": "user", "content": "Hi"}
    example = [request, calls(("tool_3", "{}")), {"role": "assistant", "content": "Done."}]
    assert "\nTools:\ntool_0()\n" in chat_text([request], many)
    assert "\nTools:\ntool_0()\n" in chat_text([*example, request], many[:16])
    assert "\nTools:\n" not in chat_text([*example, request], many)
    assert "To use a tool, reply with" in chat_text([*example, request], many)
    # Within a turn the prefix does not change.
    asked = [request, calls(("tool_3", "{}"))]
    assert chat_text(asked, many).startswith(chat_text([request], many))


@table(
    ("arguments", "written"),
    [
        pytest.param('{"a":[1,2],"b":"é"}', '{"a": [1, 2], "b": "é"}', id="spaces"),
        pytest.param(" ", "{}", id="empty"),
        pytest.param('{"a": ', '{"a": ', id="broken"),
        pytest.param('{"a": <|im_end|>', '{"a": < |im_end|>', id="broken with control token"),
        pytest.param("[" * 100_000, "[" * 100_000, id="deeply nested"),
        pytest.param('{"a": "\\ud800"}', '{"a": "?"}', id="half a character"),
    ],
)
def test_arguments_are_written_in_the_format_of_the_grammar(arguments: str, written: str) -> None:
    text = chat_text([calls(("t", arguments))])
    assert f'"arguments": {written}}}</tool_call>' in text


STEERING = (
    *("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|anything|>", "<repo_name>", "<reponame>"),
    *("<file_sep>", "<filename>", "<gh_stars>", "<issue_start>", "<issue_comment>"),
    *("<issue_closed>", "<jupyter_start>", "<jupyter_text>", "<jupyter_code>", "<jupyter_output>"),
    *("<jupyter_script>", "<empty_output>"),
    *("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
)


@table("token", STEERING)
@table("role", ["system", "user", "assistant", "tool", "stranger"])
def test_text_cannot_contain_control_tokens(role: str, token: str) -> None:
    text = chat_text([{"role": "user", "content": ""}, {"role": role, "content": f"a{token}b"}])
    assert f"a{token}b" not in text
    assert f"a< {token[1:]}b" in text


@table("token", STEERING)
def test_calls_and_tools_cannot_contain_control_tokens(token: str) -> None:
    tool = {"name": f"t{token}", "description": f"a{token}b", "parameters": {"properties": {}}}
    arguments = json.dumps({"text": f"a{token}b"})
    text = chat_text([calls((f"t{token}", arguments))], [tool])
    assert f"a{token}b" not in text
    assert f"t{token}" not in text
    (written,) = re.findall(r'"arguments": (\{"text.*?\})\}</tool_call>', text)
    assert json.loads(written) == {"text": f"a{token}b"}


pieces = st.sampled_from(["hello", "<", "|im_start|>", "<|im_end|>\n", *STEERING, "é", "\ud800"])
texts = st.lists(pieces, max_size=5).map("".join)
messages = st.one_of(
    st.builds(
        lambda role, text: {"role": role, "content": text},
        st.sampled_from(["system", "user", "assistant", "tool", "developer"]),
        texts,
    ),
    st.builds(
        lambda name, arguments, text: calls((name, arguments), text=text), texts, texts, texts
    ),
)


@given(st.lists(messages, min_size=1, max_size=6), st.data())
def test_rendered_text_only_grows(conversation: list[dict[str, Any]], data: st.DataObject) -> None:
    tools = data.draw(st.sampled_from([[], TOOLS]))
    shorter = data.draw(st.integers(1, len(conversation)))
    whole = chat_text(conversation, tools)
    assert whole.startswith(chat_text(conversation[:shorter], tools))
    assert whole.encode().decode() == whole
