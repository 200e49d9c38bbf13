"""Journeyman's own export, read back: sessions move between machines without loss."""

from collections.abc import Iterator
from typing import Any

import msgspec

from journeyman.logs.fragments import SessionNames, in_fragments, read_session_lines
from journeyman.logs.logfile import LogFile
from journeyman.records import Fragment, LogEvent, LogState, Message, Skip, Usage
from journeyman.records.exported import ExportedSession

# What this program wrote itself is read back whatever its size.
_LONGEST_EXPORT = 2**31


class JourneymanExportReader:
    """Files that `journeyman sessions export` wrote."""

    name = "journeyman"
    about = "Journeyman's own export (JSONL)"

    def recognises(self, log: LogFile) -> bool:
        return {"journeyman", "session"} <= log.keys

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        def read(value: Any, line: int, _: SessionNames, offset: int) -> Iterator[Fragment | Skip]:
            try:
                exported = msgspec.convert(value, ExportedSession)
            except msgspec.ValidationError as error:
                yield Skip(line=line, reason=f"not the expected shape: {error}")
                return
            session = msgspec.structs.replace(exported.session, log=log.name)
            parts: tuple[Usage | Message, ...] = (*exported.usage, *exported.messages)
            yield from in_fragments(session, parts, read_bytes=offset)

        return read_session_lines(log, since, self.name, read, longest=_LONGEST_EXPORT)
