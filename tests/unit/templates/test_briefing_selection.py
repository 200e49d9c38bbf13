"""Selecting the parts of a project's experience for a briefing."""

from tests.experience import episode, experience
from tests.tables import table

from journeyman.records import CommandUse, FileUse, Mistake
from journeyman.records.playbook import PlaybookCommand
from journeyman.templates.briefing import briefing_text
from journeyman.templates.experience import (
    LEAST_SCORE,
    MOST_COMMANDS,
    build_briefing,
)


def count(text):
    return len(text.split())


LIBRARY = experience(
    *(
        episode(
            f"s{number}",
            "Fix the parser test",
            CommandUse("make test", "make test", 1),
            FileUse("src/parser.py", 1, 1),
            FileUse(f"only/{number}.py", 1, 0),
            Mistake("Edit", "File has not been read yet", "", ("Read", "Edit")),
            Mistake("Bash", "missing module", "npm test", ("`npm install`", "`npm test`")),
            Mistake("Bash", "timed out", f"npm run {number}"),
        )
        for number in range(4)
    )
)
NEAREST = LIBRARY.nearest("Fix the parser")
LIKELY = LIBRARY.likely_commands("Fix the parser", NEAREST)


def briefing(budget=1_000, likely=LIKELY, **other):
    return build_briefing(LIBRARY, NEAREST, likely, budget, count, **other)


def likely_commands(number, score=0.0):
    return [(PlaybookCommand(name=f"make {at}", form=f"make {at}"), score) for at in range(number)]


def test_contents_of_a_briefing():
    found = briefing()
    assert (found.project, found.sessions) == ("app", 4)
    assert [one.name for one in found.commands] == ["make test"]
    assert [one.tool for one in found.mistakes] == ["Edit", "shell", "shell"]
    assert not found.is_empty


def test_commands_are_omitted_without_a_shell():
    found = briefing(tools=["Edit", "Read"])
    assert found.commands == ()
    assert [one.tool for one in found.mistakes] == ["Edit"]


def test_only_a_few_likely_commands_are_listed():
    assert briefing(likely=likely_commands(3, LEAST_SCORE - 0.1)).commands == ()
    assert len(briefing(9_000, likely_commands(90)).commands) == MOST_COMMANDS


@table("budget", [0, 20, 60, 100, 200, 400, 1_000])
def test_briefing_fits_its_budget(budget):
    found = briefing(budget, likely_commands(90))
    text = briefing_text(found)
    headings = 40
    assert count(text) <= budget * 0.75 + (headings if text else 0)
    assert budget or found.is_empty


def test_larger_budget_never_lists_fewer_commands():
    counts = [len(briefing(budget, likely_commands(90)).commands) for budget in range(0, 300, 10)]
    assert counts == sorted(counts)
