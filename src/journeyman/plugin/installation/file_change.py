"""Changes to a host's file that can be undone: what the file was before is kept, and what someone
else changed since stays.
"""

import difflib
import hashlib
import shlex
from pathlib import Path

from msgspec import Struct

from journeyman.plugin.installation.record import FileRecord
from journeyman.records.errors import OutsideProblem
from journeyman.text.atomic_write import replace_file

_FILE_MODE = 0o644


class FileChange(Struct, frozen=True, kw_only=True):
    """A planned change: the file's content now and after it, and its `original` content, without
    Journeyman. None means that there is no such file. With a `command`, the host's own program
    changes the file.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    original: bytes | None = None
    command: tuple[str, ...] = ()

    @property
    def is_needed(self) -> bool:
        return bool(self.command) or self.before != self.after

    @property
    def diff(self) -> str:
        """The change as a unified diff, or the command that makes it."""
        if self.command:
            return f"$ {shlex.join(self.command)}\n"
        contents = (self.before, self.after)
        old, new = ("/dev/null" if one is None else str(self.path) for one in contents)
        before, after = (
            (one or b"").decode("utf-8", "replace").splitlines(keepends=True) for one in contents
        )
        return "".join(difflib.unified_diff(before, after, old, new))


def read_file(path: Path) -> bytes | None:
    """Return the content of a file; None if there is none. Raise OutsideProblem."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutsideProblem(
            f"{path} cannot be read: {error.strerror}. Nothing was changed. Make it readable, then "
            "run the command again."
        ) from error


def is_unchanged(record: FileRecord | None, content: bytes | None) -> bool:
    """Return whether a file is as the installation left it, and its content before is kept."""
    if record is None or content is None or (record.copy and not Path(record.copy).exists()):
        return False
    return hashlib.sha256(content).hexdigest() == record.written


def kept_content(record: FileRecord | None) -> bytes | None:
    """Return the content from before the installation; None if there was no file."""
    return read_file(Path(record.copy)) if record and record.copy else None


def file_record(change: FileChange, copy: Path) -> FileRecord:
    """Return the record of an installation whose original content is kept in `copy`."""
    return FileRecord(
        path=str(change.path),
        written=hashlib.sha256(change.after or b"").hexdigest(),
        copy="" if change.original is None else str(copy),
    )


def apply(change: FileChange) -> None:
    """Write or delete the file, through a symbolic link if it is one. Raise OutsideProblem if it
    cannot be written, or is no longer what it was when the change was planned.
    """
    path, target = change.path, change.path.resolve()
    if read_file(path) != change.before:
        raise OutsideProblem(
            f"{path} was changed by another program in the meantime. Nothing was changed; run the "
            "command again."
        )
    try:
        if change.after is None:
            target.unlink(missing_ok=True)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = _FILE_MODE if change.before is None else target.stat().st_mode & 0o777
        replace_file(target, change.after, mode=mode)
    except OSError as error:
        raise OutsideProblem(
            f"{path} cannot be written: {error.strerror}. Nothing was changed. Make the file and "
            "its folder writable, then run the command again."
        ) from error
