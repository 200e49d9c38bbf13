"""The readers there are: the built-in ones and those that other packages bring."""

from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points

from journeyman.logs.claude_code import ClaudeCodeReader
from journeyman.logs.codex import CodexReader
from journeyman.logs.hermes import HermesExportReader, HermesReader
from journeyman.logs.journeyman_export import JourneymanExportReader
from journeyman.logs.logfile import LogFile
from journeyman.logs.mini_swe_agent import MiniSweAgentReader
from journeyman.logs.openai_chat import OpenAIChatReader
from journeyman.logs.reader import Reader
from journeyman.logs.sharegpt import ShareGPTReader
from journeyman.logs.tau import Tau2Reader, TauBenchReader
from journeyman.records.errors import JourneymanError, NotALog, UnknownReader
from journeyman.records.report import Problem

GROUP = "journeyman.readers"


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
        wanted = self.all if asked_for is None else [asked_for]
        for reader in wanted:
            if _knows(reader, log, [] if problems is None else problems):
                return reader
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
        try:
            reader = plugin.load()()
        except Exception as error:  # noqa: BLE001 - another package's code: report it, go on
            reason = f"the reader {plugin.value} could not be loaded: {error}"
            self.problems.append(Problem(path=plugin.value, reason=reason))
            return None
        if isinstance(reader, Reader):
            return reader
        reason = f"{plugin.value} is not a reader: it needs name, about, recognises and read"
        self.problems.append(Problem(path=plugin.value, reason=reason))
        return None


def _knows(reader: Reader, log: LogFile, problems: list[Problem]) -> bool:
    try:
        return reader.recognises(log)
    except JourneymanError:
        raise
    except Exception as error:  # noqa: BLE001 - another package's code: report it, go on
        failure = f"{type(error).__name__}: {error}"
        reason = f"{log.path}: the reader {reader.name} failed on it: {failure}"
        problems.append(Problem(path=str(log.path), reason=reason))
        return False
