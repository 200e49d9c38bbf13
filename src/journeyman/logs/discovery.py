"""Finds logs: the default locations of each agent, and the files in a folder that may be logs."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from journeyman.logs.log_file import printable
from journeyman.records.report import LogLocation, Problem

LOG_ENDINGS = (".jsonl", ".ndjson", ".json", ".db", ".sqlite", ".jsonl.gz", ".json.gz")
"""Only files with these endings are read from a folder."""


class _AgentHome(NamedTuple):
    """Where an agent keeps its logs: in a folder that `variable` or `default` names, as files that
    match `files` and as lines in `folders`, at any depth. `below` is the agent's folder where the
    variable names one that programs share.
    """

    source: str
    variable: str
    default: str
    below: str = ""
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


_AGENT_HOMES = (
    _AgentHome("hermes", "HERMES_HOME", ".hermes", files=("state.db", "profiles/*/state.db")),
    _AgentHome("claude_code", "CLAUDE_CONFIG_DIR", ".claude", folders=("projects",)),
    _AgentHome("codex", "CODEX_HOME", ".codex", folders=("sessions", "archived_sessions")),
    _AgentHome("opencode", "XDG_DATA_HOME", ".local/share", "opencode", files=("opencode*.db",)),
    _AgentHome("copilot", "COPILOT_HOME", ".copilot", files=("session-state/*/events.jsonl",)),
    _AgentHome(
        *("gemini", "GEMINI_CLI_HOME", "", ".gemini"),
        files=tuple(f"tmp/*/chats/{name}" for name in ("*.jsonl", "*/*.jsonl")),
    ),
)


def default_locations(environ: Mapping[str, str], user_home: Path) -> list[LogLocation]:
    """Return the default locations of logs and what each contains."""
    places = []
    for home in _AGENT_HOMES:
        named = environ.get(home.variable) or user_home / home.default
        folder = Path(os.path.expanduser(named), home.below)  # noqa: PTH111 - never raises
        problems: list[Problem] = []
        logs = [path for pattern in home.files for path in sorted(folder.glob(pattern))]
        for name in home.folders:
            paths = find_log_files(folder / name, problems)
            logs += [path for path in paths if path.suffix == ".jsonl"]
        place = LogLocation(
            source=home.source,
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
        yield from (Path(parent, name) for name in sorted(names) if _is_log_name(name))


def _is_log_name(name: str) -> bool:
    return name.lower().endswith(LOG_ENDINGS)
