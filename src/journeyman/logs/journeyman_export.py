"""Journeyman's own export, read back: sessions move between machines without loss."""

from collections.abc import Iterator

import msgspec

from journeyman.logs.lines import BadLine, LineDecoder, Lines
from journeyman.logs.logfile import LogFile
from journeyman.logs.reader import FRAGMENT_MESSAGES
from journeyman.records import Fragment, LogEvent, LogState, Mark, Skip
from journeyman.records.exported import ExportedSession


class JourneymanExportReader:
    """Files that `journeyman sessions export` wrote."""

    name = "journeyman"
    about = "Journeyman's own export (JSONL)"

    def recognises(self, log: LogFile) -> bool:
        return (
            any(
                isinstance(line, dict) and {"journeyman", "session", "messages"} <= line.keys()
                for line in log.first_lines[:3]
            )
            or {"journeyman", "session", "messages"} <= log.keys
        )

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        lines = Lines(log, since)
        decoder: LineDecoder[ExportedSession] = LineDecoder(ExportedSession)
        for line in lines:
            if isinstance(line, Skip):
                yield line
                continue
            try:
                exported = decoder.decode(line)
            except BadLine as reason:
                yield Skip(line=line.number, reason=str(reason))
                continue
            session = msgspec.structs.replace(exported.session, log=str(log.path))
            usage = tuple(exported.usage)
            yield Fragment(session=session, usage=usage, replaces=True, read_bytes=line.offset)
            for start in range(0, len(exported.messages), FRAGMENT_MESSAGES):
                messages = exported.messages[start : start + FRAGMENT_MESSAGES]
                yield Fragment(session=session, messages=tuple(messages))
        yield Mark(state=lines.state(self.name))
