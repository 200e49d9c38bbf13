"""Importing with several processes gives what importing with one gives."""

import multiprocessing
import shutil
from pathlib import Path

import pytest

from journeyman import Journeyman
from journeyman.logs import importing
from journeyman.records.report import ImportReport, Progress
from journeyman.testing import Corpus


@pytest.fixture
def logs(corpus: Corpus, tmp_path: Path) -> Path:
    """Logs of every kind, one that is none, one that is empty and one with a broken line."""
    folder = tmp_path / "logs"
    shutil.copytree(corpus.folder, folder)
    (folder / "notes.json").write_text('{"shopping": ["milk"]}')
    (folder / "empty.jsonl").touch()
    some = next(one for one in sorted(folder.rglob("*.jsonl")) if one.stat().st_size)
    (folder / "broken.jsonl").write_bytes(some.read_bytes() + b'{"half": \n')
    return folder


@pytest.fixture(autouse=True)
def any_number_of_logs_is_worth_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "_WORTH_WORKERS_BYTES", 0)


def imported(home: Path, logs: Path, **options: object) -> tuple[ImportReport, list[object]]:
    """The report, and all that is stored of the sessions."""
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


def test_several_processes_import_the_same(logs: Path, tmp_path: Path) -> None:
    report, stored = imported(tmp_path / "one", logs)
    again, same = imported(tmp_path / "two", logs, workers=2)
    assert facts(again) == facts(report)
    assert len(report.ignored) > 1
    assert same == stored

    report, _ = imported(tmp_path / "two", logs, workers=2)
    assert (report.new, report.logs_read) == (0, 0)


def test_the_logs_of_a_worker_that_was_killed_are_imported(logs: Path, tmp_path: Path) -> None:
    expected, stored = imported(tmp_path / "one", logs)

    def kill(_progress: Progress) -> None:
        for worker in multiprocessing.active_children():
            worker.kill()

    report, same = imported(tmp_path / "two", logs, workers=2, progress=kill)
    assert facts(report) == facts(expected)
    assert same == stored
