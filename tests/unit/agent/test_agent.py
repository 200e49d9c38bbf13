"""The agent on a real store, with a scripted model."""

import json
import shutil
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.agents import agent, noting, tool
from tests.tables import table

from journeyman.agent.agent import Agent
from journeyman.agent.dispatch import Question
from journeyman.agent.tools.tool import Invocation, Result, worked
from journeyman.agent.turn import Begun, Called, Compressed, Limits, Replied, Step, Stop, Stopped
from journeyman.gate.decision import Decision
from journeyman.models.model import Cancelled, Reply
from journeyman.outcomes.judge import judge
from journeyman.records import Pattern, Tokens, ToolCall
from journeyman.records.errors import ContextFull, ModelUnavailable, SessionTaken, WrongInput
from journeyman.records.pattern import PatternId
from journeyman.records.pattern import Step as PatternStep
from journeyman.store.store import Store
from journeyman.templates.shown.opening import Choice, Opening
from journeyman.templates.shown.wording import call_ids
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
    def test_a_task_is_done_and_kept(self, store: Store) -> None:
        heard: list[Any] = []
        one = agent(
            store, [calls(("note", {"text": "a"})), says("Noted.")], noting("note", heard=heard)
        )
        steps: list[Step] = []
        turn = one.run_conversation("Note a.", on_step=steps.append)
        assert (turn.stop, turn.completed, turn.final_response) == ("done", True, "Noted.")
        assert steps[-1] == Stopped(stop="done")
        assert (turn.api_calls, turn.calls, turn.tokens) == (2, 1, 220)
        assert heard == [{"text": "a"}]
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

    def test_each_step_is_in_the_store_before_the_next(self, store: Store) -> None:
        seen: list[list[tuple[str, str]]] = []

        def look(invocation: Invocation) -> Result:
            seen.append(stored(store, invocation.origin.session))
            return worked(looked=True)

        one = agent(store, [calls(("look", {})), says("Done.")], tool("look", look))

        def check(step: Step) -> None:
            if isinstance(step, Replied | Called):
                assert one.session is not None
                last = stored(store, one.session.id)[-1]
                text = step.reply.text if isinstance(step, Replied) else step.result.text
                assert last[1] == text

        one.run_conversation("Look.", on_step=check)
        assert seen[0][-1] == ("assistant", "")

    def test_requests_only_ever_grow(self, store: Store) -> None:
        one = agent(
            store,
            [
                calls(("note", {"text": "a"}), ("note", {"text": "b"})),
                says("Both."),
                says("Again."),
            ],
        )
        one.run_conversation("Note a and b.")
        one.run_conversation("Again.")
        requests = model_of(one).requests
        for before, after in pairwise(requests):
            assert after.messages[: len(before.messages)] == before.messages
            assert after.tools == before.tools

    def test_a_second_turn_goes_on_in_the_session(self, store: Store) -> None:
        one = agent(store, [says("One."), says("Two.")])
        first = one.run_conversation("First.")
        second = one.run_conversation("Second.")
        assert first.session == second.session
        assert [text for role, text in stored(store, first.session) if role == "user"] == [
            *("First.", "Second."),
        ]

    def test_its_own_history_handed_back_goes_on_too(self, store: Store) -> None:
        one = agent(store, [says("One."), says("Two.")])
        first = one.run_conversation("First.")
        second = one.run_conversation("Second.", conversation_history=tuple(first.messages))
        assert first.session == second.session

    def test_another_history_begins_a_session_that_has_it(self, store: Store) -> None:
        one = agent(store, [says("Yes.")])
        history = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hello."},
        ]
        turn = one.run_conversation("Are you there?", conversation_history=history)
        assert turn.messages[:3] == history
        assert model_of(one).requests[0].messages == turn.messages[:-1]

    @table("wrong", ["", "  \n", None], ids=["empty", "blank", "none"])
    def test_nothing_to_do_is_told(self, store: Store, wrong: Any) -> None:
        with pytest.raises(WrongInput, match="nothing to do"):
            agent(store, []).run_conversation(wrong)
        assert store.sessions.list() == []

    def test_a_history_that_is_none_is_told(self, store: Store) -> None:
        history: Any = [{"role": "nobody", "content": "x"}]
        with pytest.raises(WrongInput, match="Message 1"):
            agent(store, []).run_conversation("Go.", conversation_history=history)
        assert store.sessions.list() == []

    def test_what_no_database_holds_is_replaced_for_the_model_too(self, store: Store) -> None:
        one = agent(store, [says("half \ud83d and nul \x00")] * 2)
        turn = one.run_conversation("a \x00 b \udc00")
        one.run_conversation("again")
        assert stored(store, turn.session)[1:3] == [
            ("user", "a \ufffd b ?"),
            ("assistant", "half ? and nul \ufffd"),
        ]
        sent = [one["content"] for one in model_of(one).requests[1].messages[1:3]]
        assert sent == [text for _, text in stored(store, turn.session)[1:3]]


class TestCalls:
    def test_results_stand_in_the_order_of_their_calls(self, store: Store) -> None:
        second_seen = threading.Event()

        def slow(_: Invocation) -> Result:
            assert second_seen.wait(30)
            return worked(which="slow")

        def fast(_: Invocation) -> Result:
            return worked(which="fast")

        one = agent(
            store,
            [calls(("slow", {}), ("fast", {})), says("Done.")],
            tool("slow", slow, reads_only=True),
            tool("fast", fast, reads_only=True),
        )
        came: list[str] = []

        def see(step: Step) -> None:
            if isinstance(step, Called):
                came.append(step.call.name)
                second_seen.set()

        turn = one.run_conversation("Both.", on_step=see)
        assert came == ["fast", "slow"]
        names = [m["name"] for m in turn.messages if m["role"] == "tool"]
        assert names == ["slow", "fast"]
        names = [m.tool_name for m in store.sessions.messages(turn.session) if m.role == "tool"]
        assert names == ["slow", "fast"]

    def test_calls_that_change_things_run_one_after_the_other(self, store: Store) -> None:
        running: list[int] = []
        most: list[int] = []

        def change(_: Invocation) -> Result:
            running.append(1)
            most.append(len(running))
            running.pop()
            return worked()

        one = agent(store, [calls(*[("change", {})] * 4), says("Done.")], tool("change", change))
        one.run_conversation("Change.")
        assert most == [1, 1, 1, 1]

    @table(
        ("call", "expected"),
        [
            (("fly", {}), "invalid"),
            (ToolCall(id="c", name="note", arguments='{"text": '), "invalid"),
            (ToolCall(id="c", name="note", arguments="[1]"), "invalid"),
            (("note", {"text": 5}), "invalid"),
            (("note", {"tone": "x"}), "invalid"),
        ],
        ids=["unknown_tool", "broken_json", "no_object", "wrong_type", "unknown_parameter"],
    )
    def test_wrong_calls_are_answered(self, store: Store, call: Any, expected: str) -> None:
        heard: list[Any] = []
        one = agent(store, [calls(call), says("I see.")], noting(heard=heard))
        turn = one.run_conversation("Go.")
        assert turn.completed
        assert heard == []
        assert judge(store.sessions.calls(turn.session)[0]).status == expected

    def test_half_characters_in_a_call_are_no_obstacle(self, store: Store) -> None:
        odd = ToolCall(id="c\x00\ud83d", name="note", arguments='{"text": "\ud83d"}')
        one = agent(store, [calls(odd), says("Done.")])
        turn = one.run_conversation("Go.")
        assert turn.completed
        kept = [call.id for m in store.sessions.messages(turn.session) for call in m.tool_calls]
        sent = model_of(one).requests[1].messages
        assert [call["id"] for m in sent for call in m.get("tool_calls", ())] == kept
        assert sent[-1]["tool_call_id"] == kept[0]

    def test_an_id_like_those_of_openings_is_renamed(self, store: Store) -> None:
        own = call_ids("a digest", 1)[0]
        taken = ToolCall(id=own, name="note", arguments="{}")
        turn = agent(store, [calls(taken), says("Done.")]).run_conversation("Go.")
        assert [call.id for call in store.sessions.calls(turn.session)] == [f"x{own}"]

    def test_a_result_that_cannot_be_written_down_is_a_failed_call(self, store: Store) -> None:
        odd = tool("odd", lambda _: worked(text=object()))
        turn = agent(store, [calls(("odd", {})), says("Done.")], odd).run_conversation("Go.")
        assert judge(store.sessions.calls(turn.session)[0]).status == "failed"

    def test_a_tool_that_breaks_down_is_a_failed_call(
        self, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        def broken(_: Invocation) -> Result:
            raise RuntimeError("oops")

        one = agent(store, [calls(("broken", {})), says("Sorry.")], tool("broken", broken))
        turn = one.run_conversation("Go.")
        assert turn.completed
        assert judge(store.sessions.calls(turn.session)[0]).status == "failed"
        assert "broke down" in caplog.text


class TestGate:
    @table(
        ("answer", "said", "runs"),
        [
            ("allow", None, True),
            ("refuse", True, False),
            ("ask", True, True),
            ("ask", False, False),
            ("ask", None, False),
        ],
    )
    def test_a_call_runs_only_with_leave(
        self, store: Store, answer: Any, said: bool | None, runs: bool
    ) -> None:
        heard: list[Any] = []
        questions: list[Question] = []

        def ask(question: Question) -> bool | None:
            questions.append(question)
            return said

        one = agent(
            store,
            [calls(("note", {"text": "x"})), says("Done.")],
            noting(heard=heard),
            decide=lambda _tool, _arguments: Decision(answer=answer, rule="r", reason="Because."),
            ask=ask,
        )
        turn = one.run_conversation("Go.")
        assert bool(heard) == runs
        assert len(questions) == (answer == "ask")
        verdict = judge(store.sessions.calls(turn.session)[0]).status
        assert verdict == ("ok" if runs else "refused")

    def test_without_anybody_to_ask_it_is_a_no(self, store: Store) -> None:
        heard: list[Any] = []
        one = agent(
            store,
            [calls(("note", {})), says("Done.")],
            noting(heard=heard),
            decide=lambda _tool, _arguments: Decision(answer="ask", rule="r", reason="Risky."),
        )
        turn = one.run_conversation("Go.")
        assert heard == []
        assert "nobody is here" in turn.messages[3]["content"]


def endless() -> Any:
    count = iter(range(1000))
    return lambda _m, _t: calls(("note", {"text": str(next(count))}), first=next(count))


class TestLimits:
    @table(
        ("limits", "stop", "api_calls"),
        [
            (Limits(turns=3), "turns", 3),
            (Limits(tokens=250), "tokens", 2),
            (Limits(cost_usd=0.05), "cost", 5),
            (Limits(seconds=6.5), "time", None),
        ],
        ids=["turns", "tokens", "cost", "time"],
    )
    def test_a_limit_ends_the_turn_in_order(
        self, store: Store, limits: Limits, stop: Stop, api_calls: int | None
    ) -> None:
        ticks = iter(range(10_000))
        one = agent(
            store,
            (),
            model=ScriptedModel([endless()], repeats=True),
            limits=limits,
            prices=lambda _model, _tokens: 0.01,
            clock=lambda: float(next(ticks)),
        )
        turn = one.run_conversation("Go on for ever.")
        assert (turn.stop, turn.completed) == (stop, False)
        assert turn.note
        assert api_calls is None or turn.api_calls == api_calls
        overview = store.sessions.get(turn.session)
        assert overview.calls == overview.answered
        assert overview.session.end_reason not in ("", "agent_stop", "running")

    def test_going_round_in_circles_is_noticed(self, store: Store) -> None:
        same = ScriptedModel([calls(("note", {"text": "x"}))], repeats=True)
        turn = agent(store, (), model=same).run_conversation("Go.")
        assert (turn.stop, turn.api_calls) == ("repeating", 4)

    def test_a_call_with_a_new_result_each_time_is_no_circle(self, store: Store) -> None:
        count = iter(range(100))
        waiting = tool("poll", lambda _: worked(n=next(count)))
        lines = [*[calls(("poll", {}))] * 6, says("There.")]
        assert agent(store, lines, waiting).run_conversation("Wait.").completed

    @table(
        ("text", "reason", "stop"),
        [
            ("The answer is", "length", "cut"),
            ("The answer is", "content_filter", "cut"),
            ("", "stop", "empty"),
        ],
    )
    def test_a_reply_that_is_no_answer(
        self, store: Store, text: str, reason: str, stop: Stop
    ) -> None:
        turn = agent(store, [Reply(text=text, finish_reason=reason)]).run_conversation("Go.")
        assert (turn.stop, turn.completed, turn.final_response) == (stop, False, text)

    def test_unknown_is_not_zero(self, store: Store) -> None:
        turn = agent(store, [says("Yes.", Tokens())]).run_conversation("Go.")
        assert (turn.tokens, turn.cost_usd) == (None, None)

    def test_a_model_that_cannot_be_had(self, store: Store) -> None:
        one = agent(store, [calls(("note", {})), ModelUnavailable("No answer; try later.")])
        turn = one.run_conversation("Go.")
        assert (turn.stop, turn.note) == ("model_failed", "No answer; try later.")
        assert [role for role, _ in stored(store, turn.session)] == [
            *("system", "user", "assistant", "tool"),
        ]


class TestInterruption:
    def test_a_stop_between_steps_can_be_resumed(self, store: Store) -> None:
        stop = threading.Event()
        lines = [calls(("note", {"text": "a"})), says("Done.")]
        one = agent(store, lines)
        turn = one.run_conversation(
            "Go.",
            on_step=lambda step: stop.set() if isinstance(step, Called) else None,
            cancelled=stop.is_set,
        )
        assert turn.stop == "interrupted"
        assert store.sessions.get(turn.session).session.end_reason == "interrupted"
        again = agent(store, [says("Done now.")]).resume(turn.session)
        assert (again.completed, again.session) == (True, turn.session)
        assert store.sessions.get(turn.session).session.end_reason == "agent_stop"

    def test_ctrl_c_inside_a_tool_leaves_every_call_answered(self, store: Store) -> None:
        def stopped(_: Invocation) -> Result:
            raise KeyboardInterrupt

        asked = calls(("note", {}), ("stopped", {}), ("note", {}))
        one = agent(store, [asked, says("Done.")], noting(), tool("stopped", stopped))
        turn = one.run_conversation("Go.")
        assert turn.stop == "interrupted"
        verdicts = [judge(call).status for call in store.sessions.calls(turn.session)]
        assert verdicts == ["ok", "interrupted", "interrupted"]

    def test_a_call_without_a_result_is_never_made_again(self, store: Store) -> None:
        class Killed(BaseException):
            pass

        def killed(_: Invocation) -> Result:
            raise Killed

        heard: list[Any] = []
        asked = calls(("note", {"text": "1"}), ("killed", {}), ("note", {"text": "2"}))
        one = agent(store, [asked], noting(heard=heard), tool("killed", killed))
        with pytest.raises(Killed):
            one.run_conversation("Go.")
        session = store.sessions.list()[0].session
        assert session.end_reason == "running"
        later = agent(store, [says("Looked.")], noting(heard=heard), tool("killed", killed))
        turn = later.resume(session.id)
        assert turn.completed
        assert heard == [{"text": "1"}]
        verdicts = [judge(call).status for call in store.sessions.calls(session.id)]
        assert verdicts == ["ok", "interrupted", "interrupted"]
        assert "may or may not have run" in turn.messages[4]["content"]

    @table("when", [1, 2, 3])
    def test_an_error_from_outside_leaves_what_is_stored(self, store: Store, when: int) -> None:
        before = {one.session.id for one in store.sessions.list()}
        seen: list[Step] = []

        def see(step: Step) -> None:
            seen.append(step)
            if len(seen) > when:
                raise RuntimeError("not my day")

        one = agent(store, [calls(("note", {})), says("Done.")])
        with pytest.raises(RuntimeError):
            one.run_conversation("Go.", on_step=see)
        assert one.session is None
        session = next(one.session for one in store.sessions.list() if one.session.id not in before)
        later = agent(store, [says("Done now.")])
        turn = later.resume(session.id, "Go on.")
        assert turn.completed
        assert [one["role"] for one in model_of(later).requests[0].messages] == [
            role for role, _ in stored(store, session.id)[:-1]
        ]
        overview = store.sessions.get(session.id)
        assert overview.calls == overview.answered

    def test_two_agents_cannot_run_one_session(self, store: Store) -> None:
        ran: list[str] = []

        def meanwhile(invocation: Invocation) -> Result:
            other = agent(store, [says("I take over.")], tool("wait", meanwhile))
            assert other.resume(invocation.origin.session).completed
            ran.append("once")
            return worked()

        one = agent(store, [calls(("wait", {})), says("Done.")], tool("wait", meanwhile))
        with pytest.raises(SessionTaken, match="another program"):
            one.run_conversation("Go.")
        assert ran == ["once"]
        session = store.sessions.list()[0].session
        assert stored(store, session.id)[-1] == ("assistant", "I take over.")

    def test_a_session_that_is_deleted_stops_the_agent(self, store: Store) -> None:
        def delete(invocation: Invocation) -> Result:
            store.sessions.delete(invocation.origin.session)
            return worked()

        one = agent(store, [calls(("delete", {})), says("Done.")], tool("delete", delete))
        with pytest.raises(SessionTaken, match="deleted"):
            one.run_conversation("Go.")

    def test_a_session_resumes_only_in_its_folder(self, store: Store) -> None:
        turn = agent(store, [says("Done.")], workspace="/a").run_conversation("Go.")
        assert store.sessions.get(turn.session).session.project == "a"
        with pytest.raises(WrongInput, match="/a"):
            agent(store, [], workspace="/b").resume(turn.session, "Go on.")

    def test_a_turn_that_ended_without_a_word_can_be_resumed(self, store: Store) -> None:
        turn = agent(store, [says("")]).run_conversation("Go.")
        assert agent(store, [says("Done.")]).resume(turn.session).completed

    def test_a_cancelled_request_ends_the_turn(self, store: Store) -> None:
        one = agent(store, (), model=ScriptedModel([Cancelled()], repeats=True))
        assert one.run_conversation("Go.").stop == "interrupted"
        assert len(model_of(one).requests) == 1

    def test_a_summary_that_is_cancelled_ends_the_turn(self, store: Store) -> None:
        model = ScriptedModel([calls(("note", {})), ContextFull("full"), Cancelled()])
        turn = agent(store, (), model=model).run_conversation("Go.")
        assert (turn.stop, turn.session) == ("interrupted", turn.began_in)

    def test_resumed_requests_have_the_same_bytes(self, store: Store) -> None:
        one = agent(store, [calls(("note", {"text": "ä"}), text="I note."), says("Done.")])
        turn = one.run_conversation("Go.")
        later = agent(store, [says("More.")])
        later.resume(turn.session, "Go on.")
        before, after = model_of(one).requests[-1], model_of(later).requests[0]
        assert after.messages[: len(before.messages)] == before.messages
        assert json.dumps(after.tools) == json.dumps(before.tools)

    def test_a_finished_session_needs_something_to_do(self, store: Store) -> None:
        turn = agent(store, [says("Done.")]).run_conversation("Go.")
        with pytest.raises(WrongInput, match="nothing left to do"):
            agent(store, []).resume(turn.session)

    def test_a_session_of_another_recorder_cannot_be_resumed(self, store: Store) -> None:
        from journeyman.records import Fragment, Session, SessionId

        with store.writing() as writing:
            writing.add(Fragment(session=Session(id=SessionId("x"), source="hermes")))
            writing.finish()
        with pytest.raises(WrongInput, match="hermes"):
            agent(store, []).resume("x")


class TestWarmStart:
    def test_the_session_records_what_opened_it(self, store: Store) -> None:
        pattern = Pattern(
            id=PatternId("p1"),
            kind="first_try",
            intent="Note b.",
            steps=(PatternStep(tool="note", arguments='{"text":"b"}', result='{"noted":"b"}'),),
        )
        opening = Opening(
            task="Note a.", choices=(Choice(pattern=pattern, reason="similar"),), tokens=50
        )
        steps: list[Step] = []
        one = agent(store, [says("Noted.")], warm=lambda _task, _tools: opening)
        turn = one.run_conversation("Note a.", on_step=steps.append)
        assert steps[0] == Begun(session=turn.session, opening=opening)
        details = store.sessions.get(turn.session).session.details
        assert details["warm"] is True
        assert details["opening"] == {"id": opening.id, "template": "", "patterns": ["p1"]}
        sent = model_of(one).requests[0].messages
        assert sent[0]["content"].startswith("You are a test.\n\nJourneyman shows 1 example")
        assert [message["role"] for message in sent].count("system") == 1
        assert sent[-1] == {"role": "user", "content": "Note a."}
        assert any(message.get("tool_calls") for message in sent)
        assert details["lead"] == len(sent) - 1

    def test_a_cold_session_says_so(self, store: Store) -> None:
        turn = agent(store, [says("Yes.")]).run_conversation("Go.")
        assert store.sessions.get(turn.session).session.details["warm"] is False


LARGE = Tokens(input_tokens=900, output_tokens=10)


class TestCompression:
    def test_the_conversation_goes_on_in_a_child(self, store: Store) -> None:
        model = ScriptedModel(
            [
                calls(("note", {"text": "a"}), tokens=LARGE),
                says("I noted a; b is left."),
                calls(("note", {"text": "b"})),
                says("Done."),
            ],
            context_tokens=1000,
        )
        steps: list[Step] = []
        turn = agent(store, (), model=model).run_conversation("Note a and b.", on_step=steps.append)
        assert turn.completed
        compressed = next(step for step in steps if isinstance(step, Compressed))
        assert (compressed.parent, compressed.child) == (turn.began_in, turn.session)
        parent, child = store.sessions.get(turn.began_in), store.sessions.get(turn.session)
        assert parent.session.end_reason == "compression"
        assert child.session.lineage is not None
        assert (child.session.lineage.parent, child.session.lineage.kind) == (
            *(turn.began_in, "compression"),
        )
        messages = list(store.sessions.messages(turn.session))
        assert messages[0].text == "You are a test."
        assert messages[1].kind == "summary"
        for part in ("I noted a; b is left.", "note", "Note a and b."):
            assert part in messages[1].text
        assert (parent.calls, child.calls) == (1, 1)
        tasks = {one.task: one for one in store.sessions.usage(turn.began_in)}
        assert set(tasks) == {"", "compression"}

    def test_the_summary_is_asked_with_the_same_beginning(self, store: Store) -> None:
        model = ScriptedModel(
            [calls(("note", {}), tokens=LARGE), says("So far."), says("Done.")],
            context_tokens=1000,
        )
        agent(store, (), model=model).run_conversation("Go.")
        first, summary, last = model.requests
        assert summary.messages[: len(first.messages)] == first.messages
        assert summary.tools == first.tools
        assert last.messages[0] == first.messages[0]

    def test_without_a_summary_the_list_of_calls_is_enough(self, store: Store) -> None:
        model = ScriptedModel(
            [calls(("note", {"text": "a"}), tokens=LARGE), ModelUnavailable("x"), says("Done.")],
            context_tokens=1000,
        )
        turn = agent(store, (), model=model).run_conversation("Note a.")
        assert turn.completed
        assert "note" in turn.messages[1]["content"]

    def test_a_window_that_is_full_is_compressed_once(self, store: Store) -> None:
        full = ContextFull("The conversation does not fit the window.")
        model = ScriptedModel([calls(("note", {})), full, full, full])
        turn = agent(store, (), model=model).run_conversation("Go.")
        assert (turn.stop, turn.note) == ("context_full", str(full))
        assert turn.session != turn.began_in

    def test_resuming_the_parent_goes_on_in_the_last_child(self, store: Store) -> None:
        model = ScriptedModel(
            [calls(("note", {}), tokens=LARGE), says("Sum."), says("Done.")], context_tokens=1000
        )
        turn = agent(store, (), model=model).run_conversation("Go.")
        again = agent(store, [says("Yes.")]).resume(turn.began_in, "And now?")
        assert again.session == turn.session

    def test_a_second_compression_keeps_the_request(self, store: Store) -> None:
        model = ScriptedModel(
            [
                calls(("note", {"text": "a"}), tokens=LARGE),
                says("First summary."),
                calls(("note", {"text": "b"}), tokens=LARGE),
                says("Second summary."),
                says("Done."),
            ],
            context_tokens=1000,
        )
        turn = agent(store, (), model=model).run_conversation("Note a and b, please.")
        assert turn.completed
        told = turn.messages[1]["content"]
        assert "Note a and b, please." in told
        assert '{"text":"a"}' in told
        assert '{"text":"b"}' in told
        assert "Second summary." in told
        assert len(store.sessions.ancestors(turn.session)) == 2

    def test_what_was_asked_first_is_carried_along(self, store: Store) -> None:
        model = ScriptedModel(
            [
                says("Which one?"),
                calls(("note", {"text": "a"}), tokens=LARGE),
                says("Summary."),
                says("Done."),
            ],
            context_tokens=1000,
        )
        one = agent(store, (), model=model)
        one.run_conversation("Note the important one.")
        turn = one.run_conversation("The first.")
        assert "Note the important one." in turn.messages[1]["content"]
        assert "The first." in turn.messages[1]["content"]

    def test_a_request_alone_is_not_compressed(self, store: Store) -> None:
        model = ScriptedModel([says("Done.")], context_tokens=1000)
        turn = agent(store, (), model=model).run_conversation("long " * 2000)
        assert (turn.completed, turn.session) == (True, turn.began_in)
