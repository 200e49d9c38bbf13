"""The end of a Codex command may come after its result: in an event, in a poll, or another day."""

import json

from tests.tables import table

from journeyman.logs.codex import CodexReader
from journeyman.outcomes.judge import judge
from journeyman.records import Lineage

READER = CodexReader()
STARTED = {"timestamp": "2026-01-01T00:00:00Z", "cwd": "/repo", "cli_version": "0.169.0"}


def line(kind, ordinal=0, **payload):
    at = f"2026-01-01T00:00:{ordinal:02d}Z"
    return {"timestamp": at, "ordinal": ordinal, "type": kind, "payload": payload}


def meta(**fields):
    return line("session_meta", id="s1", **STARTED, **fields)


def event(kind, **fields):
    return line("event_msg", type=kind, **fields)


def call(call_id, cmd="make", name="exec_command", **arguments):
    arguments = json.dumps(arguments or {"cmd": cmd})
    return line(
        "response_item", type="function_call", call_id=call_id, name=name, arguments=arguments
    )


def result(call_id, output):
    return line("response_item", type="function_call_output", call_id=call_id, output=output)


def running(call_id, process=7, output=""):
    header = f"Chunk ID: 1a\nWall time: 0.25 seconds\nProcess running with session ID {process}"
    return result(call_id, f"{header}\nOriginal token count: 0\nOutput:\n{output}")


def exited(call_id, code, output=""):
    header = f"Chunk ID: 1b\nWall time: 1.5 seconds\nProcess exited with code {code}"
    return result(call_id, f"{header}\nOriginal token count: 0\nOutput:\n{output}")


def completed(call_id, code, output="", kind="CommandExecution", **fields):
    status = "completed" if code == 0 else "failed"
    item = {"type": kind, "id": call_id, "status": status, "exit_code": code}
    return event("item_completed", item={**item, "aggregated_output": output, **fields})


def verdicts(reading):
    return [(call.id, *outcome(judge(call))) for call in reading.calls()]


def outcome(verdict):
    return f"{verdict.status}:{verdict.kind}", verdict.evidence


def test_a_running_process_is_unknown(write, lines, read):
    path = write("r.jsonl", lines(meta(), call("c1"), running("c1", output="building")))
    (judged,) = verdicts(read(READER, path))
    assert judged == ("c1", "unknown:background", "")


TURN_ENDED = event("task_complete")
ENDS = {
    "success": ([completed("c1", 0, "built")], "ok:"),
    "failure": ([completed("c1", 3, "no rule")], "failed:exit_code"),
    "event of older versions": (
        [event("exec_command_end", call_id="c1", exit_code=3, aggregated_output="no rule")],
        "failed:exit_code",
    ),
    "poll": (
        [call("c2", name="write_stdin", session_id=7, chars=""), exited("c2", 3, "no rule")],
        "failed:exit_code",
    ),
    "own end after the turn": ([TURN_ENDED, completed("c1", 3, "no rule")], "failed:exit_code"),
    "stopped without an exit code": ([TURN_ENDED, completed("c1", -1)], "interrupted:cancelled"),
    "killed with the session": ([TURN_ENDED, completed("c1", 137)], "interrupted:cancelled"),
    "killed during a turn": ([completed("c1", 137)], "failed:limit"),
    "killed during the next turn": (
        [TURN_ENDED, event("task_started"), completed("c1", 137)],
        "failed:limit",
    ),
    "poll that is still waiting": (
        [call("c2", name="write_stdin", session_id=7, chars=""), running("c2")],
        "unknown:background",
    ),
    "end of another process": ([completed("c9", 3)], "unknown:background"),
}


@table("name", ENDS)
def test_ends(write, lines, read, name):
    rows, expected = ENDS[name]
    path = write("r.jsonl", lines(meta(), event("task_started"), call("c1"), running("c1"), *rows))
    first = verdicts(read(READER, path))[0]
    assert first[1] == expected


def test_a_poll_works_though_its_process_failed(write, lines, read):
    poll = call("c2", name="write_stdin", session_id=7, chars="")
    rows = (
        call("c1"),
        running("c1"),
        poll,
        completed("c1", 4, "polled"),
        exited("c2", 4, "polled"),
    )
    failed, polled = read(READER, write("r.jsonl", lines(meta(), *rows))).calls()
    assert (judge(failed).status, failed.result) == ("failed", "polled")
    assert judge(polled).status == "ok"
    assert polled.recorded.exit_code == 4


def test_polls_before_the_end_work_and_their_output_belongs_to_the_call(write, lines, read):
    def poll(call_id):
        return call(call_id, name="write_stdin", session_id=7, chars="")

    rows = (
        *(call("c1"), running("c1", output="one\n")),
        *(poll("c2"), running("c2", output="two\n")),
        *(poll("c3"), exited("c3", 3, "three")),
    )
    calls = read(READER, write("r.jsonl", lines(meta(), *rows))).calls()
    assert [judge(call).status for call in calls] == ["failed", "ok", "ok"]
    assert [call.result for call in calls] == ["one\ntwo\nthree", "two\n", "three"]


def test_a_reverted_call_does_not_come_back(write, lines, read):
    prompt = {"type": "message", "role": "user", "content": "build it"}
    rows = (
        *(meta(), line("response_item", **prompt), call("c1"), running("c1")),
        *(event("thread_rolled_back", num_turns=1), completed("c1", 0)),
    )
    reading = read(READER, write("r.jsonl", lines(*rows)))
    ((start, end),) = reading.fragments[0].undone
    assert all(start <= message.position < end for message in reading.messages)
    assert [judge(call).status for call in reading.calls()] == ["unknown"]


ITEMS = {
    "declined command": (
        completed("c1", None, status="declined"),
        "exec command rejected by user",
        ("refused", "person"),
    ),
    "declined patch": (
        completed("c1", None, kind="FileChange", status="declined"),
        "patch rejected: writing outside of the project; rejected by user approval settings",
        ("refused", "rule"),
    ),
    "applied patch": (
        completed("c1", None, kind="FileChange", status="completed"),
        "x",
        ("ok", ""),
    ),
    "failed patch": (completed("c1", None, kind="FileChange"), "x", ("failed", "")),
    "tool with an error": (
        completed("c1", None, kind="McpToolCall", status="completed", result={"isError": True}),
        "no such repository",
        ("failed", ""),
    ),
    "blocked by a hook": (
        line("world_state", full=True),
        "Command blocked by PreToolUse hook: deploys are frozen. Command: make deploy",
        ("refused", "hook"),
    ),
}


@table("name", ITEMS)
def test_items_say_how_a_call_ended(write, lines, read, name):
    row, output, expected = ITEMS[name]
    path = write("r.jsonl", lines(meta(), call("c1"), row, result("c1", output)))
    reading = read(READER, path)
    (judged,) = map(judge, reading.calls())
    assert reading.skips == []
    assert (judged.status, judged.by) == expected


def tokens(prompt, cached, written, output, reasoning):
    return {
        "input_tokens": prompt,
        "cached_input_tokens": cached,
        "cache_write_input_tokens": written,
        "output_tokens": output,
        "reasoning_output_tokens": reasoning,
    }


def record(response, usage, thread="s1"):
    return line("token_usage_record", thread_id=thread, response_id=response, usage=usage)


def count(last, total):
    return event("token_count", info={"last_token_usage": last, "total_token_usage": total})


class TestUsageRecords:
    def test_records_count_and_the_counts_beside_them_do_not(self, write, lines, read):
        one, two = tokens(100, 60, 10, 5, 2), tokens(120, 100, 0, 6, 0)
        both = tokens(220, 160, 10, 11, 2)
        rows = (meta(), record("r1", one), count(one, one), record("r2", two), count(two, both))
        usage = read(READER, write("r.jsonl", lines(*rows))).usage
        assert [(u.key, u.input_tokens, u.cache_read_tokens) for u in usage] == [
            ("r1", 30, 60),
            ("r2", 20, 100),
        ]
        assert [u.cache_write_tokens for u in usage] == [10, 0]
        assert sum(u.output_tokens for u in usage) == 11

    def test_a_fork_has_only_its_own_tokens(self, write, lines, read):
        own = tokens(50, 0, 0, 3, 0)
        total = tokens(270, 160, 10, 14, 2)  # with those of the parent
        rows = (
            meta(forked_from_id="s0", forked_from_ordinal_exclusive=34),
            record("r1", tokens(100, 60, 10, 5, 2), thread="s0"),
            record("r3", own),
            count(own, total),
        )
        reading = read(READER, write("r.jsonl", lines(*rows)))
        assert [(u.key, u.input_tokens) for u in reading.usage] == [("r3", 50)]
        assert reading.session.lineage == Lineage(parent="s0", kind="branch")
