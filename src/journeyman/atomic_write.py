"""Writing a file whole: whoever reads it meanwhile sees the old content or the new, never half."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Put the content in the place of a file. Of a link the file that it leads to is replaced."""
    target = path.resolve()
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".journeyman-")
    try:
        with os.fdopen(descriptor, "wb") as part:
            part.write(content)
            part.flush()
            os.fsync(part.fileno())
        Path(name).chmod(mode)
        Path(name).replace(target)
    finally:
        with suppress(OSError):
            Path(name).unlink()
