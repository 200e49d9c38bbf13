"""The URL of a SQLite file, whatever its path."""

from pathlib import Path

from journeyman.store.sqlite_file import sqlite_path, sqlite_url
from journeyman.store.store import Store


def test_a_path_with_what_urls_quote(tmp_path: Path) -> None:
    path = tmp_path / "a folder" / "100% journeyman?.db"
    assert sqlite_path(sqlite_url(path)) == path
    with Store(sqlite_url(path)) as store:
        assert store.is_ready
    assert path.is_file()


def test_what_is_no_plain_sqlite_url() -> None:
    assert sqlite_path("postgresql://ada@host/db") is None
    assert sqlite_path("sqlite:////x.db?mode=ro") is None
