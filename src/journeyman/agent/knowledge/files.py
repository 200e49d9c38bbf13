"""The files of memory and skills: what may be written into them, and writing as a whole, under the
lock that Hermes takes, and only if the files are still what the change was planned on.
"""

import fcntl
import re
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from journeyman.atomic_write import replace_file
from journeyman.records import FileChange, Write
from journeyman.records.errors import NotWritten, OutsideProblem
from journeyman.redaction.instructions import find_suspicion
from journeyman.redaction.redactor import Redactor
from journeyman.redaction.values import PLACEHOLDER
from journeyman.text.invisible import FILLERS

SKILLS = "skills"
MEMORIES = "memories"
PERSONAL = frozenset(("user", "email", "phone"))
"""What is redacted in patterns but may be remembered: where the user lives on this machine and how
to reach people is what memory is for."""

_MOST_SHOWN = 2 * 1024 * 1024
_PATIENCE_S, _PAUSE_S = 10.0, 0.01
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
# Behind letters beyond ASCII they make emoji and join the letters of some scripts.
_HIDDEN = re.compile(f"(?<![^\x00-\x7f])[\u00ad\u180e\u200b-\u200d\u2060-\u2065\ufeff{FILLERS}]")


def read_exactly(path: Path) -> str | None:
    """The text of a file to the letter, None if there is none. Raises NotWritten."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (UnicodeDecodeError, OSError) as error:
        why = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise NotWritten(
            f"{path} cannot be read ({why}), so it is not changed. Mend it by hand."
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


def plain(text: str) -> str:
    """A text with one kind of line end and nothing around it."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def find_fault(text: str) -> str | None:
    """Why a text may not be kept, as a sentence; None when it may."""
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        return "It holds half a character, which no file can keep."
    if odd := _CONTROL.search(text) or _HIDDEN.search(text):
        return f"It holds a character that is not seen (U+{ord(odd[0]):04X}). Leave it out."
    if suspicion := find_suspicion([text]):
        return (
            f"It tries to instruct its reader (rule {suspicion.rule}): “{suspicion.evidence}”. "
            "State the fact instead."
        )
    if families := secrets_in(text):
        found = ", ".join(families)
        return f"It holds something secret ({found}). Say where it is kept instead."
    return None


def secrets_in(text: str) -> tuple[str, ...]:
    """The kinds of secrets in a text, each once, sorted."""
    redacted = Redactor().text(text)
    if redacted == text:
        return ()
    put = {found[0] for found in PLACEHOLDER.finditer(redacted)}
    were = {found[0] for found in PLACEHOLDER.finditer(text)}
    families = {placeholder[1:].partition(":")[0] for placeholder in put - were}
    return tuple(sorted(families - PERSONAL))


def safe_to_show(text: str, what: str, where: str) -> str:
    """A text for a model; one that instructs its reader or holds a secret becomes a note."""
    suspicion = find_suspicion([text])
    if suspicion is None and not secrets_in(text):
        return text
    why = f"tries to instruct its reader ({suspicion.rule})" if suspicion else "holds a secret"
    return f"[BLOCKED: this {what} {why}. It is still in {where}; ask the user about it.]"


@contextmanager
def locked(folder: Path, path: str, *, patience_s: float = _PATIENCE_S) -> Iterator[None]:
    """Nobody else who asks for the lock changes this file meanwhile. Raises NotWritten."""
    lock = f"{SKILLS}/.lock" if path.startswith(f"{SKILLS}/") else f"{path}.lock"
    with held_lock(folder / lock, patience_s):
        yield


@contextmanager
def held_lock(lock: Path, patience_s: float) -> Iterator[None]:
    """Hold a lock file, made if need be with its folder. Raises NotWritten."""
    try:
        _make_folder(lock.parent)
        file = lock.open("a")
        lock.chmod(0o600)
    except OSError as error:
        raise NotWritten(
            f"{lock.parent} cannot be written to: {error.strerror}. Check its permissions."
        ) from error
    until = time.monotonic() + patience_s
    with file:  # closing it lets go of the lock as well
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > until:
                raise NotWritten(
                    f"Another program holds {lock} for more than {patience_s:g} seconds, so "
                    "nothing was written. Try again when it is done."
                )
            time.sleep(_PAUSE_S)
        yield


def put(folder: Path, write: Write) -> None:
    """Do a planned change under the lock. Raises NotWritten when a file has changed since."""
    try:
        for change in write.files:
            path = _real(folder, change.path)
            if read_exactly(path) != change.before:
                raise NotWritten(
                    f"{path} has changed meanwhile, so nothing was written. Read it again, then "
                    "try again."
                )
        _replace(folder, write.files)
    except OSError as error:
        raise NotWritten(
            f"{error.filename or folder} could not be written: {error.strerror}. "
            "Nothing was changed; check the disk and the permissions of the folder."
        ) from error


def _real(folder: Path, path: str) -> Path:
    """The file of a change. Below the folders for memory and skills no link may lead away."""
    room = path.partition("/")[0]
    whole = folder / path
    try:
        inside = whole.parent.resolve().is_relative_to((folder / room).resolve())
    except RuntimeError:  # a circle of links
        inside = False
    if room not in (MEMORIES, SKILLS) or not inside or ".." in path.split("/"):
        raise NotWritten(f"{whole} is not below {folder}, so it is not written. Change it there.")
    if whole.is_symlink():
        raise NotWritten(f"{whole} is a link, so it is not written. Change what it leads to.")
    return whole


def _replace(folder: Path, changes: Sequence[FileChange]) -> None:
    """Put each file in its place. What goes wrong halfway is taken back."""
    done: list[FileChange] = []
    try:
        for change in changes:
            _put_file(folder / change.path, change.after)
            done.append(change)
    except BaseException:
        for change in reversed(done):
            with suppress(OSError):
                _put_file(folder / change.path, change.before)
        raise
    finally:
        for change in changes:  # folders of skills that have nothing left in them go
            emptied = (folder / change.path).parent
            with suppress(OSError):
                while folder / SKILLS in emptied.parents:
                    emptied.rmdir()
                    emptied = emptied.parent


def _put_file(path: Path, text: str | None) -> None:
    """Write a file whole, with the rights of the one that it replaces; None removes it."""
    if text is None:
        path.unlink(missing_ok=True)
        return
    _make_folder(path.parent)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600  # scripts stay executable
    replace_file(path, text.encode(), mode=mode)


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
