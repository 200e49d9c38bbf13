"""Runs a host's program: starts it, reads what it prints, keeps the limits, and ends it with
everything that it has started.
"""

import os
import secrets
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from journeyman.hosts.host import RUN_VARIABLE, HostPage, Launch, Plug, Reading
from journeyman.hosts.runner import RunRequest, RunResult, RunStatus, RunStep
from journeyman.records.errors import WrongInput

_CHUNK = 65_536
_LOOK_S = 0.1
"""How often to look whether the run was cancelled or has run out of time."""
_ERRORS_BYTES = 20_000
_PASSES, _PASS_S = 100, 0.02
"""How often, and how far apart, processes that are ended are looked for again."""
_FOLDER, _ERRORS = "{folder}", ".errors"
_GRACES = ((signal.SIGINT, 8.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0))
"""The signals that end a program, and how long it may take for each: most hosts store their session
at the first.
"""
_WORDS: Mapping[RunStatus, str] = {
    "time": "The limit of {seconds:g} seconds was reached.",
    "turns": "The limit of {turns} requests to the model was reached.",
    "tokens": "The limit of {tokens:,} tokens was reached.",
    "cost": "The limit of ${cost_usd:g} was reached.",
    "interrupted": "It was stopped.",
}


class HostRunner:
    """Runs a host's agent. The program gets this process's variables, among them those by which it
    finds its own login; nothing of that is looked at.
    """

    def __init__(
        self,
        page: HostPage,
        *,
        plug: Plug | None = None,
        environ: Mapping[str, str] = os.environ,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name: str = page.name
        self._page, self._environ, self._timer = page, environ, timer
        self._plug = plug or Plug()

    def run(
        self,
        request: RunRequest,
        *,
        on_step: Callable[[RunStep], None] = lambda _step: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> RunResult:
        """Run the program to its end. Raise WrongInput for what the host cannot do."""
        page, began = self._page, self._timer()
        program = shutil.which(page.program, path=self._environ.get("PATH"))
        if program is None:
            reason = f"{page.title} is not on the search path. To install it: {page.install}"
            return RunResult(runner=page.name, status="not_installed", reason=reason)
        if not request.folder.is_dir():
            raise WrongInput(f"There is no folder {request.folder} to work in.")
        plug = self._plug if self._plug.run else replace(self._plug, run=secrets.token_hex(6))
        launch = page.launch(request, plug, self._environ)
        reading = page.reading(request, self._environ)
        with tempfile.TemporaryDirectory(prefix="journeyman-run-") as folder:
            for name, content in launch.files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8")
            for name, target in launch.links.items():
                Path(folder, name).symlink_to(target)
            errors = Path(folder, _ERRORS)
            try:
                process = self._start(program, launch, request, plug, folder)
            except OSError as error:
                reason = f"{program} could not be started: {error.strerror or error}."
                return RunResult(runner=page.name, status="failed", reason=reason)
            stopped: RunStatus | None = "interrupted"
            unread, seconds = bytearray(), request.limits.seconds

            def stop() -> RunStatus | None:
                if cancelled():
                    return "interrupted"
                is_over = seconds is not None and self._timer() - began >= seconds
                return "time" if is_over else None

            try:
                stopped = _read(process, reading, on_step, stop, unread)
            finally:
                try:
                    if stopped is not None:
                        _end(process)
                        for line in _rest(process, unread):
                            for step in reading.steps(line):
                                on_step(step)
                finally:
                    if process.stdout is not None:
                        process.stdout.close()
                    _end_marked(plug.run)
            for step in reading.look():
                on_step(step)
            with errors.open("rb") as file:
                file.seek(max(0, errors.stat().st_size - _ERRORS_BYTES))
                said = file.read().decode("utf-8", "replace").strip()
        result = replace(
            reading.result(process.returncode, said),
            runner=page.name,
            seconds=round(self._timer() - began, 3),
        )
        if stopped is None and result.status == "not_logged_in":
            said = result.reason.rstrip(".")
            return replace(result, reason=f"{said}. To log in: {page.log_in}")
        if stopped is None:
            return result
        values = {name: getattr(request.limits, name) for name in request.limits.__struct_fields__}
        return replace(result, status=stopped, reason=_WORDS[stopped].format(**values))

    def _start(
        self,
        program: str,
        launch: Launch,
        request: RunRequest,
        plug: Plug,
        folder: str,
    ) -> "subprocess.Popen[bytes]":
        # Some programs work in the folder that PWD names.
        environ = {**self._environ, "PWD": str(request.folder), RUN_VARIABLE: plug.run}
        for name in (*self._page.nested, *launch.variables):
            value = launch.variables.get(name)
            environ.pop(name, None)
            if value is not None:
                environ[name] = value.replace(_FOLDER, folder)
        prompt = Path(folder, ".prompt")
        prompt.write_text(launch.stdin, encoding="utf-8")
        with prompt.open("rb") as stdin, Path(folder, _ERRORS).open("wb") as stderr:
            return subprocess.Popen(  # noqa: S603 - the agent that the user has installed
                [
                    *_guard(self._environ),
                    program,
                    *(word.replace(_FOLDER, folder) for word in launch.arguments),
                ],
                cwd=request.folder,
                env=environ,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                # Ctrl-C is for this process, which ends the host in order.
                start_new_session=True,
            )


def _guard(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return what starts a program that the kernel ends with the thread that started it, also if
    this process is killed. Only the full `setpriv` can do that.
    """
    found = shutil.which("setpriv", path=environ.get("PATH"))
    is_full = found is not None and Path(found).resolve().name == "setpriv"
    return (found, "--pdeathsig", "TERM", "--") if found and is_full else ()


def _read(
    process: "subprocess.Popen[bytes]",
    reading: Reading,
    on_step: Callable[[RunStep], None],
    stop: Callable[[], RunStatus | None],
    unread: bytearray,
) -> RunStatus | None:
    """Read until the program ends; return why it has to be ended before, if it has to. The part of
    a line that has arrived by then is left in `unread`.
    """
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            for step in reading.look():
                on_step(step)
            if stopped := stop() or reading.exceeded:
                return stopped
            if not selector.select(_LOOK_S):
                # What the program has started may keep its output open.
                if process.poll() is not None:
                    return None
                continue
            chunk = os.read(process.stdout.fileno(), _CHUNK)
            *lines, unread[:] = bytes(unread + chunk).split(b"\n")
            for line in lines if chunk else (bytes(unread),):
                for step in reading.steps(line.decode("utf-8", "replace")):
                    on_step(step)
            if not chunk:
                process.wait()
                return None


def _end(process: "subprocess.Popen[bytes]") -> None:
    for number, grace_s in _GRACES:
        if process.poll() is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)


def _rest(process: "subprocess.Popen[bytes]", unread: bytearray) -> Iterator[str]:
    """Yield the lines that an ended program has left in its pipe, after what is unread of one."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    content = bytes(unread)
    with suppress(BlockingIOError, OSError):
        while chunk := os.read(process.stdout.fileno(), _CHUNK):
            content += chunk
    yield from content.decode("utf-8", "replace").splitlines()


def _end_marked(run: str) -> None:
    """End every process that carries the mark of a run, also one that has left its group, and wait
    until they are gone.
    """
    for _ in range(_PASSES):
        found = [pid for pid in _marked(run) if pid != os.getpid()]
        if not found:
            return
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PASS_S)


def _marked(run: str) -> Iterator[int]:
    """Yield the processes that carry the mark of a run."""
    mark = f"{RUN_VARIABLE}={run}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)
