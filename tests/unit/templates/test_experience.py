"""Experience: similar episodes, and the commands that a task is likely to need."""

import itertools

from tests.experience import episode, experience
from tests.tables import table

from journeyman.records import CommandUse


def use(name, worked=1, purpose=""):
    return CommandUse(name, name, worked, 1 - worked, purpose)


LIBRARY = experience(
    episode("s1", "Fix the failing test of the date parser", use("pytest"), use("git commit")),
    episode("s2", "Deploy the web shop to staging", use("fly deploy"), use("git commit")),
    episode("s3", "The date parser test fails again, fix it", use("pytest"), use("git commit")),
    episode("s4", "Translate the welcome page to German", use("npm run i18n"), use("git commit")),
    episode("s5", "Deploy the shop again", use("fly deploy"), use("git commit")),
)


def likely(task, library=LIBRARY):
    return library.likely_commands(task, library.nearest(task))


def test_empty_library():
    nothing = experience()
    assert nothing.nearest("Fix it") == []
    assert nothing.likely_commands("Fix it", []) == []
    assert nothing.playbook.is_empty


@table(
    ("task", "row", "command"),
    [
        ("Fix a test of the date parser", 10, "pytest"),
        ("Deploy the shop to production", 22, "fly deploy"),
        ("Translate the help page to German", 19, "npm run i18n"),
    ],
)
def test_similar_requests_and_their_commands(task, row, command):
    near = LIBRARY.nearest(task)
    assert near[0].row == row
    assert LIBRARY.at(row).row == row
    assert command in [found.name for found, _ in likely(task)[:2]]


def test_all_commands_are_ranked():
    found = likely("Fix a test")
    assert {command.name for command, _ in found} == {one.name for one in LIBRARY.playbook.commands}
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)


def test_task_without_words_or_neighbours():
    for task in ("", "???", "\ud800"):
        assert len(likely(task)) == 4
    assert len(LIBRARY.likely_commands("Fix a test", [])) == 4


def test_recent_commands_count_more():
    episodes = [
        episode(
            f"s{number}", "Run the tests", use("make test" if number < 50 else "just test"), at=at
        )
        for number, at in enumerate(itertools.islice(itertools.count(1.0), 100))
    ]
    for some in (episodes, episodes[::-1]):
        assert likely("Run the tests", experience(*some))[0][0].name == "just test"


def test_purposes_help_to_find_a_command():
    library = experience(
        episode("s1", "Do the first thing", use("just a", purpose="Compress the images")),
        episode("s2", "Do the second thing", use("just b", purpose="Check the spelling")),
    )
    assert likely("Make the images smaller, compress them", library)[0][0].name == "just a"
    assert likely("Are there errors in spelling?", library)[0][0].name == "just b"
