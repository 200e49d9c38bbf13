"""The record of an installation: what was changed in a host's file, what it was before, and the
host's confirmation token. It is kept in the home, where only its owner can read it.
"""

import sys
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from journeyman.text.atomic_write import replace_file

_FOLDER = "hosts"


class FileRecord(Struct, frozen=True, kw_only=True):
    """A file that was changed. `written` is the digest of its content after the change; `copy` is
    where its content before is kept, empty if there was no such file.
    """

    path: str
    written: str
    copy: str = ""


class Record(Struct, frozen=True, kw_only=True):
    """What is installed in a host: by which version, which parts, with the name of the agent under
    which the host requests confirmations and its token. `program` is the command line that the
    host's file calls or, where it calls none, that of the resident process.
    """

    host: str
    token: str = ""
    agent: str = ""
    parts: tuple[str, ...] = ()
    gate_tools: tuple[str, ...] = ()
    version: str = ""
    program: tuple[str, ...] = ()
    file: FileRecord | None = None

    @property
    def gone(self) -> list[str]:
        """The files of the command line that no longer exist."""
        return [path for path in self.program if path.startswith("/") and not Path(path).exists()]


def record_path(home: Path, host: str) -> Path:
    return home / _FOLDER / f"{host}.json"


def copy_path(home: Path, host: str, name: str) -> Path:
    """Return where the content of a host's file before the installation is kept."""
    return home / _FOLDER / "originals" / f"{host}-{name}"


def read_record(home: Path, host: str) -> Record | None:
    """Return the record of a host; None if nothing is installed, or the file cannot be read."""
    try:
        return msgspec.json.decode(record_path(home, host).read_bytes(), type=Record)
    except (OSError, msgspec.DecodeError):
        return None


def installed_python(home: Path) -> str:
    """Return the interpreter of the newest installation that is still there, or else this one:
    Hermes has one of its own, which may lack the packages for confirmations.
    """
    with suppress(OSError):
        paths = (home / _FOLDER).glob("*.json")
        for path in sorted(paths, key=lambda one: one.stat().st_mtime, reverse=True):
            record = read_record(home, path.stem)
            if record is not None and record.program and not record.gone:
                return record.program[0]
    return sys.executable


def has_part(home: Path, host: str, part: str) -> bool:
    """Return whether a part is installed in a host; without a record, all are."""
    record = read_record(home, host)
    return record is None or not record.parts or part in record.parts


def write_record(home: Path, record: Record) -> None:
    content = msgspec.json.format(msgspec.json.encode(record), indent=2)
    write_private(record_path(home, record.host), content)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, in folders that only their owner can enter."""
    for folder in reversed((path.parent, *path.parent.parents)):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
    replace_file(path, content)


def delete_record(home: Path, host: str) -> None:
    """Delete the record of a host and its copies."""
    for copy in (home / _FOLDER / "originals").glob(f"{host}-*"):
        copy.unlink()
    record_path(home, host).unlink(missing_ok=True)
