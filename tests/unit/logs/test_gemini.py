import pytest
from tests.client_logs import GEMINI_ID, GeminiLog, at, gemini_call, write_lines

from journeyman.logs.gemini import GeminiReader
from journeyman.outcomes.judge import judge

READER = GeminiReader()
LISTING = "<untrusted_context>\nOutput: {}\nProcess Group PGID: 4\n</untrusted_context>"


@pytest.fixture
def path(tmp_path):
    project = tmp_path / ".gemini" / "tmp" / "app"
    project.mkdir(parents=True)
    (project / ".project_root").write_text("/work/app")
    return project / "chats" / "session-2026-11-17T22-00-4bed628e.jsonl"


def test_a_session(path, read):
    log = GeminiLog()
    log.append(
        {"$set": {"messages": [{"id": "0", "type": "user", "content": "<session_context>"}]}}
    )
    log.prompt("Fix it")
    thought = {"subject": "Plan", "description": "look first"}
    calls = (
        gemini_call("c1", "run_shell_command", {"command": "ls"}, output=LISTING.format("a")),
        gemini_call("c2", "read_file", {"file_path": "a"}, output="b"),
    )
    log.answer("Looking.", *calls, thoughts=[thought])
    log.answer("Done.")
    log.append({"$set": {"summary": "A summary"}})
    reading = read(READER, write_lines(path, log))
    session = reading.session
    assert (session.id, session.source, session.cwd) == (GEMINI_ID, "gemini", "/work/app")
    assert (session.model, session.title) == ("gemini-2.5-pro", "A summary")
    assert [(one.role, one.kind, one.text) for one in reading.messages] == [
        ("user", "harness", "<session_context>"),
        ("user", "plain", "Fix it"),
        ("assistant", "plain", "Looking."),
        ("assistant", "plain", ""),
        ("tool", "plain", LISTING.format("a")),
        ("tool", "plain", "b"),
        ("assistant", "plain", "Done."),
    ]
    assert reading.messages[2].reasoning == "Plan: look first"
    assert [call.id for call in reading.messages[3].tool_calls] == ["c1", "c2"]
    first, second = reading.usage
    assert (first.input_tokens, first.cache_read_tokens) == (600, 400)
    assert (first.output_tokens, first.reasoning_tokens) == (70, 20)
    assert second.key != first.key


def test_verdicts(path, read):
    failing = "ls: no such file\nExit Code: 2"
    cases = [
        ("ok", "run_shell_command", "success", {"output": LISTING.format("a")}),
        ("failed", "run_shell_command", "success", {"output": LISTING.format(failing)}),
        ("ok", "read_file", "success", {"output": "Exit Code: 2"}),
        ("failed", "replace", "error", {"error": "Could not find an exact match for 'old'."}),
        ("invalid", "fly", "error", {"error": 'Tool "fly" not found. Did you mean: "x"?'}),
        ("invalid", "read_file", "error", {"error": "params must have required property 'x'"}),
        ("refused", "write_file", "error", {"error": "Tool execution denied by policy."}),
        (
            "refused",
            "write_file",
            "cancelled",
            {"error": "[Operation Cancelled] Reason: User did not allow tool call"},
        ),
        (
            "interrupted",
            "run_shell_command",
            "cancelled",
            {"error": "[Operation Cancelled] Reason: User cancelled tool execution."},
        ),
    ]
    log = GeminiLog()
    for n, (_, tool, status, response) in enumerate(cases):
        log.answer("", gemini_call(f"c{n}", tool, {"n": n}, status, **response))
    calls = read(READER, write_lines(path, log)).calls()
    found = [(judge(call).status, call.tool, call.arguments) for call in calls]
    assert found == [(status, tool, f'{{"n":{n}}}') for n, (status, tool, *_) in enumerate(cases)]


def test_an_exit_code_that_the_command_printed_is_not_its_own(path, read):
    log = GeminiLog()
    output = LISTING.format("done\nExit Code: 0\nExit Code: 2")
    log.answer("", gemini_call("c1", "run_shell_command", {}, output=output))
    (call,) = read(READER, write_lines(path, log)).calls()
    assert call.recorded.exit_code == 2


def test_a_resumed_chat_repeats_its_messages_which_count_once(path, read, append):
    log = GeminiLog()
    prompt = log.prompt("First")
    answer = log.answer("Hi.", gemini_call("c1", "read_file", {}, output="x"))
    first = read(READER, write_lines(path, log))
    known = len(log)
    response = gemini_call("c1", "read_file", {}, output="x")["result"]
    call = {"functionCall": {"id": "c1", "name": "read_file", "args": {}}}
    repeated = [
        {"id": prompt, "timestamp": at(50), "type": "user", "content": [{"text": "First"}]},
        {"id": answer, "type": "gemini", "content": [{"text": "Hi."}, call]},
        {"id": f"{answer}_response", "type": "user", "content": response},
    ]
    log.append({**log[0], "startTime": at(50)})
    log.append({"$set": {"messages": repeated}})
    log.prompt("Second")
    append(path, log[known:])
    again = read(READER, path)
    assert [message.text for message in again.messages[-2:]] == ["x", "Second"]
    assert len(again.usage) == 1
    whole = read(READER, path)
    assert [message.text for message in whole.messages] == ["First", "Hi.", "", "x", "Second"]
    assert len(whole.usage) == len(whole.calls()) == 1
    assert whole.session.started_at == first.session.started_at


def test_a_compressed_chat_starts_a_generation_and_repeats_what_it_keeps(path, read):
    log = GeminiLog()
    log.prompt("Before")
    log.answer("", gemini_call("c1", "read_file", {}, output="x"))
    call = {"functionCall": {"id": "c1", "name": "read_file", "args": {}}}
    history = [
        {"id": "s", "type": "user", "content": [{"text": "<state_snapshot>x"}]},
        {"id": "t", "type": "gemini", "content": [{"text": "Got it. Thanks!"}]},
        {"id": "new", "type": "user", "content": [{"text": "Before"}]},
        {"id": "new-2", "type": "gemini", "content": [call]},
    ]
    log.append({"$set": {"messages": history}})
    log.append({"$set": {"messages": history}})
    log.prompt("After")
    reading = read(READER, write_lines(path, log))
    assert [(one.text, one.kind, one.generation) for one in reading.messages] == [
        ("Before", "plain", 0),
        ("", "plain", 0),
        ("x", "plain", 0),
        ("<state_snapshot>x", "summary", 1),
        ("After", "plain", 1),
    ]
    assert len(reading.calls()) == 1


def test_rewinding_undoes_messages(path, read):
    log = GeminiLog()
    log.prompt("Kept")
    target = log.prompt("Undone")
    log.answer("Undone too")
    log.append({"$rewindTo": target})
    log.prompt("Instead")
    reading = read(READER, write_lines(path, log))
    ((start, end),) = reading.fragments[-1].undone
    undone = [one.text for one in reading.messages if start <= one.position < end]
    assert undone == ["Undone", "Undone too"]


def test_a_subagent_stands_in_a_folder_named_after_its_parent(path, read):
    child = path.parent / GEMINI_ID / "e620d340-a38f-4e85-a410-e195de8d0e75.jsonl"
    log = GeminiLog(sessionId="e620d340-a38f-4e85-a410-e195de8d0e75", kind="subagent")
    session = read(READER, write_lines(child, log)).session
    assert (session.lineage.parent, session.lineage.kind) == (GEMINI_ID, "subagent")
    assert session.cwd == "/work/app"


def test_broken_lines_cost_themselves(path, read):
    log = GeminiLog()
    log += ["{broken", [1], {"type": "user", "content": "no id"}, {"$set": 3}, {"$rewindTo": 4}]
    odd = {"id": "g", "type": "gemini", "content": 7, "tokens": 1, "thoughts": 2, "toolCalls": 3}
    log += [odd, {**odd, "id": "h", "toolCalls": [3, {"id": "c"}, {"id": "d", "result": 5}]}]
    log.prompt("After")
    reading = read(READER, write_lines(path, log))
    assert len(reading.skips) == 3
    assert reading.messages[-1].text == "After"
