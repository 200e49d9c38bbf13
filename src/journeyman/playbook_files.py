"""Playbooks in files that agents read at the start of a session, such as CLAUDE.md and AGENTS.md.
The block between our marks is ours; what is outside it stays as it is, and each write can be
undone.
"""

from pathlib import Path

import msgspec
from msgspec import Struct

from journeyman.atomic_write import replace_file
from journeyman.records.errors import WrongInput
from journeyman.records.playbook import Playbook
from journeyman.templates.playbook_block import (
    block_text,
    find_block,
    gap_before_block,
    with_block,
    without_block,
)


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
_MOST_KEPT = 50


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
        if after != before:
            block = find_block(before)
            gap = "" if block else gap_before_block(before)
            known, name = self._known(), str(path.resolve())
            entries = known.get(name, [])
            kept = _Before(existed=path.exists(), block=block, gap=gap)
            if entries and entries[-1].forgets:
                entries, kept = [], msgspec.structs.replace(entries[-1], forgets=False)
            self._save({**known, name: [*entries, kept][-_MOST_KEPT:]})
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
        known, name = self._known(), str(path.resolve())
        self._save({**known, name: known[name][:-1]})

    def forget_blocks(self) -> None:
        """Keep no block that was written so far, so that no undo brings back what is forgotten: the
        next one takes the block out of a file.
        """
        known = {name: entries[0] for name, entries in self._known().items() if entries}
        if known:
            self._save(
                {
                    name: [_Before(first.existed, "", first.gap, forgets=True)]
                    for name, first in known.items()
                }
            )

    def _before(self, path: Path) -> _Before:
        found = self._known().get(str(path.resolve()), [])
        if not found or not path.exists():
            raise WrongInput(
                f"There is nothing to take back in {path}. `journeyman playbook --write` writes a "
                "playbook."
            )
        return found[-1]

    def _known(self) -> _Journal:
        try:
            return _decode(self._journal.read_bytes())
        except (OSError, msgspec.MsgspecError):
            return {}

    def _save(self, known: _Journal) -> None:
        self._journal.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(self._journal, msgspec.json.encode(known))


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
