"""The contract of platforms in the store, on SQLite and on a real PostgreSQL."""

from typing import Any

from journeyman.records import Fragment, Message, Session, SessionId, Usage
from journeyman.store.store import Store

SESSIONS = {"a": ("hermes", "telegram"), "b": ("hermes", "cron"), "c": ("codex", "telegram")}


def fill(store: Store) -> None:
    for name, (source, platform) in SESSIONS.items():
        session = Session(id=SessionId(name), source=source, platform=platform)
        message = Message(key="u", position=1, role="user", text="hello")
        usage = Usage(key="u", model="m", input_tokens=1)
        with store.writing() as writing:
            writing.add(
                Fragment(session=session, messages=(message,), usage=(usage,), replaces=True)
            )
            writing.finish()


def test_sessions_are_filtered_by_platform_and_by_origin(store: Store) -> None:
    fill(store)

    def names(**filters: Any) -> str:
        return "".join(sorted(one.session.id for one in store.sessions.list(**filters)))

    assert names(platform="telegram") == "ac"
    assert names(platform="telegram", source="hermes") == "a"
    assert names(platform="Telegram") == names(origin="TELEGRAM") == "ac"
    assert (names(origin="telegram"), names(origin="hermes")) == ("ac", "ab")
    assert (names(bots=False), names(bots=True)) == ("ac", "abc")
    assert store.usage.session_count(platform="cron") == 1
    assert [row.platform for row in store.usage.used(platform="cron")] == ["cron"]
