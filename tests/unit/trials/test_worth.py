"""What facts are worth: calls that are counted by hand in a small corpus."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.turns import Turn, agent, call, chat, user

from journeyman import Journeyman
from journeyman.trials.worth import Arm, Interval, Worth

PROJECT = "acme/shop"
HOME = "/home/ana/shop"

NO_PYTEST = call("Bash", {"command": "pytest -q"}, "Exit code 127\nbash: pytest: command not found")
TESTS = call("Bash", {"command": "bin/test -q"}, "3 passed")
SEARCH = call("Bash", {"command": "grep -rn rounding ."}, "lib/tax.py:3: rounding = 2")
ELSEWHERE = call("Bash", {"command": "find . -name setup.cfg"}, "./setup.cfg")
TAX = {"file_path": f"{HOME}/lib/tax.py", "old_string": "2", "new_string": "3"}
EDIT = call("Edit", TAX, "The file has been updated.")
PAGE = call("Write", {"file_path": f"{HOME}/docs/page.md", "content": "Hello"}, "File created.")

SESSIONS: tuple[tuple[Turn, ...], ...] = (
    # Two sessions look for a file and try a wrong test command; so does the third, which is told.
    (user("Fix the rounding of the tax"), NO_PYTEST, TESTS, SEARCH, EDIT),
    (user("Fix the rounding of the fees"), NO_PYTEST, TESTS, ELSEWHERE, SEARCH, EDIT),
    (user("Fix the rounding of the total"), ELSEWHERE, SEARCH, NO_PYTEST, TESTS, EDIT),
    # The last one needs nothing of what it is told.
    (user("Write a page of welcome"), PAGE),
)


@pytest.fixture
def jm(tmp_path: Path) -> Iterator[Journeyman]:
    times = itertools.count(1_000.0, 100.0)
    with Journeyman(home=tmp_path, environ={}, clock=lambda: next(times)) as journeyman:
        yield journeyman


def record(jm: Journeyman, *sessions: tuple[Turn, ...], project: str = PROJECT) -> None:
    for number, turns in enumerate(sessions):
        said = chat(*turns, agent("Done."))
        jm.record(said, session_id=f"{project}/{number}", project=project, cwd=HOME, outcome=1.0)
    jm.learn()


def measured(jm: Journeyman, project: str = PROJECT) -> Worth:
    (found,) = jm.worth(project)
    return found


def arm(worth: Worth, name: str) -> Arm:
    (found,) = (one for one in worth.arms if one.name == name)
    return found


def per_session(one: Arm) -> tuple[float, float, float]:
    return one.needless.estimate, one.unused.estimate, one.net.estimate


def counted(*sessions: tuple[int, int]) -> tuple[float, float, float]:
    """The means over sessions of needless calls, unused facts, and the one minus the other."""
    needless = sum(one for one, _ in sessions) / len(sessions)
    unused = sum(one for _, one in sessions) / len(sessions)
    return pytest.approx((needless, unused, needless - unused))  # type: ignore[return-value]


def test_needless_calls_and_unused_facts(jm: Journeyman) -> None:
    record(jm, *SESSIONS)
    worth = measured(jm)
    assert (worth.project, worth.sessions) == (PROJECT, 3)
    # The second session was told only lib/tax.py, which made its search needless; the third also
    # the missing program; the fourth used neither.
    ours = arm(worth, "ours")
    assert per_session(ours) == counted((1, 0), (2, 0), (0, 2))
    kinds = {(one.kind, one.moment): (one.told, one.used, one.needless) for one in worth.kinds}
    # The command is not told beside the trap that it mends.
    assert kinds == {
        ("continuity", "start"): (3, 2, 2),
        ("trap", "start"): (2, 1, 1),
        ("trap", "call"): (1, 1, 0),
    }

    # At the most: pytest and both searches, in the second and third session.
    assert worth.ceiling.estimate == pytest.approx((3 + 3 + 0) / 3)
    assert ours.needless.low <= ours.needless.estimate <= ours.needless.high
    assert ours.needless.of == 3
    assert 0 < worth.start_tokens <= 264


def test_alternatives(jm: Journeyman) -> None:
    record(jm, *SESSIONS)
    worth = measured(jm)
    assert per_session(arm(worth, "nothing")) == counted((0, 0), (0, 0), (0, 0))
    # bin/test and grep, of which the first makes pytest needless; then find, too.
    commands = arm(worth, "20 most used commands")
    assert per_session(commands) == counted((1, 0), (1, 0), (0, 3))
    # lib/tax.py, which makes the search for it needless.
    files = arm(worth, "last 30 commits")
    assert per_session(files) == counted((1, 0), (1, 0), (0, 1))
    assert 0 < files.tokens < commands.tokens
    # There is no instructions file.
    written = arm(worth, "instructions files")
    assert (per_session(written), written.tokens) == (counted((0, 0), (0, 0), (0, 0)), 0)


def test_searches_that_find_a_script_are_needless(jm: Journeyman) -> None:
    listing = call("Bash", {"command": "ls bin"}, "build\ntest")
    other = call("Bash", {"command": "grep -rn test docs"}, "docs/a.md: how to test it")
    sought = user("Test the total"), other, listing, TESTS
    record(jm, (user("Test the tax"), TESTS), (user("Test the fees"), TESTS), sought)
    kinds = {one.kind: (one.told, one.used, one.needless) for one in measured(jm).kinds}
    assert kinds["command"] == (1, 1, 1)


def test_only_changes_of_the_last_commits_are_listed(jm: Journeyman) -> None:
    commit = call("Bash", {"command": "git commit -m x"}, "done")
    read = call("Read", {"file_path": f"{HOME}/lib/tax.py"}, "x")
    first = user("Fix the tax"), read, EDIT, *[commit] * 31
    record(jm, first, (user("Read on"), read), (user("Read again"), read))
    assert arm(measured(jm), "last 30 commits").tokens == 0


def test_what_an_instructions_file_says_is_not_told_again(jm: Journeyman) -> None:
    text = "Run bin/test before a commit. Taxes are in lib/tax.py."
    says = call("Read", {"file_path": f"{HOME}/CLAUDE.md"}, text)
    first, second, third, last = SESSIONS
    record(jm, (*first, says), second, third, last)
    worth = measured(jm)
    assert {one.kind for one in worth.kinds} == {"continuity"}
    # The file itself made as much needless: the command is a fact from the third session on.
    written = arm(worth, "instructions files")
    assert per_session(written) == counted((1, 0), (2, 0), (0, 2))
    assert written.tokens > 0


def test_facts_of_another_project_are_the_placebo(jm: Journeyman) -> None:
    record(jm, *SESSIONS)
    page = (user("Write a page"), PAGE)
    record(jm, page, page, page, project="other/docs")
    found = {one.project: one for one in jm.worth()}
    assert found.keys() == {PROJECT, "other/docs"}
    # Its trap is told to three sessions that do not need it.
    placebo = arm(found["other/docs"], "another project")
    assert placebo.needless.estimate == 0.0
    assert placebo.unused.estimate == 1.0


def test_kinds_and_projects_that_are_measured(jm: Journeyman) -> None:
    record(jm, *SESSIONS)
    (traps,) = jm.worth(PROJECT, kinds=["trap"])
    assert per_session(arm(traps, "ours")) == counted((0, 0), (1, 0), (0, 1))
    assert jm.worth("nothing") == []
    record(jm, SESSIONS[0], SESSIONS[1], project="too/few")
    assert jm.worth("too/few") == []
    assert [one.project for one in jm.worth()] == [PROJECT]
    # The same figures in every run.
    assert measured(jm) == measured(jm)
    steps: list[tuple[int, int]] = []
    jm.worth(PROJECT, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert arm(measured(jm), "nothing").net == Interval(estimate=0.0, low=0.0, high=0.0, of=3)
