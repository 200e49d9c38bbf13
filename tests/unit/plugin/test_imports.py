"""The queue of imports: when it imports and learns, and what failures do to it. A small program in
the place of this one writes down how it was called.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from journeyman.plugin import imports
from journeyman.plugin.imports import ImportQueue
from journeyman.records.errors import StoreUnavailable, UnknownSession

QUIET_S, LEARN_S = 0.15, 0.1

_STAND_IN = """
import json, os, sys, time
words = sys.argv[1:]
with open(os.environ["CALLS"], "a") as calls:
    calls.write(json.dumps(words) + "\\n")
if any("broken" in word for word in words):
    sys.exit("It is broken.")
if any("slow" in word for word in words) and not {"slow-learning", "import"} <= {*words}:
    time.sleep(3_600)
with open(os.environ["CALLS"], "a") as calls:
    calls.write(json.dumps(["done", *words]) + "\\n")
"""


class Program:
    """A program in the place of this one, and its calls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.words = (sys.executable, "-I", "-S", "-c", _STAND_IN)
        self.log = folder / "calls.jsonl"

    @property
    def calls(self) -> list[list[str]]:
        """The words of each call after the home."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        calls = [json.loads(line) for line in lines]
        return [words[2:] for words in calls if words[0] != "done"]

    @property
    def imported(self) -> list[str]:
        """The last word of each import: its log."""
        return [words[-1] for words in self.calls if words[0] == "import"]

    @property
    def learned(self) -> int:
        return sum(words[0] == "learn" for words in self.calls)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    program = Program(tmp_path)
    monkeypatch.setenv("CALLS", str(program.log))
    return program


@contextmanager
def running(
    program: Program, reported: Sequence[str] = (), **options: Any
) -> Iterator[ImportQueue]:
    """A queue that starts after these reports."""
    given = {"home": program.folder, "quiet_s": QUIET_S, "learn_quiet_s": LEARN_S, "learns": False}
    queue = ImportQueue(database="", program=program.words, **{**given, **options})
    for path in reported:
        queue.report(path)
    queue.start()
    try:
        yield queue
    finally:
        queue.stop(0.2)


class TestTiming:
    def test_a_log_is_imported_once_it_is_left_alone(self, program: Program) -> None:
        with running(program, reported=("a", "b", "a")) as queue:
            until(lambda: len(program.imported) == 2)
            assert sorted(program.imported) == ["a", "b"]
            queue.report("a")
            until(lambda: len(program.imported) == 3)
        assert program.learned == 0

    def test_a_log_that_keeps_growing_is_imported_all_the_same(
        self, program: Program, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(imports, "_LONGEST_DELAY_S", 0.4)
        with running(program, quiet_s=3_600.0) as queue:

            def is_imported() -> bool:
                queue.report("/logs/a.jsonl")
                return bool(program.imported)

            until(is_imported)

    def test_a_log_s_subagents_come_with_it(self, program: Program, tmp_path: Path) -> None:
        (tmp_path / "s1" / "subagents").mkdir(parents=True)
        with running(program) as queue:
            queue.report(f"{tmp_path}/s1.jsonl")
            queue.report("-x.jsonl")
            until(lambda: len(program.imported) == 2)
        assert program.calls == [
            ["import", "--json", "--", f"{tmp_path}/s1.jsonl", f"{tmp_path}/s1"],
            ["import", "--json", "--", "-x.jsonl"],
        ]

    def test_imports_do_not_wait_for_learning(self, program: Program, tmp_path: Path) -> None:
        slow = Program(tmp_path)
        slow.words = (*slow.words, "slow-learning")
        with running(slow, learns=True) as queue:
            queue.report("/logs/a.jsonl")
            until(lambda: len(slow.calls) == 2)
            queue.report("/logs/b.jsonl")
            until(lambda: len(slow.calls) == 3)


class TestFailures:
    def test_a_failing_import_does_not_stop_the_queue(
        self, program: Program, caplog: pytest.LogCaptureFixture
    ) -> None:
        with running(program, learns=True) as queue:
            queue.report("/logs/broken.jsonl")
            queue.report("/logs/good.jsonl")
            until(lambda: program.learned == 1)
        assert program.imported == ["/logs/broken.jsonl", "/logs/good.jsonl"]
        assert "It is broken." in caplog.text

    def test_a_program_that_cannot_start_does_not_stop_the_queue(
        self, program: Program, caplog: pytest.LogCaptureFixture
    ) -> None:
        words = program.words
        program.words = ("/nowhere/at/all",)
        with running(program) as queue:
            queue.report("/logs/a.jsonl")
            until(lambda: "failed" in caplog.text)
            queue._arguments = [*words, "--home", "x"]
            queue.report("/logs/b.jsonl")
            until(lambda: program.imported == ["/logs/b.jsonl"])

    def test_work_that_waits_for_a_session_is_tried_again(self, program: Program) -> None:
        tried: list[str] = []

        def work(name: str, outcomes: list[Exception | None]) -> Callable[[], None]:
            def run() -> None:
                tried.append(name)
                if (error := outcomes.pop(0)) is not None:
                    raise error

            return run

        with running(program) as queue:
            queue.after_import(work("late", [UnknownSession("x"), StoreUnavailable("y"), None]))
            queue.after_import(work("known", [None]))
            assert tried == ["late", "known"]
            for number in (3, 4):
                queue.report(f"/logs/{number}.jsonl")
                until(lambda number=number: len(tried) == number)
            queue.report("/logs/last.jsonl")
            until(lambda: len(program.imported) == 3)
        assert tried == ["late", "known", "late", "late"]


class TestStop:
    def test_stopping_ends_what_takes_long(self, program: Program) -> None:
        queue = ImportQueue(program.folder, "", quiet_s=0.0, program=program.words)
        queue.start()
        queue.report("/logs/slow.jsonl")
        until(lambda: len(program.imported) == 1)
        queue.stop(0.2)
        until(lambda: not queue._thread.is_alive())
        queue.stop(0.2)

    def test_what_a_process_left_is_imported_by_the_next(self, program: Program) -> None:
        home = program.folder / "home"
        home.mkdir()
        killed = ImportQueue(home, "", program=program.words)
        killed.report("/logs/a.jsonl")
        (journal,) = home.iterdir()
        journal.write_bytes(journal.read_bytes() + b'\n"/logs/cut sho')
        killed.report("/logs/b.jsonl")
        with running(program, home=home, quiet_s=60.0):
            pass  # it ends before it imports
        with running(program, home=home):
            until(lambda: sorted(program.imported) == ["/logs/a.jsonl", "/logs/b.jsonl"])
            until(lambda: journal.read_bytes() == b"")
        journal.unlink()
        journal.mkdir()  # nothing can be written: the event is not acknowledged
        with running(program, home=home) as queue, pytest.raises(StoreUnavailable):
            queue.report("/logs/c.jsonl")
