"""The readers of logs: what each of them is, the built-in ones, and those that other packages name
in the entry-point group `journeyman.readers`. Readers never write to other programs' files, keep no
session in memory, and yield fragments, skips and marks (see `journeyman.records.fragment`).
"""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Protocol, runtime_checkable

from journeyman.logs.claude_code import ClaudeCodeReader
from journeyman.logs.codex import CodexReader
from journeyman.logs.fragments import JourneymanExportReader
from journeyman.logs.hermes import HermesExportReader, HermesReader
from journeyman.logs.logfile import LogFile
from journeyman.logs.mini_swe_agent import MiniSweAgentReader
from journeyman.logs.openai_chat import OpenAIChatReader
from journeyman.logs.sharegpt import ShareGPTReader
from journeyman.logs.tau import Tau2Reader, TauBenchReader
from journeyman.records import LogEvent, LogState
from journeyman.records.errors import JourneymanError, LogUnreadable, NotALog, UnknownReader
from journeyman.records.report import Problem

GROUP = "journeyman.readers"


@runtime_checkable
class Reader(Protocol):
    """One kind of log. `name` is what `--source` takes; `about` is one line for people."""

    name: str
    about: str

    def recognises(self, log: LogFile) -> bool:
        """Whether this log is of this kind, decided from its name and its first bytes."""
        ...

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        """The log's sessions as fragments. With `since`, only what has come since then, if the
        log allows it; otherwise all of it again. Ends with a mark when the log was read to its
        end. Raises LogUnreadable when nothing can be read at all.
        """
        ...


class Readers:
    """All readers, asked in order. `problems` names the plug-ins that could not be loaded."""

    def __init__(self, plugins: Sequence[EntryPoint] | None = None) -> None:
        self.problems: list[Problem] = []
        found = entry_points(group=GROUP) if plugins is None else plugins
        loaded = [reader for plugin in found if (reader := self._load(plugin)) is not None]
        self.all: list[Reader] = [
            # First, because a package that is installed on purpose knows its logs best.
            *loaded,
            HermesReader(),
            ClaudeCodeReader(),
            CodexReader(),
            JourneymanExportReader(),
            HermesExportReader(),
            ShareGPTReader(),
            Tau2Reader(),
            TauBenchReader(),
            MiniSweAgentReader(),
            # Last, because nearly everything has messages somewhere.
            OpenAIChatReader(),
        ]

    def named(self, name: str) -> Reader:
        for reader in self.all:
            if reader.name == name:
                return reader
        known = ", ".join(sorted(reader.name for reader in self.all))
        raise UnknownReader(f"There is no reader {name!r}. The readers are: {known}.")

    def reader_for(
        self,
        log: LogFile,
        problems: list[Problem] | None = None,
        *,
        asked_for: Reader | None = None,
    ) -> Reader:
        """The first reader that knows the log, or the one that was asked for. Raises NotALog,
        saying what was found instead. A reader that fails at it is added to `problems`.
        """
        if log.size == 0:
            raise NotALog(f"{log.path} is empty.")
        for reader in self.all if asked_for is None else [asked_for]:
            try:
                if reader.recognises(log):
                    return reader
            except JourneymanError:
                raise
            except Exception as error:  # noqa: BLE001 - another package's code: report it, go on
                failure = f"{type(error).__name__}: {error}"
                reason = f"{log.path}: the reader {reader.name} failed on it: {failure}"
                if problems is not None:
                    problems.append(Problem(path=str(log.path), reason=reason))
        if not log.is_text:
            raise NotALog(f"{log.path} is binary data, not a log that any reader knows.")
        if asked_for is not None:
            # Told by a person who should know; what does not fit is reported line by line.
            return asked_for
        raise NotALog(
            f"{log.path} is text, but no reader knows its shape. "
            "`journeyman import --help` lists the formats; --source names one."
        )

    def _load(self, plugin: EntryPoint) -> Reader | None:
        reason = f"{plugin.value} is not a reader: it needs name, about, recognises and read"
        try:
            reader = plugin.load()()
            if isinstance(reader, Reader):
                return reader
        except Exception as error:  # noqa: BLE001 - another package's code: report it, go on
            reason = f"the reader {plugin.value} could not be loaded: {error}"
        self.problems.append(Problem(path=plugin.value, reason=reason))
        return None


def parse(path: str, place: str, source: str) -> list[LogEvent] | None:
    """What is in a log, for a worker process to hand back. None where a reader fails at it: who
    reads it again can say how. Raises NotALog and LogUnreadable.
    """
    problems: list[Problem] = []
    try:
        log = LogFile(Path(path), place)
        asked_for = None if source == "auto" else _readers().named(source)
        reader = _readers().reader_for(log, problems, asked_for=asked_for)
        events = list(reader.read(log, None))
    except (NotALog, LogUnreadable):
        raise
    except Exception:  # noqa: BLE001 - it is read again, and reported then
        return None
    return None if problems else events


@cache
def _readers() -> Readers:
    return Readers()
