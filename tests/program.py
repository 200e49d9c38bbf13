"""The program as a person runs it, in its own home: in this process, which is fast, or in a
separate process that can be signalled.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.waiting import LONGEST_S

from journeyman import cli

PYTHON = shlex.quote(sys.executable)
"""This interpreter, for a shell. The first on the search path may need files of another home."""

PYTHON_SCRIPT = f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''\n"
"""The first lines of a program for this interpreter, as pip writes them: its path may have a space
or be long."""


class Command:
    """`journeyman` in its own home."""

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
        self, *arguments: object, code: int | None = 0, typed: str = "", **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the program with these arguments; it must exit with `code`, unless that is None, and
        without a traceback.
        """
        if any(name.startswith("PYTHON") for name in environ):  # read at interpreter start
            return self.start(*arguments, typed=typed, **environ).wait(code=code)
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as stdin,
            tempfile.TemporaryFile("w+", encoding="utf-8") as stdout,
            tempfile.TemporaryFile("w+", encoding="utf-8", errors="backslashreplace") as stderr,
        ):
            stdin.write(typed)
            stdin.seek(0)
            with (
                _surroundings(self.environ | environ, self.home),
                _standard_streams(stdin, stdout, stderr),
                _arguments("journeyman", *map(str, arguments)),
            ):
                ended = _exit_code()
            output, errors = _content(stdout), _content(stderr)
        return _checked(ended, output, errors, code)

    def json(self, *arguments: object, code: int = 0, **environ: str) -> Any:
        return json.loads(self(*arguments, "--json", code=code, **environ).stdout)

    def start(self, *arguments: object, typed: str = "", **environ: str) -> "Process":
        """Start the program in a separate process without waiting for it."""
        program = [sys.executable, "-m", "journeyman", *map(str, arguments)]
        return Process(program, self.environ | environ, self.home, typed)

    def python(self, block: str) -> None:
        """Run a block of Python that uses the library; it must exit without an error."""
        with _surroundings(self.environ, self.home), _arguments("-c"):
            exec(compile(block, "<block>", "exec"), {"__name__": "__main__"})


class Process:
    """The program in a separate process. Its output goes to files, so that it never blocks on a
    reader.
    """

    def __init__(
        self, program: list[str], environ: Mapping[str, str], folder: Path, typed: str = ""
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="journeyman-process-")
        place = Path(self._folder.name)
        self._stdout, self._stderr = place / "stdout", place / "stderr"
        (place / "stdin").write_text(typed)
        with (
            (place / "stdin").open() as stdin,
            self._stdout.open("w") as stdout,
            self._stderr.open("w") as stderr,
        ):
            self._process = subprocess.Popen(
                program, env=environ, cwd=folder, stdin=stdin, stdout=stdout, stderr=stderr
            )
        self.pid = self._process.pid
        weakref.finalize(
            self, _end, self._process, self._folder
        )  # for tests that fail before they wait

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def printed(self) -> str:
        """The output so far, stdout before stderr."""
        return self._stdout.read_text() + self._stderr.read_text()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self, *, code: int | None = None) -> subprocess.CompletedProcess[str]:
        """Wait until it exits; kill it if it hangs."""
        try:
            ended = self._process.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            ended = self._process.wait()
        output, errors = self._stdout.read_text(), self._stderr.read_text()
        self._folder.cleanup()
        return _checked(ended, output, errors, code)


def _end(process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    folder.cleanup()


def _exit_code() -> int:
    try:
        cli.main()
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    return 0


def _content(file: Any) -> str:
    if file.closed:  # closed by the program after its reader went away
        return ""
    file.flush()
    file.seek(0)
    content: str = file.read()
    return content


def _checked(
    ended: int, output: str, errors: str, code: int | None
) -> subprocess.CompletedProcess[str]:
    assert "Traceback" not in errors, errors
    assert code in (None, ended), f"ended with {ended}\n{output}\n{errors}"
    return subprocess.CompletedProcess([], ended, output, errors)


@contextmanager
def _surroundings(environ: Mapping[str, str], folder: Path) -> Iterator[None]:
    before, here = dict(os.environ), Path.cwd()
    _set_environ(environ)
    os.chdir(folder)
    try:
        yield
    finally:
        _set_environ(before)
        os.chdir(here)


def _set_environ(environ: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()


@contextmanager
def _standard_streams(stdin: Any, stdout: Any, stderr: Any) -> Iterator[None]:
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = stdin, stdout, stderr
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


@contextmanager
def _arguments(*arguments: str) -> Iterator[None]:
    before, sys.argv = sys.argv, list(arguments)
    try:
        yield
    finally:
        sys.argv = before
