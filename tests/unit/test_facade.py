"""The facade, called as a program would, rightly and wrongly."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tables import table

from journeyman import Journeyman
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
def filled(tmp_path_factory: pytest.TempPathFactory, imported_home: Path) -> Iterator[Journeyman]:
    """The sample corpus, imported. Tests only read it."""
    home = tmp_path_factory.mktemp("facade") / "home"
    shutil.copytree(imported_home / ".journeyman", home)
    with Journeyman(home=home, environ={}) as journeyman:
        yield journeyman


class TestRecord:
    def test_equal_messages_are_one_session(self, jm: Journeyman) -> None:
        first = jm.record(CHAT, source="mine", outcome=1.0, tags=["sums"])
        assert jm.record(CHAT, source="mine", outcome=1.0, tags=["sums"]) == first
        assert (first.messages, first.session.outcome, first.session.tags) == (2, 1.0, ("sums",))
        assert len(jm.sessions.list()) == 1

    def test_recording_under_an_id_again_replaces_all_of_it(self, jm: Journeyman) -> None:
        jm.record([*CHAT, *CHAT], session_id="one", outcome=1.0)
        again = jm.record(CHAT[:1], session_id="one")
        assert (again.messages, again.session.outcome) == (1, None)

    def test_its_project_is_named_or_found(self, jm: Journeyman, tmp_path: Path) -> None:
        assert jm.record(CHAT, project="acme/app").session.project == "acme/app"
        found = jm.record(CHAT, cwd=tmp_path / "notes").session
        assert (found.project, found.cwd) == ("notes", str(tmp_path / "notes"))
        assert jm.find_project(tmp_path / "notes") == "notes"
        assert jm.record(CHAT).session.project == ""

    def test_odd_but_right(self, jm: Journeyman) -> None:
        # One tag may be given as text.
        assert jm.record(CHAT, tags="alone").session.tags == ("alone",)

        # Half a character is no obstacle.
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
    def test_wrong_input_is_refused_and_nothing_is_kept(
        self, jm: Journeyman, wrong: dict[str, object]
    ) -> None:
        with pytest.raises(WrongInput):
            jm.record(**{"messages": CHAT, **wrong})
        assert jm.sessions.list() == []


class TestImport:
    def test_one_path_may_be_given_as_it_is(self, jm: Journeyman, corpus: Corpus) -> None:
        log = corpus.logs("chat")[0]
        assert jm.import_logs(str(log)).new == len(corpus.of("chat"))
        assert jm.import_logs(log).unchanged == len(corpus.of("chat"))

    def test_a_path_with_a_nul_is_a_problem_in_the_report(self, jm: Journeyman) -> None:
        (problem,) = jm.import_logs(["a\0b"]).problems
        assert "null" in problem.reason

    def test_many_open_readings(self, jm: Journeyman) -> None:
        jm.record(CHAT, session_id="one")
        open_readings = [jm.sessions.messages("one") for _ in range(40)]
        assert [next(reading).text for reading in open_readings] == ["What is 2 + 2?"] * 40
        for reading in open_readings:
            reading.close()


class TestReliability:
    def test_profiles_and_comparison(self, filled: Journeyman) -> None:
        # A profile of all of some and of one.
        everything = filled.profile()
        codex = filled.profile(source="codex")
        first, second = (one.session.id for one in filled.sessions.list(source="codex", limit=2))
        assert everything.calls > codex.calls > filled.profile([first, second]).calls
        assert filled.profile(first).sessions == 1

        # Groups add up.
        calls = filled.profile().calls
        assert sum(group.calls for group in filled.grouped("source")) == calls
        assert [group.name for group in filled.grouped("length")] == ["short", "mid", "marathon"]

        # Compare two lists.
        ids = [one.session.id for one in filled.sessions.list(source="claude_code")]
        found = filled.compare(ids[:9], ids[9:])
        assert (found.warm.sessions, found.cold.sessions) == (9, len(ids) - 9)

        # It can be used again after it was closed.
        before = filled.profile()
        filled.close()
        assert filled.profile() == before

    def test_wrong_use(self, filled: Journeyman) -> None:
        # Groups that there are not.
        with pytest.raises(WrongInput, match="not by 'colour'"):
            filled.grouped("colour")

        # Sessions are named or chosen.
        with pytest.raises(WrongInput, match="not both"):
            filled.profile("x", source="codex")

        # Compare needs each side once.
        with pytest.raises(WrongInput, match="warm"):
            filled.compare(cold="x")
        with pytest.raises(WrongInput, match="cold"):
            filled.compare("x", "y", cold_tag="z")
