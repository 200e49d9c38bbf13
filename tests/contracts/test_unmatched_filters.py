"""Why no session matches some filters, on SQLite and on a real PostgreSQL."""

from journeyman.records import Fragment, Message, Session, SessionId
from journeyman.store.store import Store

DAY_S = 86_400


def fill(store: Store) -> None:
    facts = (
        {"source": "hermes", "platform": "telegram", "project": "github.com/acme/cli"},
        {"source": "hermes", "platform": "cron", "project": "website", "tags": ("nightly", "a")},
        {"source": "codex", "model": "gpt-5", "project": "website"},
    )
    for number, each in enumerate(facts):
        started = 1_767_300_000.0 + number * 10 * DAY_S  # 1, 11 and 21 January 2026
        session = Session(id=SessionId(f"s{number}"), started_at=started, **each)  # type: ignore[arg-type]
        message = Message(key="u", position=1, role="user", text="hello")
        with store.writing() as writing:
            writing.add(Fragment(session=session, messages=(message,), replaces=True))
            writing.finish()


def test_the_excluding_filter_is_named_with_the_values_that_exist(store: Store) -> None:
    fill(store)
    rows = {
        "None matches the project 'clo'. There are: website, github.com/acme/cli.": {
            "project": "clo"
        },
        "None matches the recorder 'claude'. There are: hermes, codex.": {"source": "claude"},
        "None matches the platform 'telegramm'. There are: telegram, cron.": {
            "platform": "telegramm"
        },
        "None matches the recorder or platform 'x'. There are: hermes, codex, cron, telegram.": {
            "origin": "x"
        },
        "None matches the model 'gpt-4'. There are: gpt-5.": {"model": "gpt-4"},
        "None matches the tag 'Nightly'. There are: nightly, a.": {"tag": "Nightly"},
        "None matches the minimum of 50 messages.": {"min_messages": 50},
        "None matches the earliest start.": {"since": 1_900_000_000.0},
    }
    missed = {
        expected: found
        for expected, filters in rows.items()
        if expected not in (found := store.sessions.no_match(**filters))  # type: ignore[arg-type]
    }
    assert not missed


def test_filters_that_exclude_each_other(store: Store) -> None:
    fill(store)
    told = store.sessions.no_match(platform="telegram", project="website", source="hermes")
    assert told.endswith("all of these: platform 'telegram', project 'website', recorder 'hermes'.")


def test_nothing_to_explain(store: Store) -> None:
    assert store.sessions.no_match(project="x") == ""
    fill(store)
    assert store.sessions.no_match() == ""
    assert store.sessions.no_match(source="hermes", limit=1) == ""
    assert store.sessions.no_match(subagents=False) == ""
