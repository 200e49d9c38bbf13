"""The bytes of files in the workspace: read with care for what is no plain file, written whole or
not at all. Places are given with links followed; a folder on the way that has been swapped for a
link since then is not entered.
"""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LARGEST_FILE = 50 * 2**20
"""Larger files are for programs, not for a model to read."""

_LOOKED_AT = 8192
_ENTER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_IMAGES = (b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\0", b"MM\0*")


class Unreadable(Exception):
    """A file cannot be read as asked; the text says why and what to do instead."""


@contextmanager
def entered(folder: Path, *, create: bool = False) -> Iterator[int]:
    """A folder, opened step by step from the root without following a link. Raises OSError."""
    opened = os.open(folder.anchor, _ENTER)
    try:
        for name in folder.parts[1:]:
            try:
                inner = os.open(name, _ENTER, dir_fd=opened)
            except FileNotFoundError:
                if not create:
                    raise
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=opened)
                inner = os.open(name, _ENTER, dir_fd=opened)
            os.close(opened)
            opened = inner
        yield opened
    finally:
        os.close(opened)


def read_bytes(place: Path, name: str) -> bytes:
    """What a file holds. Raises Unreadable, and FileNotFoundError."""
    try:
        with entered(place.parent) as folder:
            # A link that was put there a moment ago is not followed, a pipe not waited for.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            opened = os.open(place.name or ".", flags, dir_fd=folder)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(name) from None
    except OSError as error:
        raise Unreadable(f"The file {name!r} cannot be read: {error.strerror}.") from error
    about = os.fstat(opened)
    if stat.S_ISDIR(about.st_mode):
        os.close(opened)
        raise Unreadable(
            f"{name!r} is a folder, not a file. List it with search_files, target 'files'."
        )
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(about.st_mode):
            raise Unreadable(f"{name!r} is not a plain file.")
        if about.st_size > LARGEST_FILE:
            raise Unreadable(
                f"The file {name!r} is too large to read ({about.st_size:,} bytes). Look at a part "
                "of it with terminal: head, tail, sed or grep."
            )
        try:
            return file.read()
        except OSError as error:
            raise Unreadable(f"The file {name!r} cannot be read: {error.strerror}.") from error


def showable(text: str) -> str:
    """A text, or a path, that may hold bytes which are no UTF-8, as one that can be shown."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def is_image(data: bytes) -> bool:
    return data.startswith(_IMAGES) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")


def is_binary(data: bytes) -> bool:
    return b"\0" in data[:_LOOKED_AT]


def replace_file(place: Path, data: bytes) -> None:
    """Write a file whole: whoever looks finds the old content or the new. A file that was there
    keeps its mode, and folders that are missing are made. Raises OSError.
    """
    beside = f".{secrets.token_hex(8)}.tmp"
    with entered(place.parent, create=True) as folder:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        opened = os.open(beside, flags, 0o666, dir_fd=folder)
        try:
            with os.fdopen(opened, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(opened)
                if (mode := _mode(place.name, folder)) is not None:
                    os.fchmod(opened, mode)
            os.replace(beside, place.name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with suppress(FileNotFoundError):  # there only if something went wrong
                os.unlink(beside, dir_fd=folder)


def _mode(name: str, folder: int) -> int | None:
    """The mode of a plain file in a folder."""
    try:
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return stat.S_IMODE(about.st_mode) if stat.S_ISREG(about.st_mode) else None
