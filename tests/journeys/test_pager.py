"""Long output on a terminal goes to the pager; everything else does not."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import click
import pytest
from tests.program import Command
from tests.waiting import LONGEST_S

from journeyman.cli.pager import PagedOutput, paged_output

LONG = "".join(f"line {n}\n" for n in range(100))


class Terminal:
    """A terminal of 24 lines, and a pager that keeps what it was given."""

    def __init__(self, folder: Path) -> None:
        self._master, slave = pty.openpty()
        self.file: TextIO = os.fdopen(slave, "w", encoding="utf-8")
        self._paged = folder / "paged"
        pager = folder / "pager"
        pager.write_text(f'#!/bin/sh\ncat > "{self._paged}"\n')
        pager.chmod(0o700)
        self.environ = {"PAGER": str(pager), "LINES": "24", "COLUMNS": "80", "TERM": "xterm"}

    @property
    def paged(self) -> str:
        return self._paged.read_text() if self._paged.exists() else ""

    def close(self) -> str:
        """Return what was written to the terminal itself."""
        self.file.close()
        written = b""
        try:
            while piece := os.read(self._master, 65536):
                written += piece
        except OSError:  # the other end is closed and everything has been read
            pass
        os.close(self._master)
        return written.decode().replace("\r\n", "\n")


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path)
    for name, value in terminal.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_PAGER", raising=False)
    yield terminal
    if not terminal.file.closed:
        terminal.close()


def write(terminal: Terminal, text: str) -> None:
    """Write text to the terminal as a paged command does."""
    before, sys.stdout = sys.stdout, terminal.file
    try:
        with paged_output():
            sys.stdout.write(text)
    finally:
        sys.stdout = before


def test_long_output_is_paged(terminal: Terminal) -> None:
    write(terminal, LONG)
    assert terminal.paged == LONG
    assert terminal.close() == ""


def test_wrapped_lines_count(terminal: Terminal) -> None:
    write(terminal, "x" * 80 * 30 + "\n")
    assert terminal.paged


def test_short_output_goes_to_the_terminal(terminal: Terminal) -> None:
    write(terminal, "one line\n" * 20)
    assert terminal.paged == ""
    assert terminal.close() == "one line\n" * 20


@pytest.mark.parametrize(
    ("name", "value"), [("NO_PAGER", "1"), ("PAGER", ""), ("PAGER", "cat"), ("PAGER", "no-such'")]
)
def test_nothing_is_paged_if_the_user_wants_no_pager(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    write(terminal, LONG)
    assert terminal.paged == ""
    assert terminal.close() == LONG


def test_an_error_keeps_what_was_written(terminal: Terminal) -> None:
    output = PagedOutput(terminal.file, ["no-such-pager"])
    with pytest.raises(click.exceptions.Exit):
        output.write(LONG)
    assert terminal.close() == LONG


def test_leaving_the_pager_early_is_no_error(filled: Command, tmp_path: Path) -> None:
    """A real command on a real terminal, with a pager that reads one line."""
    terminal = Terminal(tmp_path)
    for pager, arguments, is_paged in (
        (terminal.environ["PAGER"], ("sessions", "list"), True),
        ("head -n 1", ("sessions", "list", "--limit", "1000"), True),
        (terminal.environ["PAGER"], ("sessions", "list", "--no-pager"), False),
        (terminal.environ["PAGER"], ("sessions", "list", "--json"), False),
    ):
        (tmp_path / "paged").unlink(missing_ok=True)
        ended = subprocess.run(
            [sys.executable, "-m", "journeyman", *arguments],
            env=filled.environ | terminal.environ | {"PAGER": pager, "LINES": "5"},
            cwd=filled.home,
            stdin=subprocess.DEVNULL,
            stdout=terminal.file if is_paged else subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=LONGEST_S,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (0, b""), arguments
        if pager == terminal.environ["PAGER"]:
            assert bool(terminal.paged) == is_paged
    terminal.close()
