"""The contract of platforms in the store, on SQLite and on a real PostgreSQL."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from journeyman.records import Fragment, Message, Session, SessionId, Usage
from journeyman.store.engine import connect
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


def test_sessions_of_an_older_version_get_their_platform(database_url: str) -> None:
    stored = {
        "gateway": ("hermes", {"channel": "discord"}, "discord"),
        "early": ("hermes", {"channel": "unknown"}, ""),
        "none": ("hermes", {}, ""),
        "exec": ("codex", {"source": "exec", "originator": "codex_exec"}, "exec"),
        "old": ("codex", {"originator": "codex_cli_rs"}, "codex_cli_rs"),
        "sub": ("codex", {"source": {"subagent": {"other": "review"}}}, "subagent"),
        "own": ("journeyman", {"platform": "cli"}, "cli"),
        "odd": ("journeyman", {"platform": 7}, ""),
        "other": ("claude_code", {"platform": "x"}, ""),
    }
    engine = connect(database_url, busy_timeout_s=1.0)
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", "journeyman.store:migrations")
        config.attributes["connection"] = connection
        command.upgrade(config, "0011")
        insert = sa.text("INSERT INTO sessions (id, source, details) VALUES (:id, :source, :told)")
        for name, (source, details, _) in stored.items():
            told = json.dumps(details)
            connection.execute(insert, {"id": name, "source": source, "told": told})
    engine.dispose()
    with Store(database_url) as store:
        found = {one.session.id: one.session.platform for one in store.sessions.list()}
    assert found == {name: platform for name, (_, _, platform) in stored.items()}
