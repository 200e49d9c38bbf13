"""Files that people name to commands: read up to a size, and written whole, for their owner's eyes
only. What cannot be done is told in one line.
"""

import errno
import os
import sys
from pathlib import Path

import click

from journeyman.atomic_write import replace_file
from journeyman.records.errors import WrongInput

STANDARD_INPUT = "-"
_LONGEST_TASK = 1024 * 1024


def read(name: str, what: str, *, most: int) -> bytes:
    """The bytes of a file, or of standard input for a dash. Raises WrongInput, also when there are
    more than `most`.
    """
    where = "standard input" if name == STANDARD_INPUT else name
    try:
        if name == STANDARD_INPUT:
            data = sys.stdin.buffer.read(most + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(most + 1)
    except (OSError, ValueError) as problem:
        raise WrongInput(
            f"The {what} cannot be read from {where}: {_said(problem)}. Name another file."
        ) from problem
    if len(data) > most:
        raise WrongInput(
            f"The {what} in {where} is longer than {most:,} bytes, which is more than is read. "
            "Give a shorter one."
        )
    return data


def write(path: Path, content: bytes, what: str, *, force: bool) -> None:
    """Write a file that only its owner may read. Raises WrongInput, and UsageError when the file
    is there already, unless `force`.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.is_file() and not force:
            raise click.UsageError(f"{path} is there already. Use --force to overwrite it.")
        if path.exists() and not path.is_file():
            path.write_bytes(content)  # a pipe or a device: there is nothing to replace
        else:
            replace_file(path, content)
    except (OSError, ValueError) as problem:
        raise WrongInput(
            f"The {what} cannot be written to {path}: {_said(problem)}. Name another place."
        ) from problem


def _said(problem: OSError | ValueError) -> str:
    return getattr(problem, "strerror", None) or str(problem)


def task_text(words: tuple[str, ...]) -> str:
    """A task as it was given: in words, or on standard input where they are a dash."""
    if words == (STANDARD_INPUT,):
        return read(STANDARD_INPUT, "task", most=_LONGEST_TASK).decode("utf-8", "replace")
    return " ".join(words)
