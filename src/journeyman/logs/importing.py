"""From logs to wherever sessions are kept: each log in transactions that end where the log is
whole, so that a kill at any moment leaves either all of a session's new part or none of it.
"""

import logging
import os
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from journeyman.logs.discovery import files_in
from journeyman.logs.logfile import LogFile, printable
from journeyman.logs.repositories import Projects
from journeyman.records import Fragment, LogEvent, LogState, Mark, SessionId, Skip
from journeyman.records.errors import (
    JourneymanError,
    LogUnreadable,
    NotALog,
    Unstorable,
    follows_interrupt,
)
from journeyman.records.fragment import Change
from journeyman.records.report import (
    ImportReport,
    Place,
    Problem,
    Progress,
    SkippedLine,
    SourceReport,
)

if TYPE_CHECKING:
    from journeyman.logs.registry import Readers

logger = logging.getLogger(__name__)

_REPORTED_LINES = 1000

_WORTH_WORKERS_BYTES = 30_000_000
"""How much takes one process longer to read than it takes others to start."""

_LONGEST_AHEAD_BYTES = 8_000_000
_LOGS_AHEAD = 8
"""What is read ahead is in memory until it is written."""

_Parsed = Future[list[LogEvent] | None] | None


class SessionWriter(Protocol):
    """An open transaction of the store."""

    def add(self, fragment: Fragment) -> None: ...
    def remember(self, log: str, state: LogState) -> None: ...
    def repository_folders(self) -> dict[str, str]: ...
    def finish(self) -> dict[SessionId, Change]: ...


class SessionKeeper(Protocol):
    """The store, as far as importing needs it."""

    def log_stamps(self) -> dict[str, tuple[str, int, int]]: ...
    def log_state(self, log: str) -> LogState | None: ...
    def sessions_of_log(self, log: str) -> dict[SessionId, tuple[str, bool]]: ...
    def writing(self, *, restores: bool = False) -> AbstractContextManager[SessionWriter]: ...


class _Candidate(NamedTuple):
    """A file to look at; `named` if somebody asked for just this one."""

    path: Path
    named: bool
    size: int


@dataclass
class Import:
    """One run over some logs; `run` it once, then take its report. `readers` loads the readers,
    which is done when there is something to read. `place` goes before the logs' names; `reread`
    also brings back what was deleted. `home` is the user's. Many new logs are read by as many
    processes as there are `workers`; only this one writes.
    """

    readers: "Callable[[], Readers]"
    keeper: SessionKeeper
    source: str
    reread: bool
    place: str
    home: Path | None
    progress: Callable[[Progress], None]
    workers: int

    def __post_init__(self) -> None:
        self._reader = None if self.source == "auto" else self.readers().named(self.source)
        self._projects = Projects(home=self.home)
        self._stamps: dict[str, tuple[str, int, int]] = {}
        self._changes = defaultdict[str, Counter[str]](Counter)
        self._skipped: list[SkippedLine] = []
        self._skipped_lines = 0
        self._ignored: list[Problem] = []
        self._problems: list[Problem] = []
        self._logs = Counter[str]()
        self._read_bytes = 0

    def run(self, paths: Iterable[Path], *, named: bool = True) -> ImportReport:
        """Import files and folders. A file that is no log is a problem if it was `named`, and
        passed over otherwise.
        """
        started = time.monotonic()
        candidates = list(self._candidates(paths, named=named))
        total, before = sum(candidate.size for candidate in candidates), 0
        self._stamps = {} if self.reread else self.keeper.log_stamps()
        with closing(self._parsed(candidates)) as ones:
            for number, (candidate, parsed) in enumerate(ones):

                def report(read_bytes: int, done: int = number, before: int = before) -> None:
                    read = min(before + read_bytes, total)
                    share = read / total if total else 1.0
                    many = len(candidates)
                    self.progress(Progress(done=done, total=many, done_bytes=read, share=share))

                self._import_log(candidate, parsed, report)
                before += candidate.size
                report(0, number + 1, before)
        return self._report(time.monotonic() - started)

    def discovered(self, places: Iterable[Place]) -> ImportReport:
        """Import what is in the usual places."""
        logs = []
        for place in places:
            self._problems += place.problems
            logs += [Path(log) for log in place.logs]
        return self.run(logs, named=False)

    def _candidates(self, paths: Iterable[Path], *, named: bool) -> Iterator[_Candidate]:
        seen = set()
        for path in paths:
            is_folder = os.path.isdir(path)  # noqa: PTH112 - says no where pathlib raises
            for file in files_in(path, self._problems) if is_folder else [path]:
                name = str(file)
                with suppress(ValueError):  # no path at all; reading it will say so
                    name = os.path.realpath(file)
                if name not in seen:
                    seen.add(name)
                    size = 0
                    with suppress(OSError, ValueError):  # reading it will say what is wrong
                        size = file.stat().st_size
                    yield _Candidate(Path(name), named and not is_folder, size)

    def _parsed(
        self, candidates: Sequence[_Candidate]
    ) -> Generator[tuple[_Candidate, _Parsed], None, None]:
        """The candidates in order. Logs that are new, and not so large that they should not be in
        memory whole, are read ahead by workers, if there are enough of them.
        """
        new = [one for one in candidates if self.place + printable(one.path) not in self._stamps]
        if self.workers == 1 or sum(one.size for one in new) < _WORTH_WORKERS_BYTES:
            yield from ((one, None) for one in candidates)
            return
        # Loaded here, because mostly nothing is new.
        from journeyman.logs.registry import parse  # noqa: PLC0415
        from journeyman.worker_pool import WorkerPool  # noqa: PLC0415

        ahead = {one.path for one in new if one.size <= _LONGEST_AHEAD_BYTES}
        waiting: deque[tuple[_Candidate, _Parsed]] = deque()
        pool = WorkerPool(self.workers)
        try:
            for one in candidates:
                parsed = None
                if one.path in ahead:
                    parsed = pool.submit(parse, str(one.path), self.place, self.source)
                waiting.append((one, parsed))
                if len(waiting) > _LOGS_AHEAD:
                    yield waiting.popleft()
            yield from waiting
        finally:
            pool.shutdown(cancel_futures=True)

    def _import_log(
        self, candidate: _Candidate, parsed: _Parsed, report: Callable[[int], None]
    ) -> None:
        path = printable(candidate.path)
        try:
            log = LogFile(candidate.path, self.place)
            # Read as it is now, by the reader that is asked for.
            reader_before, *stamp = self._stamps.get(log.name, ("",))
            if stamp == [log.size, log.mtime_ns] and self.source in ("auto", reader_before):
                self._logs["unchanged"] += 1
                self._count("unchanged", self.keeper.sessions_of_log(log.name).values())
                return
            events: list[LogEvent] | None = None
            with suppress(BrokenExecutor):  # the worker was killed: the log is read here
                events = parsed.result() if parsed else None
            if events is not None:
                since = None
                self._read_log(iter(events), log, report)
            else:
                reader = self.readers().reader_for(log, self._problems, asked_for=self._reader)
                since = None if self.reread else self.keeper.log_state(log.name)
                if since and since.reader != reader.name:
                    since = None
                self._read_log(reader.read(log, since), log, report)
            self._logs["read"] += 1
            self._read_bytes += max(0, log.size - (since.offset if since else 0))
        except (NotALog, LogUnreadable, Unstorable) as error:
            ignored = isinstance(error, NotALog) and not candidate.named
            kept = self._ignored if ignored else self._problems
            kept.append(Problem(path=path, reason=str(error)))
        except JourneymanError:
            raise
        except Exception as error:
            if follows_interrupt(error):
                raise KeyboardInterrupt from error
            reason = f"{path} could not be imported: {type(error).__name__}: {error}."
            if isinstance(error, OSError):
                reason = f"{path} cannot be read: {error.strerror or error}."
            else:
                # A reader's mistake costs one log, not the import: it was rolled back.
                logger.exception("importing %s", path)
            self._problems.append(Problem(path=path, reason=reason))

    def _read_log(
        self, events: Iterator[LogEvent], log: LogFile, report: Callable[[int], None]
    ) -> None:
        known = self.keeper.sessions_of_log(log.name)
        event = next(events, None)
        while event is not None:
            facts: dict[SessionId, tuple[str, bool]] = {}
            with self.keeper.writing(restores=self.reread) as writing:
                while event is not None and not isinstance(event, Mark):
                    self._take(event, writing, facts, printable(log.path), report)
                    event = next(events, None)
                if isinstance(event, Mark):
                    state, event = event.state, next(events, None)
                    if event is not None:
                        # Interrupted after this, the log is not done, whatever its size says.
                        state = msgspec.structs.replace(state, size=-1)
                    writing.remember(log.name, state)
                changes = writing.finish()
            for session_id, change in changes.items():
                self._count(change, [facts[session_id]])
                known.pop(session_id, None)
        self._count("unchanged", known.values())

    def _take(
        self,
        event: LogEvent,
        writing: SessionWriter,
        facts: dict[SessionId, tuple[str, bool]],
        path: str,
        report: Callable[[int], None],
    ) -> None:
        if isinstance(event, Fragment):
            session = event.session
            subagent = session.lineage is not None and session.lineage.kind == "subagent"
            facts[session.id] = (session.source, subagent)
            project = self._projects.project_of(session, writing.repository_folders)
            session = msgspec.structs.replace(session, project=project)
            writing.add(msgspec.structs.replace(event, session=session))
            report(event.read_bytes)
        elif isinstance(event, Skip):
            self._skipped_lines += 1
            if len(self._skipped) < _REPORTED_LINES:
                self._skipped.append(SkippedLine(log=path, line=event.line, reason=event.reason))

    def _count(self, change: str, sessions: Iterable[tuple[str, bool]]) -> None:
        for source, is_subagent in sessions:
            self._changes[source].update({change: 1, "subagents": int(is_subagent)})

    def _report(self, seconds: float) -> ImportReport:
        sources = {
            source: SourceReport(**counts) for source, counts in sorted(self._changes.items())
        }
        return ImportReport(
            new=sum(one.new for one in sources.values()),
            updated=sum(one.updated for one in sources.values()),
            unchanged=sum(one.unchanged for one in sources.values()),
            sources=sources,
            logs_read=self._logs["read"],
            logs_unchanged=self._logs["unchanged"],
            read_bytes=self._read_bytes,
            seconds=round(seconds, 3),
            skipped_lines=self._skipped_lines,
            skipped=self._skipped,
            ignored=self._ignored,
            problems=self._problems + (self.readers().problems if self._logs["read"] else []),
        )
