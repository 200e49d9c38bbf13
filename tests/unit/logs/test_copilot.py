import pytest
from tests.client_logs import COPILOT_ID, CopilotLog, at, write_lines

from journeyman.logs.copilot import CopilotReader
from journeyman.outcomes.judge import judge

READER = CopilotReader()


@pytest.fixture
def log():
    log = CopilotLog()
    log.start()
    return log


@pytest.fixture
def path(tmp_path):
    return tmp_path / COPILOT_ID / "events.jsonl"


def test_a_session(log, path, read):
    log.event("system.message", {"role": "system", "content": "Be brief."})
    log.prompt("Fix it", transformedContent="<current_datetime>x</current_datetime>\n\nFix it")
    log.usage()
    log.answer("Looking.", ("c1", "bash", {"command": "ls"}), reasoningText="Hm.")
    log.result("c1", "a.txt", shellExecution={"exitCode": 0})
    log.event("session.shutdown", {"shutdownType": "routine"})
    reading = read(READER, write_lines(path, log))
    session = reading.session
    assert (session.id, session.source, session.cwd) == (COPILOT_ID, "copilot", "/work/app")
    assert (session.model, session.git_branch, session.end_reason) == ("m1", "main", "routine")
    assert [(one.role, one.kind, one.text) for one in reading.messages] == [
        ("system", "harness", "Be brief."),
        ("user", "plain", "Fix it"),
        ("assistant", "plain", "Looking."),
        ("tool", "plain", "a.txt"),
    ]
    assert reading.messages[2].reasoning == "Hm."
    (usage,) = reading.usage
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (600, 400, 50)


def test_verdicts(log, path, read):
    cases = [
        ("ok", {"content": "hi\n<shellId: 0 completed with exit code 0>", "exit": 0}),
        ("failed", {"content": "no\n<shellId: 1 completed with exit code 2>", "exit": 2}),
        ("ok", {"content": "the error is described here"}),
        ("failed", {"error": "No match found", "code": "failure"}),
        ("invalid", {"error": "Tool 'fly' does not exist.", "code": "failure"}),
        ("invalid", {"error": '"command": Required', "code": "failure"}),
        ("refused", {"error": "Permission denied because no one was there.", "code": "denied"}),
        ("refused", {"error": "Permission was denied due to these rules: x", "code": "denied"}),
        ("unknown", {}),
    ]
    for n, (_, outcome) in enumerate(cases):
        log.answer("", (f"c{n}", "bash", {"n": n}))
        if "error" in outcome:
            log.failure(f"c{n}", outcome["error"], outcome["code"])
        elif outcome:
            shell = {"shellExecution": {"exitCode": outcome["exit"]}} if "exit" in outcome else {}
            log.result(f"c{n}", outcome["content"], **shell)
    calls = read(READER, write_lines(path, log)).calls()
    found = [(judge(call).status, call.arguments) for call in calls]
    assert found == [(status, f'{{"n":{n}}}') for n, (status, _) in enumerate(cases)]


def test_a_subagent_is_a_session_of_its_own(log, path, read):
    log.prompt("Delegate")
    log.answer("", ("c1", "task", {"prompt": "sub"}))
    agent = "28a397ac-be7c-494b-978e-02ea9b9e4484"
    started = {"agentName": "general-purpose", "agentDescription": "do it", "model": "m2"}
    log.event("subagent.started", {"toolCallId": "c1", **started}, agent)
    log.prompt("sub", agent, source=f"agent-{COPILOT_ID}")
    log.usage(agent)
    log.answer("", ("c2", "bash", {"command": "ls"}), agent=agent)
    log.result("c2", "x", agent)
    log.result("c1", "done")
    reading = read(READER, write_lines(path, log))
    assert [len(messages) for messages in reading.by_session.values()] == [3, 3]
    id_ = f"agent-{agent}-{COPILOT_ID}"
    child = reading.sessions[id_]
    assert (child.lineage.parent, child.lineage.kind) == (COPILOT_ID, "subagent")
    assert (child.agent, child.title, child.model) == ("general-purpose", "do it", "m2")
    assert child.cwd == "/work/app"
    assert [call.tool for call in reading.calls(id_)] == ["bash"]
    assert [fragment.session.id for fragment in reading.fragments if fragment.usage] == [id_]


def test_a_compaction(log, path, read):
    log.prompt("Before")
    used = {"model": "m1", "inputTokens": 700, "outputTokens": 6}
    done = {"success": True, "summaryContent": "<overview>", "compactionTokensUsed": used}
    log.event("session.compaction_complete", done)
    log.event("session.compaction_complete", {"success": False})
    log.prompt("After")
    reading = read(READER, write_lines(path, log))
    assert [(one.text, one.kind, one.generation) for one in reading.messages] == [
        ("Before", "plain", 0),
        ("<overview>", "summary", 1),
        ("After", "plain", 1),
    ]
    assert [(usage.task, usage.input_tokens) for usage in reading.usage] == [("compression", 700)]


def test_broken_lines_cost_themselves(log, path, read):
    log += ["{broken", [1], {"type": "user.message", "data": 3}, {"type": ["x"], "data": {}}]
    log += [{"type": "tool.execution_complete", "data": {"success": True}}]
    log += [{"type": "assistant.message", "data": {"toolRequests": "x"}}]
    log.answer("", ("c1", "bash", None))
    log.append(
        {
            "type": "tool.execution_complete",
            "timestamp": at(1),
            "data": {"toolCallId": "c1", "success": False, "error": {"code": ["x"]}},
        }
    )
    reading = read(READER, write_lines(path, log))
    assert len(reading.skips) == 5
    assert [judge(call).status for call in reading.calls()] == ["failed"]
