import json

from tests.tables import table

from journeyman.logs.fields import path_id
from journeyman.logs.line_reader import FRAGMENT_MESSAGES
from journeyman.logs.log_file import LogFile
from journeyman.logs.tau import Tau2Reader, TauBenchReader
from journeyman.records import ResultFlags

TAU = TauBenchReader()
TAU2 = Tau2Reader()


def run(task=0, trial=0, **fields):
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    return {
        "task_id": task,
        "reward": 1.0,
        "info": {"task": {"instruction": "You want a refund.\nBe brief."}, "user_cost": 0.5},
        "traj": [
            {"role": "system", "content": "Policy"},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "name": "find", "content": "found"},
        ],
        "trial": trial,
        **fields,
    }


class TestTauBench:
    def test_runs(self, write, read):
        path = write("gpt-airline.json", [run(3, 1), run(4, 0, reward=0.0)])
        assert TAU.recognises(LogFile(path))
        assert not TAU2.recognises(LogFile(path))
        reading = read(TAU, path)
        first, second = reading.sessions.values()
        assert first.id == path_id(LogFile(path), "task3-trial1")
        assert first.title == "task 3, trial 1: You want a refund."
        assert (first.outcome, first.outcome_origin, second.outcome) == (1.0, "reward", 0.0)
        assert first.details == {"task_id": 3, "trial": 1, "user_cost": 0.5}
        (call,) = reading.calls(first.id)
        assert (call.tool, call.result) == ("find", "found")
        assert all(part.replaces for part in reading.fragments)

        # A repeated task is kept twice.
        reading = read(TAU, write("a.json", [run(), run()]))
        first, second = reading.sessions
        assert second == f"{first}#2"
        assert len(reading.skips) == 1

    def test_broken_and_truncated_files(self, write, read):
        # Broken runs and messages are reported.
        crashed = run(info={"error": "rate limit", "traceback": "…"}, traj=[])
        half = run(1, traj=[{"role": "user", "content": "Hi"}, {"role": "ghost"}, 7], info=None)
        reading = read(TAU, write("a.json", [5, crashed, half, run(2)]))
        assert len(reading.sessions) == 2
        assert len(reading.skips) == 4
        assert "rate limit" in reading.skips[1].reason

        # A truncated file.
        reading = read(TAU, write("a.json", json.dumps([run(1), run(2)])[:-30]))
        assert len(reading.sessions) == 1
        assert "cannot be parsed" in reading.skips[0].reason

    @table("reward", [None, "1", 3, True])
    def test_invalid_reward_gives_no_outcome(self, write, read, reward):
        session = read(TAU, write("a.json", [run(reward=reward)])).session
        assert (session.outcome, session.outcome_origin) == (None, "")


def simulation(**fields):
    spent = {"prompt_tokens": 10, "completion_tokens": 2}
    return {
        "id": "7ad146cf-324c-46e5-93c9-8fb281c7ab01",
        "task_id": "5",
        "start_time": "2025-08-01T10:00:00",
        "end_time": "2025-08-01T10:01:00",
        "termination_reason": "user_stop",
        "reward_info": {"reward": 0.0},
        "messages": [
            {"role": "assistant", "content": "Hi", "tool_calls": None, "cost": 0.0, "usage": None},
            {
                "role": "user",
                "content": None,
                "tool_calls": [
                    {"id": "u", "name": "toggle", "arguments": {"on": True}, "requestor": "user"}
                ],
                "cost": 0.25,
                "usage": spent,
            },
            {"role": "tool", "id": "u", "content": "on", "requestor": "user", "error": False},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"id": "a", "name": "find", "arguments": {"n": 1}, "requestor": "assistant"},
                    {"id": "b", "name": "find", "arguments": {"n": 2}, "requestor": "assistant"},
                ],
                "timestamp": "2025-08-01T10:00:30",
                "cost": 0.5,
                "usage": spent,
                "raw_data": {"finish_reason": "tool_calls"},
            },
            {
                "role": "tool",
                "tool_messages": [
                    {"role": "tool", "id": "a", "content": "one", "error": False},
                    {"role": "tool", "id": "b", "content": "Error: no", "error": True},
                ],
            },
        ],
        "trial": 2,
        "seed": 9,
        **fields,
    }


def results(*simulations):
    return {
        "timestamp": "2025-08-01T10:00:00",
        "info": {
            "agent_info": {"implementation": "llm_agent", "llm": "agent-model"},
            "user_info": {"llm": "user-model"},
            "environment_info": {"domain_name": "telecom"},
        },
        "tasks": [{"id": "5"}],
        "simulations": list(simulations),
    }


class TestTau2:
    def test_simulations(self, write, read):
        path = write("a.json", results(simulation()))
        assert TAU2.recognises(LogFile(path))
        assert not TAU.recognises(LogFile(path))
        reading = read(TAU2, path)
        session = reading.session
        assert session.id == "7ad146cf-324c-46e5-93c9-8fb281c7ab01"
        assert session.title == "telecom task 5, trial 2"
        assert (session.model, session.end_reason) == ("agent-model", "user_stop")
        assert (session.outcome, session.outcome_origin) == (0.0, "reward_info.reward")
        assert session.ended_at - session.started_at == 60
        assert session.details == {"task_id": "5", "trial": 2, "domain": "telecom", "seed": 9}
        toggle, one, two = reading.calls()
        assert (toggle.asked_by, toggle.result, toggle.arguments) == ("user", "on", '{"on":true}')
        assert (one.asked_by, one.result, one.model) == ("assistant", "one", "agent-model")
        assert (one.recorded, two.recorded) == (
            ResultFlags(is_error=False),
            ResultFlags(is_error=True),
        )
        assert reading.messages[3].finish_reason == "tool_calls"

        # Usage of the simulated user is a side task.
        user, agent = read(TAU2, write("a.json", results(simulation()))).usage
        assert (user.task, user.model, user.cost_usd) == ("user_simulator", "user-model", 0.25)
        assert (agent.task, agent.model, agent.cost_usd) == ("", "agent-model", 0.5)
        assert (agent.input_tokens, agent.output_tokens) == (10, 2)

        # A repeated id is kept twice.
        reading = read(TAU2, write("a.json", results(simulation(), simulation())))
        assert [name[-2:] for name in reading.sessions] == ["01", "#2"]

    def test_recognised_behind_a_long_task_list(self, write):
        document = results(simulation())
        document["tasks"] = [{"id": str(n), "text": "x" * 1000} for n in range(400)]
        assert TAU2.recognises(LogFile(write("a.json", document)))

    def test_broken_simulations_and_messages_are_reported(self, write, read):
        bad = simulation(
            id=None, reward_info=None, messages=[3, {"role": "tool", "tool_messages": [4]}]
        )
        reading = read(TAU2, write("a.json", results("x", {}, bad, simulation())))
        assert len(reading.skips) == 4
        assert len(reading.sessions) == 2
        assert len(reading.calls()) == 3

    def test_many_messages_are_split_into_fragments(self, write, read):
        long = [{"role": "user", "content": str(n)} for n in range(FRAGMENT_MESSAGES + 1)]
        reading = read(TAU2, write("a.json.gz", results(simulation(messages=long))))
        assert [len(part.messages) for part in reading.fragments] == [256, 1]
