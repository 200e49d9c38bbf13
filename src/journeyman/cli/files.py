"""Files named on the command line: read up to a size limit, and written atomically so that only
their owner can read them. Failures become one-line errors.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from journeyman.cli.context import flag, option
from journeyman.records.errors import WrongInput
from journeyman.text.atomic_write import replace_file

STANDARD_INPUT = "-"
_MAX_TEXT_BYTES = 1024 * 1024


def read(name: str, content_name: str, *, max_bytes: int) -> bytes:
    """Return the bytes of a file, or of standard input for a dash. Raise WrongInput if it cannot be
    read or has more than `max_bytes`.
    """
    where = "standard input" if name == STANDARD_INPUT else name
    try:
        if name == STANDARD_INPUT:
            data = sys.stdin.buffer.read(max_bytes + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(max_bytes + 1)
    except (OSError, ValueError) as problem:
        raise WrongInput(
            f"The {content_name} cannot be read from {where}: {_reason(problem)}. Name another "
            "file."
        ) from problem
    if len(data) > max_bytes:
        raise WrongInput(
            f"The {content_name} in {where} is longer than the limit of {max_bytes:,} bytes. "
            "Supply a shorter one."
        )
    return data


def read_text(name: str, content_name: str, *, max_bytes: int = _MAX_TEXT_BYTES) -> str:
    """Return the text of a file or of standard input; limits and errors are those of `read`."""
    return read(name, content_name, max_bytes=max_bytes).decode("utf-8", "replace")


force_option = flag("--force", "Overwrite FILE if it exists.")


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --output and --force, which the command passes to `write`."""
    output = option(
        "-o --output FILE",
        "Write to FILE instead of standard output.",
        type=click.Path(path_type=Path),
    )
    return output(force_option(command))


def write(
    content: bytes, content_name: str, label: str, *, output: Path | None, force: bool
) -> None:
    """Write to a file that only its owner can read, or to standard output if there is none. Raise
    WrongInput if that fails, and UsageError if the file exists, unless `force`.
    """
    if output is None or str(output) == STANDARD_INPUT:
        click.echo(content, nl=False)
        return
    try:
        refuse_overwriting(output, force=force)
        if output.exists() and not output.is_file():
            output.write_bytes(content)  # a pipe or a device cannot be replaced
        else:
            replace_file(output, content)
    except (OSError, ValueError) as problem:
        raise WrongInput(
            f"The {content_name} cannot be written to {output}: {_reason(problem)}. Name another "
            "file."
        ) from problem
    click.echo(f"{label} written to {output}", err=True)


def refuse_overwriting(output: Path, *, force: bool) -> None:
    """Raise UsageError if the file exists, unless `force`."""
    if output.is_file() and not force:
        raise click.UsageError(f"{output} already exists. Use --force to overwrite it.")


def _reason(problem: OSError | ValueError) -> str:
    return getattr(problem, "strerror", None) or str(problem)


def task_text(words: tuple[str, ...]) -> str:
    """Return a task from the words of the command line, or from standard input for a dash."""
    if words == (STANDARD_INPUT,):
        return read_text(STANDARD_INPUT, "task")
    return " ".join(words)
