"""Atomic file replacement: concurrent readers see the old content or the new, never a part. Also in
a folder that is entered without following links.
"""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

UNFINISHED = ".journeyman-part"
"""Suffix of files that are still being written."""

_OPEN_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def replace_file(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Replace the content of a file atomically. A symbolic link is followed: its target is
    replaced.
    """
    target = path.resolve()
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".journeyman-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(target)
    finally:
        with suppress(OSError):
            Path(temporary).unlink()


@contextmanager
def entered(folder: Path, *, create: bool = False) -> Iterator[int]:
    """Open a folder step by step from the root without following links. Raises OSError."""
    opened = os.open(folder.anchor, _OPEN_FOLDER)
    try:
        for name in folder.parts[1:]:
            try:
                inner = os.open(name, _OPEN_FOLDER, dir_fd=opened)
            except FileNotFoundError:
                if not create:
                    raise
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=opened)
                inner = os.open(name, _OPEN_FOLDER, dir_fd=opened)
            os.close(opened)
            opened = inner
        yield opened
    finally:
        os.close(opened)


def put_file(
    folder: int,
    name: str,
    source: IO[bytes],
    *,
    mode: int | None = None,
    sync: bool = False,
) -> None:
    """Write a file atomically in an open folder. Raises OSError."""
    temporary = f".{secrets.token_hex(8)}{UNFINISHED}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    opened = os.open(temporary, flags, 0o666 if mode is None else 0o600, dir_fd=folder)
    try:
        with os.fdopen(opened, "wb") as file:
            shutil.copyfileobj(source, file)
            file.flush()
            if mode is not None:
                os.fchmod(opened, mode)
            if sync:
                os.fsync(opened)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):  # exists only if something went wrong
            os.unlink(temporary, dir_fd=folder)
