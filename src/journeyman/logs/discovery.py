"""Where logs usually are on a machine, and which files in a folder may be logs."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from journeyman.logs.logfile import printable
from journeyman.records.report import Place, Problem

LOG_ENDINGS = (
    ".jsonl",
    ".ndjson",
    ".json",
    ".db",
    ".sqlite",
    ".jsonl.gz",
    ".json.gz",
)
"""In a folder, only files with these endings are looked at."""


class _UsualPlace(NamedTuple):
    """A recorder's home: single files by pattern, and folders that hold logs at any depth."""

    source: str
    variable: str
    default: str
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


_USUAL_PLACES = (
    _UsualPlace("hermes", "HERMES_HOME", ".hermes", files=("state.db", "profiles/*/state.db")),
    _UsualPlace("claude_code", "CLAUDE_CONFIG_DIR", ".claude", folders=("projects",)),
    _UsualPlace("codex", "CODEX_HOME", ".codex", folders=("sessions", "archived_sessions")),
)


def usual_places(environ: Mapping[str, str], user_home: Path) -> list[Place]:
    """The usual places for logs and what each holds."""
    return [_look_at(place, environ, user_home) for place in _USUAL_PLACES]


def _look_at(usual: _UsualPlace, environ: Mapping[str, str], user_home: Path) -> Place:
    folder = Path(environ.get(usual.variable) or user_home / usual.default).expanduser()
    problems: list[Problem] = []
    logs = [path for pattern in usual.files for path in sorted(folder.glob(pattern))]
    for name in usual.folders:
        logs += [path for path in files_in(folder / name, problems) if path.suffix == ".jsonl"]
    return Place(
        source=usual.source,
        folder=str(folder),
        exists=folder.is_dir(),
        logs=[str(path) for path in logs],
        size_bytes=sum(path.stat().st_size for path in logs if path.exists()),
        problems=problems,
    )


def files_in(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    """The files below a folder that may be logs, in a fixed order. Folders that cannot be read
    are added to `problems`.
    """

    def unreadable(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            path = printable(error.filename)
            reason = f"{path} cannot be read: {error.strerror}"
            problems.append(Problem(path=path, reason=reason))

    seen = set()
    for parent, folders, names in os.walk(folder, onerror=unreadable, followlinks=True):
        # A folder that is a link is followed, because logs are often moved to another disk; one
        # that leads back to where we came from is not.
        real = os.path.realpath(parent)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders.sort()
        for name in sorted(names):
            if name.lower().endswith(LOG_ENDINGS):
                yield Path(parent, name)
