"""Playbooks in files that agents read at the start of a session, such as CLAUDE.md and AGENTS.md.
Only the block between our marks is ours, and each write can be undone.
"""

import re
from pathlib import Path

import msgspec
from msgspec import Struct

from journeyman.atomic_write import replace_file
from journeyman.records.errors import WrongInput
from journeyman.records.playbook import Playbook
from journeyman.redaction.instructions import find_suspicion
from journeyman.templates.commands import is_everyday
from journeyman.templates.playbook import RECURRING
from journeyman.templates.shown.briefing import command_line, mistake_line

_BEGIN = "<!-- journeyman playbook: begin. `journeyman playbook --write` rewrites this block. -->"
_END = "<!-- journeyman playbook: end -->"
_BLOCK = re.compile(
    r"^<!-- journeyman playbook: begin\b[^\n]*\n"
    r"(?:(?!<!-- journeyman playbook: (?:begin\b|end -->))[^\n]*\n)*"
    r"<!-- journeyman playbook: end -->(?:\r?\n)?",
    re.MULTILINE,
)
"""A begin without an end before the next begin is somebody's own text."""
_MOST_COMMANDS, _MOST_MISTAKES, _MOST_FILES, _MOST_KEPT = 15, 8, 8, 50


def block_text(playbook: Playbook) -> str:
    """The block for a playbook. Commands that every agent knows, such as `ls`, are left out, and so
    is a line that looks like an instruction to its reader.
    """
    commands = []
    for one in playbook.commands:
        if one.sessions >= RECURRING and not is_everyday(one.name):
            share = f", {one.reliability:.0%} worked" if one.failed else ""
            commands.append(f"- {command_line(one)} ({one.sessions} sessions{share})")
    mistakes = [f"- {mistake_line(one)}" for one in playbook.mistakes]
    files = [f"- `{one.path}` ({one.sessions} sessions)" for one in playbook.files]
    sections = [f"## What works in this repository ({playbook.sessions} recorded sessions)"]
    for title, lines, most in (
        ("### Commands that work", commands, _MOST_COMMANDS),
        ("### Mistakes that recur (quoted: what was printed)", mistakes, _MOST_MISTAKES),
        ("### Files that work keeps coming back to", files, _MOST_FILES),
    ):
        kept = [line for line in lines if find_suspicion((line,)) is None][:most]
        if kept:
            sections.append("\n".join([title, "", *kept]))
    if len(sections) == 1:
        raise WrongInput(
            f"The playbook of {playbook.project} has nothing yet that holds in {RECURRING} "
            "sessions or more, so nothing is written. Import more sessions and learn from them."
        )
    return "\n\n".join([_BEGIN, *sections, _END]) + "\n"


def find_block(text: str) -> str:
    """The block in a text; empty if there is none."""
    found = _BLOCK.search(text)
    return found[0] if found else ""


def with_block(text: str, block: str) -> str:
    """The text with this block in the place of the one it has, or else at its end."""
    if _BLOCK.search(text):
        return _BLOCK.sub(lambda _: block, text, count=1)
    return text + gap_before_block(text) + block


def without_block(text: str, before: str = "", gap: str = "") -> str:
    """The text with the block of before in the place of its own; where there was none, the gap that
    was made for it goes too. A text without a block stays as it is.
    """
    found = _BLOCK.search(text)
    if found is None:
        return text
    head = text[: found.start()]
    return (head if before else head.removesuffix(gap)) + before + text[found.end() :]


def gap_before_block(text: str) -> str:
    """What stands between a text and a block at its end, so that an empty line does."""
    if not text or text.endswith(("\n\n", "\n\r\n")):
        return ""
    return "\n" if text.endswith("\n") else "\n\n"


class _Before(Struct, frozen=True):
    """What a file had before it was written: whether it was there, its block, and the gap that was
    made where it had none. An entry `forgets` where the blocks that were written since may hold
    what a person has had forgotten.
    """

    existed: bool
    block: str
    gap: str = ""
    forgets: bool = False


_Journal = dict[str, list[_Before]]
_decode = msgspec.json.Decoder(_Journal).decode


class PlaybookFiles:
    """Writes blocks, and remembers in the home what was there before."""

    def __init__(self, home: Path) -> None:
        self._journal = home / "playbooks.json"

    def preview(self, playbook: Playbook, path: Path) -> str:
        """What the file would be with the playbook's block. Raises WrongInput."""
        text, block = read_text(path), block_text(playbook)
        lines = find_block(text) or text
        return with_block(text, block.replace("\n", "\r\n") if "\r\n" in lines else block)

    def write(self, playbook: Playbook, path: Path) -> None:
        """Put the playbook's block into the file, in the place of the one it has."""
        before, after = read_text(path), self.preview(playbook, path)
        if after == before:
            return
        block = find_block(before)
        gap = "" if block else gap_before_block(before)
        kept = _Before(existed=path.exists(), block=block, gap=gap)
        entries = self._entries(path)
        if entries and entries[-1].forgets:
            entries, kept = [], msgspec.structs.replace(entries[-1], forgets=False)
        self._save({**self._known(), _name(path): [*entries, kept][-_MOST_KEPT:]})
        _write_text(path, after)

    def preview_undo(self, path: Path) -> str:
        """What the file would be without the last write. Raises WrongInput."""
        before = self._before(path)
        return without_block(read_text(path), before.block, before.gap)

    def undo(self, path: Path) -> None:
        """Take the last write back. A file that was made for the block goes with it, unless
        something else has been written into it.
        """
        before, after = self._before(path), self.preview_undo(path)
        if before.existed or after.strip():
            _write_text(path, after)
        else:
            path.unlink()
        self._save({**self._known(), _name(path): self._entries(path)[:-1]})

    def forget_blocks(self) -> None:
        """Keep no block that was written so far, so that no undo brings back what is forgotten: the
        next one takes the block out of a file.
        """
        replace, known = msgspec.structs.replace, self._known()
        firsts = {name: entries[0] for name, entries in known.items() if entries}
        if firsts:
            self._save({at: [replace(one, block="", forgets=True)] for at, one in firsts.items()})

    def _before(self, path: Path) -> _Before:
        found = self._entries(path)
        if not found or not path.exists():
            raise WrongInput(
                f"There is nothing to take back in {path}. `journeyman playbook --write` writes a "
                "playbook."
            )
        return found[-1]

    def _entries(self, path: Path) -> list[_Before]:
        return self._known().get(_name(path), [])

    def _known(self) -> _Journal:
        try:
            return _decode(self._journal.read_bytes())
        except (OSError, msgspec.MsgspecError):
            return {}

    def _save(self, known: _Journal) -> None:
        self._journal.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(self._journal, msgspec.json.encode(known))


def _name(path: Path) -> str:
    return str(path.resolve())


def read_text(path: Path) -> str:
    """What a file says, with its line ends as they are; empty if it is not there yet."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise WrongInput(f"{path} cannot be read: {error}. Name another file.") from error


def _write_text(path: Path, text: str) -> None:
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    try:
        replace_file(path, text.encode(), mode=mode)
    except OSError as error:
        raise WrongInput(
            f"{path} cannot be written: {error.strerror}. Name another file."
        ) from error
