import json
import sqlite3

import pytest
from tests.opencode_log import SECRET, OpencodeLog, step, text, tool

from journeyman.logs.log_file import LogFile
from journeyman.logs.opencode import OpencodeReader
from journeyman.logs.sqlite_database import open_database
from journeyman.outcomes.judge import judge

READER = OpencodeReader()


@pytest.fixture
def opencode(tmp_path):
    log = OpencodeLog(tmp_path / "opencode.db")
    yield log
    log.connection.close()


class TestSessions:
    def test_facts(self, opencode, read):
        opencode.session()
        opencode.message("user", text("Fix the build"))
        opencode.message("assistant", text("Done."), step(), finish="stop")
        session = read(READER, opencode.path).session
        assert (session.source, session.title, session.cwd) == ("opencode", "A title", "/work/app")
        assert (session.model, session.agent, session.end_reason) == ("m1", "build", "stop")
        assert session.started_at == pytest.approx(1794953057.001)
        assert session.details == {"version": "1.18.33", "project_id": "global"}

    def test_a_subagent_has_its_parent(self, opencode, read):
        opencode.session("ses_1")
        opencode.session("ses_2", parent_id="ses_1")
        lineage = read(READER, opencode.path).sessions["ses_2"].lineage
        assert (lineage.parent, lineage.kind) == ("ses_1", "subagent")

    def test_a_fork_has_its_parent(self, opencode, read):
        opencode.session("ses_1")
        call = tool("c1", "bash", {"command": "ls"}, output="a", metadata={"exit": 0})
        times = [opencode.next_ms(), opencode.next_ms()]
        for session in ("ses_1", "ses_2"):
            if session == "ses_2":
                opencode.session("ses_2", title="A title (fork #1)")
            opencode.message("user", text("Look"), session=session, at=times[0])
            opencode.message("assistant", call, step(), session=session, at=times[1])
        opencode.message("user", text("Now differently"), session="ses_2")
        opencode.message("assistant", text("Yes."), step(), session="ses_2")
        reading = read(READER, opencode.path)
        lineage = reading.sessions["ses_2"].lineage
        assert (lineage.parent, lineage.kind) == ("ses_1", "branch")
        assert reading.sessions["ses_1"].lineage is None
        assert len(reading.usage) == 3, "the store knows which are copies"

    def test_reverted_messages_are_omitted_but_their_tokens_were_spent(self, opencode, read):
        opencode.session()
        opencode.message("user", text("Keep this"))
        reverted = opencode.message("user", text("Not this"))
        opencode.message("assistant", text("Nor this."), step())
        opencode.update("session", "ses_1", revert=json.dumps({"messageID": reverted}))
        reading = read(READER, opencode.path)
        assert [message.text for message in reading.messages] == ["Keep this"]
        assert len(reading.usage) == 1

    def test_a_compaction_starts_a_generation(self, opencode, read):
        opencode.session()
        opencode.message("user", text("Long work"))
        opencode.message("user", {"type": "compaction", "auto": True})
        opencode.message("assistant", text("## Summary"), step(), summary=True)
        opencode.message("user", text("Continue", synthetic=True))
        opencode.message("assistant", text("On it."))
        reading = read(READER, opencode.path)
        assert [(one.text, one.kind, one.generation) for one in reading.messages] == [
            ("Long work", "plain", 0),
            ("## Summary", "summary", 1),
            ("Continue", "harness", 1),
            ("On it.", "plain", 1),
        ]
        assert [usage.task for usage in reading.usage] == ["compression"]


class TestCalls:
    def test_verdicts(self, opencode, read):
        cases = [
            ("bash", {"output": "a", "metadata": {"exit": 0}}, "ok"),
            ("bash", {"output": "no such file", "metadata": {"exit": 2}}, "failed"),
            ("read", {"output": "<path>a</path> error: all failed"}, "ok"),
            (
                "edit",
                {"status": "error", "error": "Could not find oldString in the file."},
                "failed",
            ),
            (
                "bash",
                {"status": "error", "error": "The bash tool was called with invalid arguments: x"},
                "invalid",
            ),
            (
                "bash",
                {"status": "error", "error": "The user rejected permission to use this tool call."},
                "refused",
            ),
            (
                "bash",
                {"status": "error", "error": "The user has specified a rule which prevents you."},
                "refused",
            ),
            (
                "bash",
                {
                    "output": "(no output)\n\n<shell_metadata>\nUser aborted the command\n"
                    "</shell_metadata>",
                    "metadata": {"exit": None},
                },
                "interrupted",
            ),
            (
                "bash",
                {
                    "output": "(no output)\n\n<shell_metadata>\nshell tool terminated command "
                    "after exceeding timeout 500 ms.\n</shell_metadata>",
                    "metadata": {"exit": None},
                },
                "failed",
            ),
            ("bash", {"status": "running"}, "unknown"),
        ]
        opencode.session()
        parts = [tool(f"c{n}", name, {"x": n}, **state) for n, (name, state, _) in enumerate(cases)]
        opencode.message("assistant", *parts)
        calls = read(READER, opencode.path).calls()
        found = [(call.tool, call.arguments, judge(call).status) for call in calls]
        assert found == [
            (name, f'{{"x":{n}}}', status) for n, (name, _, status) in enumerate(cases)
        ]

    def test_a_tool_that_does_not_exist_has_the_name_that_the_model_used(self, opencode, read):
        opencode.session()
        problem = "Model tried to call unavailable tool 'fly'. Available tools: bash."
        output = f"The arguments provided to the tool are invalid: {problem}"
        arguments = {"tool": "fly", "error": problem}
        opencode.message("assistant", tool("c1", "invalid", arguments, output=output))
        (call,) = read(READER, opencode.path).calls()
        assert (call.tool, call.arguments, judge(call).status) == ("fly", "{}", "invalid")


class TestUsage:
    def test_tokens_by_kind_and_cost(self, opencode, read):
        opencode.session()
        opencode.message("assistant", text("Hi"), step(), step(cost=0, reasoning=0))
        first, second = read(READER, opencode.path).usage
        counted = (first.input_tokens, first.cache_read_tokens, first.output_tokens)
        assert counted == (600, 400, 50), "the output includes the reasoning"
        assert (first.reasoning_tokens, first.cost_usd, first.model) == (20, 0.00267, "m1")
        assert second.cost_usd is None, "opencode records 0 for an unknown price"


class TestIncrementally:
    def test_only_changed_sessions_are_read_again(self, opencode, read):
        for session in ("ses_1", "ses_2"):
            opencode.session(session)
            opencode.message("user", text("Hi"), session=session)
        answer = opencode.message("assistant", session="ses_2")
        running = tool("c1", "bash", {}, status="running")
        part = opencode.part(answer, json.dumps(running), "ses_2")
        first = read(READER, opencode.path)
        assert first.calls("ses_2")[0].result is None
        assert not read(READER, opencode.path, first.state).sessions
        done = tool("c1", "bash", {}, output="x", metadata={"exit": 0})
        opencode.update("part", part, data=json.dumps(done))
        again = read(READER, opencode.path, first.state)
        assert list(again.sessions) == ["ses_2"]
        assert again.calls()[0].result == "x"
        assert again.fragments[0].replaces


class TestSafety:
    def test_credentials_are_never_read(self, opencode, read):
        opencode.session()
        opencode.message("user", text("Hi"))
        assert SECRET not in repr(read(READER, opencode.path).events)
        required = {"session": {"id"}, "message": {"id"}, "part": {"id"}}
        with open_database(LogFile(opencode.path), required) as database:
            assert database.execute("SELECT count(*) FROM session").fetchone()[0] == 1
            for statement in (
                "SELECT * FROM credential",
                "SELECT access_token FROM account",
                "SELECT count(*) FROM credential",
                "SELECT (SELECT value FROM credential) FROM session",
                "ATTACH ':memory:' AS other",
                "DELETE FROM session",
            ):
                with pytest.raises(sqlite3.DatabaseError):
                    database.execute(statement)

    def test_broken_rows_cost_themselves(self, opencode, read):
        opencode.session()
        opencode.message("user", text("Before"))
        broken = opencode.message("user", text("x"))
        opencode.update("message", broken, data="{not json")
        odd = opencode.message("assistant")
        for data in ("[1]", "{cut", '{"type": "tool", "state": 3}', '{"type": "tool", "tool": 7}'):
            opencode.part(odd, data)
        opencode.part(odd, json.dumps(text("After")))
        reading = read(READER, opencode.path)
        assert [message.text for message in reading.messages] == ["Before", "After"]
        reasons = " | ".join(skip.reason for skip in reading.skips)
        assert f"message {broken} of ses_1: no known role" in reasons
        assert reasons.count("not a JSON object") == 2

    def test_nothing_is_written_beside_a_database_at_rest(self, opencode, read, tmp_path):
        opencode.session()
        opencode.connection.close()
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert list(before) == ["opencode.db"]
        read(READER, opencode.path)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
