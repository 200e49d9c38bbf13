"""Serves the operations for hosts on a Unix socket, each request in a thread of its own. Only this
user can connect.
"""

import fcntl
import logging
import os
import select
import socket
import socketserver
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Self

from journeyman.plugin.client import PROTOCOL, WAITING, is_trusted, socket_path
from journeyman.plugin.service import Exchange, HostService
from journeyman.records.errors import JourneymanError, ServiceUnavailable

log = logging.getLogger("journeyman.plugin")

_HEAD_LIMIT = 200
_BODY_LIMIT = 64 * 1024 * 1024
_READ_S = 5.0
"""How long a client may take to send its request."""
_LONGEST_S = 4_000.0
_BACKLOG = 128
_SETTLE_S = 3.0
"""How long requests in progress may take to end when the server stops."""

_FOREIGN = b"error\nThis is Journeyman's hook socket; the request is not of its protocol."


class HookServer:
    """The socket of one home, or of one run at `path`. Raise ServiceUnavailable if another process
    serves it already.
    """

    def __init__(self, service: HostService, home: Path, path: str = "") -> None:
        self.path = path or socket_path(str(home))
        self._last_request = time.monotonic()
        self._active = 0
        self._changed = threading.Condition()
        self._service = service
        self._lock: IO[str] | None = None
        try:
            Path(self.path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not is_trusted(self.path):
                raise ServiceUnavailable(
                    f"The folder of the socket {self.path} belongs to another user. Set "
                    "JOURNEYMAN_HOME to a folder with a shorter path."
                )
            self._take_lock()
            with suppress(FileNotFoundError):
                Path(self.path).unlink()  # left behind by a process that was killed
            self._server = _SocketServer(self.path, self)
            Path(self.path).chmod(0o600)  # the folder is private; umask is not per thread
        except OSError as error:
            self._release_lock()
            raise ServiceUnavailable(
                f"Hooks cannot be answered at {self.path}: {error.strerror or error}. Check that "
                "its folder is writable."
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.2,), name="hosts-socket", daemon=True
        )

    def _take_lock(self) -> None:
        """Hold a lock while this process lives: two servers would take each other's place."""
        self._lock = Path(f"{self.path}.lock").open("a")  # noqa: SIM115 - closed by `stop`
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._lock.truncate(0)
            self._lock.write(str(os.getpid()))  # for a check, if this process ever hangs
            self._lock.flush()
        except BlockingIOError as error:
            self._release_lock()
            raise ServiceUnavailable(
                f"Another process already answers hooks at {self.path}. `journeyman doctor` "
                "shows its process id; stop it first."
            ) from error

    def _release_lock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def answer(self, received: bytes, connection: socket.socket) -> tuple[bytes, Exchange | None]:
        """Return the answer to one request, with its status line, and the exchange that it is part
        of.
        """
        head, newline, body = received.partition(b"\n")
        words = head.decode("ascii", "replace").split() if len(head) <= _HEAD_LIMIT else []
        if (
            not newline
            or len(words) != 4
            or words[0].encode() != PROTOCOL
            or not words[3].isdigit()
        ):
            return _FOREIGN, None
        operation, host = words[1], words[2]
        exchange = Exchange(
            host=host,
            ends=time.monotonic() + min(int(words[3]) / 1_000, _LONGEST_S),
            cancelled=lambda: _has_hung_up(connection),
            # The plugins ask in slices, and take only whole answers.
            hold=lambda: connection.sendall(WAITING) if operation == "hook" else None,
        )
        try:
            return b"ok\n" + self._service.handle(operation, body, exchange), exchange
        except JourneymanError as error:
            log.warning("%s of %s: %s", operation, host, error)
            return f"error\n{error}".encode("utf-8", "replace"), exchange
        except Exception as error:
            # A request must not end the server.
            log.exception("the operation %s of %s failed", operation, host)
            return f"error\n{type(error).__name__}: {error}".encode("utf-8", "replace"), exchange

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a request as active for the duration of the block."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        with self._changed:
            self._active += change
            self._last_request = time.monotonic()
            self._changed.notify_all()

    @property
    def idle_s(self) -> float:
        """Seconds since the last request; 0 while one is being answered."""
        return 0.0 if self._active else time.monotonic() - self._last_request

    def stop(self) -> None:
        """Accept no more requests, end what waits for a person, and give the others a moment."""
        if self._lock is None:
            return  # the socket may be another process's by now
        self._service.stopping.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
        with suppress(OSError):
            Path(self.path).unlink()
        with self._changed:
            self._changed.wait_for(lambda: not self._active, _SETTLE_S)
        self._release_lock()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()


def is_locked(home: Path) -> bool:
    """Whether a process serves the hooks of a home, or is still ending."""
    try:
        with Path(f"{socket_path(str(home))}.lock").open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


class _SocketServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = _BACKLOG

    def __init__(self, path: str, owner: HookServer) -> None:
        self.owner = owner
        super().__init__(path, _Connection)

    def verify_request(self, request: socket.socket, _address: object) -> bool:  # type: ignore[override]
        """Accept only this user, and root."""
        if not hasattr(socket, "SO_PEERCRED"):
            return True  # the permissions of the socket decide
        credentials = request.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        user = struct.unpack("3i", credentials)[1]
        return user in (0, os.getuid())


class _Connection(socketserver.BaseRequestHandler):
    server: _SocketServer
    request: socket.socket

    def handle(self) -> None:
        connection, owner = self.request, self.server.owner
        with owner.counted():
            exchange, is_received = None, False
            with suppress(OSError):
                received = _receive(connection, time.monotonic() + _READ_S)
                answer, exchange = owner.answer(received, connection)
                connection.settimeout(_READ_S)
                connection.sendall(answer)
                # A client reads to the end, which comes only now.
                is_received = not _has_hung_up(connection)
                connection.shutdown(socket.SHUT_RDWR)
            if exchange is not None:
                exchange.finish(is_received=is_received)


def _receive(connection: socket.socket, ends: float) -> bytes:
    """Return all that a client sends. Raise OSError if it sends too much or too slowly."""
    received = bytearray()
    while len(received) <= _BODY_LIMIT:
        connection.settimeout(max(ends - time.monotonic(), 0.001))
        chunk = connection.recv(65_536)
        if not chunk:
            return bytes(received)
        received += chunk
    raise OSError("the request is too long")


def _has_hung_up(connection: socket.socket) -> bool:
    """Whether the client has gone: it stops sending after its request, so only a connection that is
    closed both ways counts. Other systems than Linux do not tell the two apart.
    """
    if sys.platform != "linux":
        return False
    poll = select.poll()
    poll.register(connection, select.POLLHUP)
    return any(events & select.POLLHUP for _, events in poll.poll(0))
