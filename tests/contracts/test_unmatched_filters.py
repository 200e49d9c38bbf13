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
        "None has the project 'clo'. Projects: github.com/acme/cli, website.": {"project": "clo"},
        "None has the recorder 'claude'. Recorders: hermes, codex.": {"source": "claude"},
        "None has the platform 'telegramm'. Platforms: telegram, cron.": {"platform": "telegramm"},
        "None has the recorder or platform 'x'. Recorders and platforms: hermes, codex, cron, "
        "telegram.": {"origin": "x"},
        "None has the model 'gpt-4'. Models: gpt-5.": {"model": "gpt-4"},
        "None has the tag 'Nightly'. Tags: nightly, a.": {"tag": "Nightly"},
        "None has 50 messages or more: the longest has 1.": {"min_messages": 50},
        "the last one started on 2026-01-2": {"since": 1_900_000_000.0},
        "the first one started on 2026-01-0": {"until": 1_000_000_000.0},
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
    assert "platform 'telegram' (1), project 'website' (2), recorder 'hermes' (2)" in told
    assert "Without the platform 'telegram', 1 session matches." in told
    assert "Without the recorder 'hermes'" not in told


def test_nothing_to_explain(store: Store) -> None:
    assert store.sessions.no_match(project="x") == ""
    fill(store)
    assert store.sessions.no_match() == ""
    assert store.sessions.no_match(source="hermes", limit=1) == ""
    assert store.sessions.no_match(subagents=False) == ""
