import json

from tests.tables import table

from journeyman.logs.codex import CodexReader
from journeyman.logs.codex_output import parse_tool_output
from journeyman.logs.log_file import LogFile
from journeyman.records import Lineage, ResultFlags

READER = CodexReader()
OLD_HEADER = {
    "id": "aaaa",
    "timestamp": "2025-08-06T18:00:00Z",
    "instructions": None,
    "git": {"branch": "main", "commit_hash": "abc"},
}


def wrapped(kind, payload, second=0):
    return {"timestamp": f"2026-01-01T00:00:{second:02d}Z", "type": kind, "payload": payload}


def meta(**fields):
    return wrapped(
        "session_meta",
        {
            "id": "s1",
            "timestamp": "2026-01-01T00:00:00Z",
            "cwd": "/repo",
            "cli_version": "1",
            **fields,
        },
    )


def item(**fields):
    return wrapped("response_item", fields)


def event(**fields):
    return wrapped("event_msg", fields)


def chat_message(role, text):
    part = "output_text" if role == "assistant" else "input_text"
    return item(type="message", role=role, content=[{"type": part, "text": text}])


def call(call_id, name="shell", arguments='{"command":["ls"]}'):
    return item(type="function_call", call_id=call_id, name=name, arguments=arguments)


def result(call_id, output):
    return item(type="function_call_output", call_id=call_id, output=output)


def tokens(total, last=None):
    return event(
        type="token_count",
        info={"total_token_usage": {"total_tokens": total}, "last_token_usage": last or {}},
    )


class TestOldFormat:
    def test_header_messages_and_calls(self, write, lines, read):
        path = write(
            "rollout.jsonl",
            lines(
                OLD_HEADER,
                {"record_type": "state"},
                {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": "Fix"}],
                },
                {"type": "reasoning", "summary": [], "encrypted_content": "x"},
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Look first"}]},
                {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"},
                {
                    "type": "function_call_output",
                    "call_id": "c1",
                    "output": json.dumps(
                        {"output": "gone", "metadata": {"exit_code": 2, "duration_seconds": 0.5}}
                    ),
                },
                {
                    "type": "local_shell_call",
                    "id": "c2",
                    "status": "completed",
                    "action": {"type": "exec", "command": ["ls"]},
                },
                {"type": "local_shell_call_output", "call_id": "c2", "output": "a.txt"},
            ),
        )
        assert READER.recognises(LogFile(path))
        reading = read(READER, path)
        assert reading.skips == []
        session = reading.session
        assert (session.id, session.git_branch) == ("aaaa", "main")
        assert session.started_at == 1754503200.0
        assert reading.messages[1].reasoning == "Look first"
        first, second = reading.calls()
        assert first.result == "gone"
        assert first.recorded == ResultFlags(exit_code=2, details={"duration_seconds": 0.5})
        assert (second.tool, second.result) == ("local_shell", "a.txt")


class TestWrappedFormat:
    def test_session_facts_and_calls(self, write, lines, read):
        path = write(
            "rollout.jsonl",
            lines(
                meta(
                    originator="codex_cli",
                    source="cli",
                    git={
                        "branch": "dev",
                        "commit_hash": "f",
                        "repository_url": "https://key@github.com/acme/app.git",
                    },
                ),
                wrapped("turn_context", {"model": "gpt-5", "cwd": "/elsewhere"}),
                chat_message("user", "Hello\nthere"),
                event(type="user_message", message="Hello there"),
                call("c1"),
                result("c1", "ok"),
                item(type="custom_tool_call", call_id="c2", name="apply_patch", input="*** Begin"),
                item(
                    type="custom_tool_call_output", call_id="c2", output="Exit code: 1\nOutput:\nno"
                ),
                item(type="web_search_call", status="completed", action={"query": "x"}),
                item(type="ghost_snapshot", ghost_commit={}),
                chat_message("assistant", "Done"),
                event(type="task_complete"),
            ),
        )
        assert READER.recognises(LogFile(path))
        reading = read(READER, path)
        session = reading.session
        assert (session.id, session.cwd, session.model) == ("s1", "/repo", "gpt-5")
        assert (session.git_branch, session.end_reason) == ("dev", "completed")
        assert session.project == "github.com/acme/app"
        assert session.details["originator"] == "codex_cli"
        assert session.platform == "cli"
        shell, patch, search = reading.calls()
        assert (shell.result, shell.model) == ("ok", "gpt-5")
        assert json.loads(patch.arguments) == {"input": "*** Begin"}
        assert (patch.result, patch.recorded) == ("no", ResultFlags(exit_code=1))
        assert (search.tool, search.result) == ("web_search", None)
        assert [message.role for message in reading.messages].count("user") == 1

    @table(
        ("fields", "lineage"),
        [
            (
                {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "p", "depth": 1}}}},
                Lineage(parent="p", kind="subagent"),
            ),
            (
                {"source": {"subagent": "review"}, "parent_thread_id": "p", "forked_from_id": "f"},
                Lineage(parent="p", kind="subagent"),
            ),
            ({"source": {"subagent": "review"}}, None),
        ],
    )
    def test_subagents_name_their_parent(self, write, lines, read, fields, lineage):
        path = write("r.jsonl", lines(meta(**fields), chat_message("user", "x")))
        assert read(READER, path).session.lineage == lineage

    def test_compaction_starts_a_generation(self, write, lines, read):
        carried = [{"type": "message", "role": "user", "content": "old"}]
        path = write(
            "r.jsonl",
            lines(
                meta(),
                chat_message("user", "one"),
                wrapped("compacted", {"message": "So far", "replacement_history": carried}),
                chat_message("user", "two"),
                wrapped("compacted", {"message": "", "replacement_history": carried}),
                chat_message("user", "three"),
            ),
        )
        seen = [(m.text, m.kind, m.generation) for m in read(READER, path).messages]
        assert seen == [
            ("one", "plain", 0),
            ("So far", "summary", 1),
            ("two", "plain", 1),
            ("three", "plain", 2),
        ]

    def test_rolled_back_turns(self, write, lines, read):
        path = write(
            "r.jsonl",
            lines(
                meta(),
                chat_message("user", "keep"),
                chat_message("user", "drop"),
                chat_message("assistant", "dropped too"),
                event(type="thread_rolled_back", num_turns=1),
                chat_message("user", "again"),
            ),
        )
        reading = read(READER, path)
        keep, drop, dropped, again = (message.position for message in reading.messages)
        ((start, end),) = reading.fragments[0].undone
        assert keep < start == drop < dropped < end < again

    def test_events_supply_missing_result_flags(self, write, lines, read):
        failed = {"Ok": {"content": [], "isError": True}}
        path = write(
            "r.jsonl",
            lines(
                meta(),
                call("c1"),
                event(type="exec_command_end", call_id="c1", exit_code=3),
                result("c1", "text"),
                call("c2", "mcp__x"),
                event(type="mcp_tool_call_end", call_id="c2", result=failed),
                result("c2", "text"),
                call("c3", "apply_patch"),
                event(type="patch_apply_end", call_id="c3", success=False),
                result("c3", "Exit code: 1\nno"),
            ),
        )
        assert [call.recorded for call in read(READER, path).calls()] == [
            ResultFlags(exit_code=3),
            ResultFlags(is_error=True),
            ResultFlags(exit_code=1, is_error=True),
        ]


class TestHooks:
    def ran(self, call_id, *command):
        item = {"type": "CommandExecution", "id": call_id, "command": list(command)}
        return event(type="item_completed", item=item)

    def test_what_ran_is_what_the_hook_made_of_it(self, write, lines, read):
        pytest_call = '{"cmd": "pytest", "workdir": "/x"}'
        path = write(
            "rollout.jsonl",
            lines(
                meta(),
                call("c1", "exec_command", pytest_call),
                self.ran("c1", "/bin/bash", "-lc", "uv run pytest"),
                result("c1", "ok"),
                call("c2", "exec_command", '{"cmd": "ls"}'),
                self.ran("c2", "/bin/bash", "-lc", "ls"),
                call("c3", "exec_command", '{"cmd": "ls"}'),
                self.ran("c3", "powershell", "ls", "-Force"),
                self.ran("c3", "/bin/bash", "-lc", "too late"),
                self.ran("unknown", "/bin/bash", "-lc", "pwd"),
                event(type="item_completed", item="odd"),
            ),
        )
        reading = read(READER, path)
        assert not reading.skips
        made = [(each.id, each.arguments, each.requested) for each in reading.calls()]
        assert made == [
            ("c1", '{"cmd":"uv run pytest","workdir":"/x"}', pytest_call),
            ("c2", '{"cmd": "ls"}', ""),
            ("c3", '{"cmd": "ls"}', ""),
        ]


class TestUsage:
    def test_cached_tokens_and_repeated_totals(self, write, lines, read):
        # Cached tokens are counted separately.
        spent = {
            "input_tokens": 100,
            "cached_input_tokens": 60,
            "output_tokens": 20,
            "reasoning_output_tokens": 5,
        }
        path = write(
            "r.jsonl",
            lines(meta(), wrapped("turn_context", {"model": "m"}), tokens(120, spent)),
        )
        (usage,) = read(READER, path).usage
        assert (usage.input_tokens, usage.cache_read_tokens, usage.model) == (40, 60, "m")
        assert (usage.output_tokens, usage.reasoning_tokens) == (20, 5)

        # Repeated totals count once.
        path = write(
            "r.jsonl",
            lines(
                meta(),
                event(type="token_count", info=None),
                tokens(10, {"input_tokens": 10}),
                tokens(10, {"input_tokens": 10}),
                tokens(30, {"input_tokens": 20}),
            ),
        )
        assert [usage.input_tokens for usage in read(READER, path).usage] == [10, 20]


@table(
    ("output", "text", "recorded"),
    [
        ("plain", "plain", None),
        ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno", "no", ResultFlags(exit_code=1)),
        (
            "Exit code: 0\nWall time: 0.1 seconds\nTotal output lines: 9\nOutput:\na\nb",
            "a\nb",
            ResultFlags(exit_code=0),
        ),
        (
            "Chunk ID: ab\nWall time: 0.1 seconds\nProcess exited with code -1\n"
            "Original token count: 3\nOutput:\nx",
            "x",
            ResultFlags(exit_code=-1),
        ),
        ("Process exited with code 1", "", ResultFlags(exit_code=1)),
        ("Exit code 1\nno such file", "no such file", ResultFlags(exit_code=1)),
        ("Wall time: 2.0 seconds\nOutput:\nhi", "hi", None),
        ("Wall time: 2.0 seconds\nnot a head", "Wall time: 2.0 seconds\nnot a head", None),
        ("the log says:\nExit code: 1", "the log says:\nExit code: 1", None),
        ("Output:\nx", "Output:\nx", None),
        (
            json.dumps({"output": "Exit code: 9", "metadata": {"exit_code": 0}}),
            "Exit code: 9",
            ResultFlags(exit_code=0),
        ),
        ('{"output": "no metadata"}', '{"output": "no metadata"}', None),
        ("{broken", "{broken", None),
        ({"content": "done", "success": True}, "done", ResultFlags(is_error=False)),
        (
            {"content": "Exit code: 2\nx", "success": False},
            "x",
            ResultFlags(is_error=True, exit_code=2),
        ),
        ([{"type": "input_text", "text": "a"}, {"type": "input_image"}], "a\n[input_image]", None),
        ("aborted by user after 3.2s", "aborted by user after 3.2s", ResultFlags(interrupted=True)),
        (
            "failed in sandbox X with execution error: denied, exit code: 101, stdout: ",
            "failed in sandbox X with execution error: denied, exit code: 101, stdout: ",
            ResultFlags(is_error=True, exit_code=101),
        ),
        (None, "", None),
        (7, "7", None),
    ],
)
def test_wrapper_around_output_is_removed(output, text, recorded):
    assert parse_tool_output(output) == (text, recorded)


class TestIncrementalReading:
    ROWS = (
        meta(),
        wrapped("turn_context", {"model": "m1"}),
        chat_message("user", "one"),
        call("c1"),
        event(type="exec_command_end", call_id="c1", exit_code=4),
        tokens(10, {"input_tokens": 10}),
        result("c1", "text"),
        wrapped("compacted", {"message": "summary"}),
        tokens(10, {"input_tokens": 10}),
        chat_message("user", "two"),
        event(type="thread_rolled_back", num_turns=2),
        chat_message("assistant", "three"),
    )

    @table("cut", range(1, len(ROWS)))
    def test_reading_in_two_parts_equals_one_read(self, write, lines, append, read, cut):
        path = write("r.jsonl", lines(*self.ROWS[:cut]))
        first = read(READER, path)
        append(path, self.ROWS[cut:])
        second = read(READER, path, first.state)
        whole = read(READER, path)
        assert first.messages + second.messages == whole.messages
        assert first.usage + second.usage == whole.usage
        assert first.fragments[0].undone + second.fragments[0].undone == whole.fragments[0].undone
        assert set(second.sessions) == {"s1"}
        assert [part.replaces for part in first.fragments + second.fragments] == [True, False]
        assert second.state == whole.state

    def test_unterminated_unchanged_and_rewritten_logs(self, write, lines, append, read):
        # An unterminated line is read again.
        text = lines(meta(), wrapped("compacted", {"message": "summary"})).text
        path = write("r.jsonl", text.rstrip("\n"))
        first = read(READER, path)
        assert [message.generation for message in first.messages] == [1]
        append(path, [""])
        again = read(READER, path, first.state)
        assert again.messages == first.messages

        # Nothing new.
        path = write("r.jsonl", lines(meta(), chat_message("user", "x")))
        state = read(READER, path).state
        again = read(READER, path, state)
        assert again.fragments == []
        assert again.state == state


def test_broken_lines_are_reported_and_the_rest_kept(write, lines, read):
    path = write(
        "r.jsonl",
        lines(
            meta(),
            "{broken",
            "[1]",
            "[" * 100_000,
            item(type="message", role="ghost", content="x"),
            item(type="message", role="user", content=5),
            item(type="function_call_output", output="x"),
            item(type=7),
            wrapped("event_msg", {"type": "token_count", "info": {"last_token_usage": 3}}),
            chat_message("user", "kept"),
        ),
    )
    reading = read(READER, path)
    assert [skip.line for skip in reading.skips] == [2, 3, 4, 5, 6, 7]
    assert [message.text for message in reading.messages] == ["kept"]
