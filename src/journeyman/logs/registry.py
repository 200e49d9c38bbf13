"""The interface of log readers, the built-in readers, and those that other packages register in the
entry-point group `journeyman.readers`. Readers never write to other programs' files, hold no whole
session in memory, and yield fragments, skips and marks (see `journeyman.records.fragment`).
"""

from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, runtime_checkable

from journeyman.logs.chat import OpenAIChatReader
from journeyman.logs.claude_code import ClaudeCodeReader
from journeyman.logs.codex import CodexReader
from journeyman.logs.copilot import CopilotReader
from journeyman.logs.fragments import JourneymanExportReader
from journeyman.logs.gemini import GeminiReader
from journeyman.logs.hermes import HermesReader
from journeyman.logs.log_file import LogFile
from journeyman.logs.opencode import OpencodeReader
from journeyman.logs.sqlite_database import foreign_database
from journeyman.records import LogEvent, LogState
from journeyman.records.errors import BadSetting, JourneymanError, NotALog
from journeyman.records.report import Problem

GROUP = "journeyman.readers"


@runtime_checkable
class Reader(Protocol):
    """Reads one kind of log. `name` is its value for `--source`, `about` a one-line description."""

    name: str
    about: str

    def recognises(self, log: LogFile) -> bool:
        """Return whether the log is of this kind, judging by its name and its first bytes."""
        ...

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        """Yield the log's sessions as fragments: with `since`, only what was added after it, if
        the format allows that, otherwise everything. A log that was read to its end ends with a
        mark. Raises LogUnreadable if nothing can be read at all.
        """
        ...


class Readers:
    """All readers, tried in order. `problems` lists the plug-ins that could not be loaded."""

    def __init__(self, plugins: Sequence[EntryPoint] | None = None) -> None:
        self.problems: list[Problem] = []
        plugins = entry_points(group=GROUP) if plugins is None else plugins
        loaded = [reader for plugin in plugins if (reader := self._load(plugin)) is not None]
        self.all: list[Reader] = [
            # First, because a package that the user installed for its logs knows them best.
            *loaded,
            HermesReader(),
            ClaudeCodeReader(),
            CodexReader(),
            OpencodeReader(),
            CopilotReader(),
            GeminiReader(),
            JourneymanExportReader(),
            # Last, because nearly every format contains messages.
            OpenAIChatReader(),
        ]

    def named(self, name: str) -> Reader:
        for reader in self.all:
            if reader.name == name:
                return reader
        names = ", ".join(sorted(reader.name for reader in self.all))
        raise BadSetting(f"There is no reader {name!r}. The readers are: {names}.")

    def reader_for(
        self,
        log: LogFile,
        problems: list[Problem] | None = None,
        *,
        requested: Reader | None = None,
    ) -> Reader:
        """Return the requested reader, or the first that recognises the log. Raises NotALog, which
        states what the file contains instead. A reader that fails is added to `problems`.
        """
        if log.size == 0:
            raise NotALog(f"{log.path} is empty.")
        for reader in self.all if requested is None else [requested]:
            try:
                if reader.recognises(log):
                    return reader
            except JourneymanError:
                raise
            except Exception as error:  # noqa: BLE001 - another package's code: report, continue
                failure = f"{type(error).__name__}: {error}"
                reason = f"{log.path}: the reader {reader.name} failed: {failure}"
                if problems is not None:
                    problems.append(Problem(path=str(log.path), reason=reason))
        if log.is_database:
            raise foreign_database(log)
        if not log.is_text:
            raise NotALog(f"{log.path} is binary data that no reader recognises.")
        if requested is not None:
            # The user should know the format; lines that do not match it are reported one by one.
            return requested
        raise NotALog(
            f"{log.path} is text, but no reader recognises its format. "
            "`journeyman import --help` lists the formats; --source selects one."
        )

    def _load(self, plugin: EntryPoint) -> Reader | None:
        reason = f"{plugin.value} is not a reader: it must have name, about, recognises and read"
        try:
            reader = plugin.load()()
            if isinstance(reader, Reader):
                return reader
        except Exception as error:  # noqa: BLE001 - another package's code: report, continue
            from journeyman.redaction.masking import mask_text  # noqa: PLC0415 - loads slowly

            reason = mask_text(f"the reader {plugin.value} could not be loaded: {error}")
        self.problems.append(Problem(path=plugin.value, reason=reason))
        return None
