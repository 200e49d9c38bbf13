"""Long output on a terminal goes to the pager; everything else does not."""

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import TextIO

from tests.program import Command
from tests.waiting import LONGEST_S


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


def test_only_long_output_on_a_terminal_is_paged(filled: Command, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    keeps = terminal.environ["PAGER"]
    for pager, lines, arguments, is_paged in (
        (keeps, "5", ("sessions", "list"), True),
        ("head -n 1", "5", ("sessions", "list", "--limit", "1000"), False),  # left early
        (keeps, "500", ("sessions", "list"), False),
        (keeps, "5", ("sessions", "list", "--no-pager"), False),
        (keeps, "5", ("sessions", "list", "--json", "--limit", "1"), False),
    ):
        (tmp_path / "paged").unlink(missing_ok=True)
        ended = subprocess.run(
            [sys.executable, "-m", "journeyman", *arguments],
            env=filled.environ | terminal.environ | {"PAGER": pager, "LINES": lines},
            cwd=filled.home,
            stdin=terminal.file,
            stdout=terminal.file,
            stderr=subprocess.PIPE,
            timeout=LONGEST_S,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (0, b""), arguments
        assert bool(terminal.paged) == is_paged, arguments
    assert "title" in terminal.close()
