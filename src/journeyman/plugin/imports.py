"""Imports the sessions that hosts report, in a process of its own, so that hooks are answered
quickly and no log can harm what answers them. What is reported is in a file of the home until it is
imported: a process that is killed loses none.
"""

import fcntl
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from journeyman.facade.journeyman import Journeyman
from journeyman.plugin.client import PROGRAM, Unanswered, request
from journeyman.records import Usage
from journeyman.records.errors import JourneymanError, StoreUnavailable, UnknownSession
from journeyman.records.host import HOSTS
from journeyman.text.atomic_write import replace_file

log = logging.getLogger("journeyman.plugin")

QUIET_S = 0.7
"""How long reports are collected before they are worked off: a log may still be written."""

LEARN_QUIET_S = 10.0
"""How long after an import to learn: more may follow."""

_LIMIT_S = 600.0
_TOLD_S = 1.0
_NICENESS = 10
_MAX_WAITING = 1_000
_LARGEST_LOG = 1_000_000


class Reported(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A log that has changed, or usage of a session of this source, which may not be stored yet."""

    path: str = ""
    session: str = ""
    source: str = ""
    usage: Usage | None = None


class ImportSpool:
    """What is reported in a home, and the process that works it off: `program`, started with the
    home. Only one runs at a time.
    """

    def __init__(
        self,
        home: Path,
        database: str,
        *,
        program: Sequence[str] = (*PROGRAM[:-1], "journeyman.plugin.imports"),
    ) -> None:
        self.home = home
        self._database = database
        self._program = program
        self._path = home / "imports.jsonl"

    def add(self, reported: Reported) -> None:
        """Note a report; it is on the disk when this returns. Raise StoreUnavailable."""
        try:
            with self._locked(), self._path.open("ab") as file:
                file.write(b"\n" + msgspec.json.encode(reported))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreUnavailable(f"{self._path} cannot be written: {error}.") from error

    def start(self) -> None:
        """Work off what is there, if that is anything, in a process that outlives this one."""
        if self.read():
            start_detached(self.home, "imports", (*self._program, str(self.home)), self._database)

    def read(self) -> list[Reported]:
        """Return what waits, oldest first."""
        return [*_decoded(self._lines())]

    def replace(self, done: int, left: Iterable[Reported]) -> None:
        """Forget the oldest of what waits, but for what is left of them."""
        with self._locked():
            later = [*_decoded(self._lines())][done:]
            kept = [msgspec.json.encode(one) for one in (*left, *later)]
            replace_file(self._path, b"\n".join(kept))

    def ends(self) -> bool:
        """Return whether no log waits. If so, the next report starts another process: the lock that
        this one holds on its output is released.
        """
        with self._locked():
            is_over = not any(one.path for one in self.read())
            if is_over:
                fcntl.flock(1, fcntl.LOCK_UN)
            return is_over

    def _lines(self) -> list[bytes]:
        with suppress(FileNotFoundError):
            return self._path.read_bytes().splitlines()
        return []

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.home / "imports.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _decoded(lines: Iterable[bytes]) -> Iterator[Reported]:
    for line in lines:
        with suppress(msgspec.DecodeError):  # empty, or cut short
            yield msgspec.json.decode(line, type=Reported)


def start_detached(home: Path, name: str, command: Sequence[str], database: str) -> None:
    """Start a process that outlives this one, unless one of this name runs. Its output goes to a
    log in the home, whose lock it inherits and holds while it lives: many hooks at once must not
    start as many processes.
    """
    descriptor = os.open(home / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_size > _LARGEST_LOG:
            os.ftruncate(descriptor, 0)
        process = subprocess.Popen(  # noqa: S603 - this program
            command,
            env={**os.environ, "JOURNEYMAN_DATABASE": database},
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
        )
        process.returncode = 0  # no one waits for it
    except BlockingIOError:
        pass
    finally:
        os.close(descriptor)


def add_usage(journeyman: Journeyman, reported: Reported) -> bool:
    """Add usage to its session; return False if the session is not stored yet."""
    try:
        session = journeyman.sessions.get(reported.session).session
        if session.source == reported.source and reported.usage is not None:
            journeyman.accounting.add(session.id, reported.usage)
    except (UnknownSession, StoreUnavailable):
        return False
    except JourneymanError as error:
        log.warning("%s", error)
    return True


class ImportWorker:
    """Works off what is reported, each log in a child process: imports first, and learns when none
    waits. `program` is the command line of this program.
    """

    def __init__(
        self,
        journeyman: Journeyman,
        spool: ImportSpool,
        *,
        quiet_s: float = QUIET_S,
        learn_quiet_s: float = LEARN_QUIET_S,
        program: Sequence[str] = PROGRAM,
    ) -> None:
        self._journeyman, self._spool = journeyman, spool
        self._quiet_s, self._learn_quiet_s = quiet_s, learn_quiet_s
        self._program = program

    def run(self) -> None:
        """Work until nothing is left to do."""
        learn_at: float | None = None
        while True:
            time.sleep(self._quiet_s)
            reported = self._spool.read()
            if any(one.path for one in reported):
                self._import(reported)
                if learn_at is None and self._journeyman.settings.hosts.learn:
                    learn_at = time.monotonic() + self._learn_quiet_s
            elif learn_at is None and self._spool.ends():
                return
            elif learn_at is not None and time.monotonic() >= learn_at:
                learn_at = None
                self._learn()

    def _import(self, reported: Sequence[Reported]) -> None:
        for path in dict.fromkeys(one.path for one in reported if one.path):
            self._call(*_import_words(path))
        usage = [one for one in reported if one.usage is not None]
        left = [one for one in usage if not add_usage(self._journeyman, one)]
        self._spool.replace(len(reported), left[-_MAX_WAITING:])

    def _learn(self) -> None:
        self._call("learn", "--workers", "1", "--json", niceness=_NICENESS)
        with suppress(Unanswered):  # so that it loads what is new
            request(str(self._spool.home), "learned", HOSTS[0], b"{}", timeout_s=_TOLD_S)

    def _call(self, *words: str, niceness: int = 0) -> None:
        """Run a command of the program. With `niceness` it gives way to people's own work."""
        command = [*self._program, "--home", str(self._spool.home), *words]
        try:
            subprocess.run(  # noqa: S603 - this program
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_LIMIT_S,
                check=True,
                preexec_fn=lambda: os.nice(niceness),
            )
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", None) or b""
            log.warning("%s: %s", error, said.decode("utf-8", "replace").strip()[-500:])


def _import_words(path: str) -> list[str]:
    """Return the words of a command that imports a log, which may begin with a hyphen, and for
    Claude Code the folder of its subagents' logs.
    """
    folder = Path(path).with_suffix("")
    has_more = path.endswith(".jsonl") and folder.is_dir()
    return ["import", "--json", "--", path, *([str(folder)] if has_more else [])]


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    with Journeyman(home=Path(sys.argv[1])) as opened:
        ImportWorker(opened, ImportSpool(opened.settings.home, opened.settings.database)).run()
