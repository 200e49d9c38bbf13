import json

import pytest
from tests.tables import table

from journeyman.logs.chat import OpenAIChatReader
from journeyman.logs.fields import path_id
from journeyman.logs.log_file import MAX_VALUE_BYTES, LogFile
from journeyman.records import ResultFlags
from journeyman.records.errors import LogUnreadable, NotALog

READER = OpenAIChatReader()
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
CHAT = [
    {"role": "system", "content": "Be good"},
    {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image_url"}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "seen"},
    {"role": "assistant", "content": "Done", "reasoning_content": "Fine"},
]


def texts(messages):
    return [message.text for message in messages]


class TestLayouts:
    @table(
        ("name", "content"),
        [
            ("list.json", CHAT),
            ("object.json", {"messages": CHAT}),
            ("late.json", {"tools": [], "messages": CHAT, "model": "m"}),
            ("list-of-lists.json", [CHAT]),
            ("list-of-objects.json", [{"messages": CHAT}]),
        ],
    )
    def test_documents(self, write, read, name, content):
        path = write(name, content)
        assert READER.recognises(LogFile(path))
        self.check(read(READER, path))

    @table("rows", [[CHAT], [{"messages": CHAT}], CHAT])
    @table("name", ["chat.jsonl", "chat.jsonl.gz"])
    def test_json_lines(self, write, lines, read, name, rows):
        path = write(name, lines(*rows))
        assert READER.recognises(LogFile(path))
        self.check(read(READER, path))

    def check(self, reading):
        assert reading.skips == []
        assert texts(reading.messages) == ["Be good", "Look\n[image_url]", "", "seen", "Done"]
        assert reading.messages[4].reasoning == "Fine"
        (call,) = reading.calls()
        assert (call.tool, call.arguments, call.result) == ("look", '{"at": 1}', "seen")
        assert reading.fragments[0].replaces

    def test_several_conversations(self, write, lines, read):
        path = write("many.jsonl", lines(CHAT, {"id": "conversation-0001", "messages": CHAT}, CHAT))
        reading = read(READER, path)
        log = LogFile(path)
        assert list(reading.sessions) == [path_id(log, "1"), "conversation-0001", path_id(log, "3")]
        assert {len(messages) for messages in reading.by_session.values()} == {5}


class TestMessages:
    def test_alternative_call_formats(self, write, read):
        # Arguments as an object, and a call without an id.
        function = {"name": "a", "arguments": {"n": 1}}
        calls = [{"id": "c1", "function": function}, {"function": {"name": "b"}}]
        chat = [
            {"role": "user", "content": "x"},
            {"role": "assistant", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c1", "content": "from a"},
        ]
        a, b = read(READER, write("c.json", chat)).calls()
        assert (a.tool, a.arguments, a.result) == ("a", '{"n":1}', "from a")
        assert (b.tool, b.arguments, b.result) == ("b", "{}", None)

        # The developer role counts as system.
        path = write("c.json", [{"role": "developer", "content": "x"}])
        assert read(READER, path).messages[0].role == "system"

    def test_anthropic_blocks(self, write, read):
        chat = [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "Trying"},
                    {"type": "tool_use", "id": "t1", "name": "a", "input": {"n": 1}},
                    {"type": "tool_use", "id": "t2", "name": "b", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t2",
                        "content": "bad",
                        "is_error": True,
                    },
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "content": [{"type": "text", "text": "good"}],
                    },
                    {"type": "text", "text": "and now?"},
                ],
            },
        ]
        reading = read(READER, write("c.json", {"messages": chat}))
        answer = reading.messages[1]
        assert (answer.text, answer.reasoning) == ("Trying", "hm")
        good, bad = reading.calls()
        assert (good.arguments, good.result, good.recorded) == ('{"n":1}', "good", None)
        assert (bad.result, bad.recorded) == ("bad", ResultFlags(is_error=True))
        assert reading.messages[-1].text == "and now?"


class TestFacts:
    def test_fields_next_to_the_messages(self, write, read):
        path = write(
            "c.json",
            {
                "conversation_id": "conversation-00007",
                "title": "A title",
                "model": "m",
                "created": 1_700_000_000,
                "usage": {
                    "prompt_tokens": 100,
                    "completion_tokens": 7,
                    "prompt_tokens_details": {"cached_tokens": 40},
                },
                "reward": 0.5,
                "metadata": {"run": 3},
                "extra": "kept",
                "messages": CHAT,
            },
        )
        reading = read(READER, path)
        session = reading.session
        assert (session.id, session.title, session.model) == ("conversation-00007", "A title", "m")
        assert session.started_at == 1_700_000_000
        assert (session.outcome, session.outcome_origin) == (0.5, "reward")
        assert session.details == {"metadata": {"run": 3}, "extra": "kept"}
        (usage,) = reading.usage
        assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (60, 40, 7)

    @table(
        ("facts", "outcome", "origin"),
        [
            ({"success": True}, 1.0, "success"),
            ({"success": False}, 0.0, "success"),
            ({"score": 1}, 1.0, "score"),
            ({"score": 87}, None, ""),
            ({"reward": "high"}, None, ""),
            ({}, None, ""),
        ],
    )
    def test_outcomes(self, write, read, facts, outcome, origin):
        session = read(READER, write("c.json", {**facts, "messages": CHAT})).session
        assert (session.outcome, session.outcome_origin) == (outcome, origin)

    def test_usage_per_message(self, write, read):
        usage = {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 90}
        chat = [{"role": "assistant", "content": "x", "model": "m", "usage": usage}]
        (found,) = read(READER, write("c.json", chat)).usage
        assert (found.input_tokens, found.cache_read_tokens, found.model) == (5, 90, "m")

    def test_conversations_with_the_same_id_are_all_kept(self, write, lines, read):
        rows = [
            {"id": "the-very-same-id-42", "messages": [{"role": "user", "content": str(n)}]}
            for n in range(3)
        ]
        for path in (write("c.jsonl", lines(*rows)), write("c.json", rows)):
            reading = read(READER, path)
            assert list(reading.sessions) == [
                "the-very-same-id-42",
                "the-very-same-id-42#2",
                "the-very-same-id-42#3",
            ]
            assert texts(reading.messages) == ["0", "1", "2"]
            assert "the-very-same-id-42#2" in reading.skips[0].reason


class TestBrokenParts:
    BROKEN = (
        5,
        "text",
        {"content": "no role"},
        {"role": "ghost", "content": "x"},
        {"role": ["user"], "content": "x"},
        {"role": "user", "content": 5},
        {"role": "assistant", "tool_calls": "x"},
        {"role": "assistant", "tool_calls": [5]},
        {"role": "tool", "content": "no id"},
    )

    @table("broken", BROKEN)
    def test_broken_message_loses_only_itself(self, write, lines, read, broken):
        chat = [*CHAT, broken, {"role": "user", "content": "last"}]
        for path in (
            write("a.json", chat),
            write("b.json", {"messages": chat}),
            write("c.jsonl", lines(chat)),
            write("d.jsonl", lines(*(json.dumps(message) for message in chat))),
        ):
            reading = read(READER, path)
            assert len(reading.skips) == 1
            assert texts(reading.messages)[-1] == "last"
            assert len(reading.messages) == 6

    @table("broken", [5, "text", {}, {"messages": 3}, [], None])
    def test_broken_conversation_loses_only_itself(self, write, lines, read, broken):
        for path in (
            write("a.json", [CHAT, broken, CHAT]),
            write("b.jsonl", lines(CHAT, json.dumps(broken), CHAT)),
        ):
            reading = read(READER, path)
            assert len(reading.skips) == 1
            assert len(reading.sessions) == 2


def test_documents_that_cannot_be_read(write):
    broken = write("a.json", json.dumps({"messages": CHAT}, indent=1)[:-20])
    with pytest.raises(LogUnreadable, match=r"a\.json"):
        list(READER.read(LogFile(broken), None))
    deep = write("deep.json", '{"messages": [\n' + "[" * 40_000 + "]" * 40_000 + "]}")
    with pytest.raises(LogUnreadable, match="levels deep"):
        list(READER.read(LogFile(deep), None))
    long = write("long.json", '[\n"' + "a" * MAX_VALUE_BYTES + '"]')
    with pytest.raises(NotALog, match="Use JSON lines"):
        READER.recognises(LogFile(long))
