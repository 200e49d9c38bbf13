"""The facade, called with valid and invalid arguments."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tables import table
from tests.turns import agent, call, chat, user

from journeyman import Journeyman
from journeyman.facade.transcript import transcript
from journeyman.records import Call, Usage, Verdict
from journeyman.records.errors import WrongInput
from journeyman.testing import Corpus

CHAT = [{"role": "user", "content": "What is 2 + 2?"}, {"role": "assistant", "content": "4"}]


@pytest.fixture
def jm(tmp_path: Path, tables: Path) -> Iterator[Journeyman]:
    (tmp_path / "home").mkdir()
    shutil.copyfile(tables, tmp_path / "home" / "journeyman.db")
    environ = {"HOME": str(tmp_path)}
    with Journeyman(home=tmp_path / "home", environ=environ, clock=lambda: 5.0) as journeyman:
        yield journeyman


@pytest.fixture(scope="module")
def with_corpus(
    tmp_path_factory: pytest.TempPathFactory, imported_home: Path
) -> Iterator[Journeyman]:
    """A facade with the sample corpus imported. Tests must not change it."""
    home = tmp_path_factory.mktemp("facade") / "home"
    shutil.copytree(imported_home / ".journeyman", home)
    with Journeyman(home=home, environ={}) as journeyman:
        yield journeyman


def test_a_session_that_grows_while_it_is_shown(jm: Journeyman) -> None:
    """An import may run at the same time; what is shown is what was read first."""
    grown = chat(user("Count"), call("count", {}, "3"), call("count", {}, "4"), agent("Done."))
    jm.record(grown[:3], session_id="s")

    def judge(call: Call) -> Verdict:
        jm.record(grown, session_id="s")
        return jm.judge(call)

    shown = transcript(jm.sessions, judge, "s", raw=False)
    assert [call.result for call in shown.calls] == ["3"]
    assert len(shown.verdicts) == 1


def test_reliability_judges_once_for_a_profile_and_its_groups(jm: Journeyman) -> None:
    turns = (user("Count"), call("count", {}, "3"), call("todo", {}, "noted"), agent("Done."))
    jm.record(chat(*turns), session_id="s")
    for include_trivial in (False, True):
        chosen = {"include_trivial": include_trivial}
        found = jm.reliability("s", **chosen)
        assert found.profile() == jm.profile("s", **chosen)
        assert found.grouped("tool") == jm.grouped("tool", "s", **chosen)
        tools = [call.tool for one in found.sessions for call in one.calls]
        assert tools == (["count", "todo"] if include_trivial else ["count"])
    with pytest.raises(WrongInput, match="matches the project 'x'"):
        jm.reliability(project="x")


class TestRecord:
    def test_equal_messages_are_one_session(self, jm: Journeyman) -> None:
        first = jm.record(CHAT, source="mine", outcome=1.0, tags=["sums"])
        assert jm.record(CHAT, source="mine", outcome=1.0, tags=["sums"]) == first
        assert (first.messages, first.session.outcome, first.session.tags) == (2, 1.0, ("sums",))
        assert len(jm.sessions.list()) == 1

    def test_recording_an_id_again_replaces_the_session(self, jm: Journeyman) -> None:
        jm.record([*CHAT, *CHAT], session_id="one", outcome=1.0)
        again = jm.record(CHAT[:1], session_id="one")
        assert (again.messages, again.session.outcome) == (1, None)

    def test_a_session_is_continued_with_its_tokens(self, jm: Journeyman) -> None:
        turns = chat(user("Count"), call("count", {}, "3"), call("count", {}, "4"), agent("Done."))
        tokens = [Usage(key=key, input_tokens=10, output_tokens=1) for key in ("a", "b")]
        jm.record(turns[:3], session_id="one", append=True, usage=tokens[:1])
        assert (jm.sessions.get("one").messages, jm.sessions.get("one").calls) == (3, 1)
        jm.record(turns[3:], session_id="one", append=True, usage=tokens[1:])
        grown = jm.sessions.get("one")
        assert (grown.messages, grown.calls, grown.tokens.input_tokens) == (6, 2, 20)
        positions = [message.position for message in jm.sessions.messages("one")]
        assert positions == [*range(6)]
        jm.record(turns, session_id="whole")
        assert [one.result for one in jm.sessions.calls("one")] == ["3", "4"]
        assert grown.session.title == jm.sessions.get("whole").session.title

    def test_project_is_passed_or_derived(self, jm: Journeyman, tmp_path: Path) -> None:
        assert jm.record(CHAT, project="acme/app").session.project == "acme/app"
        found = jm.record(CHAT, cwd=tmp_path / "notes").session
        assert (found.project, found.cwd) == ("notes", str(tmp_path / "notes"))
        assert jm.find_project(tmp_path / "notes") == "notes"
        assert jm.record(CHAT).session.project == ""

    def test_unusual_but_valid_input(self, jm: Journeyman) -> None:
        # A single tag may be a string.
        assert jm.record(CHAT, tags="alone").session.tags == ("alone",)

        # A lone surrogate is accepted.
        assert jm.record([{"role": "user", "content": "half \ud83d"}]).messages == 1

        # A deleted session can be recorded again.
        name = jm.record(CHAT).session.id
        jm.sessions.delete(name)
        assert jm.record(CHAT).session.id == name

    @table(
        "wrong",
        [
            {"messages": []},
            {"messages": {"messages": CHAT}},
            {"messages": "hello"},
            {"messages": [1]},
            {"messages": [{"role": "nobody", "content": "x"}]},
            {"outcome": 2},
            {"outcome": "1.0"},
            {"tags": [1]},
            {"source": ""},
            {"session_id": 5},
            {"session_id": ""},
            {"model": None},
        ],
    )
    def test_invalid_input_is_refused_and_nothing_is_stored(
        self, jm: Journeyman, wrong: dict[str, object]
    ) -> None:
        with pytest.raises(WrongInput):
            jm.record(**{"messages": CHAT, **wrong})
        assert jm.sessions.list() == []


class TestImport:
    def test_single_path_needs_no_list(self, jm: Journeyman, corpus: Corpus) -> None:
        log = corpus.logs("chat")[0]
        assert jm.import_logs(str(log)).new == len(corpus.of("chat"))
        assert jm.import_logs(log).unchanged == len(corpus.of("chat"))

    def test_path_with_a_nul_is_reported(self, jm: Journeyman) -> None:
        (problem,) = jm.import_logs(["a\0b"]).problems
        assert "null" in problem.reason


class TestReliability:
    def test_profiles_and_comparison(self, with_corpus: Journeyman) -> None:
        # Profiles of all sessions, several, and one.
        everything = with_corpus.profile()
        codex = with_corpus.profile(source="codex")
        first, second = (
            one.session.id for one in with_corpus.sessions.list(source="codex", limit=2)
        )
        assert everything.calls > codex.calls > with_corpus.profile([first, second]).calls
        assert with_corpus.profile(first).sessions == 1

        # Groups add up to the total.
        calls = with_corpus.profile().calls
        assert sum(group.calls for group in with_corpus.grouped("source")) == calls
        assert [group.name for group in with_corpus.grouped("length")] == [
            "short",
            "mid",
            "marathon",
        ]

        # Comparison of two lists.
        ids = [one.session.id for one in with_corpus.sessions.list(source="claude_code")]
        found = with_corpus.compare(ids[:9], ids[9:])
        assert (found.warm.sessions, found.cold.sessions) == (9, len(ids) - 9)

        # The facade reopens after `close`.
        before = with_corpus.profile()
        with_corpus.close()
        assert with_corpus.profile() == before

    def test_invalid_arguments(self, with_corpus: Journeyman) -> None:
        # Unknown grouping.
        with pytest.raises(WrongInput, match="not by 'colour'"):
            with_corpus.grouped("colour")

        # Ids and filters are exclusive.
        with pytest.raises(WrongInput, match="Use one of the two"):
            with_corpus.profile("x", source="codex")

        # `compare` needs each side exactly once.
        with pytest.raises(WrongInput, match="warm"):
            with_corpus.compare(cold="x")
        with pytest.raises(WrongInput, match="cold"):
            with_corpus.compare("x", "y", cold_tag="z")
