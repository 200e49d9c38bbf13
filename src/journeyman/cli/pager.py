"""A pager for output that does not fit on the terminal, as git has it."""

import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import click
from click import unstyle

_DEFAULT_PAGER = "less"
# Quit if everything fits after all, keep colours, leave the text on the screen.
_LESS_OPTIONS = "FRX"


class PagedOutput(io.TextIOBase):
    """Standard output that starts the pager once a screenful has been written. Shorter output goes
    directly to the terminal. After the person has left the pager, writing ends the command.
    """

    def __init__(self, terminal: TextIO, command: list[str]) -> None:
        self._terminal, self._command = terminal, command
        self._size = shutil.get_terminal_size()
        self._held: list[str] = []
        self._held_lines = 0
        self._pager: subprocess.Popen[str] | None = None

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._terminal.encoding

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._terminal.fileno()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self._pager is None:
            self._held.append(text)
            self._held_lines += self._lines(text)
            if self._held_lines >= self._size.lines:
                self._start()
        else:
            self._page(text)
        return len(text)

    def _lines(self, text: str) -> int:
        """The lines that a text takes up on the screen, at least."""
        width = max(self._size.columns, 1)
        return sum(1 + max(len(line) - 1, 0) // width for line in unstyle(text).split("\n")) - 1

    def _start(self) -> None:
        environ = {"LESS": _LESS_OPTIONS, "LV": "-c", **os.environ}
        try:
            self._pager = subprocess.Popen(  # noqa: S603 - the user's own choice
                self._command,
                stdin=subprocess.PIPE,
                env=environ,
                text=True,
                encoding=self.encoding,
                errors="replace",
            )
        except OSError as error:
            self._drain()
            click.echo(f"The pager {self._command[0]} cannot be started: {error}.", err=True)
            raise click.exceptions.Exit(1) from error
        held, self._held = "".join(self._held), []
        self._page(held)

    def _page(self, text: str) -> None:
        assert self._pager is not None
        assert self._pager.stdin is not None
        try:
            self._pager.stdin.write(text)
        except BrokenPipeError:
            raise click.exceptions.Exit(0) from None

    def _drain(self) -> None:
        self._terminal.write("".join(self._held))
        self._terminal.flush()
        self._held = []

    def finish(self) -> None:
        """Show what is left, and wait until the person has left the pager."""
        if self._pager is None:
            self._drain()
            return
        # Ctrl-C belongs to the pager now.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            with suppress(BrokenPipeError):
                self._pager.communicate()
        finally:
            signal.signal(signal.SIGINT, before)


@contextmanager
def paged_output() -> Iterator[None]:
    """Page what the block writes to standard output. Nothing changes unless standard output is a
    terminal, or if the variable NO_PAGER is set or PAGER is empty or `cat`.
    """
    command = _pager_command()
    if not command:
        yield
        return
    terminal = sys.stdout
    output = PagedOutput(terminal, command)
    sys.stdout = output
    try:
        yield
    finally:
        sys.stdout = terminal
        output.finish()


def _pager_command() -> list[str]:
    """The pager and its arguments; empty if output is not to be paged."""
    if not sys.stdout.isatty() or os.environ.get("NO_PAGER"):
        return []
    try:
        command = shlex.split(os.environ.get("PAGER", _DEFAULT_PAGER))
    except ValueError:
        return []
    if not command or command[0] == "cat" or shutil.which(command[0]) is None:
        return []
    return command
