"""What hosts report is imported and learned from, whatever fails. A small program in the place of
this one writes down how it was called.
"""

import json
import sys
from pathlib import Path

import pytest
from tests.waiting import until

from journeyman import Journeyman
from journeyman.plugin.imports import ImportSpool, ImportWorker, Reported, start_detached
from journeyman.records.errors import StoreUnavailable

_STAND_IN = """
import json, os, sys
words = sys.argv[3:]
with open(os.environ["CALLS"], "a") as calls:
    calls.write(json.dumps([*words, os.nice(0)]) + "\\n")
if words[-1] == os.environ.get("NEXT_BEFORE"):
    with open(os.environ["SPOOL"], "a") as spool:
        spool.write(json.dumps({"path": "/logs/next.jsonl"}))
if any("broken" in word for word in words):
    sys.exit("It is broken.")
"""


class Program:
    """A program in the place of this one, and its calls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spool = ImportSpool(folder, "", program=(sys.executable, "-c", ""))
        self.log = folder / "calls.jsonl"
        self.words: tuple[str, ...] = (sys.executable, "-I", "-S", "-c", _STAND_IN)

    def work(self, *paths: str, learns: bool = False) -> list[list[str]]:
        """Report logs and work until nothing waits; return the words of each call."""
        (self.folder / "config.toml").write_text(f"[hosts]\nlearn = {str(learns).lower()}\n")
        for path in paths:
            self.spool.add(Reported(path=path))
        with Journeyman(home=self.folder) as journeyman:
            ImportWorker(
                journeyman, self.spool, quiet_s=0.0, learn_quiet_s=0.0, program=self.words
            ).run()
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [json.loads(line) for line in lines]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    program = Program(tmp_path)
    monkeypatch.setenv("CALLS", str(program.log))
    monkeypatch.setenv("SPOOL", str(tmp_path / "imports.jsonl"))
    return program


def test_a_log_is_imported_once_and_its_subagents_come_with_it(program: Program) -> None:
    (program.folder / "s1" / "subagents").mkdir(parents=True)
    log = f"{program.folder}/s1.jsonl"
    calls = program.work(log, "-x.jsonl", log)
    assert [words[:-1] for words in calls] == [
        ["import", "--json", "--", log, f"{program.folder}/s1"],
        ["import", "--json", "--", "-x.jsonl"],
    ]
    assert program.spool.read() == []


def test_failures_stop_nothing(program: Program, caplog: pytest.LogCaptureFixture) -> None:
    calls = program.work("/logs/broken.jsonl", "/logs/good.jsonl", learns=True)
    assert [words[0] for words in calls] == ["import", "import", "learn"]
    assert calls[2][-1] > calls[1][-1]  # learning gives way to people's own work
    assert "It is broken." in caplog.text
    program.words = ("/nowhere/at/all",)
    program.work("/logs/a.jsonl")
    assert "/nowhere/at/all" in caplog.text


def test_what_is_reported_meanwhile_is_imported_too(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXT_BEFORE", "/logs/first.jsonl")
    program.spool.add(Reported(path="/logs/first.jsonl"))
    path = program.folder / "imports.jsonl"
    path.write_bytes(path.read_bytes() + b"\n")
    assert [words[3] for words in program.work()] == ["/logs/first.jsonl", "/logs/next.jsonl"]


def test_what_a_killed_process_left_is_imported(program: Program) -> None:
    program.spool.add(Reported(path="/logs/a.jsonl"))
    path = program.folder / "imports.jsonl"
    path.write_bytes(path.read_bytes() + b'\n{"path": "/logs/cut sho')
    assert [words[3] for words in program.work("/logs/b.jsonl")] == [
        "/logs/a.jsonl",
        "/logs/b.jsonl",
    ]
    path.unlink()
    path.mkdir()  # nothing can be written: the event is not acknowledged
    with pytest.raises(StoreUnavailable):
        program.spool.add(Reported(path="/logs/c.jsonl"))


def test_only_one_process_works(tmp_path: Path) -> None:
    """A second one starts when the first has ended, or says that it will."""
    text = "import pathlib, sys, time; p = pathlib.Path(sys.argv[1]); p.write_text('x')\n"
    wait = text + "while p.exists(): time.sleep(0.02)\n"
    first, second = tmp_path / "first", tmp_path / "second"
    start_detached(tmp_path, "one", (sys.executable, "-c", wait, str(first)), "")
    until(first.exists)
    start_detached(tmp_path, "one", (sys.executable, "-c", text, str(second)), "")
    first.unlink()

    def is_started() -> bool:
        start_detached(tmp_path, "one", (sys.executable, "-c", text, str(second)), "")
        return second.exists()

    until(is_started)
