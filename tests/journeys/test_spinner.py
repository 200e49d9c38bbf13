"""The animated line on a real terminal: what is printed meanwhile never ends up behind it."""

import os
import pty
import re
import subprocess
import sys

from tests.waiting import LONGEST_S

PROGRAM = """
import time
from journeyman.cli import formatting
console = formatting.console()
with formatting.spinner("thinking", console):
    for word in ("first", "second"):
        time.sleep(0.3)
        console.print(word)
"""


def test_what_is_printed_during_the_animation_has_a_line_of_its_own() -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environ,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        check=True,
        timeout=LONGEST_S,
    )
    os.close(theirs)
    output = b""
    try:
        while part := os.read(ours, 65_536):
            output += part
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    shown = output.decode()
    assert "thinking" in shown
    for word in ("first", "second"):
        assert re.search(rf"\r\x1b\[2K{word}\r\n", shown), repr(shown)
