"""Fixtures shared by the reader tests: write a log, read it and inspect the result."""

import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from journeyman.logs.log_file import LogFile
from journeyman.logs.registry import Reader
from journeyman.records import (
    Call,
    Fragment,
    LogState,
    Mark,
    Message,
    Session,
    Skip,
    Usage,
    join_calls,
)


class Reading:
    """Everything that one pass over a log yields, grouped by session."""

    def __init__(self, reader: Reader, path: Path, since: LogState | None = None) -> None:
        self.events = list(reader.read(LogFile(path), since))
        self.fragments = [event for event in self.events if isinstance(event, Fragment)]
        self.skips = [event for event in self.events if isinstance(event, Skip)]
        self.sessions: dict[str, Session] = {}
        self.by_session: dict[str, list[Message]] = {}
        for fragment in self.fragments:
            self.sessions.setdefault(fragment.session.id, fragment.session)
            self.by_session.setdefault(fragment.session.id, []).extend(fragment.messages)
        for messages in self.by_session.values():
            positions = [message.position for message in messages]
            assert positions == sorted(set(positions)), "positions must strictly increase"
            assert len({message.key for message in messages}) == len(messages)

    @property
    def state(self) -> LogState:
        last = self.events[-1]
        assert isinstance(last, Mark)
        return last.state

    @property
    def session(self) -> Session:
        (only,) = self.sessions.values()
        return only

    @property
    def messages(self) -> list[Message]:
        return [message for messages in self.by_session.values() for message in messages]

    @property
    def usage(self) -> list[Usage]:
        return [usage for fragment in self.fragments for usage in fragment.usage]

    def calls(self, session: str | None = None) -> list[Call]:
        return join_calls(self.messages if session is None else self.by_session[session])


@pytest.fixture
def read() -> Callable[..., Reading]:
    return Reading


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, Any], Path]:
    """Write a log: text verbatim, `Lines` as lines, anything else as one JSON document. A name
    ending in .gz is compressed.
    """

    def write(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            text = content
        elif isinstance(content, Lines):
            text = content.text
        else:
            text = json.dumps(content)
        data = text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


class Lines:
    """Values to write one per line, as JSON; text is written verbatim."""

    def __init__(self, *values: Any) -> None:
        self.text = "".join(
            (value if isinstance(value, str) else json.dumps(value)) + "\n" for value in values
        )


@pytest.fixture
def lines() -> Callable[..., Lines]:
    return Lines


@pytest.fixture
def append() -> Callable[[Path, Iterable[Any]], None]:
    def append(path: Path, values: Iterable[Any]) -> None:
        with path.open("a") as file:
            file.write(Lines(*values).text)

    return append
