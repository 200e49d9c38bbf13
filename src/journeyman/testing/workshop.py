"""The place where scripted agents work: a project in a temporary folder, and real tools, whose
output is made independent of the machine.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from journeyman.testing.script import Ask, Result

HOME = "/home/sam"
WORK = f"{HOME}/work"

_TIMEOUT_S = 30
_TEST_SECONDS = re.compile(r"^(Ran \d+ tests?) in [\d.]+s$", re.MULTILINE)
_TRACEBACK_MARKS = re.compile(r"^ +[~^]+\n", re.MULTILINE)
_NOT_FOUND = re.compile(r"^\S*sh: (?:line )?\d*:? ?(\S+?):? (?:command )?not found$", re.MULTILINE)

_REQUIRED = {
    "shell": ("command",),
    "read": ("path",),
    "write": ("path", "content"),
    "edit": ("path", "old", "new"),
    "search": ("pattern", "path"),
}


class Workshop:
    """One agent's workplace under `root`: a project is copied in, calls run against it.

    `python` is the folder of `install_python`. With `read_before_edit` an existing file must have
    been read before it is changed.
    """

    def __init__(
        self,
        root: Path,
        project: str,
        files: Mapping[str, str],
        *,
        python: Path,
        read_before_edit: bool = False,
    ) -> None:
        self._root = root.resolve()
        self._cwd = self._real(f"{WORK}/{project}")
        self._read_before_edit = read_before_edit
        self._seen: set[str] = set()
        for path, content in files.items():
            target = self._cwd / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, "utf-8")
        self._environment = {
            "PATH": os.pathsep.join([str(python), "/usr/bin", "/bin"]),
            "HOME": str(self._real(HOME)),
            "LC_ALL": "C",
            "TZ": "UTC",
            "PYTHONHASHSEED": "0",
            "PYTHONIOENCODING": "utf-8",
            "NO_COLOR": "1",
        }

    def perform(self, ask: Ask) -> Result:
        """Execute one call."""
        required = _REQUIRED.get(ask.tool)
        if required is None:
            return Result(kind="unknown_tool")
        missing = [name for name in required if name not in ask.arguments]
        if missing:
            return Result(kind="bad_arguments", text=missing[0])
        given = ask.arguments
        if ask.tool == "shell":
            return self._shell(given["command"])
        if ask.tool == "write":
            return self._write(given["path"], given["content"])
        if not self._real(given["path"]).exists():
            return Result(kind="missing_file", text=given["path"])
        if ask.tool == "read":
            self._seen.add(given["path"])
            return Result(kind="ok", text=self._real(given["path"]).read_text("utf-8"))
        if ask.tool == "edit":
            return self._edit(given["path"], given["old"], given["new"])
        return self._search(given["pattern"], given["path"])

    def _shell(self, command: str) -> Result:
        done = subprocess.run(  # noqa: S603  the commands are the corpus's own
            ["/bin/sh", "-c", command.replace(WORK, str(self._real(WORK)))],
            stdin=subprocess.DEVNULL,
            cwd=self._cwd,
            env=self._environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=_TIMEOUT_S,
            check=False,
        )
        return Result(
            kind="nonzero_exit" if done.returncode else "ok",
            text=self._shown(done.stdout),
            errors=self._shown(done.stderr),
            exit_code=done.returncode,
        )

    def _write(self, path: str, content: str) -> Result:
        """Create or replace a file."""
        file = self._real(path)
        before = file.read_text("utf-8") if file.is_file() else None
        if before is not None and not self._may_change(path):
            return Result(kind="unread_file")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")
        self._seen.add(path)
        return Result(kind="ok", before=before, after=content)

    def _edit(self, path: str, old: str, new: str) -> Result:
        """Replace a piece of text that stands in a file exactly once."""
        if not self._may_change(path):
            return Result(kind="unread_file")
        file = self._real(path)
        before = file.read_text("utf-8")
        found = before.count(old)
        if found != 1:
            return Result(kind="many_matches" if found else "no_match", text=old, matches=found)
        after = before.replace(old, new)
        file.write_text(after, "utf-8")
        return Result(kind="ok", before=before, after=after)

    def _search(self, pattern: str, path: str) -> Result:
        """Search text files under a path for a regular expression, line by line."""
        hits = [
            f"{self._shown(str(file))}:{number}:{line}"
            for file in sorted(self._real(path).rglob("*.*"))
            for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
            if re.search(pattern, line)
        ]
        return Result(kind="ok", text="\n".join(hits), matches=len(hits))

    def _may_change(self, path: str) -> bool:
        return path in self._seen or not self._read_before_edit

    def _real(self, path: str) -> Path:
        return self._root / path.lstrip("/") if path.startswith("/") else self._cwd / path

    def _shown(self, text: str) -> str:
        text = text.replace(str(self._root), "").replace(sys.executable, "python3")
        text = _TEST_SECONDS.sub(r"\1 in 0.012s", text)
        text = _TRACEBACK_MARKS.sub("", text)
        return _NOT_FOUND.sub(r"sh: 1: \1: not found", text)


def install_python(folder: Path) -> Path:
    """Put a `python3` into the folder that is the running interpreter, without site packages."""
    launcher = folder / "python3"
    folder.mkdir(parents=True)
    launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S -B "$@"\n', "utf-8")
    launcher.chmod(0o755)
    return folder
