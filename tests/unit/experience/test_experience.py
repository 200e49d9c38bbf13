"""Experience: similar requests, and which of them may be examples."""

from tests.experience import episode, experience
from tests.tables import table

from journeyman.records import CommandUse


def use(name: str) -> CommandUse:
    return CommandUse(name, name, 1)


LIBRARY = experience(
    episode("s1", "Fix the failing test of the date parser", use("pytest")),
    episode("s2", "Deploy the web shop to staging", use("fly deploy")),
    episode("s3", "The date parser test fails again, fix it", use("pytest"), ending="failed"),
    episode("s4", "Translate the welcome page to German", use("npm run i18n")),
    episode("s5", "Deploy the shop again", use("fly deploy"), ending="rejected"),
)


def test_empty_library() -> None:
    nothing = experience()
    assert nothing.nearest("Fix it") == []
    assert nothing.facts.all == ()


@table(
    ("task", "row"),
    [
        ("Fix a test of the date parser", 10),
        ("Deploy the shop to production", 22),
        ("Translate the help page to German", 19),
    ],
)
def test_similar_requests(task: str, row: int) -> None:
    assert LIBRARY.nearest(task)[0].row == row


def test_task_without_words_is_answered() -> None:
    for task in ("", "???", "\ud800"):
        assert {one.row for one in LIBRARY.nearest(task)} == {10, 13, 16, 19, 22}


def test_only_what_ended_well_may_be_an_example() -> None:
    assert LIBRARY.well_ended == {10, 13, 19}


def test_people_teach_and_bots_where_there_are_no_people() -> None:
    bot = episode("b1", "Deploy the shop", use("fly deploy"), platform="cron")
    mixed = experience(episode("s1", "Fix it"), bot, bot)
    assert ([row.session for row in mixed.rows], mixed.bots) == (["s1"], 1)
    alone = experience(bot)
    assert ([row.session for row in alone.rows], alone.bots) == (["b1"], 0)
