"""Whatever an agent sends, the proxy only inserts an opening; and however an answer is streamed, it
reads what the model said.
"""

import json
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from journeyman.hosts.proxy.answers import read_answer
from journeyman.hosts.proxy.requests import Injection, ModelRequest
from journeyman.hosts.proxy.sessions import marks_of, marks_of_stored
from journeyman.logs.chat import ChatParser
from journeyman.models.model import Reply
from journeyman.records import Tokens, ToolCall
from journeyman.templates.opening import MessageForm
from journeyman.testing.wire_formats import (
    AnthropicMessages,
    ChatCompletions,
    Exchange,
    Responses,
    WireFormat,
)

APIS: dict[MessageForm, WireFormat] = {
    "openai": ChatCompletions(),
    "responses": Responses(),
    "anthropic": AnthropicMessages(),
}
LISTS = {"openai": "messages", "responses": "input", "anthropic": "messages"}
TOOLS = [{"name": "run", "parameters": {"type": "object"}}]

letters = st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\\n{}[],: \u2028')
texts = st.text(letters, max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
parts = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "image"]), "text": texts},
    optional={"cache_control": values, "signature": values},
)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "developer"])},
    optional={"content": texts | st.lists(parts, max_size=3) | st.none(), "more": values},
)
forms = st.sampled_from([*APIS])
injections = st.builds(
    lambda system, examples: Injection.of("0123456789abcdef", system, examples),
    texts.filter(str.strip),
    st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": texts}), max_size=2),
)


@st.composite
def bodies(draw: st.DrawFn, form: MessageForm) -> dict[str, Any]:
    """The body of a request, with unknown fields around the known ones."""
    sent: Any = draw(st.lists(messages, min_size=1, max_size=4))
    if form == "anthropic":
        sent[0]["role"] = "user"
    if form == "responses" and draw(st.booleans()):
        sent = draw(texts)
    fields = {LISTS[form]: sent, "tools": TOOLS, **draw(st.dictionaries(texts, values, max_size=3))}
    if form == "anthropic" and draw(st.booleans()):
        fields["system"] = draw(texts | st.lists(parts, max_size=3))
    return {name: fields[name] for name in draw(st.permutations([*fields]))}


def exactly(text: str | bytes) -> Any:
    """A JSON value with the order of its keys, repeated keys, and numbers as they are written."""
    return json.loads(text, object_pairs_hook=list, parse_float=str, parse_int=str)


@given(data=st.data(), form=forms, injection=injections)
def test_an_opening_is_only_inserted(
    data: st.DataObject, form: MessageForm, injection: Injection
) -> None:
    body = data.draw(bodies(form))
    ascii_only, indent = data.draw(st.booleans()), data.draw(st.sampled_from([None, 1]))
    sent = json.dumps(body, ensure_ascii=ascii_only, indent=indent).encode()
    request = ModelRequest.read(form, sent)
    assert request is not None
    assert request.takes_opening
    received = request.with_opening(injection)
    assert request.with_opening(injection) == received

    # Bytes: what was sent is what was received without the insertions.
    rest, at = received.decode(), 0
    for position, added in request.insertions(injection):
        assert rest[position : position + len(added)] == added
        rest = rest[:position] + rest[position + len(added) :]
        assert position >= at
        at = position
    assert rest.encode() == sent

    # Values: everything is as it was, but for the additions.
    before, after = dict(exactly(sent)), dict(exactly(received))
    name = LISTS[form]
    changed = {name, "system"} if form == "anthropic" else {name}
    assert {k: v for k, v in after.items() if k not in changed} == {
        k: v for k, v in before.items() if k not in changed
    }
    examples = [exactly(example) for example in injection.examples]
    if isinstance(before[name], str):
        assert dict(after[name][-1])["content"] == before[name]
        assert after[name][1:-1] == examples
        return
    lead = 0
    if form != "anthropic":
        roles = [dict(message).get("role") for message in before[name]]
        lead = len([*takewhile(lambda role: role in ("system", "developer"), roles)])
    rest = before[name][lead:]
    assert after[name][len(after[name]) - len(rest) :] == rest
    middle = after[name][: len(after[name]) - len(rest)]
    assert middle[len(middle) - len(examples) :] == examples
    assert any(injection.system in one for one in strings([after.get("system"), middle]))


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from strings(inner)


calls = st.lists(
    st.builds(
        ToolCall,
        id=st.uuids().map(str),
        name=st.sampled_from(["run", "read_file"]),
        arguments=st.dictionaries(texts, values, max_size=2).map(json.dumps),
    ),
    max_size=3,
).map(tuple)
counts = st.integers(0, 10**6)
replies = st.builds(
    Reply,
    text=texts.filter(str.strip),
    tool_calls=calls,
    tokens=st.builds(Tokens, input_tokens=counts, output_tokens=counts, cache_read_tokens=counts),
)


def stream(form: MessageForm, reply: Reply) -> bytes:
    exchange = Exchange(id="x1", model="m")
    return b"".join(event.encoded() for event in APIS[form].events(reply, exchange))


@given(form=forms, reply=replies, crlf=st.booleans())
def test_a_stream_is_read_as_the_whole_answer(form: MessageForm, reply: Reply, crlf: bool) -> None:
    whole = APIS[form].whole(reply, Exchange(id="x1", model="m"))
    expected = read_answer(form, json.dumps(whole).encode(), is_stream=False)
    streamed = stream(form, reply).replace(b"\n", b"\r\n" if crlf else b"\n")
    answer = read_answer(form, streamed, is_stream=True)
    assert answer.message is not None
    assert expected.message is not None
    read, wanted = (ChatParser().read(one.message, "k", 0)[0] for one in (answer, expected))
    assert (read.text, read.tool_calls) == (wanted.text, wanted.tool_calls)
    assert [call.name for call in read.tool_calls] == [call.name for call in reply.tool_calls]
    assert (answer.model, answer.id) == (expected.model, expected.id)
    assert answer.usage == expected.usage
    assert [*marks_of(answer.message)] == [
        mark
        for message in ChatParser().read(answer.message, "k", 0)
        for mark in marks_of_stored(message)
    ]


@given(form=forms, reply=replies, data=st.data())
def test_an_answer_that_was_cut_off_is_none(
    form: MessageForm, reply: Reply, data: st.DataObject
) -> None:
    streamed = stream(form, reply)
    last = {
        "openai": b'"finish_reason": "',
        "anthropic": b"message_delta",
        "responses": b"completed",
    }
    end = streamed.rindex(last[form])
    cut = streamed[: data.draw(st.integers(0, end))]
    assert read_answer(form, cut, is_stream=True).message is None


@given(form=forms, body=st.binary(max_size=60) | values.map(lambda v: json.dumps(v).encode()))
def test_anything_else_is_left_alone(form: MessageForm, body: bytes) -> None:
    request = ModelRequest.read(form, body)
    assert request is None or not request.takes_opening
    for is_stream in (True, False):
        assert read_answer(form, body, is_stream=is_stream).message is None
