import pytest
from tests.client_logs import PI_ID, PiLog, at, write_lines

from journeyman.logs.pi import PiReader
from journeyman.outcomes.judge import judge

READER = PiReader()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sessions" / "--work-app--" / f"2026-11-17T22-00-00-000Z_{PI_ID}.jsonl"


def test_a_session(path, read):
    log = PiLog()
    log.entry("model_change", provider="p", modelId="m1")
    log.entry("thinking_level_change", thinkingLevel="medium")
    log.message("user", [{"type": "text", "text": "Fix it"}])
    thought = {"type": "thinking", "thinking": "Hm."}
    log.answer("Looking.", ("c1", "bash", {"command": "ls"}), ("c2", "read", {"path": "a"}))
    log[-1]["message"]["content"].insert(0, thought)
    log.result("c1", "bash", "a")
    log.result("c2", "read", "b")
    log.entry("session_info", name="A name")
    log.answer("Done.")
    reading = read(READER, write_lines(path, log))
    session = reading.session
    assert (session.id, session.source, session.cwd) == (PI_ID, "pi", "/work/app")
    assert (session.title, session.model, session.end_reason) == ("A name", "m1", "stop")
    first = reading.messages[1]
    assert (first.text, first.reasoning, len(first.tool_calls)) == ("Looking.", "Hm.", 2)
    usage = reading.usage[0]
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (600, 400, 50)
    assert (usage.cost_usd, usage.cost_origin) == (0.00267, "estimated")


def test_verdicts(path, read):
    cases = [
        ("ok", "a", False),
        ("failed", "no such file\n\n\nCommand exited with code 2", True),
        ("failed", "Command timed out after 1 seconds", True),
        ("failed", "Could not find the exact text in a.txt.", True),
        ("invalid", "Tool fly not found", True),
        ("invalid", 'Validation failed for tool "bash":\n  - command: must have it', True),
        ("refused", "Blocked by user: no pushes", True),
        ("refused", "Tool execution was blocked", True),
        ("ok", "Tool execution was blocked", False),
        ("interrupted", "Command aborted", True),
    ]
    log = PiLog()
    for n, (_, text, is_error) in enumerate(cases):
        log.answer("", (f"c{n}", "bash", {}))
        log.result(f"c{n}", "bash", text, is_error=is_error)
    log.answer("", ("open", "bash", {}))
    calls = read(READER, write_lines(path, log)).calls()
    expected = [status for status, *_ in cases] + ["unknown"]
    assert [judge(call).status for call in calls] == expected


def test_a_command_of_the_user_is_not_a_call_of_the_agent(path, read):
    log = PiLog()
    log.message("bashExecution", command="make", output="no", exitCode=3, cancelled=False)
    (message,) = read(READER, write_lines(path, log)).messages
    assert (message.role, message.kind) == ("user", "harness")
    assert message.text == "The user ran: make\nno"


def test_a_compaction_and_texts_of_extensions(path, read):
    log = PiLog()
    log.message("user", "Before")
    log.entry("compaction", summary="So far", firstKeptEntryId="x")
    log.entry("custom_message", customType="x", content="Context", display=True)
    log.entry("custom", customType="x", data={"state": 1})
    log.entry("branch_summary", summary="The other way", fromId="x")
    log.message("user", "After")
    messages = read(READER, write_lines(path, log)).messages
    assert [(one.text, one.kind, one.generation) for one in messages] == [
        ("Before", "plain", 0),
        ("So far", "summary", 1),
        ("Context", "harness", 1),
        ("The other way", "harness", 1),
        ("After", "plain", 1),
    ]


def test_going_back_in_the_tree_undoes_what_was_left(path, read):
    log = PiLog()
    kept = log.message("user", "Kept")
    log.message("user", "Left")
    log.answer("Left too")
    log.message("user", "Instead", parent=kept)
    reading = read(READER, write_lines(path, log))
    ((start, end),) = reading.fragments[-1].undone
    texts = {message.text: start <= message.position < end for message in reading.messages}
    assert texts == {"Kept": False, "Left": True, "Left too": True, "Instead": False}
    assert len(reading.usage) == 1, "its tokens were spent"


def test_a_fork_has_its_parent(path, read):
    parent = path.with_name("2026-11-17T21-00-00-000Z_01a1eb8c-aaaa-74e3-878a-a8f0d448d622.jsonl")
    log = PiLog(parentSession=str(parent), timestamp=at(100))
    log.message("user", "Shared")
    log.answer("Shared too", ("c1", "bash", {}))
    log.result("c1", "bash", "x")
    log.message("user", "New")
    log[-1]["timestamp"] = at(101)
    reading = read(READER, write_lines(path, log))
    lineage = reading.session.lineage
    assert (lineage.parent, lineage.kind) == ("01a1eb8c-aaaa-74e3-878a-a8f0d448d622", "branch")
    assert len(reading.usage) == 1, "the store knows whether it is a copy"


def test_broken_lines_cost_themselves(path, read):
    log = PiLog()
    log += ["{broken", [1], {"type": "message"}, {"type": "message", "message": {"role": "x"}}]
    log += [{"type": "message", "message": {"role": "toolResult"}}]
    log += [{"type": "message", "message": {"role": "assistant", "content": [3, {"type": 4}]}}]
    log.message("user", "After")
    reading = read(READER, write_lines(path, log))
    assert len(reading.skips) == 5
    assert reading.messages[-1].text == "After"
