"""Files that people name to commands: read up to a size, and written whole, for their owner's eyes
only. What cannot be done is told in one line.
"""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from journeyman.atomic_write import replace_file
from journeyman.cli.asked import flag, option
from journeyman.records.errors import WrongInput

STANDARD_INPUT = "-"
_LONGEST_TEXT = 1024 * 1024


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


def read_text(name: str, what: str, *, most: int = _LONGEST_TEXT) -> str:
    """The same as text."""
    return read(name, what, most=most).decode("utf-8", "replace")


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    output = option("-o --output FILE", "Write it to FILE.", type=click.Path(path_type=Path))
    return output(flag("--force", "Overwrite FILE if it is there.")(command))


def put(content: bytes, what: str, said: str, *, output: Path | None, force: bool) -> None:
    """Write to a file that only its owner may read, or to standard output without one. Raises
    WrongInput, and UsageError when the file is there already, unless `force`.
    """
    if output is None or str(output) == STANDARD_INPUT:
        click.echo(content, nl=False)
        return
    try:
        if output.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if output.is_file() and not force:
            raise click.UsageError(f"{output} is there already. Use --force to overwrite it.")
        if output.exists() and not output.is_file():
            output.write_bytes(content)  # a pipe or a device: there is nothing to replace
        else:
            replace_file(output, content)
    except (OSError, ValueError) as problem:
        raise WrongInput(
            f"The {what} cannot be written to {output}: {_said(problem)}. Name another place."
        ) from problem
    click.echo(f"{said} written to {output}", err=True)


def _said(problem: OSError | ValueError) -> str:
    return getattr(problem, "strerror", None) or str(problem)


def task_text(words: tuple[str, ...]) -> str:
    """A task as it was given: in words, or on standard input where they are a dash."""
    if words == (STANDARD_INPUT,):
        return read_text(STANDARD_INPUT, "task")
    return " ".join(words)
