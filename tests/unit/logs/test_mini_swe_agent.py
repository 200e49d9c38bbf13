import json

from tests.tables import table

from journeyman.logs.fields import path_id
from journeyman.logs.line_reader import FRAGMENT_MESSAGES
from journeyman.logs.log_file import LogFile
from journeyman.logs.mini_swe_agent import MiniSweAgentReader
from journeyman.records import ResultFlags

READER = MiniSweAgentReader()


def answer(command, fence="bash", **extra):
    return {
        "role": "assistant",
        "content": f"THOUGHT: now\n\n```{fence}\n{command}\n```",
        "extra": extra or {"response": {"model": "real-model", "created": 1_700_000_000}},
    }


def user(content, **extra):
    return {"role": "user", "content": content, **({"extra": extra} if extra else {})}


def trajectory(*messages, status="Submitted", **fields):
    return {
        "info": {
            "exit_status": status,
            "submission": "diff",
            "model_stats": {"instance_cost": 0.75, "api_calls": 2},
            "mini_version": "1.15.0",
            "config": {
                "model": {"model_name": "asked-model"},
                "environment": {"cwd": "/testbed"},
                "agent_type": "minisweagent.agents.DefaultAgent",
            },
        },
        "messages": [{"role": "system", "content": "Rules"}, user("Fix it"), *messages],
        "trajectory_format": "mini-swe-agent-1",
        "instance_id": "repo__1",
        **fields,
    }


class TestTextProtocol:
    def test_submitted_run(self, write, read):
        path = write(
            "repo__1.traj.json",
            trajectory(
                answer("ls -la"),
                user("<returncode>0</returncode>\n<output>\na.py\nb.py\n</output>"),
                answer("cat x", fence="mswea_bash_command"),
                user("<returncode>1</returncode>\n<output>\n</output>"),
                answer("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git diff"),
                user("diff --git a b\n"),
            ),
        )
        assert READER.recognises(LogFile(path))
        reading = read(READER, path)
        ls, cat, submit = reading.calls()
        assert (ls.tool, json.loads(ls.arguments)) == ("bash", {"command": "ls -la"})
        assert (ls.result, ls.recorded, ls.model) == (
            "a.py\nb.py",
            ResultFlags(exit_code=0),
            "real-model",
        )
        assert (cat.result, cat.recorded) == ("", ResultFlags(exit_code=1))
        assert (submit.result, submit.recorded) == ("diff --git a b\n", None)
        assert reading.messages[2].at == 1_700_000_000

    def test_session_facts_and_ids(self, write, read):
        path = write("repo__1.traj.json", trajectory())
        session = read(READER, path).session
        assert session.id == path_id(LogFile(path))
        assert (session.title, session.cwd, session.model) == ("repo__1", "/testbed", "asked-model")
        assert (session.end_reason, session.outcome, session.agent) == (
            "Submitted",
            None,
            "DefaultAgent",
        )
        assert session.details["instance_cost"] == 0.75

        # The same name in another folder is a different session.
        one, two = (write(f"{d}/repo__1.traj.json", trajectory()) for d in ("a", "b"))
        assert read(READER, one).session.id != read(READER, two).session.id
        other = write("other.traj.json", trajectory())
        assert read(READER, other).session.id == path_id(LogFile(other), "repo__1")

    def test_truncation_marks_of_long_output_are_kept(self, write, read):
        body = (
            "<warning>\nToo long.\n</warning><output_head>\na\n</output_head>\n"
            "<output_tail>\nb\n</output_tail>"
        )
        path = write(
            "a.traj.json",
            trajectory(answer("x"), user(f"<returncode>0</returncode>\n{body}"), status=""),
        )
        (call,) = read(READER, path).calls()
        assert (call.result, call.recorded) == (body, ResultFlags(exit_code=0))

    def test_refused_answers_and_multiple_blocks(self, write, read):
        # A refused answer is not a call.
        twice = answer("one\n```\n\n```bash\ntwo")
        path = write(
            "a.traj.json",
            trajectory(
                twice,
                user(
                    "Please always provide EXACTLY ONE action in triple backticks, found 2 actions."
                ),
                {"role": "assistant", "content": "no block"},
                user(
                    "Please always provide EXACTLY ONE action in triple backticks, found 0 actions."
                ),
                status="",
            ),
        )
        reading = read(READER, path)
        assert reading.calls() == []
        assert [message.kind for message in reading.messages[2:]] == [
            "plain",
            "harness",
            "plain",
            "harness",
        ]

        # Two blocks, one of them run.
        path = write(
            "a.traj.json",
            trajectory(
                answer("one\n```\n\n```bash\ntwo"),
                user("<returncode>0</returncode>\n<output>\nok</output>"),
                status="",
            ),
        )
        (call,) = read(READER, path).calls()
        assert (json.loads(call.arguments), call.result) == ({"command": "one"}, "ok")

        # An exceeded limit leaves the call without a result.
        path = write("a.traj.json", trajectory(answer("x"), user(""), status="LimitsExceeded"))
        reading = read(READER, path)
        (call,) = reading.calls()
        assert call.result is None
        assert reading.messages[-1].role == "assistant"

    @table(
        ("text", "status"),
        [
            ("The last command <command>x</command> timed out and has been killed.", "timed_out"),
            ("Command not executed. The user rejected your command", "not_executed"),
        ],
    )
    def test_results_without_a_return_code(self, write, read, text, status):
        (call,) = read(READER, write("a.traj.json", trajectory(answer("x"), user(text)))).calls()
        assert call.result == text
        more = trajectory(answer("x"), user(text), answer("y"), status="")
        call = read(READER, write("a.traj.json", more)).calls()[0]
        assert call.recorded == ResultFlags(status=status)

    def test_usage_and_reasoning(self, write, read):
        response = {
            "model": "m",
            "created": 5,
            "choices": [{"message": {"reasoning": "because"}}],
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "cost": 0.5,
                "prompt_tokens_details": {"cached_tokens": 70},
                "completion_tokens_details": {"reasoning_tokens": 8},
            },
        }
        reading = read(READER, write("a.traj.json", trajectory(answer("x", response=response))))
        (usage,) = reading.usage
        assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (30, 70, 20)
        assert (usage.reasoning_tokens, usage.cost_usd, usage.model) == (8, 0.5, "m")
        assert reading.messages[2].reasoning == "because"


class TestToolCalls:
    def test_calls_and_results(self, write, read):
        def asks(call_id, command):
            function = {"name": "bash", "arguments": json.dumps({"command": command})}
            return {
                "role": "assistant",
                "content": "Looking",
                "tool_calls": [{"id": call_id, "type": "function", "function": function}],
                "extra": {
                    "actions": [{"command": command, "tool_call_id": call_id}],
                    "timestamp": 9.5,
                },
            }

        def tool(call_id, content, **extra):
            return {"role": "tool", "tool_call_id": call_id, "content": content, "extra": extra}

        path = write(
            "a.traj.json",
            trajectory(
                asks("c1", "ls"),
                tool(
                    "c1",
                    "<returncode>0</returncode>\n<output>\na</output>",
                    returncode=0,
                    timestamp=7,
                ),
                asks("c2", "cat"),
                tool("c2", '{"returncode": 2, "output": "none"}'),
                asks("c3", "sleep"),
                tool(
                    "c3",
                    "<exception>too slow</exception>\n"
                    "<returncode>-1</returncode>\n<output>\n</output>",
                ),
                user("Tool call error:\n\nNo tool calls found", interrupt_type="FormatError"),
                asks("c4", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat patch"),
                {"role": "exit", "content": "the patch", "extra": {"exit_status": "Submitted"}},
                trajectory_format="mini-swe-agent-1.1",
            ),
        )
        reading = read(READER, path)
        assert reading.skips == []
        calls = reading.calls()
        assert [call.result for call in calls] == ["a", "none", "too slow\n", "the patch"]
        codes = [call.recorded.exit_code if call.recorded else None for call in calls]
        assert codes == [0, 2, -1, None]
        assert (calls[0].asked_at, calls[0].answered_at) == (9.5, 7)
        assert [m.kind for m in reading.messages].count("harness") == 1

    def test_recorded_actions_take_precedence_over_blocks(self, write, read):
        asked = answer("in the text", actions=[{"command": "as taken"}])
        seen = user("anything", returncode=3)
        (call,) = read(READER, write("a.traj.json", trajectory(asked, seen, status=""))).calls()
        assert json.loads(call.arguments) == {"command": "as taken"}
        assert (call.result, call.recorded) == ("anything", ResultFlags(exit_code=3))


def test_broken_messages_are_reported_and_the_rest_kept(write, read):
    broken = [
        5,
        {"role": "ghost"},
        {"role": "user", "content": 3},
        {"output": [], "object": "response"},
    ]
    path = write(
        "a.traj.json", trajectory(*broken, answer("x"), user("<returncode>0</returncode>\n"))
    )
    reading = read(READER, path)
    assert len(reading.skips) == 4
    assert reading.calls()[0].result == ""


@table("info", [None, 5, {"exit_status": 3, "model_stats": [], "config": {"model": 1}}])
def test_malformed_facts_are_unknown(write, read, info):
    session = read(READER, write("a.traj.json", trajectory(info=info, instance_id=7))).session
    assert (session.model, session.end_reason, session.title) == ("", "", "")


def test_long_compressed_run_is_split_into_fragments(write, read):
    turns = [
        answer("x"),
        user("<returncode>0</returncode>\n<output>\n</output>"),
    ] * FRAGMENT_MESSAGES
    path = write("a.traj.json.gz", trajectory(*turns))
    assert READER.recognises(LogFile(path))
    reading = read(READER, path)
    assert len(reading.fragments) == 3
    assert sum(call.result is not None for call in reading.calls()) == FRAGMENT_MESSAGES


@table("content", [{"messages": [{"role": "user", "content": "x"}]}, {"info": {}}, [], ""])
def test_other_files_are_not_recognised(write, content):
    assert not READER.recognises(LogFile(write("a.json", content)))
