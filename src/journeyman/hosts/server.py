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
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

from journeyman.hosts.client import PROTOCOL, socket_path
from journeyman.hosts.service import Exchange, HostService
from journeyman.records.errors import JourneymanError, ServiceUnavailable

log = logging.getLogger("journeyman.hosts")

_HEAD_LIMIT = 200
_BODY_LIMIT = 64 * 1024 * 1024
_READ_S = 5.0
"""How long a client may take to send its request."""
_LONGEST_S = 4_000.0
_BACKLOG = 128


class HookServer:
    """The socket of one home. Raise ServiceUnavailable if another process serves it already."""

    def __init__(self, service: HostService, home: Path) -> None:
        self.path = socket_path(str(home))
        self._last_request = time.monotonic()
        self._active = 0
        self._counting = threading.Lock()
        self._service = service
        self._lock: IO[str] | None = None
        folder = Path(self.path).parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            raise ServiceUnavailable(
                f"The folder {folder} of the socket belongs to another user. Set XDG_RUNTIME_DIR "
                "or JOURNEYMAN_HOME to a folder of yours."
            )
        self._take_lock()
        with suppress(FileNotFoundError):
            Path(self.path).unlink()  # left behind by a process that was killed
        before = os.umask(0o177)
        try:
            self._server = _SocketServer(self.path, self)
        finally:
            os.umask(before)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.2,), name="hosts-socket", daemon=True
        )

    def _take_lock(self) -> None:
        """Hold a lock while this process lives: two servers would take each other's place."""
        self._lock = Path(f"{self.path}.lock").open("w")  # noqa: SIM115 - closed by `stop`
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise ServiceUnavailable(
                f"Another process already answers hooks at {self.path}. `journeyman hosts list` "
                "shows its process id; stop it first."
            ) from error

    def answer(self, head: bytes, body: bytes, connection: socket.socket) -> bytes:
        """Return the answer to one request, with its status line."""
        words = head.decode("ascii", "replace").split()
        if len(words) != 4 or words[0].encode() != PROTOCOL or not words[3].isdigit():
            return b"error\nThis is Journeyman's hook socket; the request is not of its protocol."
        operation, host = words[1], words[2]
        ends = time.monotonic() + min(int(words[3]) / 1_000, _LONGEST_S)
        exchange = Exchange(host=host, ends=ends, cancelled=lambda: _has_hung_up(connection))
        self._count(1)
        try:
            return b"ok\n" + self._service.handle(operation, body, exchange)
        except JourneymanError as error:
            log.warning("%s of %s: %s", operation, host, error)
            return f"error\n{error}".encode("utf-8", "replace")
        except Exception as error:
            # A request must not end the server.
            log.exception("the operation %s of %s failed", operation, host)
            return f"error\n{type(error).__name__}: {error}".encode("utf-8", "replace")
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        with self._counting:
            self._active += change
            self._last_request = time.monotonic()

    @property
    def idle_s(self) -> float:
        """Seconds since the last request; 0 while one is being answered."""
        return 0.0 if self._active else time.monotonic() - self._last_request

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._service.stopping.set()
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()
        with suppress(OSError):
            Path(self.path).unlink()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()


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
        connection = self.request
        connection.settimeout(_READ_S)
        received = bytearray()
        with suppress(OSError):
            while chunk := connection.recv(65_536):
                received += chunk
                if len(received) > _BODY_LIMIT:
                    return
            head, newline, body = bytes(received).partition(b"\n")
            if not newline or len(head) > _HEAD_LIMIT:
                return
            connection.sendall(self.server.owner.answer(head, body, connection))


def _has_hung_up(connection: socket.socket) -> bool:
    """Whether the client has gone: it stops sending after its request, so only a connection that is
    closed both ways counts.
    """
    poll = select.poll()
    poll.register(connection, select.POLLHUP)
    return any(events & select.POLLHUP for _, events in poll.poll(0))
