"""The files of memory and skills: checks on text, and atomic writes. A write takes the same lock as
Hermes, and is only applied if the files are unchanged since it was planned.
"""

import fcntl
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from journeyman.records import Write
from journeyman.records.errors import NotWritten, OutsideProblem
from journeyman.redaction.instructions import find_suspicion
from journeyman.redaction.redactor import Redactor
from journeyman.redaction.secret_values import PLACEHOLDER
from journeyman.text.atomic_write import replace_file
from journeyman.text.invisible import BLANK_LETTERS

SKILLS = "skills"
MEMORIES = "memories"
_PERSONAL_FAMILIES = frozenset(("user", "email"))
"""Redacted in patterns but allowed in memory, which exists to store the user's home folder and how
to contact people."""

_LOCK_TIMEOUT_S, _LOCK_RETRY_S = 10.0, 0.01
# Control characters, lone surrogates, and characters that nobody sees. Joiners are allowed after a
# non-ASCII character, where they form emoji and join letters in some scripts.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]|\r(?!\n)"
    f"|(?<![^\x00-\x7f])[\u00ad\u180e\u200b-\u200d\u2060-\u2065\ufeff{BLANK_LETTERS}]"
)


def read_exactly(path: Path) -> str | None:
    """Return the exact text of a file, or None if it does not exist. Raise NotWritten."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (UnicodeDecodeError, OSError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise NotWritten(f"{path} cannot be read ({why}). Repair the file by hand.") from error


def read_to_show(path: Path) -> str:
    """Return the text of a file, with invalid UTF-8 replaced; empty if the file does not exist.
    Raise OutsideProblem.
    """
    try:
        return path.read_bytes().decode("utf-8", "replace").removeprefix("\ufeff")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise OutsideProblem(
            f"{path} cannot be read: {error.strerror}. Repair it by hand."
        ) from error


def normalised(text: str) -> str:
    """The text with Unix line ends and no surrounding whitespace."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def find_fault(text: str) -> str | None:
    """Return why a text must not be stored, as a sentence; None if it may."""
    if match := _INVISIBLE.search(text):
        return f"It contains an invisible character (U+{ord(match[0]):04X}). Leave it out."
    if suspicion := find_suspicion([text]):
        return (
            f"It tries to instruct its reader (rule {suspicion.rule}): “{suspicion.evidence}”. "
            "State the fact instead."
        )
    if families := secret_families(text):
        return f"It contains a secret ({', '.join(families)}). Say where it is stored instead."
    return None


def secret_families(text: str) -> tuple[str, ...]:
    """The families of secrets in a text, sorted, without personal data."""
    redacted = Redactor().text(text)
    if redacted == text:
        return ()
    placeholders = {match[0] for match in PLACEHOLDER.finditer(redacted)}
    placeholders -= {match[0] for match in PLACEHOLDER.finditer(text)}
    families = {placeholder[1:].partition(":")[0] for placeholder in placeholders}
    return tuple(sorted(families - _PERSONAL_FAMILIES))


def safe_to_show(text: str, what: str, where: str) -> str:
    """The text for a model; one that instructs its reader or contains a secret becomes a note."""
    suspicion = find_suspicion([text])
    if suspicion is None and not secret_families(text):
        return text
    why = f"tries to instruct its reader ({suspicion.rule})" if suspicion else "contains a secret"
    return f"[BLOCKED: this {what} {why}. It is still in {where}; ask the user about it.]"


@contextmanager
def locked(folder: Path, path: str, *, timeout_s: float = _LOCK_TIMEOUT_S) -> Iterator[None]:
    """Hold the lock of a file of memory or skills. Raise NotWritten."""
    lock = folder / (f"{SKILLS}/.lock" if path.startswith(f"{SKILLS}/") else f"{path}.lock")
    deadline = time.monotonic() + timeout_s
    with _reporting(lock.parent):
        _make_folder(lock.parent)
        lock.touch(mode=0o600)
        file = lock.open("a")
    with file:  # closing the file releases the lock
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > deadline:
                raise NotWritten(
                    f"Another program holds {lock}, and did not release it within {timeout_s:g} "
                    "seconds, so nothing was written. Try again when that program is done."
                )
            time.sleep(_LOCK_RETRY_S)
        yield


def apply_write(folder: Path, write: Write) -> None:
    """Apply a planned write, under the lock. Raise NotWritten if the file has changed since."""
    path = folder / write.path
    if read_exactly(path) != write.before:
        raise NotWritten(
            f"{path} has changed in the meantime, so nothing was written. Read it again, then try "
            "again."
        )
    with _reporting(path.parent):
        if write.after is not None:
            _make_folder(path.parent)
            replace_file(path, write.after.encode())
            return
        path.unlink(missing_ok=True)
    with suppress(OSError):  # remove the folders of skills that are now empty
        while folder / SKILLS in (path := path.parent).parents:
            path.rmdir()


@contextmanager
def _reporting(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NotWritten(
            f"{folder} could not be written to: {error.strerror}. Nothing was changed; check the "
            "disk and the permissions of the folder."
        ) from error


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
