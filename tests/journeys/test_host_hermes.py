"""The real Hermes Agent with Journeyman's plugin: the opening arrives at the model and stays the
same, risky calls wait for a person, and finished turns are stored.
"""

import json
import statistics
import time
from pathlib import Path
from typing import Any

import pytest
from tests.hermes_host import LEARNED, HermesHome, shell
from tests.hosts import TASK, count_in, serving

from journeyman.hosts.hermes import HermesPlugin
from journeyman.hosts.hermes_link import Link
from journeyman.records import Tokens
from journeyman.testing import ScriptedServer, calls, says
from journeyman.testing.model_server import ServedRequest

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

_FULL = Tokens(input_tokens=60_000, output_tokens=10)
"""A prompt so large that Hermes compresses the context after it."""
_MODES = {
    "chat_completions": ("messages", "user"),
    "codex_responses": ("input", "user"),
    "anthropic_messages": ("messages", "user"),
}


def is_warm(request: ServedRequest) -> bool:
    return count_in(request.body, LEARNED) > 0


def added(request: ServedRequest, examples: int) -> str:
    """What the opening added to a request: the end of the system text, and the examples."""
    body = request.body
    items = body.get("input") or body["messages"]
    system = body.get("instructions") or body.get("system")
    if not system:
        system, items = items[0]["content"], items[1:]
    text = system if isinstance(system, str) else json.dumps(system)
    assert "Journeyman" in text
    return text[text.index("Commands that work here") :] + json.dumps(items[:examples])


@pytest.mark.parametrize("mode", _MODES)
def test_a_session_starts_warm_and_stays_so(tmp_path: Path, mode: str) -> None:
    script = {
        TASK: [
            calls(shell("./check-index notes.txt")),
            calls(shell("echo one"), ("read_file", {"path": "notes.txt"})),
            says("It is complete."),
        ],
        "and now": [calls(shell("echo two")), says("That too.")],
    }
    with ScriptedServer(script) as model:
        home = HermesHome(tmp_path, model, mode=mode)
        with serving(home):
            assert home.ask(TASK) == "It is complete.\n"
            (session,) = home.sessions()
            home.stored(session)
            assert home.ask("and now", "--continue") == "That too.\n"
            stored = home.stored(session, lambda one: one["calls"] == 4)
            warm = home.command.json("sessions", "list", "--warm")
            with home.open() as journeyman:
                record = journeyman.host_sessions.find("hermes", session)

    turns = home.turns
    assert len(turns) == 5
    items = turns[0].body.get("input") or turns[0].body["messages"]
    examples = len(items) - 1 - (mode == "chat_completions")
    assert examples > 2
    assert len({added(turn, examples) for turn in turns}) == 1
    assert record is not None
    assert stored["session"]["opening"] == record.opening != ""
    assert [one["session"]["id"] for one in warm] == [session]
    assert home.failures == []

    (own,) = home.rows("SELECT * FROM sessions")
    assert own["tool_call_count"] == stored["calls"]
    for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"):
        assert (stored["tokens"][name] or 0) == own[name], name
    written = " ".join(str(tuple(row)) for row in home.rows("SELECT * FROM messages"))
    assert LEARNED not in written, "something of the opening is in Hermes' own files"


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "child sessions"])
def test_compressions_and_the_review_keep_the_opening(tmp_path: Path, in_place: bool) -> None:
    steps = [calls(shell(f"echo step {number}")) for number in range(8)]
    steps.append(calls(shell("echo step 8"), tokens=_FULL))
    script = {
        "summarization agent": [says("They walked on.")],
        "Review the conversation above": [says("Nothing to save.")],
        TASK: [*steps, says("It is complete.")],
        "and now": [calls(shell("echo two")), says("That too.")],
    }
    with ScriptedServer(script) as model:
        home = HermesHome(tmp_path, model, in_place=in_place)
        with serving(home):
            home.ask(TASK)
            home.ask("and now", "--continue")
            ids = home.sessions()
            stored = [home.stored(id_) for id_ in ids]
            reviews = [one for one in home.turns if count_in(one.body, "Review the conversation")]
            if reviews:
                newest = home.stored(
                    ids[-1], lambda one: _review_tokens(home, ids[-1]) == len(reviews) * 100
                )
                assert newest
    summaries = [one for one in model.requests if not one.body.get("tools")]
    assert summaries, "the script no longer makes Hermes compress its context"
    assert not any(map(is_warm, summaries))
    turns = home.turns
    examples = len(turns[0].body["messages"]) - 2
    assert len({added(turn, examples) for turn in turns}) == 1
    assert len(ids) == 1 if in_place else len(ids) > 1
    assert len({one["session"]["opening"] for one in stored}) == 1
    own = home.rows("SELECT sum(input_tokens), sum(output_tokens) FROM session_model_usage")
    tokens = home.command.json("usage")["total"]
    spent = 100 * len(reviews), 10 * len(reviews)
    assert (tokens["input_tokens"], tokens["output_tokens"]) == (
        own[0][0] + spent[0],
        own[0][1] + spent[1],
    )


def _review_tokens(home: HermesHome, session: str) -> int:
    shown = home.command.json("usage", "--by", "task")
    return sum(
        row["input_tokens"] or 0 for row in shown["rows"] if row["name"] == "background_review"
    )


def test_a_scheduled_job_a_subagent_and_a_bare_answer(tmp_path: Path) -> None:
    errand = {"goal": "a separate errand", "context": "none"}
    script = {
        "a separate errand": [calls(shell("echo sub")), says("Errand done.")],
        TASK: [calls(("delegate_task", errand)), calls(shell("sleep 4")), says("It is complete.")],
    }
    with ScriptedServer(script) as model:
        home = HermesHome(tmp_path, model)
        with serving(home):
            created = home.hermes("cron", "create", "every 1h", TASK, "--deliver", "local")
            job = created.split("Created job: ")[1].split()[0]
            home.hermes("cron", "run", job)
            cron = home.stored(home.sessions()[0])
            before = len(model.requests)
            assert home.hermes("-z", TASK) == "It is complete.\n"
            bare = home.stored(home.sessions()[-1])
    errands = [one for one in home.turns if not count_in(one.body, TASK)]
    others = [one for one in home.turns if count_in(one.body, TASK)]
    assert errands
    assert not any(map(is_warm, errands))
    assert all(map(is_warm, others))
    assert before < len(model.requests)
    assert cron["session"]["platform"] == "cron"
    assert cron["session"]["opening"] == bare["session"]["opening"] != "", "the preamble counted"


def test_latency_with_a_warm_resident_process(tmp_path: Path) -> None:
    tools = [
        {"type": "function", "function": {"name": name, "description": "x" * 500, "parameters": {}}}
        for name in ("terminal", "read_file", "patch", *(f"tool_{number}" for number in range(25)))
    ]
    with ScriptedServer({}) as model:
        home = HermesHome(tmp_path, model)
        with serving(home):
            plugin = HermesPlugin(Link(str(home.journeyman)))
            first = [_timed_request(plugin, tools, f"s{number}") for number in range(21)][1:]
            later = [_timed_request(plugin, tools, "s1") for _ in range(20)]
            gated = [_timed_call(plugin, f"c{number}") for number in range(20)]
    medians = [statistics.median(times) * 1_000 for times in (first, later, gated)]
    print("first request, later request, gated call: {:.1f} {:.2f} {:.1f} ms".format(*medians))
    assert medians[0] <= 150
    assert medians[1] <= 10
    assert medians[2] <= 60


def _timed_request(plugin: HermesPlugin, tools: list[Any], session: str) -> float:
    messages = [{"role": "system", "content": "x" * 20_000}, {"role": "user", "content": TASK}]
    request: dict[str, Any] = {"messages": messages, "tools": tools}
    began = time.perf_counter()
    answer = plugin.llm_request(
        request=request,
        session_id=session,
        turn_id=f"{session}:t:1",
        api_mode="chat_completions",
        platform="cli",
        model="m",
    )
    took = time.perf_counter() - began
    assert answer is not None
    return took


def _timed_call(plugin: HermesPlugin, call: str) -> float:
    given = {"tool_name": "terminal", "session_id": "s1", "tool_call_id": call}
    began = time.perf_counter()
    plugin.tool_request(args={"command": "ls -l"}, **given)
    assert plugin.pre_tool_call(args={"command": "ls -l"}, **given) is None
    return time.perf_counter() - began
