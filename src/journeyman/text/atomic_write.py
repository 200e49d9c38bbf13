"""Atomic file replacement: concurrent readers see the old content or the new, never a part."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path


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
