"""Where logs usually are on a machine, and which files in a folder may be logs."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from journeyman.logs.logfile import printable
from journeyman.records.report import Place, Problem

LOG_ENDINGS = (".jsonl", ".ndjson", ".json", ".db", ".sqlite", ".jsonl.gz", ".json.gz")
"""In a folder, only files with these endings are looked at."""


# A recorder's home: single files by pattern, and folders that hold logs at any depth.
_USUAL_PLACES: tuple[tuple[str, str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("hermes", "HERMES_HOME", ".hermes", ("state.db", "profiles/*/state.db"), ()),
    ("claude_code", "CLAUDE_CONFIG_DIR", ".claude", (), ("projects",)),
    ("codex", "CODEX_HOME", ".codex", (), ("sessions", "archived_sessions")),
)


def usual_places(environ: Mapping[str, str], user_home: Path) -> list[Place]:
    """The usual places for logs and what each holds."""
    places = []
    for source, variable, default, files, folders in _USUAL_PLACES:
        folder = Path(environ.get(variable) or user_home / default).expanduser()
        problems: list[Problem] = []
        logs = [path for pattern in files for path in sorted(folder.glob(pattern))]
        for name in folders:
            logs += [one for one in files_in(folder / name, problems) if one.suffix == ".jsonl"]
        place = Place(
            source=source,
            folder=str(folder),
            exists=folder.is_dir(),
            logs=[str(path) for path in logs],
            size_bytes=sum(path.stat().st_size for path in logs if path.exists()),
            problems=problems,
        )
        places.append(place)
    return places


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
