"""The place where scripted agents work: real projects in a temporary folder, and real tools.

Everything a tool prints is made independent of the machine: the folder shows as `/home/sam/work`,
the interpreter as `python3`, test timings are fixed, and the marks that newer Pythons put under
traceback lines are left out.
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

REQUIRED = {
    "shell": ("command",),
    "read": ("path",),
    "write": ("path", "content"),
    "edit": ("path", "old", "new"),
    "search": ("pattern", "path"),
    "python": ("code",),
}


class Workshop:
    """One agent's workplace under `root`: the projects are copied in, calls run against them.

    `python` is the launcher of `install_python`. With `read_before_edit` an existing file must
    have been read before it is changed.
    """

    def __init__(
        self,
        root: Path,
        files: Mapping[str, bytes],
        *,
        project: str,
        python: Path,
        read_before_edit: bool = False,
    ) -> None:
        self._root = root.resolve()
        self._cwd = self._real(f"{WORK}/{project}")
        self._read_before_edit = read_before_edit
        self._seen: set[str] = set()
        for path, content in files.items():
            target = self._real(f"{WORK}/{path}")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        self._environment = _environment(self._root, python)

    def perform(self, ask: Ask) -> Result:
        """Execute one call."""
        required = REQUIRED.get(ask.tool)
        if required is None:
            return Result(kind="unknown_tool")
        missing = [name for name in required if name not in ask.arguments]
        if missing:
            return Result(kind="bad_arguments", text=missing[0])
        given = ask.arguments
        if ask.tool == "shell":
            return self.shell(given["command"])
        if ask.tool == "read":
            return self.read(given["path"])
        if ask.tool == "write":
            return self.write(given["path"], given["content"])
        if ask.tool == "edit":
            replace_all = bool(given.get("replace_all", False))
            return self.edit(given["path"], given["old"], given["new"], replace_all=replace_all)
        if ask.tool == "search":
            return self.search(given["pattern"], given["path"])
        return self.python(given["code"])

    def shell(self, command: str) -> Result:
        """Run a command line with `sh`."""
        return self._run(["/bin/sh", "-c", command.replace(WORK, str(self._real(WORK)))])

    def python(self, code: str) -> Result:
        """Run a Python snippet."""
        return self._run(["python3", "-"], stdin=code.replace(WORK, str(self._real(WORK))))

    def read(self, path: str) -> Result:
        """Read a whole text file."""
        file = self._real(path)
        if not file.is_file():
            return Result(kind="missing_file", text=path, errors=self._neighbours(file))
        self._seen.add(path)
        return Result(kind="ok", text=file.read_text("utf-8"))

    def write(self, path: str, content: str) -> Result:
        """Create or replace a file."""
        file = self._real(path)
        before = file.read_text("utf-8") if file.is_file() else None
        if before is not None and not self._may_change(path):
            return Result(kind="unread_file")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")
        self._seen.add(path)
        return Result(kind="ok", before=before, after=content)

    def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> Result:
        """Replace a piece of text that stands in a file exactly once, or everywhere."""
        file = self._real(path)
        if not file.is_file():
            return Result(kind="missing_file", text=path, errors=self._neighbours(file))
        if not self._may_change(path):
            return Result(kind="unread_file")
        before = file.read_text("utf-8")
        found = before.count(old)
        if found == 0:
            return Result(kind="no_match", text=old)
        if found > 1 and not replace_all:
            return Result(kind="many_matches", text=old, matches=found)
        after = before.replace(old, new)
        file.write_text(after, "utf-8")
        return Result(kind="ok", before=before, after=after, matches=found)

    def search(self, pattern: str, path: str) -> Result:
        """Search text files under a path for a regular expression, line by line."""
        start = self._real(path)
        if not start.exists():
            return Result(kind="missing_file", text=path, errors=self._neighbours(start))
        try:
            expression = re.compile(pattern)
        except re.error:
            return Result(kind="tool_error", text=f"regex parse error: {pattern}")
        files = [start] if start.is_file() else sorted(start.rglob("*"))
        hits = [
            f"{self._shown(str(file))}:{number}:{line}"
            for file in files
            if file.is_file() and file.suffix != ".db"
            for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
            if expression.search(line)
        ]
        return Result(kind="ok", text="\n".join(hits), matches=len(hits))

    def _may_change(self, path: str) -> bool:
        return path in self._seen or not self._read_before_edit

    def _run(self, command: list[str], stdin: str | None = None) -> Result:
        done = subprocess.run(  # noqa: S603  the commands are the corpus's own
            command,
            input=stdin or "",
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

    def _real(self, path: str) -> Path:
        return self._root / path.lstrip("/") if path.startswith("/") else self._cwd / path

    def _neighbours(self, file: Path) -> str:
        """Files that stand where the missing one was looked for."""
        if not file.parent.is_dir():
            return ""
        names = sorted(str(other) for other in file.parent.iterdir() if other.is_file())
        return self._shown("\n".join(names[:3]))

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
    return launcher


def _environment(root: Path, python: Path) -> dict[str, str]:
    return {
        "PATH": os.pathsep.join([str(python.parent), "/usr/bin", "/bin"]),
        "HOME": str(root / HOME.lstrip("/")),
        "LC_ALL": "C",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONIOENCODING": "utf-8",
        "NO_COLOR": "1",
    }
