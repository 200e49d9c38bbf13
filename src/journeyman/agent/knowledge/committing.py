"""Planned changes are written here: under a lock, only if the files are still what the plan saw,
each file replaced at once, and all files of a change or none.

The lock of a memory file is the one that Hermes takes; all skills share one.
"""

import fcntl
import os
import stat
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from journeyman.agent.knowledge.files import read_exactly
from journeyman.records import FileChange, Write
from journeyman.records.errors import NotWritten

SKILLS = "skills"
MEMORIES = "memories"

_PATIENCE_S = 10.0
_PAUSE_S = 0.01


@contextmanager
def locked(folder: Path, path: str, *, patience_s: float = _PATIENCE_S) -> Iterator[None]:
    """Nobody else who asks for the lock changes this file meanwhile."""
    with _held(folder / _lock_of(path), patience_s):
        yield


def put(folder: Path, write: Write) -> None:
    """Do a planned change, for who holds the lock. Raises NotWritten when a file has changed since
    it was planned.
    """
    try:
        for change in write.files:
            path = _real(folder, change.path)
            if read_exactly(path) != change.before:
                raise NotWritten(
                    f"{path} has changed meanwhile, so nothing was written. Read it again, then "
                    "try again."
                )
        _replace(folder, write.files)
    except OSError as error:
        raise NotWritten(
            f"{error.filename or folder} could not be written: {error.strerror}. "
            "Nothing was changed; check the disk and the permissions of the folder."
        ) from error


def _real(folder: Path, path: str) -> Path:
    """The file of a change. Below the folders for memory and skills no link may lead away."""
    room = path.partition("/")[0]
    whole = folder / path
    try:
        inside = whole.parent.resolve().is_relative_to((folder / room).resolve())
    except RuntimeError:  # a circle of links
        inside = False
    if room not in (MEMORIES, SKILLS) or not inside or ".." in path.split("/"):
        raise NotWritten(f"{whole} is not below {folder}, so it is not written. Change it there.")
    if whole.is_symlink():
        raise NotWritten(f"{whole} is a link, so it is not written. Change what it leads to.")
    return whole


def _replace(folder: Path, changes: Sequence[FileChange]) -> None:
    """Write all new files beside the old ones, then put them in their places. What goes wrong
    halfway is taken back.
    """
    staged: dict[str, Path] = {}
    done: list[FileChange] = []
    finished = False
    try:
        for change in changes:
            if change.after is not None:
                staged[change.path] = _stage(folder / change.path, change.after)
        for change in changes:
            _place(folder / change.path, staged.get(change.path))
            done.append(change)
        finished = True
    finally:
        if not finished:
            for change in reversed(done):
                with suppress(OSError):
                    path = folder / change.path
                    _place(path, None if change.before is None else _stage(path, change.before))
            for temporary in staged.values():
                temporary.unlink(missing_ok=True)
        for change in changes:
            _remove_empty(folder, (folder / change.path).parent)


def _stage(path: Path, text: str) -> Path:
    """A finished file beside the one that it will replace, with the same rights."""
    _make_folder(path.parent)
    mode = 0o600
    with suppress(FileNotFoundError):
        mode = stat.S_IMODE(path.stat().st_mode)  # a script stays executable
    temporary = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _place(path: Path, staged: Path | None) -> None:
    if staged is None:
        path.unlink(missing_ok=True)
    else:
        staged.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _remove_empty(folder: Path, emptied: Path) -> None:
    """Folders of skills that have nothing left in them go."""
    root = folder / SKILLS
    while root in emptied.parents:
        try:
            emptied.rmdir()
        except OSError:
            return
        emptied = emptied.parent


def _lock_of(path: str) -> str:
    return f"{SKILLS}/.lock" if path.startswith(f"{SKILLS}/") else f"{path}.lock"


@contextmanager
def _held(lock: Path, patience_s: float) -> Iterator[None]:
    try:
        _make_folder(lock.parent)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise NotWritten(
            f"{lock.parent} cannot be written to: {error.strerror}. Check its permissions."
        ) from error
    try:
        until = time.monotonic() + patience_s
        while not _taken(descriptor):
            if time.monotonic() > until:
                raise NotWritten(
                    f"Another program holds {lock} for more than {patience_s:g} seconds, so "
                    "nothing was written. Try again when it is done."
                )
            time.sleep(_PAUSE_S)
        yield
    finally:
        os.close(descriptor)  # lets go of the lock as well


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
