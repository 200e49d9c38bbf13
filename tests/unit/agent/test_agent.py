"""The agent on a real store, with a scripted model."""

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.agents import agent as new_agent
from tests.agents import noting, tool
from tests.tables import table

from journeyman.agent.agent import Agent
from journeyman.agent.tools.tool import Invocation, Result, worked
from journeyman.experience.opening import Choice, Opening
from journeyman.gate.decision import ApprovalRequest, Decision
from journeyman.hosts.runner import (
    RunBegan,
    RunCall,
    RunLimits,
    RunOpening,
    RunStatus,
    RunStep,
    RunText,
)
from journeyman.learning.opening_text import call_ids
from journeyman.models.model import Cancelled, Reply
from journeyman.outcomes.judge import judge
from journeyman.records import Pattern, Tokens, ToolCall
from journeyman.records.errors import ModelUnavailable, WrongInput
from journeyman.records.pattern import PatternId
from journeyman.records.pattern import Step as PatternStep
from journeyman.store.store import Store
from journeyman.testing import ScriptedModel, calls, says


@pytest.fixture
def store(tables: Path, tmp_path: Path) -> Iterator[Store]:
    shutil.copyfile(tables, tmp_path / "journeyman.db")
    with Store(f"sqlite:///{tmp_path / 'journeyman.db'}") as store:
        yield store


def stored(store: Store, session: str) -> list[tuple[str, str]]:
    return [(one.role, one.text) for one in store.sessions.messages(session)]


def model_of(agent: Agent) -> ScriptedModel:
    assert isinstance(agent.model, ScriptedModel)
    return agent.model


class TestTurn:
    def test_task_is_completed_and_stored(self, store: Store) -> None:
        received: list[Any] = []
        agent = new_agent(
            store,
            [calls(("note", {"text": "a"})), says("Noted.")],
            noting("note", heard=received),
        )
        steps: list[RunStep] = []
        turn = agent.run_conversation("Note a.", on_step=steps.append)
        assert (turn.status, turn.is_done, turn.final_response) == ("done", True, "Noted.")
        call, text = steps[1:]
        assert isinstance(call, RunCall)
        assert (call.call.tool, call.call.result, call.denied) == ("note", '{"noted":"a"}', False)
        assert text == RunText(text="Noted.")
        assert (turn.turns, turn.calls, turn.tokens.total) == (2, 1, 220)
        assert received == [{"text": "a"}]
        assert stored(store, turn.session) == [
            ("system", "You are a test."),
            ("user", "Note a."),
            ("assistant", ""),
            ("tool", '{"noted":"a"}'),
            ("assistant", "Noted."),
        ]
        overview = store.sessions.get(turn.session)
        assert overview.session.source == "journeyman"
        assert (overview.session.end_reason, overview.calls, overview.answered) == (
            *("agent_stop", 1, 1),
        )
        assert overview.session.title == "Note a."

    def test_each_request_extends_the_previous_one(self, store: Store) -> None:
        agent = new_agent(
            store,
            [
                calls(("note", {"text": "a"}), ("note", {"text": "b"})),
                says("Both."),
                says("Again."),
            ],
        )
        agent.run_conversation("Note a and b.")
        agent.run_conversation("Again.")
        requests = model_of(agent).requests
        for before, after in pairwise(requests):
            assert after.messages[: len(before.messages)] == before.messages
            assert after.tools == before.tools

    def test_second_turn_continues_the_session(self, store: Store) -> None:
        agent = new_agent(store, [says("One."), says("Two.")])
        first = agent.run_conversation("First.")
        second = agent.run_conversation("Second.")
        assert first.session == second.session
        assert [text for role, text in stored(store, first.session) if role == "user"] == [
            *("First.", "Second."),
        ]

    def test_other_history_starts_a_new_session(self, store: Store) -> None:
        agent = new_agent(store, [says("Yes.")])
        history = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hello."},
        ]
        turn = agent.run_conversation("Are you there?", conversation_history=history)
        assert turn.messages[:3] == history
        assert model_of(agent).requests[0].messages == turn.messages[:-1]

    @table("wrong", ["", "  \n", None], ids=["empty", "blank", "none"])
    def test_empty_task_is_refused(self, store: Store, wrong: Any) -> None:
        with pytest.raises(WrongInput, match="nothing to do"):
            new_agent(store, []).run_conversation(wrong)
        assert store.sessions.list() == []

    def test_invalid_history_is_refused(self, store: Store) -> None:
        history: Any = [{"role": "nobody", "content": "x"}]
        with pytest.raises(WrongInput, match="Message 1"):
            new_agent(store, []).run_conversation("Go.", conversation_history=history)
        assert store.sessions.list() == []

    def test_unstorable_characters_are_replaced_in_store_and_requests(self, store: Store) -> None:
        agent = new_agent(store, [says("half \ud83d and nul \x00")] * 2)
        turn = agent.run_conversation("a \x00 b \udc00")
        agent.run_conversation("again")
        assert stored(store, turn.session)[1:3] == [
            ("user", "a \ufffd b ?"),
            ("assistant", "half ? and nul \ufffd"),
        ]
        sent = [one["content"] for one in model_of(agent).requests[1].messages[1:3]]
        assert sent == [text for _, text in stored(store, turn.session)[1:3]]


class TestCalls:
    @table(
        ("call", "expected"),
        [
            (("fly", {}), "invalid"),
            (ToolCall(id="c", name="note", arguments='{"text": '), "invalid"),
            (ToolCall(id="c", name="note", arguments="[1]"), "invalid"),
            (("note", {"text": 5}), "invalid"),
            (("note", {"tone": "x"}), "invalid"),
        ],
        ids=["unknown_tool", "broken_json", "not_an_object", "wrong_type", "unknown_parameter"],
    )
    def test_invalid_calls_get_an_error_result(
        self, store: Store, call: Any, expected: str
    ) -> None:
        received: list[Any] = []
        agent = new_agent(store, [calls(call), says("I see.")], noting(heard=received))
        turn = agent.run_conversation("Go.")
        assert turn.is_done
        assert received == []
        assert judge(store.sessions.calls(turn.session)[0]).status == expected

    def test_call_id_reserved_for_openings_is_renamed(self, store: Store) -> None:
        own = call_ids("a digest", 1)[0]
        taken = ToolCall(id=own, name="note", arguments="{}")
        turn = new_agent(store, [calls(taken), says("Done.")]).run_conversation("Go.")
        assert [call.id for call in store.sessions.calls(turn.session)] == [f"x{own}"]

    def test_crashing_tool_is_a_failed_call(
        self, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        def broken(_: Invocation) -> Result:
            raise RuntimeError("oops")

        agent = new_agent(store, [calls(("broken", {})), says("Sorry.")], tool("broken", broken))
        turn = agent.run_conversation("Go.")
        assert turn.is_done
        assert judge(store.sessions.calls(turn.session)[0]).status == "failed"
        assert "failed unexpectedly" in caplog.text


class TestGate:
    @table(
        ("answer", "approval", "runs"),
        [
            ("allow", None, True),
            ("refuse", True, False),
            ("ask", True, True),
            ("ask", False, False),
            ("ask", None, False),
        ],
    )
    def test_call_runs_only_if_allowed_or_approved(
        self, store: Store, answer: Any, approval: bool | None, runs: bool
    ) -> None:
        received: list[Any] = []
        questions: list[ApprovalRequest] = []

        def ask(question: ApprovalRequest) -> bool | None:
            questions.append(question)
            return approval

        agent = new_agent(
            store,
            [calls(("note", {"text": "x"})), says("Done.")],
            noting(heard=received),
            decide=lambda _tool, _arguments: Decision(answer=answer, rule="r", reason="Because."),
            ask=ask,
        )
        turn = agent.run_conversation("Go.")
        assert bool(received) == runs
        assert len(questions) == (answer == "ask")
        verdict = judge(store.sessions.calls(turn.session)[0]).status
        assert verdict == ("ok" if runs else "refused")


def endless_calls() -> Any:
    count = iter(range(1000))
    return lambda _m, _t: calls(("note", {"text": str(next(count))}), first=next(count))


class TestLimits:
    @table(
        ("limits", "stop", "api_calls"),
        [
            (RunLimits(turns=3), "turns", 3),
            (RunLimits(tokens=250), "tokens", 2),
            (RunLimits(cost_usd=0.05), "cost", 5),
            (RunLimits(seconds=6.5), "time", None),
        ],
        ids=["turns", "tokens", "cost", "time"],
    )
    def test_limit_ends_the_turn_cleanly(
        self, store: Store, limits: RunLimits, stop: RunStatus, api_calls: int | None
    ) -> None:
        ticks = iter(range(10_000))
        agent = new_agent(
            store,
            (),
            model=ScriptedModel([endless_calls()], repeats=True),
            limits=limits,
            prices=lambda _model, _tokens: 0.01,
            clock=lambda: float(next(ticks)),
        )
        turn = agent.run_conversation("Go on for ever.")
        assert (turn.status, turn.is_done) == (stop, False)
        assert turn.reason
        assert api_calls is None or turn.turns == api_calls
        overview = store.sessions.get(turn.session)
        assert overview.calls == overview.answered
        assert overview.session.end_reason not in ("", "agent_stop", "running")

    def test_repeated_call_stops_the_turn(self, store: Store) -> None:
        same = ScriptedModel([calls(("note", {"text": "x"}))], repeats=True)
        turn = new_agent(store, (), model=same).run_conversation("Go.")
        assert (turn.status, turn.turns) == ("repeating", 4)

    def test_repeated_call_with_new_results_continues(self, store: Store) -> None:
        count = iter(range(100))
        waiting = tool("poll", lambda _: worked(n=next(count)))
        lines = [*[calls(("poll", {}))] * 6, says("There.")]
        assert new_agent(store, lines, waiting).run_conversation("Wait.").is_done

    @table(
        ("text", "reason", "stop"),
        [
            ("The answer is", "length", "cut"),
            ("The answer is", "content_filter", "cut"),
            ("", "stop", "empty"),
        ],
    )
    def test_incomplete_or_empty_reply(
        self, store: Store, text: str, reason: str, stop: RunStatus
    ) -> None:
        turn = new_agent(store, [Reply(text=text, finish_reason=reason)]).run_conversation("Go.")
        assert (turn.status, turn.is_done, turn.final_response) == (stop, False, text)

    def test_turn_has_its_tokens_by_kind(self, store: Store) -> None:
        first = Tokens(input_tokens=10, output_tokens=2, cache_read_tokens=100)
        second = Tokens(
            input_tokens=5, output_tokens=3, cache_write_tokens=7, reasoning_tokens=1, cost_usd=0.5
        )
        lines = [
            msgspec.structs.replace(calls(("note", {"text": "x"})), tokens=first),
            says("Yes.", second),
        ]
        turn = new_agent(store, lines).run_conversation("Go.")
        assert turn.tokens == Tokens(
            input_tokens=15,
            output_tokens=5,
            cache_read_tokens=100,
            cache_write_tokens=7,
            reasoning_tokens=1,
            cost_usd=0.5,
        )

    def test_unavailable_model_stops_the_turn(self, store: Store) -> None:
        agent = new_agent(store, [calls(("note", {})), ModelUnavailable("No answer; try later.")])
        turn = agent.run_conversation("Go.")
        assert (turn.status, turn.reason) == ("model_failed", "No answer; try later.")
        assert [role for role, _ in stored(store, turn.session)] == [
            *("system", "user", "assistant", "tool"),
        ]


class TestInterruption:
    def test_ctrl_c_inside_a_tool_leaves_every_call_with_a_result(self, store: Store) -> None:
        def stopped(_: Invocation) -> Result:
            raise KeyboardInterrupt

        asked = calls(("note", {}), ("stopped", {}), ("note", {}))
        agent = new_agent(store, [asked, says("Done.")], noting(), tool("stopped", stopped))
        turn = agent.run_conversation("Go.")
        assert turn.status == "interrupted"
        verdicts = [judge(call).status for call in store.sessions.calls(turn.session)]
        assert verdicts == ["ok", "interrupted", "interrupted"]

    def test_deleting_the_session_stops_the_agent(self, store: Store) -> None:
        def delete(invocation: Invocation) -> Result:
            store.sessions.delete(invocation.origin.session)
            return worked()

        agent = new_agent(store, [calls(("delete", {})), says("Done.")], tool("delete", delete))
        with pytest.raises(WrongInput, match="deleted"):
            agent.run_conversation("Go.")

    def test_cancelled_request_ends_the_turn(self, store: Store) -> None:
        agent = new_agent(store, (), model=ScriptedModel([Cancelled()], repeats=True))
        assert agent.run_conversation("Go.").status == "interrupted"
        assert len(model_of(agent).requests) == 1


class TestWarmStart:
    def test_session_records_its_opening(self, store: Store) -> None:
        pattern = Pattern(
            id=PatternId("p1"),
            intent="Note b.",
            steps=(PatternStep(tool="note", arguments='{"text":"b"}', result='{"noted":"b"}'),),
        )
        opening = Opening(
            task="Note a.", choices=(Choice(pattern=pattern, reason="similar"),), tokens=50
        )
        steps: list[RunStep] = []
        agent = new_agent(store, [says("Noted.")], opening=lambda _task, _tools: opening)
        turn = agent.run_conversation("Note a.", on_step=steps.append)
        shown = RunOpening(
            id=opening.id, summary=opening.summary, examples=("Note b.\nwhy: similar",)
        )
        assert steps[0] == RunBegan(session=turn.session, model="scripted", opening=shown)
        details = store.sessions.get(turn.session).session.details
        assert details["warm"] is True
        assert details["opening"] == {"id": opening.id, "template": "", "patterns": ["p1"]}
        assert store.sessions.get(turn.session).session.opening == opening.id
        sent = model_of(agent).requests[0].messages
        assert sent[0]["content"].startswith("You are a test.\n\nJourneyman shows 1 example")
        assert [message["role"] for message in sent].count("system") == 1
        assert sent[-1] == {"role": "user", "content": "Note a."}
        assert any(message.get("tool_calls") for message in sent)
        assert details["lead"] == len(sent) - 1
