"""The folder that a session works in, as far as facts are checked against it: which paths exist,
which programs are installed, what is not committed, and what the instructions files say.
"""

import os
import re
import shutil
import subprocess
from functools import cached_property
from pathlib import Path

from journeyman.learning.commands import is_project_command, names_folder, subject_of
from journeyman.logs.repositories import is_work_tree
from journeyman.records.fact import Fact

INSTRUCTIONS = (
    *("CLAUDE.md", "AGENTS.md", "README.md", ".claude/CLAUDE.md", "GEMINI.md"),
    *("CLAUDE.local.md", "CONTRIBUTING.md"),
)
"""The files in which a project says how it is worked on, with those that they import."""

_IMPORT = re.compile(r"(?:^|\s)@([\w./-]+\.md)\b")

_LONGEST_FILE = 200_000
_SCRIPTS = ("package.json", "pnpm-workspace.yaml"), r'"scripts"\s*:\s*\{{[^}}]*"{0}"\s*:'
_RULES = (
    ("Makefile", "makefile", "GNUmakefile"),
    r"^(?!\t)(?:[^\n:#=]*[^\S\n])?{0}(?:[^\S\n][^\n:=]*)?:(?!=)",
)
_RECIPES = (
    ("justfile", "Justfile", ".justfile"),
    r"^(?:@?{0}(?![\w-])[^\n]*:(?!=)|alias[ ]+{0}[ ]*:=)",
)
_TOML = ("mise.toml", ".mise.toml"), r"^\[tasks\.['\"]?{0}['\"]?\]|^['\"]?{0}['\"]?\s*="
_TASKS = {"make": _RULES, "npm": _SCRIPTS, "pnpm": _SCRIPTS, "just": _RECIPES, "mise": _TOML}
"""In which files the tasks of a program are defined, and how."""

_SCRIPT_FOLDERS = ("mise-tasks", ".mise-tasks", ".mise/tasks", "mise/tasks", ".config/mise")

_ELSEWHERE = re.compile(
    r'^\s*(?:-?include|import|mod)\b|^[^\n:#]*%[^\n:]*:|"workspaces"\s*:|^packages:', re.MULTILINE
)
"""What may define tasks by a pattern or in another file."""

PLAYBOOK_BLOCK = re.compile(
    r"^<!-- journeyman playbook: begin\b[^\n]*\n"
    r"(?:(?!<!-- journeyman playbook: (?:begin\b|end -->))[^\n]*\n)*"
    r"<!-- journeyman playbook: end -->(?:\r?\n)?",
    re.MULTILINE,
)
"""A begin mark without an end mark before the next begin mark is the user's own text."""


_NO = re.compile(
    r"\b(?:no|not|never|don'?t|isn'?t|doesn'?t|cannot|without|missing)\b", re.IGNORECASE
)

_GIT_S = 0.3
"""How long a session's start waits for git at the most."""

_STATUS = ("-c", "core.fsmonitor=false", "--no-optional-locks", "status", "--porcelain", "-z")
"""Starts no file monitor that the repository names, and changes nothing."""


class Checkout:
    """A folder on this machine, which is only read; without one, a project whose folder is not
    known, in which nothing can be checked.
    """

    _folder: Path | None = None

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def exists(self, path: str) -> bool | None:
        """Return whether a path exists; None if that is not known."""
        if self._folder is None:
            return None
        try:
            return (self._folder / path).exists()
        except (OSError, ValueError):
            return False

    def uncommitted(self) -> frozenset[str]:
        """Return the files whose changes are in no commit, as far as that is known."""
        if self._folder is None:
            return frozenset()
        try:
            found = subprocess.check_output(  # noqa: S603
                ["git", "-C", str(self._folder), *_STATUS],  # noqa: S607
                env={"PATH": os.environ.get("PATH", os.defpath)},
                stderr=subprocess.DEVNULL,
                timeout=_GIT_S,
            )
        except (OSError, subprocess.SubprocessError):
            return frozenset()
        return frozenset(entry[3:] for entry in found.decode("utf-8", "replace").split("\0"))

    def is_installed(self, program: str) -> bool:
        """Return whether a program is known to be installed."""
        return self._folder is not None and shutil.which(program) is not None

    def has_task(self, command: str) -> bool | None:
        """Return whether the task that a command runs is defined; None if that is not known."""
        program, *words = command.split()
        task = next((word for word in words if word != "run"), "")
        if self._folder is None or program not in _TASKS or task in ("", "exec") or task[0] == "-":
            return None
        files, definition = _TASKS[program]
        text = "\n".join(map(self._text, files))
        if re.search(definition.format(re.escape(task)), text, re.MULTILINE):
            return True
        elsewhere = program == "mise" and any(map(self.exists, _SCRIPT_FOLDERS))
        return None if elsewhere or _ELSEWHERE.search(text) else False

    def _text(self, name: str) -> str:
        """Return the beginning of a file; empty if it cannot be read."""
        if self._folder is None:
            return ""
        try:
            with (self._folder / name).open("rb") as file:
                return file.read(_LONGEST_FILE).decode("utf-8", "replace")
        except (OSError, ValueError):
            return ""

    @cached_property
    def _written(self) -> dict[str, str]:
        imported = (name for file in INSTRUCTIONS for name in _IMPORT.findall(self._text(file)))
        return {name: self._text(name) for name in dict.fromkeys((*INSTRUCTIONS, *imported))}

    @cached_property
    def instructions(self) -> dict[str, str]:
        """The texts of the instructions files, without the playbook that Journeyman wrote there."""
        texts = {name: PLAYBOOK_BLOCK.sub("", text) for name, text in self._written.items()}
        return {name: text for name, text in texts.items() if text}

    @cached_property
    def playbook(self) -> str:
        """The playbook that Journeyman wrote into instructions files."""
        return "\n".join(
            block for text in self._written.values() for block in PLAYBOOK_BLOCK.findall(text)
        )

    def why_silent(self, fact: Fact) -> str:
        """Return why a fact is not told here; empty if it is."""
        if (gone := self.why_gone(fact)) or fact.state == "pinned":
            return gone
        if fact.kind == "preference":
            return ""
        is_trap, written = fact.kind == "trap", "\n".join(self.instructions.values())
        named = subject_of(fact.remedy) if is_trap else fact.subject
        is_said = says(written, named) or (is_trap and warns(written, fact.subject))
        return "an instructions file says it" if is_said else ""

    def why_gone(self, fact: Fact) -> str:
        """Return why a fact does not hold here; empty if it does."""
        if any(self.exists(path) is False for path in fact.present):
            return "it names something that no longer exists"
        if any(self.exists(path) is True for path in fact.absent):
            return "what was missing exists now"
        if fact.kind == "trap" and fact.target and self.is_installed(fact.target):
            return "the program is installed now"
        if fact.detail == "task" and self.has_task(fact.subject) is True:
            return "the task exists now"
        works = fact.subject if fact.kind == "command" else fact.remedy
        is_here = works and is_project_command(works) and not names_folder(fact.detail)
        if is_here and self.has_task(works) is False:
            return "it names a task that no longer exists"
        return ""


def find_root(folder: Path) -> Path:
    """Return the top folder of the work tree that a folder is in, or the folder itself."""
    for parent in (folder, *folder.parents):
        if is_work_tree(parent):
            return parent
    return folder


def branch_of(root: Path) -> str:
    """Return the branch that is checked out in a work tree; empty if that cannot be told."""
    git = root / ".git"
    try:
        if git.is_file():  # a linked work tree
            git = root / git.read_text(encoding="utf-8").partition(":")[2].strip()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""
    reference, _, branch = head.partition("refs/heads/")
    return branch if reference == "ref: " else ""


def says(text: str, subject: str) -> bool:
    """Whether a text contains a command or a path as words of their own: `bin/test.` names
    `bin/test`, and `bin/test.sh` does not.
    """
    word = rf"(?<![\w/.-])(?:\./)?{re.escape(subject)}(?![\w/-]|\.\w)"
    return subject != "" and re.search(word, text) is not None


def warns(text: str, subject: str) -> bool:
    """Whether a text names a command or a path in a line that says no."""
    return any(says(line, subject) for line in text.splitlines() if _NO.search(line))
