"""The report counts each session once; several processes give the same result as one."""

import multiprocessing
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
from journeyman.records.report import ImportReport, Progress
from journeyman.store.store import Store
from journeyman.testing import Corpus

_ID = "0442a060-1111-4222-8333-944455566677"


@pytest.fixture
def logs(corpus: Corpus, tmp_path: Path) -> Path:
    """Logs of every kind, a file that is not a log, an empty one and one with a broken line."""
    folder = tmp_path / "logs"
    shutil.copytree(corpus.folder, folder)
    (folder / "notes.json").write_text('{"shopping": ["milk"]}')
    (folder / "empty.jsonl").touch()
    sample = next(one for one in sorted(folder.rglob("*.jsonl")) if one.stat().st_size)
    (folder / "broken.jsonl").write_bytes(sample.read_bytes() + b'{"half": \n')
    return folder


@pytest.fixture(autouse=True)
def always_use_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importer, "_WORTH_WORKERS_BYTES", 0)


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


def facts(report: ImportReport) -> tuple[object, ...]:
    reasons = sorted(one.reason for one in (*report.problems, *report.ignored))
    return report.sources, report.logs_read, report.read_bytes, report.skipped, reasons


def test_parallel_import_equals_sequential_import(logs: Path, tmp_path: Path) -> None:
    report, stored = import_logs_into(tmp_path / "one", logs)
    again, same = import_logs_into(tmp_path / "two", logs, workers=2)
    assert facts(again) == facts(report)
    assert len(report.ignored) > 1
    assert same == stored

    report, _ = import_logs_into(tmp_path / "two", logs, workers=2)
    assert (report.new, report.logs_read) == (0, 0)


def test_logs_of_a_killed_worker_are_imported(logs: Path, tmp_path: Path) -> None:
    expected, stored = import_logs_into(tmp_path / "one", logs)
    killed: list[object] = []

    def kill(_progress: Progress) -> None:
        if not killed:
            killed.extend(multiprocessing.active_children())
            for worker in multiprocessing.active_children():
                worker.kill()

    report, same = import_logs_into(tmp_path / "two", logs, workers=2, progress=kill)
    assert killed
    assert facts(report) == facts(expected)
    assert same == stored


DANGEROUS_READER = """
import os, signal, time
class Reader:
    name = about = "dangerous"
    def recognises(self, log):
        return "hostile" in log.path.name
    def read(self, log, since):
        if "crash" in log.path.name:
            os.kill(os.getpid(), signal.SIGSEGV)
        if "exit" in log.path.name:
            os._exit(7)
        if "memory" in log.path.name:
            bytearray(4_000_000_000)
        if "endless" in log.path.name:
            time.sleep(600)
        yield from ()
"""


def test_a_log_that_kills_its_worker_costs_only_itself(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader is that of another package, because none of ours can be made to crash."""
    expected, stored = import_logs_into(tmp_path / "one", logs)
    (tmp_path / "plugins" / "dangerous-1.dist-info").mkdir(parents=True)
    (tmp_path / "plugins" / "dangerous.py").write_text(DANGEROUS_READER)
    declared = "[journeyman.readers]\ndangerous = dangerous:Reader\n"
    (tmp_path / "plugins" / "dangerous-1.dist-info" / "entry_points.txt").write_text(declared)
    metadata = "Metadata-Version: 2.1\nName: dangerous\nVersion: 1\n"
    (tmp_path / "plugins" / "dangerous-1.dist-info" / "METADATA").write_text(metadata)
    monkeypatch.syspath_prepend(str(tmp_path / "plugins"))
    monkeypatch.setattr(importer, "_WORKER_SECONDS", 3.0)
    for kind in ("crash", "exit", "memory", "endless"):
        (logs / f"hostile-{kind}.jsonl").write_text("{}")

    report, same = import_logs_into(tmp_path / "two", logs, workers=2)
    assert same == stored
    assert report.sources == expected.sources
    reasons = {Path(one.path).stem: one.reason for one in report.problems}
    assert "SIGSEGV" in reasons.pop("hostile-crash")
    assert "exit code 7" in reasons.pop("hostile-exit")
    assert "too much memory" in reasons.pop("hostile-memory")
    assert "did not finish within 3 s" in reasons.pop("hostile-endless")
    assert reasons == {}


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
            workers=1,
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
