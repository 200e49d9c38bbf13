"""Importing with several processes gives the same result as with one."""

import multiprocessing
import shutil
from pathlib import Path

import pytest

from journeyman import Journeyman
from journeyman.logs import importer
from journeyman.records.report import ImportReport, Progress
from journeyman.testing import Corpus


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
