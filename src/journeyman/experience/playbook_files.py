"""Writes playbooks into files that agents read at the start of a session, such as CLAUDE.md and
AGENTS.md. Only the block between the marks belongs to Journeyman.
"""

import os
import re
from pathlib import Path

from journeyman.experience.checkout import PLAYBOOK_BLOCK
from journeyman.experience.facts import first
from journeyman.logs.repositories import is_work_tree
from journeyman.records.errors import WrongInput
from journeyman.records.fact import FactKind, Playbook
from journeyman.redaction.instructions import find_suspicion
from journeyman.text.atomic_write import replace_file

_BEGIN = "<!-- journeyman playbook: begin. `journeyman playbook --write` rewrites this block. -->"
_END = "<!-- journeyman playbook: end -->"
_SECTIONS: tuple[tuple[FactKind, str, int], ...] = (
    ("preference", "### Wanted here", 10),
    ("command", "### Commands", 15),
    ("trap", "### What fails here", 10),
    ("finding", "### What linters report", 10),
)


def block_text(playbook: Playbook) -> str:
    """Return the block for a playbook, without lines that look like an instruction to their reader.
    Raises WrongInput if nothing is left.
    """
    count = playbook.sessions
    sections = [f"## Learned from {count} recorded sessions" if count else "## Wanted by people"]
    for kind, title, most in _SECTIONS:
        facts = first(playbook.facts, kind, most)
        lines = [f"- {fact.text}" for fact in facts]
        kept = [line for line in lines if find_suspicion((line,)) is None]
        if kept:
            sections.append("\n".join([title, "", *kept]))
    if len(sections) == 1:
        raise WrongInput(
            f"Nothing is known of {playbook.project} that its instructions files do not say "
            "already, so nothing was written. Import more sessions and learn from them."
        )
    return "\n\n".join([_BEGIN, *sections, _END]) + "\n"


def find_block(text: str) -> str:
    """Return the block in a text; empty if there is none."""
    match = PLAYBOOK_BLOCK.search(text)
    return match[0] if match else ""


def with_block(text: str, block: str) -> str:
    """Return the text with its block replaced by this one, or with this one appended."""
    if PLAYBOOK_BLOCK.search(text):
        return PLAYBOOK_BLOCK.sub(lambda _: block, text, count=1)
    gap = "" if not text or text.endswith(("\n\n", "\n\r\n")) else "\n"
    return text + (gap if text.endswith("\n") else gap * 2) + block


def without_block(text: str) -> str:
    """Return the text without its block, and without the empty line before a block at its end."""
    match = PLAYBOOK_BLOCK.search(text)
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
        top = next((one for one in above if is_work_tree(one)), above[0])
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
