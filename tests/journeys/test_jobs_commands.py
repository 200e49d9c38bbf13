"""`journeyman jobs` as people use it. These jobs end with their script, without using a model."""

import io
import json
import shutil
import signal
from pathlib import Path
from typing import Any

import click
import pytest
from rich.console import Console
from tests.program import Command
from tests.tables import table
from tests.waiting import until

from journeyman import Journeyman
from journeyman.cli import command_line, jobs_view
from journeyman.jobs.jobs import JobCheck, JobReport
from journeyman.jobs.occurrences import next_occurrences
from journeyman.records.errors import UnknownJob, WrongInput
from journeyman.records.job import Job, JobId, Run, RunId, Schedule

MODEL = {
    "JOURNEYMAN_MODEL_NAME": "absent",
    "JOURNEYMAN_MODEL_BASE_URL": "http://127.0.0.1:9/v1",
    "JOURNEYMAN_MODEL_CONTEXT_LENGTH": "128000",
}
SCRIPTS = {
    "quiet.sh": """echo '{"wakeAgent": false}'""",
    "fails.sh": "printf 'no \\033[31mdisk\\n'; exit 3",
    "slow.sh": "touch begun; sleep 60",
}
DAILY = ("every day 09:00", "Look at the disks.")
NASTY = "wait\x1b[2J\u202e"


class Desk(Command):
    """A home with scripts, and a configured model that has a large window but no server."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.environ |= MODEL

    def jobs(self, *arguments: object, code: int = 0, typed: str = "", **environ: str) -> str:
        done = self("jobs", *arguments, code=code, typed=typed, **environ)
        return done.stdout if code == 0 else done.stdout + done.stderr

    def json_of(self, *arguments: object, code: int = 0) -> Any:
        return json.loads(self.jobs(*arguments, "--json", code=code))

    def add(self, name: str, *options: object, schedule: str = DAILY[0]) -> Any:
        return self.json_of("add", schedule, DAILY[1], "--name", name, *options)


@pytest.fixture(scope="module")
def new_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with its database created. Copy it instead of using it."""
    home = tmp_path_factory.mktemp("desk")
    scripts = home / ".journeyman" / "scripts"
    scripts.mkdir(parents=True, mode=0o700)
    for name, text in SCRIPTS.items():
        (scripts / name).write_text(text)
        (scripts / name).chmod(0o600)
    assert "There are no jobs yet" in Desk(home).jobs("list")
    return home


@pytest.fixture
def desk(new_home: Path, tmp_path: Path) -> Desk:
    shutil.copytree(new_home, tmp_path / "home")
    return Desk(tmp_path / "home")


def test_adding_says_back_what_was_understood(desk: Desk) -> None:
    said = desk.jobs(
        "add", "in 30m", *DAILY[1:], "--timezone", "Asia/Tokyo", "--script", "later.sh"
    )
    assert "Added: look-at-the-disks" in said
    assert "Once, in 30 minutes, on " in said
    assert f"works in  {desk.home}" in said
    assert said.count("+09:00") == 1
    assert "would be blocked now: The script 'later.sh' is not in" in said
    assert "To start one: journeyman jobs serve" in said


def test_job_with_all_options(desk: Desk) -> None:
    limits = ("--seconds", "10m", "--tokens", 5000, "--cost", 0.5, "--turns", 7, "--repeat", 3)
    script = ("--script", "quiet.sh", "--script-seconds", 90, "--tool", "usual", "--tool", "patch")
    added = desk.add("all", *limits, *script, "--warm", "off", "--deliver", "file:/tmp/a.md")
    job = added["job"]
    assert (job["seconds"], job["tokens"], job["cost_usd"], job["turns"]) == (600, 5000, 0.5, 7)
    assert (job["script_seconds"], job["tools"], job["warm"]) == (90, ["usual", "patch"], "off")
    assert len(added["upcoming"]) == 3
    # It works where the home is, which no agent's command may read.
    assert "would be able to read" in added["check"]["blocked"]
    said = desk.jobs("show", "all")
    for text in ("10 minutes, 5,000 tokens, $0.50, 7 requests", "0 of 3 times", "usual, patch"):
        assert text in said
    assert "It has not run yet" in said


def test_prompt_from_input(desk: Desk) -> None:
    desk.jobs("add", DAILY[0], "-", "--name", "a", typed="Piped.")
    assert desk.json_of("show", "a")["job"]["prompt"] == "Piped."


def test_run_pause_resume_remove_and_delete(desk: Desk) -> None:
    desk.add("disks", "--script", "quiet.sh")
    said = desk.jobs("run", "disks")
    assert said.startswith("silent")
    assert "reported that there is nothing to do" in said
    (run,) = desk.json_of("show", "disks")["runs"]
    assert Path(run["output"]).is_file()
    assert "jobs resume disks" in desk.jobs("pause", "disks", "--reason", NASTY)
    listed = desk.jobs("list", COLUMNS="80")
    assert "paused" in listed
    assert "disks: wait␛[2J" in listed
    assert desk.json_of("resume", "disks")["state"] == "scheduled"
    assert "To restore it: journeyman jobs resume disks" in desk.jobs("remove", "disks")
    assert desk.json_of("list")["jobs"] == []
    assert [job["name"] for job in desk.json_of("list", "--removed")["jobs"]] == ["disks"]
    assert "Next: " in desk.jobs("resume", "disks")
    assert "its runs permanently?" in desk.jobs("remove", "disks", "--forever", code=1, typed="n\n")
    assert "Deleted" in desk.jobs("remove", "disks", "--forever", typed="y\n")
    assert not Path(run["output"]).exists()
    assert "No job is named 'disks'" in desk.jobs("show", "disks", code=1)


def test_failed_run_exits_with_1_and_prints_no_control_characters(desk: Desk) -> None:
    desk.add("disks", "--script", "fails.sh", "--deliver", f"file:{desk.home}/told.md")
    said = desk.jobs("run", "disks", code=1)
    assert said.startswith("failed")
    assert "exit code 3" in said
    assert "\x1b" not in said
    assert "The job disks failed" in (desk.home / "told.md").read_text()
    run = desk.json_of("run", "disks", "--no-deliver", code=1)
    assert (run["status"], run["delivered"]) == ("failed", [])
    listed = desk.json_of("list")
    assert listed["jobs"][0]["last_run"]["id"] == run["id"]
    assert not listed["scheduler"]["is_alive"]


def test_run_is_stopped_cleanly(desk: Desk) -> None:
    desk.add("slow", "--script", "slow.sh")
    running = desk.start("jobs", "run", "slow", "--json")
    until((desk.home / "begun").exists)
    running.signal(signal.SIGINT)
    done = running.wait(code=1)
    assert json.loads(done.stdout)["status"] == "interrupted"
    assert "Stopping the run" in done.stderr
    assert [run["status"] for run in desk.json_of("show", "slow")["runs"]] == ["interrupted"]


def test_scheduler_runs_due_jobs_and_another_takes_over(desk: Desk) -> None:
    desk.add("soon", "--script", "fails.sh", schedule="in 1s")
    first = desk.start("jobs", "serve")
    until(lambda: "  │ The job soon failed" in first.printed)
    assert f"A scheduler is running: process {first.pid} on " in desk.jobs("list")
    second = desk.start("jobs", "serve", "--workers", 2)
    until(lambda: "Another scheduler is active" in second.printed)
    first.signal(signal.SIGTERM)
    said = first.wait(code=0)
    assert "Stopped." in said.stdout
    assert "\x1b" not in said.stdout + said.stderr
    until(lambda: "This scheduler is active." in second.printed)
    second.signal(signal.SIGINT)
    assert "Stopped." in second.wait(code=0).stdout
    assert not desk.json_of("list")["scheduler"]["holder"]
    assert [run["status"] for run in desk.json_of("show", "soon")["runs"]] == ["failed"]


def test_delivery_url_is_never_shown(desk: Desk) -> None:
    secret = "tk_sesame0123456789"
    address = f"ntfys://{secret}@ntfy.example/topic"
    said = desk.jobs("add", *DAILY, "--name", "a", "--json", JOURNEYMAN_JOBS_DELIVER=address)
    for command in ("list", "show a", "list --json", "show a --json", "pause a --json"):
        said += desk.jobs(*command.split())
    assert said.count("ntfys (…)") == 5
    for part in (secret, "ntfy.example", "topic"):
        assert part not in said


def test_errors_are_one_line(desk: Desk) -> None:
    said = desk.jobs("run", "nothing", code=1)
    assert said == (
        "journeyman: No job is named 'nothing' or has an id that starts with it. List the jobs "
        "with: journeyman jobs list\n"
    )
    assert "is not a duration above 0" in desk.jobs("add", *DAILY, "--seconds", "0m", code=2)


BAD: tuple[tuple[type[Exception], str, tuple[str, ...]], ...] = (
    (UnknownJob, "No job is named", ("show", "nothing")),
    (UnknownJob, "No job is named", ("pause", "nothing")),
    (UnknownJob, "No job is named", ("remove", "nothing", "--forever", "--yes")),
    (UnknownJob, "no job 'nothing' to replace", ("add", *DAILY, "--name", "nothing", "--replace")),
    (WrongInput, "The schedule 'sometimes' cannot be used", ("add", "sometimes", "x")),
    (WrongInput, "is in the past", ("add", "2020-01-01T09:00", "x")),
    (WrongInput, "There is no time zone", ("add", *DAILY, "--timezone", "Berlin")),
    (click.UsageError, "Quote them", ("add", "every", "monday", "09:00", "x")),
    (click.UsageError, "Pass a prompt for the agent", ("add", DAILY[0])),
    (WrongInput, "no prompt", ("add", DAILY[0], " ")),
    (click.UsageError, "Name the job to replace with --name", ("add", *DAILY, "--replace")),
    (WrongInput, "cannot be called 'a b'", ("add", *DAILY, "--name", "a b")),
    (click.UsageError, "is not a duration", ("add", *DAILY, "--script-seconds", "soon")),
    (click.UsageError, "is not a duration", ("add", *DAILY, "--seconds", "-5")),
    (click.UsageError, "--tokens", ("add", *DAILY, "--tokens", "0")),
    (click.UsageError, "--repeat", ("add", *DAILY, "--repeat", "0")),
    (WrongInput, "cost_usd is nan", ("add", *DAILY, "--cost", "nan")),
    (WrongInput, "not a folder", ("add", *DAILY, "--workspace", "absent")),
    (WrongInput, "number 1 is not valid", ("add", *DAILY, "--deliver", "somewhere")),
    (WrongInput, "absolute path", ("add", *DAILY, "--deliver", "file:answers.md")),
    (WrongInput, "its own settings", ("add", *DAILY, "--with", "codex", "--tool", "patch")),
    (WrongInput, "--tool", ("add", *DAILY, "--with", "journeyman", "--access", "read")),
    (click.UsageError, "--with", ("add", *DAILY, "--with", "cursor")),
    (click.UsageError, "--workers", ("serve", "--workers", "0")),
)


@table(("error", "said", "arguments"), BAD, ids=[" ".join(row[2]) for row in BAD])
def test_bad_input_stores_nothing(
    new_home: Path, error: type[Exception], said: str, arguments: tuple[str, ...]
) -> None:
    home = ("--home", str(new_home / ".journeyman"))
    with pytest.raises(error) as raised:
        command_line.main(args=(*home, "jobs", *arguments), standalone_mode=False)
    told = raised.value
    assert said in (told.format_message() if isinstance(told, click.UsageError) else str(told))
    with Journeyman(home=home[1], environ={}) as journeyman:
        assert not journeyman.jobs.list()


def rendered(width: int, **fields: Any) -> str:
    """Render a job with a long history as `show` does."""
    schedule = Schedule(
        text="every sunday 2:30", kind="cron", timezone="Europe/Berlin", cron="30 2 * * 0"
    )
    now = 1_805_000_000.0  # Sun 2027-03-14
    times = tuple(next_occurrences(schedule, now, 5))
    job = Job(id=JobId("1234"), name="j", prompt="p", schedule=schedule, next_run_at=times[0])
    runs = tuple(
        Run(
            id=RunId(f"abcdef012{number}"),
            job=job.id,
            trigger="late",
            started_at=now - 100_000 * number,
            ended_at=now - 100_000 * number + 30 * 60,
            output=f"/somewhere/jobs/j/20270314-013000-abcdef012{number}.md",
            **fields,
        )
        for number in range(1, 4)
    )
    told = io.StringIO()
    report = JobReport(job=job, said="Every Sunday", upcoming=times, runs=runs)
    console = Console(file=told, width=width, highlight=False)
    jobs_view.show_report(console, report, now)
    jobs_view.show_checked(console, JobCheck(remarks=("The window is too small " * 6,)))
    return told.getvalue()


@table("width", [80, 120])
def test_history_fits_the_terminal(width: int) -> None:
    answer = "All is well with the disks. " * 20
    said = rendered(width, status="delivery_failed", tokens=123_456, cost_usd=1.5, reason=answer)
    lines = said.splitlines()
    assert max(map(len, lines)) <= width
    row = next(line for line in lines if "(late)" in line)
    for whole in ("30 min", "delivery_failed", "123k", "$1.50"):
        assert whole in row
    assert "newest    /somewhere/jobs/j/20270314-013000-abcdef0121.md\n" in said


def test_clock_change_is_shown() -> None:
    lines = [line.strip() for line in rendered(80, status="ok").splitlines()]
    assert "Sun 2027-03-28 03:00 +02:00" in lines
