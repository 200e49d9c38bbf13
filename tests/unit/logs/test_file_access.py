"""Other programs' files are opened without waiting for them and without dropping locks."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from journeyman import Journeyman
from journeyman.logs.log_file import LogFile, open_regular
from journeyman.records.errors import NotALog
from journeyman.testing import Corpus

OTHER_WRITER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
try:
    database.execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError:
    print("locked", end="")
"""


def is_locked(path: Path) -> bool:
    """Whether another process finds the database locked."""
    command = [sys.executable, "-c", OTHER_WRITER, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout == "locked"


@pytest.fixture(params=["state.db", "history", "chat.jsonl"])
def database(request: pytest.FixtureRequest, tmp_path: Path, corpus: Corpus) -> Path:
    """Hermes' database, also under names that no database has."""
    path = tmp_path / "hermes" / request.param
    path.parent.mkdir()
    path.write_bytes(corpus.logs("hermes")[0].read_bytes())
    return path


@pytest.fixture(params=["delete", "wal"])
def locked(request: pytest.FixtureRequest, database: Path) -> Iterator[Path]:
    """The database, in which this process has begun to write."""
    hermes = sqlite3.connect(database, isolation_level=None)
    hermes.execute(f"PRAGMA journal_mode = {request.param}")
    hermes.execute("BEGIN IMMEDIATE")
    hermes.execute("UPDATE sessions SET title = title")
    yield database
    hermes.execute("ROLLBACK")
    hermes.close()


def test_an_import_leaves_the_locks_of_its_own_process(locked: Path, tmp_path: Path) -> None:
    assert is_locked(locked)
    with Journeyman(home=tmp_path / "home", environ={}) as journeyman:
        report = journeyman.import_logs([locked])
        assert report.problems == []
        assert report.new
        journeyman.import_logs([locked], reread=True)
    assert is_locked(locked)


def test_a_database_is_recognised_whatever_its_name(database: Path) -> None:
    before = sorted(database.parent.iterdir())
    assert LogFile(database).is_database
    assert sorted(database.parent.iterdir()) == before


def test_a_damaged_database_is_reported(tmp_path: Path, corpus: Corpus) -> None:
    file = tmp_path / "state.db"
    file.write_bytes(corpus.logs("hermes")[0].read_bytes()[:6000])
    with Journeyman(home=tmp_path / "home", environ={}) as journeyman:
        (problem,) = journeyman.import_logs([file]).problems
    assert problem.path == str(file)


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    for path in (tmp_path / "pipe.jsonl", tmp_path, Path("/dev/null")):
        with pytest.raises(OSError, match="not a regular file"):
            open_regular(path)
        with pytest.raises(NotALog, match="not a regular file"):
            LogFile(path)


def test_special_files_that_are_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    with Journeyman(home=tmp_path / "home", environ={}) as journeyman:
        report = journeyman.import_logs(sorted(tmp_path.glob("*.jsonl")))
    reasons = [problem.reason for problem in report.problems]
    expected = ("symbolic links", "regular file", "regular file")
    assert all(said in reason for said, reason in zip(expected, reasons, strict=True)), reasons
