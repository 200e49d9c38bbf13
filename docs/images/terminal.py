"""Draw the first lines that a command prints in a terminal as an SVG file, for the README.

Usage: python docs/images/terminal.py FILE COLUMNS LINES COMMAND...
"""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

_FONT_FACES = re.compile(r"@font-face \{.*?\}|<!--.*?-->", re.DOTALL)
"""Rich refers to web fonts; the picture must not fetch anything."""


def output_of(command: list[str], columns: int) -> str:
    """Return what a command prints to a terminal of this width, with colours."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color", "LINES": "60"}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environ) as running:  # noqa: S603 - the caller names it
        os.close(theirs)
        chunks = []
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # the other end was closed
                break
            if not chunk:
                break
            chunks.append(chunk)
        running.wait()
    os.close(ours)
    return b"".join(chunks).decode().replace("\r\n", "\n")


def main() -> None:
    path, columns, lines, *command = sys.argv[1:]
    shown = ["journeyman" if word.endswith("/journeyman") else word for word in command]
    prompt = " ".join(f'"{word}"' if " " in word else word for word in shown)
    with Path(os.devnull).open("w") as nowhere:
        console = Console(width=int(columns), record=True, file=nowhere, force_terminal=True)
        console.print(Text(f"$ {prompt}", style="bold"))
        printed = output_of(command, int(columns)).rstrip().splitlines()
        console.print(Text.from_ansi("\n".join(printed[: int(lines)])))
        picture = console.export_svg(title="", unique_id="terminal")
    Path(path).write_text(_FONT_FACES.sub("", picture))


if __name__ == "__main__":
    main()
