"""Files of knowledge as text: read to be changed, where each byte counts, or read to be shown,
where something is better than nothing.
"""

from pathlib import Path

from journeyman.records.errors import NotWritten, OutsideProblem

_MOST_SHOWN = 2 * 1024 * 1024


def read_exactly(path: Path) -> str | None:
    """The text of a file to the letter, or None when there is no file. Raises NotWritten when it
    cannot be read: what is not known cannot be changed.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise NotWritten(
            f"{path} is not text in UTF-8 (byte {error.start}), so it is not changed. "
            "Mend it by hand."
        ) from error
    except OSError as error:
        raise NotWritten(
            f"{path} cannot be read ({error.strerror}), so it is not changed. "
            "Mend its permissions or move it away."
        ) from error


def read_to_show(path: Path) -> str:
    """The text of a file with what is not UTF-8 replaced; empty when there is no file."""
    try:
        with path.open("rb") as file:
            return file.read(_MOST_SHOWN).decode("utf-8", "replace").removeprefix("\ufeff")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise OutsideProblem(
            f"{path} cannot be read: {error.strerror}. Mend its permissions or move it away."
        ) from error


def shortened(text: str, most: int = 80) -> str:
    """A text on one line, cut if need be."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
