"""Files that people asked for: written whole or not at all."""

import os
from contextlib import suppress
from pathlib import Path

from journeyman.records.errors import WrongInput


def write_whole(path: Path, content: bytes, what: str) -> None:
    """Write a file. Whoever reads it meanwhile sees the old one or the new one, never half of it.
    Raises WrongInput, which calls the content by `what` it is.
    """
    if not path.parent.is_dir():
        raise WrongInput(
            f"The {what} cannot be written to {path}: there is no folder {path.parent}. "
            "Make the folder, or name another one."
        )
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    except OSError as problem:
        raise WrongInput(
            f"The {what} cannot be written to {path}: {problem.strerror}. Name another place."
        ) from problem
    finally:
        with suppress(OSError):
            part.unlink()
