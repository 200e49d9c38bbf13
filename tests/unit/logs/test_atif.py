import json

import pytest
from tests.client_logs import at

from journeyman.logs.atif import AtifReader
from journeyman.logs.log_file import LogFile
from journeyman.outcomes.judge import judge
from journeyman.records import Message, ResultFlags, Session, SessionId, ToolCall, Usage
from journeyman.records.atif import atif_trajectory
from journeyman.records.fragment import ExportedSession

READER = AtifReader()
RUN = "0f6f21c4-9e34-4ad1-8d2b-6f1f1f0a7c11"


def trajectory(*steps, **fields):
    agent = {"name": "terminus-2", "version": "2.0.0", "model_name": "m1"}
    numbered = [{"step_id": n, **step} for n, step in enumerate(steps, 1)]
    head = {"schema_version": "ATIF-v1.8", "session_id": RUN, "agent": agent}
    return {**head, "steps": numbered, **fields}


def agent_step(text, *calls, results=(), **fields):
    requests = [{"tool_call_id": i, "function_name": n, "arguments": a} for i, n, a in calls]
    step = {"source": "agent", "message": text, "tool_calls": requests or None, **fields}
    return {**step, "observation": {"results": list(results)} if results else None}


class TestReading:
    def test_a_run_of_harbor(self, read, write):
        value = trajectory(
            {"source": "system", "message": "Be brief.", "timestamp": at(1)},
            {"source": "user", "message": [{"type": "text", "text": "Fix it"}]},
            agent_step(
                "Looking.",
                ("c1", "bash", {"command": "ls"}),
                ("c2", "read", {}),
                results=[
                    {"source_call_id": "c1", "content": "no", "extra": {"exit_code": 2}},
                    {"source_call_id": "c2", "content": "b", "extra": {"is_error": False}},
                ],
                reasoning_content="Hm.",
                metrics={"prompt_tokens": 1000, "cached_tokens": 400, "completion_tokens": 50},
                timestamp=at(9),
            ),
            final_metrics={"total_prompt_tokens": 1000, "total_completion_tokens": 50},
        )
        reading = read(READER, write("trajectory.json", value))
        session = reading.session
        assert (session.id, session.source, session.agent) == (RUN, "atif", "terminus-2")
        assert (session.model, session.ended_at - session.started_at) == ("m1", 8)
        assert [message.role for message in reading.messages] == [
            *("system", "user", "assistant", "tool", "tool")
        ]
        assert reading.messages[1].text == "Fix it"
        assert [judge(call).status for call in reading.calls()] == ["failed", "ok"]
        (usage,) = reading.usage
        assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (600, 400, 50)

    def test_only_totals_are_recorded(self, read, write):
        totals = {"total_prompt_tokens": 1000, "total_cached_tokens": 1, "total_cost_usd": 0.5}
        value = trajectory(agent_step("a"), agent_step("b"), final_metrics=totals)
        (usage,) = read(READER, write("a.json", value)).usage
        counted = (usage.input_tokens, usage.api_calls, usage.cost_usd, usage.model)
        assert counted == (999, 2, 0.5, "m1")

    def test_copied_context_is_marked_and_a_continuation_has_its_parent(self, read, write):
        copied = agent_step("Old", metrics={"prompt_tokens": 7}, is_copied_context=True)
        value = trajectory(copied, agent_step("New"), session_id=f"{RUN}-cont-2")
        reading = read(READER, write("trajectory.cont-2.json", value))
        assert [message.copied for message in reading.messages] == [True, False]
        assert reading.usage == []
        lineage = reading.session.lineage
        assert (lineage.parent, lineage.kind) == (f"{RUN}-cont-1", "compression")

    def test_embedded_subagents(self, read, write):
        child = trajectory(agent_step("Sub."), trajectory_id="child", session_id=None)
        value = trajectory(agent_step("Main."), subagent_trajectories=[child, 3])
        reading = read(READER, write("a.json", value))
        session = reading.sessions[f"{RUN}/child"]
        assert (session.lineage.parent, session.lineage.kind) == (RUN, "subagent")
        assert [skip.reason for skip in reading.skips] == ["a trajectory has no list of steps"]

    def test_embedded_subagents_without_an_id_are_all_kept(self, read, write):
        children = [trajectory(agent_step(text), session_id=None) for text in ("One.", "Two.")]
        value = trajectory(agent_step("Main."), subagent_trajectories=children)
        reading = read(READER, write("a.json", value))
        texts = {id_: messages[0].text for id_, messages in reading.by_session.items()}
        name = f"{RUN}/terminus-2"
        assert texts == {RUN: "Main.", name: "One.", f"{name}#2": "Two."}

    def test_an_observation_without_a_call(self, read, write):
        value = trajectory(
            agent_step("ls", results=[{"content": "$ ls\na"}]),
            agent_step("x", ("c1", "bash", {}), results=[{"content": "joined"}]),
        )
        reading = read(READER, write("a.json", value))
        assert [(m.role, m.kind) for m in reading.messages[:2]] == [
            ("assistant", "plain"),
            ("user", "harness"),
        ]
        assert reading.calls()[0].result == "joined"

    def test_one_trajectory_per_line(self, read, write, lines, append):
        path = write("runs.jsonl", lines(trajectory(agent_step("a")), "{broken", {"steps": 3}))
        assert READER.recognises(LogFile(path))
        first = read(READER, path)
        assert [skip.line for skip in first.skips] == [2, 3]
        append(path, [trajectory(agent_step("b"), session_id=RUN[::-1])])
        assert list(read(READER, path, first.state).sessions) == [RUN[::-1]]

    def test_segments_with_the_same_id_are_both_kept(self, read, write, lines, append):
        path = write("runs.jsonl", lines(trajectory(agent_step("a")), trajectory(agent_step("b"))))
        first = read(READER, path)
        assert list(first.sessions) == [RUN, f"{RUN}#2"]
        append(path, [trajectory(agent_step("c"))])
        assert list(read(READER, path, first.state).sessions) == [f"{RUN}#3"]

    def test_broken_steps_cost_themselves(self, read, write):
        value = trajectory(agent_step("a"), {"source": "x"}, {"source": ["y"]})
        value["steps"] += [
            3,
            {"source": "agent", "tool_calls": [4], "observation": 5, "metrics": 6},
        ]
        reading = read(READER, write("a.json", value))
        assert len(reading.skips) == 3
        assert len(reading.messages) == 2

    def test_other_documents_are_not_trajectories(self, write):
        for name, value in (
            ("a.json", {"schema_version": "1.0", "steps": []}),
            ("b.json", {"note": {"schema_version": "ATIF-v1.4"}}),
            ("c.json", [trajectory()]),
        ):
            assert not READER.recognises(LogFile(write(name, value))), name


def exported(*messages, usage=(), **facts):
    session = Session(id=SessionId(RUN), source="codex", model="m1", **facts)
    return ExportedSession(session=session, messages=list(messages), usage=list(usage))


def message(position, role, text="", **fields):
    key = fields.pop("key", f"k{position}")
    return Message(key=key, position=position, role=role, text=text, at=position, **fields)


class TestExport:
    def test_calls_results_flags_and_totals_survive_a_round_trip(self, read, write):
        calls = (
            ToolCall(id="c1", name="bash", arguments='{"command":"ls"}'),
            ToolCall(id="c2", name="edit", arguments="{broken"),
        )
        failed = ResultFlags(exit_code=2)
        original = exported(
            message(1, "user", "Fix it"),
            message(2, "assistant", "Looking.", tool_calls=calls, reasoning="Hm.", model="m1"),
            message(3, "tool", "no", tool_call_id="c1", recorded=failed),
            message(4, "tool", "bad", tool_call_id="c2", recorded=ResultFlags(status="denied")),
            message(5, "user", "So far", kind="summary", generation=1),
            message(6, "assistant", "Old", copied=True),
            usage=[
                Usage(key="k2", input_tokens=600, cache_read_tokens=400, output_tokens=50),
                Usage(key="other", output_tokens=5, cost_usd=0.25),
            ],
            title="A title",
            outcome=1.0,
        )
        value = json.loads(json.dumps(atif_trajectory(original)))
        assert value["final_metrics"] == {
            "total_prompt_tokens": 1000,
            "total_completion_tokens": 55,
            "total_cached_tokens": 400,
            "total_cost_usd": 0.25,
            "total_steps": 4,
        }
        path = write("trajectory.json", value)
        assert READER.recognises(LogFile(path))
        reading = read(READER, path)
        found = [(call.tool, call.arguments, call.recorded) for call in reading.calls()]
        assert found == [
            ("bash", '{"command":"ls"}', failed),
            ("edit", "{broken", ResultFlags(status="denied")),
        ]
        texts = [(m.text, m.kind, m.generation, m.copied) for m in reading.messages]
        assert texts[-2:] == [("So far", "summary", 1, False), ("Old", "plain", 0, True)]
        session = reading.session
        assert (session.agent, session.title, session.outcome) == ("codex", "A title", 1.0)
        assert session.id != RUN, "it must not replace the session that was exported"
        (usage,) = reading.usage
        assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (600, 400, 50)

    def test_verdicts_survive_a_round_trip(self, read, write):
        results = {
            "refused": ("Not allowed.", ResultFlags(is_error=True, refused_by="hook")),
            "unknown": ("Started.", ResultFlags(details={"background_task_id": "7"})),
            "ok": ("a", None),
        }
        calls = tuple(ToolCall(id=id_, name="bash") for id_ in results)
        answers = [
            message(n, "tool", text, tool_call_id=id_, recorded=recorded)
            for n, (id_, (text, recorded)) in enumerate(results.items(), 2)
        ]
        original = exported(message(1, "assistant", tool_calls=calls), *answers)
        value = json.loads(json.dumps(atif_trajectory(original)))
        found = read(READER, write("trajectory.json", value)).calls()
        assert [judge(call).status for call in found] == list(results)
        assert [call.recorded for call in found] == [flags for _, flags in results.values()]

    @pytest.mark.parametrize("outcome", [10**400, float("nan"), -1, True, "1"])
    def test_an_outcome_that_is_none(self, read, write, outcome):
        value = trajectory(agent_step("a"), extra={"journeyman": {"outcome": outcome}})
        reading = read(READER, write("trajectory.json", value))
        assert (reading.session.outcome, reading.skips) == (None, [])

    @pytest.mark.parametrize("odd", [{"status": 3}, {"details": {"a": 2**70}}])
    def test_flags_of_an_edited_export(self, read, write, odd):
        result = {"source_call_id": "c1", "content": "x", "extra": {"exit_code": 2, **odd}}
        step = agent_step("", ("c1", "bash", {}), results=[result])
        value = trajectory(step, extra={"journeyman": {"title": "mine"}})
        (call,) = read(READER, write("trajectory.json", value)).calls()
        assert call.recorded == ResultFlags(exit_code=2)

    def test_the_rules_of_the_format(self):
        """What Harbor's validator checks beyond types."""
        user_call = ToolCall(id="u1", name="bash")
        value = atif_trajectory(
            exported(
                message(1, "user", tool_calls=(user_call,)),
                message(2, "tool", "x", tool_call_id="u1"),
                message(3, "tool", "lost", tool_call_id="nowhere"),
                message(4, "assistant"),
            )
        )
        assert [step["step_id"] for step in value["steps"]] == [1, 2, 3]
        agent_only = {"model_name", "reasoning_content", "tool_calls", "metrics"}
        for step in value["steps"]:
            assert isinstance(step["message"], str)
            if step["source"] != "agent":
                assert agent_only.isdisjoint(step)
            ids = {call["tool_call_id"] for call in step.get("tool_calls", [])}
            for result in step.get("observation", {}).get("results", []):
                assert result.get("source_call_id") in {None, *ids}
        assert value["steps"][0]["extra"]["tool_calls"][0]["function_name"] == "bash"

    @pytest.mark.parametrize("seconds", [None, 1e300, -1.0])
    def test_a_session_without_messages_or_with_an_odd_time(self, seconds):
        assert len(atif_trajectory(exported())["steps"]) == 1
        odd = Message(key="k", position=1, role="user", text="x", at=seconds)
        (step,) = atif_trajectory(exported(odd))["steps"]
        assert ("timestamp" in step) == (seconds == -1.0)
