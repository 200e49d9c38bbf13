"""The report counts each session once; a problem costs only its own log."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from journeyman import Journeyman
from journeyman.logs import importer
from journeyman.logs.log_file import LogFile
from journeyman.logs.registry import Readers
from journeyman.logs.repositories import Repositories
from journeyman.records import Fragment, LogEvent, LogState, Message, Session, SessionId, Skip
from journeyman.records.errors import LogUnreadable, NotALog
from journeyman.records.report import ImportReport
from journeyman.store.store import Store
from journeyman.testing import Corpus

_ID = "0442a060-1111-4222-8333-944455566677"


def import_logs_into(
    home: Path, logs: Path, **options: object
) -> tuple[ImportReport, list[object]]:
    """Import the logs and return the report and all stored sessions."""
    with Journeyman(home=home, environ={}) as journeyman:
        report = journeyman.import_logs([logs], **options)  # type: ignore[arg-type]
        sessions = journeyman.sessions
        stored = [
            (one, list(sessions.messages(one.session.id)), sessions.usage(one.session.id))
            for one in sessions.list()
        ]
    return report, sorted(stored, key=lambda one: one[0].session.id)


def test_each_session_is_counted_once(corpus: Corpus, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    copies = folder / "copies"
    shutil.copytree(corpus.folder, folder / "all")
    shutil.copytree(corpus.folder, copies)  # every session with an id is in two logs
    home = tmp_path / "home"

    report, stored = import_logs_into(home, folder)
    assert report.new == len(stored)
    assert (report.updated, report.unchanged) == (0, 0)
    assert any(source.subagents for source in report.sources.values())

    report, stored = import_logs_into(home, folder)
    assert (report.new, report.updated, report.unchanged) == (0, 0, len(stored))

    # One of two logs of a session grows: it is updated, and not also unchanged.
    log = next(log for log in copies.rglob("*.jsonl") if "codex" in str(log))
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines, lines[-1]]) + "\n")
    report, again = import_logs_into(home, folder)
    assert len(again) == len(stored)
    assert report.new + report.updated + report.unchanged == len(stored)

    report, _ = import_logs_into(home, folder, reread=True)
    assert report.new + report.updated + report.unchanged == len(stored)


class PluginReader:
    """A reader of another package, which recognises everything, or fails to."""

    name = about = "plugin"

    def __init__(self, *events: LogEvent | Exception, failure: Exception | None = None) -> None:
        self.events, self.failure = events, failure

    def recognises(self, log: LogFile) -> bool:
        if self.failure:
            raise self.failure
        return True

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        for event in self.events:
            if isinstance(event, Exception):
                raise event
            yield event


def import_with(reader: PluginReader, tmp_path: Path) -> ImportReport:
    log = tmp_path / "log.jsonl"
    log.write_text("{}")
    readers = Readers(plugins=[])
    readers.all.insert(0, reader)
    with Store(f"sqlite:///{tmp_path}/db") as store:
        run = importer.Importer(
            lambda: readers,
            store,
            source="auto",
            reread=False,
            place="",
            repositories=Repositories(tmp_path / "clones.json"),
            progress=lambda _: None,
        )
        return run.run([log])


def test_a_problem_does_not_repeat_the_statement_and_its_values(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"copied": "neither"}
    message = Message(key="k", position=1, role="user", **fields)
    session = Session(id=SessionId("s1"), source="plugin", log="log")
    reader = PluginReader(Fragment(session=session, messages=(message,)))
    (problem,) = import_with(reader, tmp_path).problems
    assert problem.reason.endswith("TypeError: Not a boolean value: 'neither'.")


def test_failures_of_readers_are_redacted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    secret = "sk-proj-" + "Zq7Lw2Xr9" * 5
    said = f"refused:\n\x1b[31mAuthorization: Bearer {secret}"
    reported = (RuntimeError(said), LogUnreadable(said), Skip(line=1, reason=said))
    readers = [PluginReader(event) for event in reported]
    readers += [PluginReader(failure=failure(said)) for failure in (RuntimeError, NotALog)]
    for number, reader in enumerate(readers):
        shown = str(import_with(reader, tmp_path))
        assert "Bearer [hidden: " in shown, number
        assert secret not in shown + caplog.text, number
        assert "\\n" not in shown, number
