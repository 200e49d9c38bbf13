import json

from tests.tables import table

from journeyman.logs.line_reader import FRAGMENT_MESSAGES
from journeyman.logs.log_file import LogFile
from journeyman.logs.sharegpt import ShareGPTReader

READER = ShareGPTReader()


def tool_calls(*calls, before=""):
    return before + "\n".join(f"<tool_call>\n{_json(call)}\n</tool_call>" for call in calls)


def tool_responses(*responses):
    return "\n".join(f"<tool_response>\n{_json(one)}\n</tool_response>" for one in responses)


def _json(value):
    return value if isinstance(value, str) else json.dumps(value)


def turns(*pairs):
    return [{"from": speaker, "value": value} for speaker, value in pairs]


def trajectory(*pairs, **fields):
    return {
        "conversations": turns(("system", "Tools"), ("human", "Do it"), *pairs),
        "timestamp": "2026-01-01T00:00:00",
        "model": "m",
        "completed": True,
        **fields,
    }


CALLS = (
    (
        "gpt",
        tool_calls({"name": "a", "arguments": {"n": 1}}, before="<think>\nhm\n</think>\nTrying\n"),
    ),
    ("tool", tool_responses({"tool_call_id": "x1", "name": "a", "content": {"ok": True}})),
    ("gpt", tool_calls({"name": "b", "arguments": {}}, {"name": "b", "arguments": "{}"})),
    (
        "tool",
        tool_responses(
            {"name": "b", "content": "first"}, {"tool_call_id": "x3", "content": "second"}
        ),
    ),
    ("gpt", "<think>\n</think>\nDone"),
)


@table("name", ["samples.jsonl", "samples.jsonl.gz"])
def test_trajectory(write, lines, read, name):
    path = write(name, lines(trajectory(*CALLS)))
    assert READER.recognises(LogFile(path))
    reading = read(READER, path)
    assert reading.skips == []
    session = reading.session
    assert (session.source, session.model) == ("sharegpt", "m")
    assert (session.end_reason, session.outcome, session.ended_at) == (
        "completed",
        None,
        1767225600.0,
    )
    answer = reading.messages[2]
    assert (answer.reasoning, answer.text, answer.model) == ("hm", "Trying", "m")
    first, second, third = reading.calls()
    assert (first.tool, first.arguments, first.result) == ("a", '{"n":1}', '{"ok":true}')
    assert (second.result, third.result) == ("first", "second")
    assert reading.messages[-1].text == "Done"


def test_batch_format(write, lines, read):
    row = {
        "prompt_index": 4,
        "conversations": turns(("human", "x"), ("gpt", "y")),
        "metadata": {"model": "from-metadata", "batch_num": 1},
        "completed": False,
        "partial": True,
        "api_calls": 3,
        "toolsets_used": ["web"],
        "tool_stats": {"a": {"count": 1, "success": 1, "failure": 0}},
        "tool_error_counts": {"a": 0},
    }
    session = read(READER, write("batch.jsonl", lines(row))).session
    assert (session.end_reason, session.model) == ("incomplete", "from-metadata")
    assert session.details["prompt_index"] == 4
    assert session.details["toolsets_used"] == ["web"]


@table("content", [[trajectory(*CALLS)], trajectory(*CALLS)])
def test_documents(write, read, content):
    path = write("data.json", content)
    assert READER.recognises(LogFile(path))
    assert [call.result for call in read(READER, path).calls()] == [
        '{"ok":true}',
        "first",
        "second",
    ]


@table("text", ['{"name": "a", "arguments": {', '["a"]', '{"arguments": {}}'])
def test_malformed_call_is_still_a_call(write, lines, read, text):
    row = trajectory(("gpt", tool_calls(text)), ("tool", tool_responses({"content": "Invalid"})))
    (call,) = read(READER, write("a.jsonl", lines(row))).calls()
    assert (call.tool, call.arguments, call.result) == ("", text, "Invalid")


def test_tags_in_values_and_unclosed_calls(write, lines, read):
    # Tags inside values.
    inside = {"name": "write", "arguments": {"text": "<tool_call></tool_call>\n</tool_call>"}}
    shown = "seen </tool_response> here"
    row = trajectory(
        ("gpt", tool_calls(inside, {"name": "z"})), ("tool", tool_responses({"content": shown}))
    )
    write_call, other = read(READER, write("a.jsonl", lines(row))).calls()
    assert json.loads(write_call.arguments) == inside["arguments"]
    assert (write_call.result, other.result) == (shown, None)

    # An unclosed call is read to the end.
    row = trajectory(("gpt", 'Now <tool_call>\n{"name": "a"}'))
    (call,) = read(READER, write("a.jsonl", lines(row))).calls()
    assert (call.tool, call.arguments) == ("a", "{}")


def test_results_are_matched_to_calls(write, lines, read):
    # Ids decide if both sides have them.
    row = trajectory(
        ("gpt", tool_calls({"id": "1", "name": "a"}, {"id": "2", "name": "a"})),
        ("tool", tool_responses({"tool_call_id": "2", "content": "two"})),
        ("tool", tool_responses({"tool_call_id": "1", "content": "one"})),
    )
    calls = read(READER, write("a.jsonl", lines(row))).calls()
    assert [call.result for call in calls] == ["one", "two"]

    # An unanswered call does not take the next result.
    row = trajectory(
        ("gpt", tool_calls({"name": "a"})),
        ("gpt", tool_calls({"name": "a"})),
        ("tool", tool_responses({"content": "x"})),
    )
    calls = read(READER, write("a.jsonl", lines(row))).calls()
    assert [call.result for call in calls] == [None, "x"]


@table("value", ["bare text", "<tool_response>\nbare text\n</tool_response>"])
def test_results_that_are_not_json(write, lines, read, value):
    row = trajectory(("gpt", tool_calls({"name": "a"})), ("tool", value))
    (call,) = read(READER, write("a.jsonl", lines(row))).calls()
    assert call.result == "bare text"


def test_reading_in_two_parts_equals_one_read(write, lines, append, read):
    path = write("a.jsonl", lines(trajectory(*CALLS), trajectory(id="the-very-same-id-42")))
    first = read(READER, path)
    append(path, [trajectory(*CALLS), trajectory(id="the-very-same-id-42")])
    second = read(READER, path, first.state)
    whole = read(READER, path)
    assert list(first.sessions) + list(second.sessions) == list(whole.sessions)
    assert first.messages + second.messages == whole.messages
    assert list(whole.sessions)[3] == "the-very-same-id-42#2"
    assert second.state == whole.state


def test_broken_parts_are_reported_and_the_rest_kept(write, lines, read):
    half = trajectory()
    half["conversations"] += [5, {"from": "ghost", "value": "x"}, {"from": "gpt", "value": 7}]
    half["conversations"] += turns(("gpt", "kept"))
    path = write("a.jsonl", lines(half, "{broken", [], {"conversations": 3}, trajectory(model=5)))
    reading = read(READER, path)
    assert [skip.line for skip in reading.skips] == [1, 1, 1, 2, 3, 4]
    assert len(reading.sessions) == 2
    assert reading.messages[2].text == "kept"


def test_long_conversation_is_split_into_fragments(write, lines, read):
    row = trajectory(*(("human", str(n)) for n in range(FRAGMENT_MESSAGES)))
    reading = read(READER, write("a.jsonl", lines(row)))
    assert [len(part.messages) for part in reading.fragments] == [256, 2]


@table("content", [{"messages": []}, {"conversations": [{"role": "user"}]}, [], "x", ""])
def test_other_files_are_not_recognised(write, content):
    assert not READER.recognises(LogFile(write("a.jsonl", content)))


def test_long_values_take_linear_time(write, read):
    """Each of these took minutes when the rest of the text was examined again for every part."""
    values = (
        "<think>" + " " * 300_000,
        "<tool_call>" * 100_000,
        "<tool_call> </tool_call>" * 50_000,
    )
    path = write("t.jsonl", json.dumps(trajectory(*(("gpt", value) for value in values))) + "\n")
    assert len(read(READER, path).messages) == 2 + len(values)
