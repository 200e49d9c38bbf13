"""Writes playbooks into files that agents read at the start of a session, such as CLAUDE.md and
AGENTS.md. Only the block between the marks belongs to Journeyman, and each write can be undone.
"""

import os
import re
from pathlib import Path

import msgspec
from msgspec import Struct

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
_MOST_COMMANDS, _MOST_MISTAKES, _MOST_FILES, _MOST_KEPT = 15, 8, 8, 50


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
    return text + gap_before_block(text) + block


def without_block(text: str, previous: str = "", gap: str = "") -> str:
    """Return the text with its block replaced by the previous one; if there was none, the gap that
    was inserted before the block goes too. A text without a block is returned unchanged.
    """
    match = _BLOCK.search(text)
    if match is None:
        return text
    head = text[: match.start()]
    return (head if previous else head.removesuffix(gap)) + previous + text[match.end() :]


def gap_before_block(text: str) -> str:
    """Return what to insert between a text and a block at its end, so that an empty line is
    there.
    """
    if not text or text.endswith(("\n\n", "\n\r\n")):
        return ""
    return "\n" if text.endswith("\n") else "\n\n"


class _JournalEntry(Struct, frozen=True):
    """The state of a file before a write: whether it existed, its block, and the gap that was
    inserted where it had none. `forgets` marks that the blocks written since may contain forgotten
    content.
    """

    existed: bool
    block: str
    gap: str = ""
    forgets: bool = False


_Journal = dict[str, list[_JournalEntry]]
_decode = msgspec.json.Decoder(_Journal).decode


class PlaybookFiles:
    """Writes blocks, and records the previous state of each file in the home folder."""

    def __init__(self, home: Path) -> None:
        self._journal = home / "playbooks.json"

    def preview(self, playbook: Playbook, path: Path) -> str:
        """Return the file's text with the playbook's block. Raises WrongInput."""
        text, block = read_playbook_file(path), block_text(playbook)
        current = find_block(text) or text
        return with_block(text, block.replace("\n", "\r\n") if "\r\n" in current else block)

    def write(self, playbook: Playbook, path: Path) -> None:
        """Write the playbook's block into the file, replacing the one it has."""
        before, after = read_playbook_file(path), self.preview(playbook, path)
        if after == before:
            return
        block = find_block(before)
        gap = "" if block else gap_before_block(before)
        entry = _JournalEntry(existed=path.exists(), block=block, gap=gap)
        entries = self._entries(path)
        if entries and entries[-1].forgets:
            entries, entry = [], msgspec.structs.replace(entries[-1], forgets=False)
        self._save({**self._load(), _key(path): [*entries, entry][-_MOST_KEPT:]})
        _write_text(path, after)

    def preview_undo(self, path: Path) -> str:
        """Return the file's text without the last write. Raises WrongInput."""
        entry = self._last_entry(path)
        return without_block(read_playbook_file(path), entry.block, entry.gap)

    def undo(self, path: Path) -> None:
        """Undo the last write. A file that was created for the block is deleted, unless something
        else has been written into it.
        """
        entry, after = self._last_entry(path), self.preview_undo(path)
        if entry.existed or after.strip():
            _write_text(path, after)
        else:
            path.unlink()
        self._save({**self._load(), _key(path): self._entries(path)[:-1]})

    def forget_blocks(self) -> None:
        """Discard all recorded blocks, so that no undo restores what is forgotten: the next undo
        removes the block from its file.
        """
        replace = msgspec.structs.replace
        oldest = {key: entries[0] for key, entries in self._load().items() if entries}
        if oldest:
            self._save(
                {key: [replace(entry, block="", forgets=True)] for key, entry in oldest.items()}
            )

    def _last_entry(self, path: Path) -> _JournalEntry:
        entries = self._entries(path)
        if not entries or not path.exists():
            raise WrongInput(
                f"There is nothing to undo in {path}. `journeyman playbook --write` writes a "
                "playbook."
            )
        return entries[-1]

    def _entries(self, path: Path) -> list[_JournalEntry]:
        return self._load().get(_key(path), [])

    def _load(self) -> _Journal:
        try:
            return _decode(self._journal.read_bytes())
        except (OSError, msgspec.MsgspecError):
            return {}

    def _save(self, journal: _Journal) -> None:
        self._journal.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(self._journal, msgspec.json.encode(journal))


def _key(path: Path) -> str:
    return str(path.resolve())


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
