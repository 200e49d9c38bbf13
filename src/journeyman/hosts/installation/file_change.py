"""Changes to a host's file that can be undone: what the file was before is kept, and what someone
else changed since stays.
"""

import difflib
import hashlib
import shlex
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from journeyman.hosts.installation.record import FileRecord
from journeyman.records.errors import OutsideProblem
from journeyman.text.atomic_write import replace_file

_FILE_MODE = 0o644
_LARGEST_FILE = 10_000_000


class Editor(Protocol):
    """Puts Journeyman's entries into the content of a file, and takes them out. Each method raises
    OutsideProblem if the content cannot be edited.
    """

    owns_file: bool
    """Whether everything in the file is Journeyman's."""

    def with_entries(self, content: bytes | None, present: Collection[str]) -> bytes:
        """Return the content with the entries; None is a file that does not exist."""

    def without_entries(self, content: bytes, present: Collection[str]) -> bytes:
        """Return the content without the entries, and without the containers that they leave empty,
        except those that were `present` before.
        """

    def present_in(self, content: bytes) -> tuple[str, ...]:
        """Return the names of the containers for entries that the content has."""

    def is_blank(self, content: bytes) -> bool:
        """Return whether the content says nothing."""


class FileChange(Struct, frozen=True, kw_only=True):
    """A planned change: the file's content now and after it, and its `original` content, without
    Journeyman. None means that there is no such file.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    original: bytes | None = None
    present: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    """The folders that were or will be created for the file, the innermost first."""

    @property
    def is_needed(self) -> bool:
        return self.before != self.after

    @property
    def diff(self) -> str:
        """The change as a unified diff; carriage returns are shown."""
        before, after = (_lines(content) for content in (self.before, self.after))
        old, new = (
            "/dev/null" if content is None else str(self.path)
            for content in (self.before, self.after)
        )
        return "".join(difflib.unified_diff(before, after, old, new))


def _lines(content: bytes | None) -> list[str]:
    text = (content or b"").decode("utf-8", "replace").replace("\r", "␍")
    *ended, last = text.split("\n")
    unended = [f"{last}\n\\ No newline at end of file\n"] if last else []
    return [f"{line}\n" for line in ended] + unended


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_file(path: Path) -> bytes | None:
    """Return the content of a file; None if there is none. Raise OutsideProblem."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutsideProblem(
            f"{path} cannot be read: {error.strerror}. Nothing was changed. Make it readable, then "
            "run the command again."
        ) from error
    if len(content) > _LARGEST_FILE:
        raise OutsideProblem(
            f"{path} has more than {_LARGEST_FILE:,} bytes, too many for settings. Nothing was "
            "changed."
        )
    return content


def plan_installation(path: Path, editor: Editor, record: FileRecord | None) -> FileChange:
    """Return the change that puts the entries into a file, or updates them where they stand."""
    current = read_file(path)
    original: bytes | None = None
    present: tuple[str, ...] = ()
    if record is not None and _is_restorable(editor, record, current):
        original, present = _kept_content(record), record.present
    elif current is not None:
        original = _without_entries(current, editor, record)
        present = () if original is None else editor.present_in(original)
    target = path.resolve()
    missing = [str(folder) for folder in target.parents if not folder.exists()]
    return FileChange(
        path=path,
        before=current,
        after=editor.with_entries(current, present),
        original=original,
        present=present,
        folders=tuple(dict.fromkeys((*missing, *(record.folders if record else ())))),
    )


def plan_removal(path: Path, editor: Editor, record: FileRecord | None) -> FileChange:
    """Return the change that takes the entries out: the original content, byte for byte, if no one
    has changed the file since; otherwise everything but the entries.
    """
    current = read_file(path)
    after = None
    if record is not None and _is_restorable(editor, record, current):
        after = _kept_content(record)
    elif current is not None:
        after = _without_entries(current, editor, record)
    return FileChange(
        path=path,
        before=current,
        after=after,
        original=after,
        folders=record.folders if record else (),
    )


def _without_entries(content: bytes, editor: Editor, record: FileRecord | None) -> bytes | None:
    """Return what is left of a file without the entries; None if it was created for them."""
    left = editor.without_entries(content, record.present if record else ())
    is_created = editor.owns_file or (record is not None and not record.copy)
    return None if is_created and editor.is_blank(left) else left


def is_unchanged(record: FileRecord, content: bytes | None) -> bool:
    """Return whether a file is as the installation wrote it."""
    return content is not None and digest(content) == record.written


def _is_restorable(editor: Editor, record: FileRecord, current: bytes | None) -> bool:
    """Return whether the content from before the installation can replace the file: it is still
    kept, and there is nothing in the file that someone else wrote.
    """
    is_kept = not record.copy or Path(record.copy).exists()
    return is_kept and (editor.owns_file or is_unchanged(record, current))


def _kept_content(record: FileRecord) -> bytes | None:
    """Return the content from before the installation; None if there was no file."""
    return read_file(Path(record.copy)) if record.copy else None


def file_record(change: FileChange, copy: Path) -> FileRecord:
    """Return the record of an installation whose original content is kept in `copy`."""
    assert change.after is not None
    return FileRecord(
        path=str(change.path),
        written=digest(change.after),
        copy="" if change.original is None else str(copy),
        present=change.present,
        folders=change.folders,
    )


def refuse_read_only(change: FileChange) -> None:
    """Raise OutsideProblem if the owner has made the file read-only: it could be replaced, but
    someone does not want that.
    """
    try:
        mode = change.path.stat().st_mode
    except OSError:
        return  # there is no file yet, or writing it says why it cannot be written
    if not mode & stat.S_IWUSR:
        raise OutsideProblem(
            f"{change.path} is read-only. Nothing was changed. Make it writable (chmod u+w "
            f"{shlex.quote(str(change.path))}) and run the command again, or make by hand the "
            "change that --print shows."
        )


def apply(change: FileChange) -> None:
    """Write or delete the file, through a symbolic link if it is one. Raise OutsideProblem if it
    cannot be written, or is no longer what it was when the change was planned.
    """
    path, target = change.path, change.path.resolve()
    refuse_read_only(change)
    if read_file(path) != change.before:
        raise OutsideProblem(
            f"{path} was changed by another program in the meantime. Nothing was changed; run the "
            "command again."
        )
    try:
        if change.after is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            mode = _FILE_MODE if change.before is None else target.stat().st_mode & 0o777
            replace_file(target, change.after, mode=mode)
            return
        target.unlink(missing_ok=True)
    except OSError as error:
        raise OutsideProblem(
            f"{path} cannot be written: {error.strerror}. Nothing was changed. Make the file and "
            "its folder writable, then run the command again."
        ) from error
    for folder in change.folders:
        with suppress(OSError):  # something else is in it
            Path(folder).rmdir()
