"""Logs that are read by taking in one line after another, and read on where that ended: the loop
they share. What a line means is the taker's business.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from journeyman.logs.lines import BadLine, Line, LineDecoder, Lines
from journeyman.records import LogEvent, Mark, Skip

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Taker(Protocol[T_contra]):
    """Whoever takes lines in. What is complete is put into `ready`, to be handed on."""

    ready: list[LogEvent]

    def take(self, value: T_contra, line: Line) -> None:
        """One line, decoded. Raises BadLine."""
        ...

    def memory(self) -> dict[str, Any]:
        """What a later reading of the rest has to know."""
        ...

    def close(self, read_bytes: int) -> Iterable[LogEvent]:
        """All that is left, after the last line."""
        ...


def take_lines(
    reader: str, lines: Lines, shape: type[T] | Any, begin: Callable[[], Taker[T]]
) -> Iterator[LogEvent]:
    """Read a log to its end. `begin` makes the taker once it is known whether the log is read on
    or from its start.
    """
    decoder: LineDecoder[T] = LineDecoder(shape)
    taker: Taker[T] | None = None
    settled: dict[str, Any] | None = None
    for line in lines:
        if taker is None:
            taker = begin()
        if isinstance(line, Skip):
            yield line
            continue
        if not line.whole:
            # It is read again when it is complete, so it must leave no trace in the memory.
            settled = taker.memory()
        try:
            taker.take(decoder.decode(line), line)
        except BadLine as reason:
            yield Skip(line=line.number, reason=str(reason))
        except RecursionError:
            yield Skip(line=line.number, reason="nested too deeply to be read")
        if taker.ready:
            yield from taker.ready
            taker.ready = []
    if taker is None:
        taker = begin()
    memory = settled or taker.memory()
    yield from taker.close(lines.offset)
    yield Mark(state=lines.state(reader, memory=memory))
