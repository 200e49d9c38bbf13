"""Converting between SQLite paths and URLs."""

from pathlib import Path

from journeyman.settings import sqlite_path, sqlite_url
from journeyman.store.store import Store


def test_path_with_characters_quoted_in_urls(tmp_path: Path) -> None:
    path = tmp_path / "a folder" / "100% journeyman?.db"
    assert sqlite_path(sqlite_url(path)) == path
    with Store(sqlite_url(path)) as store:
        assert store.is_ready
    assert path.is_file()


def test_other_urls_have_no_sqlite_path() -> None:
    assert sqlite_path("postgresql://ada@host/db") is None
    assert sqlite_path("sqlite:////x.db?mode=ro") is None
