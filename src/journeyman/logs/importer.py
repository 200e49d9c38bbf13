"""Imports logs into the store. Each log is written in transactions that end at a mark, so that a
kill at any moment leaves either all of a session's new part or none of it.
"""

import logging
import os
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import msgspec

from journeyman.logs.discovery import find_log_files
from journeyman.logs.log_file import LogFile, printable
from journeyman.logs.repositories import Projects, Repositories
from journeyman.records import Fragment, LogEvent, LogState, Mark, SessionId, Skip
from journeyman.records.errors import (
    JourneymanError,
    LogUnreadable,
    NotALog,
    Unstorable,
    follows_interrupt,
)
from journeyman.records.fragment import SessionChange
from journeyman.records.report import (
    ImportReport,
    LogLocation,
    Problem,
    Progress,
    SkippedLine,
    SourceReport,
)
from journeyman.text.display import readable_line

if TYPE_CHECKING:
    from journeyman.logs.registry import Readers

logger = logging.getLogger(__name__)

_MAX_REPORTED_LINES = 1000

_LeftOut = TypeVar("_LeftOut", Problem, SkippedLine)


class SessionWriter(Protocol):
    """An open transaction of the store."""

    def add(self, fragment: Fragment) -> SessionId | None: ...
    def remember(self, log: str, state: LogState) -> None: ...
    def repository_folders(self) -> dict[str, str]: ...
    def finish(self) -> dict[SessionId, SessionChange]: ...


class ImportStore(Protocol):
    """The part of the store that importing needs."""

    def log_stamps(self) -> dict[str, tuple[str, int, int]]: ...
    def log_state(self, log: str) -> LogState | None: ...
    def sessions_of_log(self, log: str) -> dict[SessionId, tuple[str, bool]]: ...
    def writing(self, *, restores: bool = False) -> AbstractContextManager[SessionWriter]: ...


_PRECEDENCE: tuple[SessionChange, ...] = ("new", "updated", "unchanged")


class _ImportedSession(NamedTuple):
    """A session in the logs of this import, and what the import did to it."""

    change: SessionChange
    source: str
    is_subagent: bool


class _Candidate(NamedTuple):
    """A file that may be a log; `named` if the user named this file, not its folder."""

    path: Path
    named: bool
    size: int


@dataclass
class Importer:
    """One import of some logs; call `run` once, which returns the report. `readers` loads the
    readers, and is called only if there is something to read. `place` is prepended to the logs'
    names; `reread` also restores deleted sessions.
    """

    readers: "Callable[[], Readers]"
    keeper: ImportStore
    source: str
    reread: bool
    place: str
    repositories: Repositories
    progress: Callable[[Progress], None]

    def __post_init__(self) -> None:
        self._reader = None if self.source == "auto" else self.readers().named(self.source)
        self._projects = Projects(self.repositories)
        self._stamps: dict[str, tuple[str, int, int]] = {}
        self._sessions: dict[SessionId, _ImportedSession] = {}
        self._skipped: list[SkippedLine] = []
        self._skipped_lines = 0
        self._ignored: list[Problem] = []
        self._problems: list[Problem] = []
        self._logs = Counter[str]()
        self._read_bytes = 0

    def run(self, paths: Iterable[Path], *, named: bool = True) -> ImportReport:
        """Import files and folders. A file that is not a log is reported as a problem if it was
        `named`, otherwise as ignored.
        """
        started = time.monotonic()
        candidates = list(self._candidates(paths, named=named))
        total, before = sum(candidate.size for candidate in candidates), 0
        self._stamps = {} if self.reread else self.keeper.log_stamps()
        for number, candidate in enumerate(candidates):

            def report(read_bytes: int, done: int = number, before: int = before) -> None:
                read = min(before + read_bytes, total)
                share = read / total if total else 1.0
                count = len(candidates)
                self.progress(Progress(done=done, total=count, share=share))

            self._import_log(candidate, report)
            before += candidate.size
            report(0, number + 1, before)
        return self._report(time.monotonic() - started)

    def discovered(self, places: Iterable[LogLocation]) -> ImportReport:
        """Import the logs in the default locations."""
        logs = []
        for place in places:
            self._problems += place.problems
            logs += [Path(log) for log in place.logs]
        return self.run(logs, named=False)

    def _candidates(self, paths: Iterable[Path], *, named: bool) -> Iterator[_Candidate]:
        names = set()
        for path in paths:
            is_folder = os.path.isdir(path)  # noqa: PTH112 - returns False where pathlib raises
            below = find_log_files(path, self._problems)
            for file in below if is_folder else [path]:
                name = str(file)
                with suppress(ValueError):  # not a valid path; reading it reports that
                    name = os.path.realpath(file)
                if name not in names:
                    names.add(name)
                    size = 0
                    with suppress(OSError, ValueError):  # reading it reports the error
                        size = file.stat().st_size
                    # What is not a file is reported by the name that the user knows.
                    log = Path(name) if os.path.isfile(name) else file  # noqa: PTH113
                    yield _Candidate(log, named and not is_folder, size)

    def _import_log(self, candidate: _Candidate, report: Callable[[int], None]) -> None:
        path = printable(candidate.path)
        try:
            log = LogFile(candidate.path, self.place)
            # Unchanged since it was last read, by the requested reader.
            last_reader, *stamp = self._stamps.get(log.name, ("",))
            if stamp == [log.size, log.mtime_ns] and self.source in ("auto", last_reader):
                self._logs["unchanged"] += 1
                for id_, facts in self.keeper.sessions_of_log(log.name).items():
                    self._count(id_, "unchanged", facts)
                return
            reader = self.readers().reader_for(log, self._problems, requested=self._reader)
            since = None if self.reread else self.keeper.log_state(log.name)
            if since and since.reader != reader.name:
                since = None
            self._read_log(reader.read(log, since), log, report)
            self._logs["read"] += 1
            self._read_bytes += max(0, log.size - (since.offset if since else 0))
        except (NotALog, LogUnreadable, Unstorable) as error:
            is_ignored = isinstance(error, NotALog) and not candidate.named
            reported = self._ignored if is_ignored else self._problems
            reported.append(Problem(path=path, reason=str(error)))
        except JourneymanError:
            raise
        except Exception as error:
            if follows_interrupt(error):
                raise KeyboardInterrupt from error
            # An error of a statement repeats its values, which are text of the session.
            cause = getattr(error, "orig", None) or error
            reason = f"{path} could not be imported: {type(cause).__name__}: {cause}."
            if isinstance(error, OSError):
                reason = f"{path} cannot be read: {error.strerror or error}."
            else:
                # A bug in a reader loses one log, which was rolled back, not the whole import. The
                # message may repeat the log.
                frames = "".join(traceback.format_tb(error.__traceback__))
                logger.error("importing %s: %s\n%s", path, type(cause).__name__, frames)  # noqa: TRY400
            self._problems.append(Problem(path=path, reason=reason))

    def _read_log(
        self, events: Iterator[LogEvent], log: LogFile, report: Callable[[int], None]
    ) -> None:
        known = self.keeper.sessions_of_log(log.name)
        event = next(events, None)
        while event is not None:
            facts: dict[SessionId, tuple[str, bool]] = {}
            with self.keeper.writing(restores=self.reread) as writer:
                while event is not None and not isinstance(event, Mark):
                    self._write(event, writer, facts, printable(log.path), report)
                    event = next(events, None)
                if isinstance(event, Mark):
                    state, event = event.state, next(events, None)
                    if event is not None:
                        # Not the end: with this size, an interrupted import reads the log again.
                        state = msgspec.structs.replace(state, size=-1)
                    writer.remember(log.name, state)
                changes = writer.finish()
            for session_id, change in changes.items():
                self._count(session_id, change, facts[session_id])
        for session_id, known_facts in known.items():
            self._count(session_id, "unchanged", known_facts)

    def _write(
        self,
        event: LogEvent,
        writer: SessionWriter,
        facts: dict[SessionId, tuple[str, bool]],
        path: str,
        report: Callable[[int], None],
    ) -> None:
        if isinstance(event, Fragment):
            session = event.session
            subagent = session.lineage is not None and session.lineage.kind == "subagent"
            project = self._projects.project_of(session, writer.repository_folders)
            session = msgspec.structs.replace(session, project=project)
            stored_id = writer.add(msgspec.structs.replace(event, session=session))
            if stored_id is not None:
                facts[stored_id] = (session.source, subagent)
            report(event.read_bytes)
        elif isinstance(event, Skip):
            self._skipped_lines += 1
            if len(self._skipped) < _MAX_REPORTED_LINES:
                self._skipped.append(SkippedLine(log=path, line=event.line, reason=event.reason))

    def _count(self, session_id: SessionId, change: SessionChange, facts: tuple[str, bool]) -> None:
        """Count a session once, however many logs or transactions it is in: as new if it is, else
        as updated if any of them changed it.
        """
        before = self._sessions.get(session_id)
        source, is_subagent = facts
        if before is not None:
            change = min(before.change, change, key=_PRECEDENCE.index)
            is_subagent = is_subagent or before.is_subagent
        self._sessions[session_id] = _ImportedSession(change, source, is_subagent)

    def _report(self, seconds: float) -> ImportReport:
        counts = defaultdict[str, Counter[str]](Counter)
        for session in self._sessions.values():
            counted = {session.change: 1, "subagents": int(session.is_subagent)}
            counts[session.source].update(counted)
        sources = {name: SourceReport(**counts[name]) for name in sorted(counts)}
        return ImportReport(
            new=sum(source.new for source in sources.values()),
            updated=sum(source.updated for source in sources.values()),
            unchanged=sum(source.unchanged for source in sources.values()),
            sources=sources,
            logs_read=self._logs["read"],
            logs_unchanged=self._logs["unchanged"],
            read_bytes=self._read_bytes,
            seconds=round(seconds, 3),
            skipped_lines=self._skipped_lines,
            skipped=_masked(self._skipped),
            ignored=_masked(self._ignored),
            problems=_masked(
                self._problems + (self.readers().problems if self._logs["read"] else [])
            ),
        )


def _masked(left_out: list[_LeftOut]) -> list[_LeftOut]:
    """Return what was left out, each reason on one line and without secrets: readers of other
    packages may repeat a log in their errors.
    """
    if not left_out:
        return []
    from journeyman.redaction.masking import mask_text  # noqa: PLC0415 - loads slowly

    return [
        msgspec.structs.replace(one, reason=mask_text(readable_line(one.reason)))
        for one in left_out
    ]
