"""The client of the resident process, for programs that must start fast: only the standard library,
and as little of it as possible. It is imported by plugins, and hooks run it as a script:

    python -I -S client.py HOME HOST EVENT [SECONDS]

It passes the hook's input on and prints the answer, within SECONDS. Without a resident process it
runs the operation in a child process. If that fails too, it prints nothing, except before a tool
call, which it then denies: no answer is not consent.
"""

import os
import select
import sys
import time

try:  # without the layer in Python, whose import takes longer than everything else here
    import _socket as socket
except ImportError:
    import socket  # type: ignore[no-redef]

PROTOCOL = b"1"
PROGRAM = (sys.executable, "-E", "-P", "-m", "journeyman")
"""This program. Neither the variables nor the folder of a project decide which code it loads."""

_KEPT_VARIABLES = (
    *("HOME", "PATH", "LANG", "LANGUAGE", "TMPDIR", "TZ", "USER", "LOGNAME", "SHELL"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
)
_KEPT_PREFIXES = ("LC_", "XDG_")
_LONGEST_ADDRESS = 100
"""The operating system limits the path of a socket to about this many bytes."""

_GATE = "PreToolUse"
_DEADLINES_S = {"SessionEnd": 2.5}
_DEADLINE_S = 3.0
"""How long a hook may take that does not wait for a person."""

_GATE_DEADLINE_S = 330.0
"""Longer than a confirmation, by default; the installer passes what the settings need."""

WAITING = b"wait\n"
"""What the resident process sends first if a person has to decide."""

_SILENCE_S = 3.0
"""A gate that says nothing for this long hangs: one that asks a person says so at once."""

_SHORTEST_S = 0.05
_CHUNK = 65_536
_FAILURES = "hook-failures.log"
_LARGEST_LOG = 1_000_000


class Unanswered(Exception):
    """Journeyman gave no answer. `reached` is true if the resident process took the request."""

    def __init__(self, reason: str, *, reached: bool = False) -> None:
        super().__init__(reason)
        self.reached = reached


def unavailable(host: str) -> str:
    """Return why a call is blocked that no one could be asked about, and what a person can do."""
    return (
        "Blocked by Journeyman: no confirmation could be requested, because Journeyman did not "
        "answer. Do not try to achieve the same in another way. A person can start it with "
        f"`journeyman serve`, or take it out of this agent with `journeyman hosts remove {host}`."
    )


def socket_path(home: str) -> str:
    """Return the path of the resident process's socket for a home. It is the same for every program
    of this user, whatever the environment: otherwise two processes could serve one home.
    """
    path = os.path.join(os.path.abspath(home), "serve.sock")  # noqa: PTH100, PTH118
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        return path
    import hashlib  # noqa: PLC0415 - rarely needed

    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    return f"{_shared_folder()}/{name}.sock"


def run_path(run: str) -> str:
    """Return the path of the socket at which the process that started a run answers its hooks."""
    return f"{_shared_folder()}/run-{run}.sock"


def _answering_path(home: str) -> str:
    """Return the socket to ask: in a run of Journeyman's own, that of the process that started it,
    while it is there.
    """
    run = os.environ.get("JOURNEYMAN_RUN", "")
    if run.isalnum() and os.path.exists(run_path(run)):  # noqa: PTH110 - imports nothing
        return run_path(run)
    return socket_path(home)


def is_trusted(path: str) -> bool:
    """Whether no other user can have put a socket here: one outside the home is in a folder whose
    parent is open to everyone.
    """
    folder = os.path.dirname(path)  # noqa: PTH120
    return folder != _shared_folder() or os.lstat(folder).st_uid == os.getuid()


def _shared_folder() -> str:
    return f"/tmp/journeyman-{os.getuid()}"  # noqa: S108 - see `is_trusted`


def child_environ() -> dict[str, str]:
    """Return the variables for processes that hooks start. A project can set variables for its
    agent; settings of Journeyman among them must not reach a process that serves all projects.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT_VARIABLES or name.startswith(_KEPT_PREFIXES)
    }


def request(
    home: str,
    operation: str,
    host: str,
    body: bytes,
    *,
    timeout_s: float,
    silence_s: float = 3_600.0,
) -> bytes:
    """Exchange one request with the resident process, which must say something within `silence_s`.
    Raise Unanswered.
    """
    ends = time.monotonic() + timeout_s
    answer = b""
    sent = False
    head = f"{PROTOCOL.decode()} {operation} {host} {int(timeout_s * 1_000)}\n"
    connection = socket.socket(socket.AF_UNIX)
    try:
        path = _answering_path(home)
        if not is_trusted(path):
            raise PermissionError(f"the folder of {path} belongs to another user")
        connection.settimeout(timeout_s)
        connection.connect(path)
        connection.settimeout(max(ends - time.monotonic(), 0.001))
        connection.sendall(head.encode() + body)
        connection.shutdown(socket.SHUT_WR)
        sent = True
        while True:
            left_s = max(ends - time.monotonic(), 0.001)
            connection.settimeout(left_s if answer else min(left_s, silence_s))
            chunk = connection.recv(_CHUNK)
            if not chunk:
                break
            answer += chunk
    except OSError as error:
        raise Unanswered(f"{type(error).__name__}: {error}", reached=sent) from error
    finally:
        connection.close()
    status, _, content = answer.removeprefix(WAITING).partition(b"\n")
    if status != b"ok":
        reason = content.decode("utf-8", "replace") if status == b"error" else "no answer"
        raise Unanswered(reason, reached=True)
    return content


def run_once(home: str, operation: str, host: str, body: bytes, *, timeout_s: float) -> bytes:
    """Run one operation in a child process. Raise Unanswered."""
    import subprocess  # noqa: PLC0415 - only if there is no resident process

    command = [*PROGRAM, "--home", home, "hook", operation, host]
    command += ["--until", f"{time.time() + timeout_s:.3f}"]
    try:
        done = subprocess.run(  # noqa: S603
            command,
            input=body,
            env=child_environ(),
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        printed = error.stdout or b""
        if not printed.endswith(b"\n\n"):  # otherwise it has answered, and only not ended yet
            raise Unanswered(f"no answer of a child process within {timeout_s:.1f} s") from error
        done = subprocess.CompletedProcess(command, 0, printed)
    except (OSError, subprocess.SubprocessError) as error:
        raise Unanswered(f"{type(error).__name__}: {error}") from error
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())[-300:]
        reason = f"journeyman hook exited with {done.returncode}: {said}"
        raise Unanswered(reason, reached=True)
    status, _, content = done.stdout.partition(b"\n")
    if status != b"ok":
        raise Unanswered("the child process gave no answer", reached=True)
    return content.rstrip()


def request_or_run(
    home: str,
    operation: str,
    host: str,
    body: bytes,
    *,
    timeout_s: float,
    silence_s: float = 3_600.0,
    may_repeat: bool = False,
) -> bytes:
    """Exchange one request with the resident process or, where there is none, run the operation in
    a child process within the same deadline. What the resident process took is asked a second time
    only if it `may_repeat`. Raise Unanswered.
    """
    ends = time.monotonic() + timeout_s
    try:
        return request(home, operation, host, body, timeout_s=timeout_s, silence_s=silence_s)
    except Unanswered as error:
        if error.reached and not may_repeat:  # it may have acted on the request
            raise
    left_s = max(ends - time.monotonic(), _SHORTEST_S)
    return run_once(home, operation, host, body, timeout_s=left_s)


def note_failure(home: str, host: str, event: str, reason: str) -> None:
    """Append a failure to a file that `journeyman hosts report` counts."""
    line = f"{time.time():.0f} {host} {event} {' '.join(reason.split())[:200]}\n"
    try:
        path = os.path.join(home, _FAILURES)  # noqa: PTH118
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if os.fstat(descriptor).st_size > _LARGEST_LOG:
                os.ftruncate(descriptor, 0)
            os.write(descriptor, line.encode("utf-8", "replace"))
        finally:
            os.close(descriptor)
    except OSError:
        pass


def _with_entrypoint(body: bytes) -> bytes:
    """Add to a hook's input how Claude Code was started, which only its environment tells."""
    entrypoint = os.environ.get("CLAUDE_CODE_ENTRYPOINT", "")
    start = body.lstrip()
    if not entrypoint.replace("-", "").isalnum() or not start.startswith(b'{"'):
        return body
    return b'{"journeyman_entrypoint":"%s",%s' % (entrypoint.encode(), start[1:])


def _denial(reason: str) -> bytes:
    """The answer of a hook before a tool call that denies it, for Claude Code and Codex."""
    escaped = reason.replace("\\", "\\\\").replace('"', '\\"')
    return (
        '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny",'
        f'"permissionDecisionReason":"{escaped}"}}}}'
    ).encode()


def main(home: str, host: str, event: str, seconds: str = "") -> None:
    """Answer one hook: its input is on standard input."""
    is_gate = event == _GATE
    try:
        default_s = _GATE_DEADLINE_S if is_gate else _DEADLINES_S.get(event, _DEADLINE_S)
        timeout_s = float(seconds) if seconds else default_s
        ends = time.monotonic() + timeout_s
        body = _read_input(ends)
        left_s = max(ends - time.monotonic(), _SHORTEST_S)
        answer = request_or_run(
            home,
            "hook",
            host,
            _with_entrypoint(body),
            timeout_s=left_s,
            silence_s=_SILENCE_S if is_gate else left_s,
            may_repeat=is_gate,  # the id of its call makes it the same confirmation
        )
    except Exception as error:  # noqa: BLE001 - to most hosts, a hook that fails is consent
        reason = str(error) if isinstance(error, Unanswered) else f"{type(error).__name__}: {error}"
        note_failure(home, host, event, reason)
        answer = _denial(unavailable(host)) if is_gate else b""
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()


def _read_input(ends: float) -> bytes:
    chunks: list[bytes] = []
    while True:
        left_s = ends - time.monotonic()
        if left_s <= 0 or not select.select([0], [], [], left_s)[0]:
            raise Unanswered("the host did not finish the hook's input")
        chunk = os.read(0, _CHUNK)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)


if __name__ == "__main__":
    if not 4 <= len(sys.argv) <= 5:
        sys.exit("usage: client.py HOME HOST EVENT [SECONDS]")
    main(*sys.argv[1:])
