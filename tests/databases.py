"""SQLite databases for tests that use none of the fixtures."""

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
    """The address of a home's database; a new one has its tables. They are copied, as making them
    takes longer than most tests.
    """
    path = home / "journeyman.db"
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True)
        path.touch(0o600)
        path.write_bytes(_empty())
    return f"sqlite:///{path}"
