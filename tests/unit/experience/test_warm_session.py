"""The tool `warm_session`: each action, and errors for invalid calls."""

import itertools
import json
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from tests.conversations import stock_keeping
from tests.tables import table
from tests.validators import openai_faults

from journeyman import Journeyman
from journeyman.experience.warm_session import ACTIONS, SCHEMA, warm_session
from journeyman.models.embedder import Embedder
from journeyman.records import Fragment
from journeyman.testing import Corpus


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journeyman]:
    """Two good sessions and a bad one, shared. Tests that write use `own` instead."""
    with open_journeyman(tmp_path_factory.mktemp("shared")) as journeyman:
        yield journeyman


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Journeyman]:
    with open_journeyman(tmp_path) as journeyman:
        yield journeyman


def open_journeyman(folder: Path) -> Journeyman:
    times = iter(range(1, 1_000))
    journeyman = Journeyman(
        home=folder / "home", environ={"HOME": str(folder)}, clock=lambda: float(next(times))
    )
    for day in (1, 2):
        journeyman.record(stock_keeping(day), source="shed", session_id=f"good-{day}", outcome=1.0)
    journeyman.record(stock_keeping(3, failures=5), source="barn", session_id="bad", outcome=0.0)
    return journeyman


def run_action(journeyman: Journeyman, action: str, **arguments: Any) -> dict[str, Any]:
    """Call an action that must succeed and return its answer."""
    answer: dict[str, Any] = json.loads(warm_session(journeyman, {"action": action, **arguments}))
    assert answer.pop("success") is True, answer
    return answer


def action_error(journeyman: Journeyman, arguments: Any) -> str:
    """Call an action that must fail and return its error."""
    answer = json.loads(warm_session(journeyman, arguments))
    assert answer.keys() == {"success", "error"}
    assert answer["success"] is False
    error: str = answer["error"]
    return error


class TestSchema:
    def test_schema_describes_every_action(self) -> None:
        # The schema is a function definition.
        assert SCHEMA.keys() == {"name", "description", "parameters"}
        Draft202012Validator.check_schema(SCHEMA["parameters"])

        # It lists the actions and all of their parameters.
        properties = SCHEMA["parameters"]["properties"]
        assert properties["action"]["enum"] == [*ACTIONS]
        taken = [
            one for action in ACTIONS.values() for one in signature(action).parameters.values()
        ]
        assert {one.name for one in taken} - {"journeyman"} == properties.keys() - {"action"}
        for one in taken:
            assert properties.get(one.name, {}).get("default", one.default) == one.default

        # The description explains every action.
        for name, action in ACTIONS.items():
            assert f"- {name}: {(action.__doc__ or '')[:40]}" in SCHEMA["description"]


class TestBuild:
    def test_build_returns_a_summary_of_the_template(self, own: Journeyman) -> None:
        answer = run_action(own, "build", name="stock", description="Keeping lists", tags=["shed"])
        template = own.templates.get("stock")
        assert (template.description, template.tags) == ("Keeping lists", ("shed",))
        change = answer.pop("late_minus_early")
        assert change.keys() == {"estimate", "low", "high", "calls", "method"}
        assert answer.pop("reading").startswith("late calls ")
        assert answer == {
            "name": "stock",
            "version": 1,
            "task_type": template.task_type,
            "tags": ["shed"],
            "description": "Keeping lists",
            "scanned": 3,
            "qualified": 2,
            "created_at": "1970-01-01T00:00:04Z",
            "used": 0,
            "last_used_at": None,
            "pattern_count": len(template.patterns),
        }
        assert template.patterns

    def test_fewer_errors_in_late_calls_are_negative_everywhere(self, own: Journeyman) -> None:
        for day in range(4, 16):
            own.record(
                stock_keeping(day, failures=1 + day % 3), session_id=f"late-{day}", outcome=1.0
            )
        answer = run_action(own, "build", name="stock")
        template = own.templates.get("stock")
        exported = json.loads(own.templates.export("stock"))
        stored = msgspec.to_builtins(template)
        for change in (answer, stored, exported):
            interval = change["late_minus_early"]
            assert interval["low"] <= interval["estimate"] <= interval["high"] < 0
        assert "points fewer errors than early ones" in answer["reading"]

    def test_build_respects_limits_and_filters(self, own: Journeyman) -> None:
        assert run_action(own, "build", name="stock", max_sessions=1)["qualified"] == 1
        assert run_action(own, "build", name="stock", source_filter="shed")["scanned"] == 2
        assert "37 messages" in action_error(
            own, {"action": "build", "name": "x", "min_messages": 37}
        )

    def test_building_again_creates_a_new_version(self, own: Journeyman) -> None:
        assert [run_action(own, "build", name="stock")["version"] for _ in range(2)] == [1, 2]

    def test_unused_arguments_are_reported(self, own: Journeyman) -> None:
        answer = run_action(own, "build", name="stock", session_id="good-1", compare_with="bad")
        assert answer["ignored"] == ["session_id", "compare_with"]


class TestTemplates:
    def test_list_accepts_tags_as_list_or_text(self, own: Journeyman) -> None:
        run_action(own, "build", name="b", tags=["shed", "goods"])
        run_action(own, "build", name="a", tags="shed")

        def names(**arguments: Any) -> list[str]:
            return [
                template["name"] for template in run_action(own, "list", **arguments)["templates"]
            ]

        assert names() == ["a", "b"]
        assert names(tags="shed, goods") == ["a", "b"]
        assert names(tags="shed, goods", all_tags=True) == names(tags=["goods"]) == ["b"]
        assert names(tags=["shed", "goods"], all_tags="true") == ["b"]
        assert names(tags='["shed", "goods"]', all_tags=True) == ["b"]
        assert names(tags=["other"]) == []

    def test_list_summarises_a_template(self, own: Journeyman) -> None:
        built = run_action(own, "build", name="stock", description="x" * 300)
        answer = run_action(own, "list")
        assert answer["count"] == 1
        (listed,) = answer["templates"]
        reading = {"late_minus_early", "reading"}
        assert listed == {name: built[name] for name in built.keys() - reading}
        assert listed["description"] == "x" * 199 + "…"

    def test_load_returns_messages_and_counts_the_use(self, own: Journeyman) -> None:
        run_action(own, "build", name="stock")
        loaded = run_action(own, "load", name="stock")
        assert loaded["messages"] == own.opening(template="stock").messages()
        assert loaded["messages"][0] == {"role": "system", "content": loaded["system"]}
        assert openai_faults(loaded["messages"]) == []
        assert loaded["message_count"] == len(loaded["messages"])
        assert loaded["pattern_count"] == len(loaded["reasons"]) > 0
        assert loaded["note"] == "From the template stock@1."
        assert (loaded["template"], loaded["tokens"] > 0) == ("stock@1", True)
        assert run_action(own, "list")["templates"][0]["used"] == 2

    def test_delete_removes_all_versions_or_one(self, own: Journeyman) -> None:
        for _ in range(3):
            run_action(own, "build", name="stock")
        assert run_action(own, "delete", name="stock@2") == {"template": "stock@2", "deleted": 1}
        assert run_action(own, "delete", name="stock") == {"template": "stock", "deleted": 2}
        assert "no template 'stock'" in action_error(own, {"action": "delete", "name": "stock"})


class TestReliability:
    def test_profile_of_everything_a_source_or_a_session(self, shared: Journeyman) -> None:
        assert run_action(shared, "profile")["sessions"] == 3
        assert run_action(shared, "profile", source_filter="shed")["rate"]["errors"] == 0
        one = run_action(shared, "profile", session_id="bad")
        assert (one["sessions"], one["calls"]) == (1, 14)
        assert (one["rate"]["errors"], one["rate"]["total"]) == (5, 14)
        assert one["rate"]["low"] < one["rate"]["estimate"] == round(5 / 14, 4)
        assert one["rate"]["method"]
        assert [tool["name"] for tool in one["tools"]] == ["look_up", "note_down"]
        assert [band["name"] for band in one["lengths"]] == ["mid"]
        assert one["learning"]["reading"].startswith("Not enough data")
        assert one["dominant_tool_type"] == one["task_type"]
        assert {"calls_to_first_success", "seconds_to_first_success"} <= one["warm_up"].keys()
        assert {"early", "late", "late_minus_early", "reading"} <= one["learning"].keys()

    def test_profile_of_messages_that_are_not_stored(self, shared: Journeyman) -> None:
        messages = stock_keeping(9, failures=2)
        profile = shared.profile(messages=messages)
        assert (profile.calls, profile.rate.errors) == (14, 2)
        patterns = shared.extract_patterns(messages, outcome=1.0)
        assert {tool for one in patterns for tool in one.tools} == {"look_up", "note_down"}
        assert shared.extract_patterns(messages, outcome=0.0) == ()
        assert len(shared.sessions.list()) == 3

    def test_comparisons(self, shared: Journeyman) -> None:
        # Compare.
        found = shared.compare("good-1", "bad")
        answer = run_action(shared, "compare", session_id="good-1", compare_with="bad")
        assert (answer["verdict"], answer["reading"]) == (found.verdict, found.reading)
        assert answer["warm_minus_cold"]["estimate"] == round(-5 / 14, 4)
        assert answer["warm_minus_cold"]["low"] < answer["warm_minus_cold"]["high"]
        assert answer["cold"]["rate"]["errors"] == 5
        assert (answer["improvement"], answer["warm_better"]) == (round(5 / 14, 4), True)

        # Checking a session that was never compressed.
        answer = run_action(shared, "compress-check", session_id="good-1")
        assert (answer["verdict"], answer["compressions"]) == ("never compressed", 0)
        assert answer["proficiency_preserved"] is None

        # A platform is a source, as in Hermes.
        with_platform = msgspec.structs.replace(
            shared.sessions.get("good-1").session, platform="telegram"
        )
        with shared._store.writing() as writing:
            writing.add(Fragment(session=with_platform))
            writing.finish()
        for filters in ({"source_filter": "telegram"}, {"platform": "telegram"}):
            assert run_action(shared, "profile", **filters)["sessions"] == 1

        # A filter that matches nothing is explained.
        answer = json.loads(warm_session(shared, {"action": "profile", "source_filter": "nobody"}))
        assert answer["success"] is False
        assert "shed, barn, telegram" in answer["error"]

    def test_profile_of_many_tools_stays_short(self, tmp_path: Path) -> None:
        messages = [{"role": "user", "content": "Go"}]
        for number in range(60):
            tool = f"mcp__{number}__" + "long_name_" * 12
            call = {"id": f"c{number}", "function": {"name": tool, "arguments": "{}"}}
            messages += [
                {"role": "assistant", "content": None, "tool_calls": [call]},  # type: ignore[dict-item]
                {"role": "tool", "tool_call_id": f"c{number}", "content": "done"},
            ]
        with Journeyman(home=tmp_path, environ={"HOME": str(tmp_path)}) as journeyman:
            journeyman.record(messages)
            text = warm_session(journeyman, {"action": "profile"})
        answer = json.loads(text)
        assert (len(answer["tools"]), answer["more_tools"]) == (15, 45)
        assert Embedder().count_tokens(text) < 3_000

    def test_compress_check(self, corpus: Corpus, tmp_path: Path) -> None:
        with Journeyman(home=tmp_path, environ={"HOME": str(tmp_path)}) as journeyman:
            journeyman.import_logs([corpus.folder])
            found = [one for one in journeyman.sessions.list() if one.generations > 1]
            assert found
            for overview in found:
                session = overview.session.id
                report = journeyman.compression(session)
                answer = run_action(journeyman, "compress-check", session_id=session)
                assert answer["verdict"] == report.state
                assert answer["reading"] == report.reading
                assert answer["compressions"] == len(report.steps)
                steps = [(step["verdict"], step["reading"]) for step in answer["steps"]]
                assert steps == [(step.state, step.reading) for step in report.steps]
                ratios = [(one.before.estimate, one.after.estimate) for one in report.steps]
                if None not in itertools.chain(*ratios):
                    preserved = all(now <= 1.2 * was for was, now in ratios)
                    assert answer["proficiency_preserved"] == preserved


INVALID = {
    "no action": ({}, "needs action. action: What to do: build, list, load"),
    "unknown action": ({"action": "warm"}, "action: 'warm' is not one of ['build', 'list'"),
    "unknown parameter": ({"action": "list", "nmae": "x"}, "'nmae' was unexpected"),
    "build without a name": ({"action": "build"}, "build needs name"),
    "load with a blank name": ({"action": "load", "name": " "}, "load needs name"),
    "delete with null": ({"action": "delete", "name": None}, "delete needs name"),
    "compare with nothing": ({"action": "compare", "session_id": "bad"}, "needs compare_with"),
    "compress-check without a session": ({"action": "compress-check"}, "needs session_id"),
    "a name of another type": (
        {"action": "load", "name": 5},
        "name: 5 is not of type 'string'. warm",
    ),
    "lone surrogate in a name": ({"action": "load", "name": "\ud83d"}, "cannot be called '?'"),
    "a bad name": ({"action": "build", "name": "../x"}, "cannot be called"),
    "unknown template": ({"action": "load", "name": "nothing"}, "no template 'nothing'"),
    "unknown version": ({"action": "delete", "name": "nothing@3"}, "no template 'nothing@3'"),
    "unknown session": ({"action": "profile", "session_id": "nobody"}, "no session 'nobody'"),
    "ambiguous session": ({"action": "profile", "session_id": "good"}, "starts with 'good'"),
    "session and source": (
        {"action": "profile", "session_id": "bad", "source_filter": "barn"},
        "Use one of the two",
    ),
    "text instead of a number": (
        {"action": "build", "name": "x", "min_messages": "many"},
        "min_messages: 'many' is not of type 'integer'. warm_session: Learn only",
    ),
    "a truth value": ({"action": "build", "name": "x", "max_sessions": True}, "True is not of"),
    "a fraction": ({"action": "build", "name": "x", "max_sessions": 1.5}, "1.5 is not of type"),
    "below the minimum": ({"action": "build", "name": "x", "max_sessions": 0}, "minimum of 1"),
    "beyond the range of the database": (
        {"action": "build", "name": "x", "min_messages": 10**30},
        "greater than the maximum of 1000000",
    ),
    "too large to print": ({"action": "build", "name": "x", "min_messages": 10**5000}, "cannot be"),
    "not a number": ({"action": "build", "name": "x", "min_messages": float("nan")}, "cannot be"),
    "tags of another type": ({"action": "list", "tags": [1]}, "tags: 1 is not of type 'string'"),
    "tags as an object": ({"action": "list", "tags": {"a": 1}}, "is not of type 'array'"),
    "a bad tag": ({"action": "list", "tags": ["x" * 50]}, "cannot be a tag"),
    "no session is long enough": (
        {"action": "build", "name": "x", "min_messages": 500},
        "500 messages",
    ),
    "a list": (["list"], "takes a JSON object"),
    "nothing": (None, "takes a JSON object"),
    "keys are not strings": ({1: 2}, "needs action"),
    "a text": ("list the templates", "is not JSON"),
    "a JSON list": ("[1]", "takes a JSON object"),
    "lone surrogate": ('"\ud83d"', "takes a JSON object"),
    "deeply nested text": ("[" * 100_000, "is not JSON"),
}


class TestInvalidCalls:
    @table("name", INVALID)
    def test_error_explains_the_problem(self, shared: Journeyman, name: str) -> None:
        arguments, expected = INVALID[name]
        assert expected in action_error(shared, arguments)
        assert shared.templates.list() == []

    @given(
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=8,
        )
        | st.fixed_dictionaries(
            {"action": st.sampled_from([*ACTIONS])},
            optional={
                name: st.none() | st.booleans() | st.floats() | st.text() | st.lists(st.text())
                for name in SCHEMA["parameters"]["properties"]
                if name != "action"
            },
        )
    )
    def test_every_call_gets_an_answer(self, shared: Journeyman, arguments: Any) -> None:
        answer = json.loads(warm_session(shared, arguments), parse_constant=pytest.fail)
        assert answer["success"] or answer["error"]
        for template in shared.templates.list():
            shared.templates.delete(template.name)


class TestArgumentsAndAnswers:
    def test_arguments_may_be_json_text(self, shared: Journeyman) -> None:
        assert json.loads(warm_session(shared, '{"action": "list"}'))["success"] is True

    def test_integral_float_is_accepted(self, own: Journeyman) -> None:
        assert run_action(own, "build", name="stock", max_sessions=1.0)["qualified"] == 1

    @table("action", ["list", "profile"])
    def test_answers_are_deterministic(self, shared: Journeyman, action: str) -> None:
        assert len({warm_session(shared, {"action": action}) for _ in range(3)}) == 1
