"""Scripts of jobs, as real files and processes: which ones run, and what is reported."""

import os
import sys
from pathlib import Path

import pytest
from tests.tables import table
from tests.waiting import LONGEST_S, until

from journeyman.jobs.scripts import MAX_OUTPUT, ScriptRun, resolve_script, run_script
from journeyman.records.errors import WrongInput


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "scripts"
    made.mkdir(mode=0o700)
    return made


def put(folder: Path, name: str, text: str | bytes, mode: int = 0o600) -> Path:
    path = folder / name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return path


def ran(
    folder: Path,
    name: str,
    *,
    timeout_s: float = LONGEST_S,
    environment: dict[str, str] | None = None,
    cancelled: bool = False,
    job: str = "daily",
) -> ScriptRun:
    return run_script(
        folder,
        name,
        workdir=folder.parent,
        job=job,
        timeout_s=timeout_s,
        environment={"PATH": os.environ["PATH"], **(environment or {})},
        cancelled=lambda: cancelled,
    )


@table(
    ("name", "text", "mode"),
    [
        ("a.py", "import sys; print('hello'); print(sys.executable)", 0o600),
        ("a.sh", f"echo hello\necho {sys.executable}", 0o600),
        ("a.sh", f"#!/bin/sh\necho hello\necho {sys.executable}", 0o700),
        ("a", f"#!/bin/sh\necho hello\necho {sys.executable}", 0o700),
        ("a.sh", f"echo hello\necho {sys.executable}", 0o700),
        ("more/a.sh", f"echo hello\necho {sys.executable}", 0o600),
    ],
    ids=["python", "shell", "executable", "no suffix", "no shebang", "subfolder"],
)
def test_script_output_is_captured(folder: Path, name: str, text: str, mode: int) -> None:
    put(folder, name, text, mode)
    run = ran(folder, name)
    assert (run.status, run.reason) == ("ok", "")
    assert run.output == f"hello\n{sys.executable}\n"


def test_failed_script_has_a_reason(folder: Path) -> None:
    put(folder, "a.sh", "echo one; echo two; echo three; echo; echo 'no such host' >&2; exit 3")
    run = ran(folder, "a.sh")
    assert run.status == "failed"
    assert run.reason == "failed: exit code 3: two / three / no such host"
    assert run.output.startswith("one\n")
    put(folder, "a.sh", """echo '{"wakeAgent": false}'; exit 1""")
    assert ran(folder, "a.sh").status == "failed"
    put(folder, "a.sh", "exit 1")
    assert ran(folder, "a.sh").reason == "failed: exit code 1: it printed nothing"


def test_hanging_script_that_ignores_signals_is_killed_at_its_limit(folder: Path) -> None:
    put(folder, "a.sh", "trap '' TERM INT HUP\nwhile :; do sleep 60; done")
    run = ran(folder, "a.sh", timeout_s=0.3)
    assert (run.status, run.output) == ("timed_out", "")
    assert run.reason == "failed: it ran longer than its limit of 0.3 s"


def test_cancelled_script_is_ended(folder: Path) -> None:
    put(folder, "a.sh", "sleep 60")
    assert ran(folder, "a.sh", cancelled=True).status == "interrupted"


def test_child_left_behind_is_killed(folder: Path) -> None:
    put(folder, "a.sh", "sleep 60 & echo $!")
    run = ran(folder, "a.sh", timeout_s=LONGEST_S)
    assert run.status == "ok"
    command = Path("/proc", run.output.strip(), "cmdline")
    until(lambda: not command.exists() or not command.read_bytes())  # gone, or not yet reaped


def test_long_output_keeps_its_beginning_and_end(folder: Path) -> None:
    put(folder, "a.py", "print('first'); print('x' * 3_000_000); print('last')")
    run = ran(folder, "a.py")
    assert run.status == "ok"
    assert run.output.startswith("first\nxxx")
    assert run.output.endswith("xxx\nlast\n")
    assert MAX_OUTPUT < len(run.output) < MAX_OUTPUT + 60
    left_out = 3_000_012 - MAX_OUTPUT
    assert f"{left_out:,} bytes left out" in run.output


def test_control_characters_are_replaced(folder: Path) -> None:
    put(folder, "a.py", r"print('a\0b\x1b[2J\r\nc\td\x7f\u202e' + 'é⚠️')")
    run = ran(folder, "a.py", environment={"PYTHONUTF8": "1"})
    assert run.output == "a␀b␛[2J\nc\td␡�é⚠️\n"


@table(
    ("printed", "wakes"),
    [
        ('\n{"wakeAgent": false}\n\n', False),
        ('FATAL: backup failed\n{"wakeAgent": false}\n', True),
        ('{"wakeAgent":false, "why": "nothing new"}', False),
        ('{"wakeAgent": true}', True),
        ('{"wakeAgent": false}\nbut then', True),
        ('{"wakeAgent": 0}', True),
        ("[" * 50_000, True),
        ("false", True),
    ],
    ids=[
        "false",
        "after others",
        "with more",
        "true",
        "not last",
        "zero",
        "nested",
        "not an object",
    ],
)
def test_script_can_report_nothing_to_do(folder: Path, printed: str, wakes: bool) -> None:
    (folder.parent / "printed").write_text(printed)
    put(folder, "a.sh", "cat printed")
    assert (ran(folder, "a.sh").status == "ok") is wakes


def test_secrets_are_removed_from_the_environment(folder: Path) -> None:
    put(folder, "a.sh", "env")
    given = {"JOURNEYMAN_MODEL_KEY": "canary", "OPENAI_API_KEY": "canary", "CITY": "Ulm"}
    output = ran(folder, "a.sh", environment=given, job="daily\0 news\ud800").output
    assert "canary" not in output
    assert "CITY=Ulm\n" in output
    assert "JOURNEYMAN_JOB=daily␀ news�\n" in output
    assert f"PWD={folder.parent}\n" in output


def test_link_within_the_folder_is_followed(folder: Path) -> None:
    put(folder, "v2.sh", "echo two")
    (folder / "now.sh").symlink_to("v2.sh")
    assert ran(folder, "now.sh").output == "two\n"


def test_link_changed_after_the_check_is_refused(folder: Path) -> None:
    put(folder, "v1.sh", "echo one")
    outside = put(folder.parent, "outside.sh", "echo outside")
    link = folder / "now.sh"
    link.symlink_to("v1.sh")
    resolve_script(folder, "now.sh")
    link.unlink()
    link.symlink_to(outside)
    run = run_script(
        folder,
        "now.sh",
        workdir=folder,
        job="daily",
        timeout_s=LONGEST_S,
        environment={},
        cancelled=lambda: False,
    )
    assert (run.status, run.output) == ("failed", "")
    assert "leads out of" in run.reason


def refused(folder: Path, name: str) -> str:
    with pytest.raises(WrongInput) as caught:
        resolve_script(folder, name)
    return str(caught.value)


@table(
    "name",
    ["/bin/ls", "../a.sh", "x/../../a.sh", "", " ", "a\0.sh"],
    ids=["absolute", "parent", "down and up", "empty", "blank", "nul"],
)
def test_paths_outside_the_folder_are_refused(folder: Path, name: str) -> None:
    put(folder.parent, "a.sh", "echo outside")
    assert "without a path to other folders" in refused(folder, name)


def test_links_out_of_the_folder_are_refused(folder: Path) -> None:
    outside = folder.parent / "outside"
    put(outside, "a.sh", "echo outside")
    (folder / "file.sh").symlink_to(outside / "a.sh")
    (folder / "deeper").symlink_to(outside)
    (folder / "circle.sh").symlink_to("circle.sh")
    assert "leads out of" in refused(folder, "file.sh")
    assert "leads out of" in refused(folder, "deeper/a.sh")
    assert "is not in" in refused(folder, "circle.sh")


@table("bit", [0o020, 0o002], ids=["group", "others"])
@table("where", [".", "sub", "sub/a.sh"], ids=["folder", "subfolder", "file"])
def test_scripts_writable_by_others_are_refused(folder: Path, where: str, bit: int) -> None:
    put(folder, "sub/a.sh", "echo hello")
    resolve_script(folder, "sub/a.sh")
    place = folder / where
    before = place.stat().st_mode
    place.chmod(before | bit)
    assert f"chmod go-w {place}" in refused(folder, "sub/a.sh")
    place.chmod(before)


def test_scripts_without_an_interpreter_are_refused(folder: Path) -> None:
    put(folder, "notes.txt", "hello")
    assert "no known interpreter" in refused(folder, "notes.txt")
