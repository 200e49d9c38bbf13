"""The sample corpus: about thirty sessions of scripted agents that really executed their calls,
recorded in four log formats. `samples.zip` holds the logs, and `sessions.json` describes them.
"""

import zipfile
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

Source = Literal["claude_code", "codex", "hermes", "chat"]

_ARCHIVE = Path(__file__).with_name("samples.zip")
_SESSIONS = "sessions.json"
_LISTS = "lists/state.db"


class SampleSession(Struct, frozen=True, kw_only=True):
    """The expected contents of one recorded session.

    `id` is the recorder's own. `parent` is the session of a subagent, or the one that a session
    continues after a rotation. `messages` counts user messages, agent messages and results once
    each, without messages of the harness. `failed` excludes refused and cancelled calls.
    """

    id: str
    source: Source
    title: str
    log: Path
    parent: str = ""
    subagent: bool = False
    messages: int
    calls: int
    answered: int
    failed: int
    refused: int
    cancelled: int
    compressions: int = 0


class Corpus(Struct, frozen=True, kw_only=True):
    """The folder of the logs, and the sessions in them."""

    folder: Path
    sessions: tuple[SampleSession, ...]

    def of(self, source: Source) -> tuple[SampleSession, ...]:
        """Return the sessions of one source, without those of subagents."""
        return tuple(s for s in self.sessions if s.source == source and not s.subagent)

    def logs(self, source: Source) -> tuple[Path, ...]:
        """Return the log files of one source; those of Hermes and chat hold many sessions each."""
        return tuple(sorted({s.log for s in self.sessions if s.source == source}))


def write_corpus(folder: Path) -> Corpus:
    """Write the logs below the folder, which is created if necessary."""
    with zipfile.ZipFile(_ARCHIVE) as archive:
        logs = [name for name in archive.namelist() if name not in (_SESSIONS, _LISTS)]
        archive.extractall(folder, logs)
        described = msgspec.json.decode(
            archive.read(_SESSIONS), type=list[SampleSession], dec_hook=lambda _, name: Path(name)
        )
    sessions = (msgspec.structs.replace(one, log=folder / one.log) for one in described)
    return Corpus(folder=folder, sessions=tuple(sessions))


def write_lists(folder: Path) -> Path:
    """Write only the sample session that keeps lists, to a log of its own. It is enough to start an
    agent warm on such a task. Return the path of the log.
    """
    with zipfile.ZipFile(_ARCHIVE) as archive:
        return Path(archive.extract(_LISTS, folder))
