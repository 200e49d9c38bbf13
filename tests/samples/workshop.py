"""The environment of scripted agents: a project in a temporary folder, and real tools with output
that does not depend on the machine.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.samples.script import CallRequest, CallResult, ResultKind

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
    """One agent's environment below `root`: a project is copied into it, and calls run against it.

    `python` is the folder of `install_python`. With `read_before_edit`, an existing file must have
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
        self._cwd = self._real_path(f"{WORK}/{project}")
        self._read_before_edit = read_before_edit
        self._read_paths: set[str] = set()
        for path, content in files.items():
            target = self._cwd / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, "utf-8")
        self._environment = {
            "PATH": os.pathsep.join([str(python), "/usr/bin", "/bin"]),
            "HOME": str(self._real_path(HOME)),
            "LC_ALL": "C",
            "TZ": "UTC",
            "PYTHONHASHSEED": "0",
            "PYTHONIOENCODING": "utf-8",
            "NO_COLOR": "1",
        }

    def perform(self, request: CallRequest) -> CallResult:
        """Execute one call."""
        required = _REQUIRED.get(request.tool)
        if required is None:
            return CallResult(kind="unknown_tool")
        missing = [name for name in required if name not in request.arguments]
        if missing:
            return CallResult(kind="bad_arguments", text=missing[0])
        arguments = request.arguments
        if request.tool == "shell":
            return self._shell(arguments["command"])
        if request.tool == "write":
            return self._write(arguments["path"], arguments["content"])
        if not self._real_path(arguments["path"]).exists():
            return CallResult(kind="missing_file", text=arguments["path"])
        if request.tool == "read":
            self._read_paths.add(arguments["path"])
            return CallResult(kind="ok", text=self._real_path(arguments["path"]).read_text("utf-8"))
        if request.tool == "edit":
            return self._edit(arguments["path"], arguments["old"], arguments["new"])
        return self._search(arguments["pattern"], arguments["path"])

    def _shell(self, command: str) -> CallResult:
        done = subprocess.run(
            ["/bin/sh", "-c", command.replace(WORK, str(self._real_path(WORK)))],
            stdin=subprocess.DEVNULL,
            cwd=self._cwd,
            env=self._environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=_TIMEOUT_S,
            check=False,
        )
        return CallResult(
            kind="nonzero_exit" if done.returncode else "ok",
            text=self._portable(done.stdout),
            errors=self._portable(done.stderr),
            exit_code=done.returncode,
        )

    def _write(self, path: str, content: str) -> CallResult:
        """Create or replace a file."""
        file = self._real_path(path)
        before = file.read_text("utf-8") if file.is_file() else None
        if before is not None and not self._can_change(path):
            return CallResult(kind="unread_file")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")
        self._read_paths.add(path)
        return CallResult(kind="ok", before=before, after=content)

    def _edit(self, path: str, old: str, new: str) -> CallResult:
        """Replace a piece of text that occurs exactly once in a file."""
        if not self._can_change(path):
            return CallResult(kind="unread_file")
        file = self._real_path(path)
        before = file.read_text("utf-8")
        matches = before.count(old)
        if matches != 1:
            kind: ResultKind = "many_matches" if matches else "no_match"
            return CallResult(kind=kind, text=old, matches=matches)
        after = before.replace(old, new)
        file.write_text(after, "utf-8")
        return CallResult(kind="ok", before=before, after=after)

    def _search(self, pattern: str, path: str) -> CallResult:
        """Search text files under a path for a regular expression, line by line."""
        hits = [
            f"{self._portable(str(file))}:{number}:{line}"
            for file in sorted(self._real_path(path).rglob("*.*"))
            for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
            if re.search(pattern, line)
        ]
        return CallResult(kind="ok", text="\n".join(hits), matches=len(hits))

    def _can_change(self, path: str) -> bool:
        return path in self._read_paths or not self._read_before_edit

    def _real_path(self, path: str) -> Path:
        return self._root / path.lstrip("/") if path.startswith("/") else self._cwd / path

    def _portable(self, text: str) -> str:
        """The text without paths, durations and wording that depend on the machine."""
        text = text.replace(str(self._root), "").replace(sys.executable, "python3")
        text = _TEST_SECONDS.sub(r"\1 in 0.012s", text)
        text = _TRACEBACK_MARKS.sub("", text)
        return _NOT_FOUND.sub(r"sh: 1: \1: not found", text)


def install_python(folder: Path) -> Path:
    """Create a `python3` in the folder: the running interpreter, without site packages."""
    launcher = folder / "python3"
    folder.mkdir(parents=True)
    launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S -B "$@"\n', "utf-8")
    launcher.chmod(0o755)
    return folder
