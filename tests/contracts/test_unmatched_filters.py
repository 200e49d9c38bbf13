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


def test_the_filters_are_named(store: Store) -> None:
    fill(store)
    told = store.sessions.no_match(platform="telegram", project="website", min_messages=1)
    assert told.endswith("matches: platform 'telegram', project 'website', min_messages 1.")
    assert store.sessions.no_match(source="claude", bots=False).endswith("pass --bots.")


def test_nothing_to_explain(store: Store) -> None:
    assert store.sessions.no_match(project="x") == ""
    fill(store)
    assert store.sessions.no_match() == ""
    assert store.sessions.no_match(source="hermes", limit=1) == ""
    assert store.sessions.no_match(subagents=False) == ""
