"""SQLite databases for tests without fixtures."""

import functools
import tempfile
from pathlib import Path

from journeyman.store.store import Store


@functools.cache
def _empty() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journeyman.db"
        Store(f"sqlite:///{path}").close()
        return path.read_bytes()


def database(home: Path) -> str:
    """The address of a home's database. A new one gets a copy of prepared tables, because creating
    them takes longer than most tests.
    """
    path = home / "journeyman.db"
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True)
        path.touch(0o600)
        path.write_bytes(_empty())
    return f"sqlite:///{path}"
