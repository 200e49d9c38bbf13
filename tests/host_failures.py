"""Ways in which Journeyman fails while a host works, each for the duration of a block."""

import resource
import signal
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager

from tests.hosts import HostHome, serving
from tests.waiting import until

from journeyman.plugin.client import socket_path

Failure = Callable[[HostHome], AbstractContextManager[None]]

_GARBAGE = b'{"jsonrpc": "2.0", "result": {"decision": "allow"}}\n'


@contextmanager
def absent(home: HostHome) -> Iterator[None]:
    """There is no resident process, and a child process cannot work: the home is gone."""
    aside = home.journeyman.with_name("aside")
    home.journeyman.rename(aside)
    yield
    assert not home.journeyman.exists()
    aside.rename(home.journeyman)


@contextmanager
def uninstalled(home: HostHome) -> Iterator[None]:
    """Journeyman's package is gone, and what it installed into the host is left behind."""
    home.uninstall()
    yield


@contextmanager
def killed(home: HostHome) -> Iterator[None]:
    """The resident process was killed before the session, and left its socket behind."""
    with serving(home) as resident:
        resident.process.signal(signal.SIGKILL)
        until(lambda: not resident.process.running)
        yield


@contextmanager
def hanging(home: HostHome) -> Iterator[None]:
    """The resident process takes requests and does not answer."""
    with serving(home) as resident:
        resident.process.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            resident.process.signal(signal.SIGCONT)


@contextmanager
def locked(home: HostHome) -> Iterator[None]:
    """Another process holds the database."""
    with serving(home), closing(sqlite3.connect(home.journeyman / "journeyman.db")) as database:
        database.isolation_level = None
        database.execute("BEGIN EXCLUSIVE")
        yield


@contextmanager
def full(home: HostHome) -> Iterator[None]:
    """The resident process cannot write another byte to a file, as on a full disk."""
    with serving(home) as resident:
        resource.prlimit(resident.process.pid, resource.RLIMIT_FSIZE, (0, 0))
        yield


@contextmanager
def foreign(home: HostHome) -> Iterator[None]:
    """Another program answers on the socket, in another protocol."""
    stopping = threading.Event()

    def answer() -> None:
        while not stopping.is_set():
            try:
                connection, _ = server.accept()
            except TimeoutError:
                continue
            with connection:
                while connection.recv(65_536):
                    pass
                connection.sendall(_GARBAGE)

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(socket_path(str(home.journeyman)))
        server.listen()
        server.settimeout(0.2)
        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()


FAILURES: tuple[Failure, ...] = (absent, uninstalled, killed, hanging, locked, full, foreign)
