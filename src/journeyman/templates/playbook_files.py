"""Writes playbooks into files that agents read at the start of a session, such as CLAUDE.md and
AGENTS.md. Only the block between the marks belongs to Journeyman.
"""

import os
import re
from pathlib import Path

from journeyman.records.errors import WrongInput
from journeyman.records.playbook import Playbook
from journeyman.redaction.instructions import find_suspicion
from journeyman.templates.briefing import mistake_line, usage_line
from journeyman.templates.commands import is_everyday
from journeyman.templates.playbook import RECURRING
from journeyman.text.atomic_write import replace_file

_BEGIN = "<!-- journeyman playbook: begin. `journeyman playbook --write` rewrites this block. -->"
_END = "<!-- journeyman playbook: end -->"
_BLOCK = re.compile(
    r"^<!-- journeyman playbook: begin\b[^\n]*\n"
    r"(?:(?!<!-- journeyman playbook: (?:begin\b|end -->))[^\n]*\n)*"
    r"<!-- journeyman playbook: end -->(?:\r?\n)?",
    re.MULTILINE,
)
"""A begin mark without an end mark before the next begin mark is the user's own text."""
_MOST_COMMANDS, _MOST_MISTAKES, _MOST_FILES = 15, 8, 8


def block_text(playbook: Playbook) -> str:
    """Return the block for a playbook, without commands that every agent knows, such as `ls`, and
    without lines that look like an instruction to their reader. Raises WrongInput if nothing is
    left.
    """
    commands = []
    for command in playbook.commands:
        if command.sessions >= RECURRING and not is_everyday(command.name):
            share = f", {command.reliability:.0%} worked" if command.failed else ""
            commands.append(f"- {usage_line(command)} ({command.sessions} sessions{share})")
    mistakes = [f"- {mistake_line(mistake)}" for mistake in playbook.mistakes]
    files = [f"- `{file.path}` ({file.sessions} sessions)" for file in playbook.files]
    sections = [f"## What works in this repository ({playbook.sessions} recorded sessions)"]
    for title, lines, most in (
        ("### Commands that work", commands, _MOST_COMMANDS),
        ("### Recurring mistakes (program output is quoted)", mistakes, _MOST_MISTAKES),
        ("### Files used most", files, _MOST_FILES),
    ):
        kept = [line for line in lines if find_suspicion((line,)) is None][:most]
        if kept:
            sections.append("\n".join([title, "", *kept]))
    if len(sections) == 1:
        raise WrongInput(
            f"The playbook of {playbook.project} has nothing yet that holds in {RECURRING} "
            "sessions or more, so nothing was written. Import more sessions and learn from them."
        )
    return "\n\n".join([_BEGIN, *sections, _END]) + "\n"


def find_block(text: str) -> str:
    """Return the block in a text; empty if there is none."""
    match = _BLOCK.search(text)
    return match[0] if match else ""


def with_block(text: str, block: str) -> str:
    """Return the text with its block replaced by this one, or with this one appended."""
    if _BLOCK.search(text):
        return _BLOCK.sub(lambda _: block, text, count=1)
    gap = "" if not text or text.endswith(("\n\n", "\n\r\n")) else "\n"
    return text + (gap if text.endswith("\n") else gap * 2) + block


def without_block(text: str) -> str:
    """Return the text without its block, and without the empty line before a block at its end."""
    match = _BLOCK.search(text)
    if match is None:
        return text
    head, rest = text[: match.start()], text[match.end() :]
    return head + rest if rest else re.sub(r"(\r?\n)(?:\r?\n)+\Z", r"\1", head)


class PlaybookFiles:
    """Writes the block of a playbook into a file, and removes it again (`jm.playbook_files`)."""

    def preview(self, playbook: Playbook, path: Path) -> str:
        """Return the file's text with the playbook's block. Raises WrongInput."""
        text, block = read_playbook_file(path), block_text(playbook)
        current = find_block(text) or text
        return with_block(text, block.replace("\n", "\r\n") if "\r\n" in current else block)

    def write(self, playbook: Playbook, path: Path) -> None:
        """Write the playbook's block into the file, replacing the one it has."""
        after = self.preview(playbook, path)
        if after != read_playbook_file(path):
            _write_text(path, after)

    def preview_undo(self, path: Path) -> str:
        """Return the file's text without the block. Raises WrongInput."""
        text = read_playbook_file(path)
        if not find_block(text):
            raise WrongInput(
                f"There is no playbook in {path}. `journeyman playbook --write` writes one."
            )
        return without_block(text)

    def undo(self, path: Path) -> None:
        """Remove the block; a file with nothing else in it is deleted."""
        after = self.preview_undo(path)
        if after.strip():
            _write_text(path, after)
        else:
            path.unlink()


def read_playbook_file(path: Path) -> str:
    """Return a file's text with its line endings unchanged; empty if the file does not exist. Raise
    WrongInput if a link leads out of the repository, or out of the folder of a file in none.
    """
    try:
        above = [one for one in Path(os.path.abspath(path)).parents if not one.is_symlink()]  # noqa: PTH100 - links are not followed
        top = next((one for one in above if (one / ".git").exists()), above[0])
        if not path.resolve().is_relative_to(top.resolve()):
            raise WrongInput(
                f"{path} leads out of {top}, to {path.resolve()}. Nothing was changed. If that is "
                "the file you mean, name it directly."
            )
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except (OSError, RuntimeError, UnicodeDecodeError) as error:  # also a loop of links
        raise WrongInput(f"{path} cannot be read: {error}. Name another file.") from error


def _write_text(path: Path, text: str) -> None:
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    try:
        replace_file(path, text.encode(), mode=mode)
    except OSError as error:
        raise WrongInput(
            f"{path} cannot be written: {error.strerror}. Name another file."
        ) from error
