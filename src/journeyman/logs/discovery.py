"""Finds logs: the default locations of each agent, and the files in a folder that may be logs."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from journeyman.logs.log_file import printable
from journeyman.records.report import LogLocation, Problem

LOG_ENDINGS = (".jsonl", ".ndjson", ".json", ".db", ".sqlite", ".jsonl.gz", ".json.gz")
"""Only files with these endings are read from a folder."""


# Source, variable and default of its home folder, file patterns, folders with logs at any depth.
_AGENT_HOMES: tuple[tuple[str, str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("hermes", "HERMES_HOME", ".hermes", ("state.db", "profiles/*/state.db"), ()),
    ("claude_code", "CLAUDE_CONFIG_DIR", ".claude", (), ("projects",)),
    ("codex", "CODEX_HOME", ".codex", (), ("sessions", "archived_sessions")),
)


def default_locations(environ: Mapping[str, str], user_home: Path) -> list[LogLocation]:
    """Return the default locations of logs and what each contains."""
    places = []
    for source, variable, default, files, folders in _AGENT_HOMES:
        folder = Path(environ.get(variable) or user_home / default).expanduser()
        problems: list[Problem] = []
        logs = [path for pattern in files for path in sorted(folder.glob(pattern))]
        for name in folders:
            paths = find_log_files(folder / name, problems)
            logs += [path for path in paths if path.suffix == ".jsonl"]
        place = LogLocation(
            source=source,
            folder=str(folder),
            exists=folder.is_dir(),
            logs=[str(path) for path in logs],
            size_bytes=sum(path.stat().st_size for path in logs if path.exists()),
            problems=problems,
        )
        places.append(place)
    return places


def find_log_files(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    """Yield the files below a folder that may be logs, in a fixed order. Folders that cannot be
    read are added to `problems`.
    """

    def report_unreadable(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            path = printable(error.filename)
            reason = f"{path} cannot be read: {error.strerror}"
            problems.append(Problem(path=path, reason=reason))

    visited = set()
    for parent, folders, names in os.walk(folder, onerror=report_unreadable, followlinks=True):
        # Links to folders are followed, because logs are often moved to another disk; a link back
        # to a folder that was already visited is not.
        real = os.path.realpath(parent)
        if real in visited:
            folders.clear()
            continue
        visited.add(real)
        folders.sort()
        for name in sorted(names):
            if name.lower().endswith(LOG_ENDINGS):
                yield Path(parent, name)
