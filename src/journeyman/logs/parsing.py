"""Logs read in a process of their own. What a reader yields comes back as bytes, for whoever writes
it to the store.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from journeyman.logs.logfile import LogFile
from journeyman.logs.registry import Readers
from journeyman.records import Fragment, LogEvent, Mark, Skip
from journeyman.records.errors import LogUnreadable, NotALog
from journeyman.records.report import Problem


class _Event(Struct, array_like=True, omit_defaults=True):
    """One of the three."""

    fragment: Fragment | None = None
    skip: Skip | None = None
    mark: Mark | None = None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Event]).decode


def parse(path: str, place: str, source: str) -> bytes | None:
    """What is in a log, to be read by `parsed_events`. None where a reader fails at it: who reads
    it again can say how. Raises NotALog and LogUnreadable.
    """
    problems: list[Problem] = []
    try:
        log = LogFile(Path(path), place)
        asked_for = None if source == "auto" else _readers().named(source)
        reader = _readers().reader_for(log, problems, asked_for=asked_for)
        packed = _encode([_event(one) for one in reader.read(log, None)])
    except (NotALog, LogUnreadable):
        raise
    except Exception:  # noqa: BLE001 - it is read again, and reported then
        return None
    return None if problems else packed


def parsed_events(packed: bytes) -> Iterator[LogEvent]:
    """The events of a log."""
    for one in _decode(packed):
        yield one.fragment or one.skip or one.mark  # type: ignore[misc]


def _event(event: LogEvent) -> _Event:
    match event:
        case Fragment():
            return _Event(fragment=event)
        case Skip():
            return _Event(skip=event)
        case Mark():
            return _Event(mark=event)


@cache
def _readers() -> Readers:
    return Readers()
