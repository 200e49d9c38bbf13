"""`journeyman jobs`: runs agents on a schedule."""

import logging
import signal
import threading
import time
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from journeyman.cli import context, files, formatting, jobs_view
from journeyman.cli.context import choice, flag, option
from journeyman.facade.journeyman import Journeyman
from journeyman.jobs.delivery import TERMINAL
from journeyman.plugin.runs import host_jobs
from journeyman.records.host import HOSTS
from journeyman.records.job import OWN_RUNNER, Job, Run
from journeyman.text.display import readable

if TYPE_CHECKING:
    from journeyman.jobs.jobs import JobReport

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_output_lock = threading.Lock()


@click.group(
    epilog="""\b
Examples:
  journeyman jobs add "every monday 09:00" "Summarise what changed in notes/ last week"
  journeyman jobs list
  journeyman jobs serve"""
)
def jobs() -> None:
    """Run agents on a schedule.

    A job is a prompt and a schedule on which an agent runs it. The answer is delivered, each run
    is stored with its status, tokens and cost, and failures are always reported.
    """


_name_argument = click.argument("name")


@context.command(jobs)
@click.argument("schedule")
@click.argument("prompt", nargs=-1, metavar="[PROMPT]")
@option("--name", "Name of the job (default: from the prompt).", default="")
@option("--timezone ZONE", "Time zone of the schedule (default: yours).", default="")
@option("--skill", "Skill for the agent to follow; repeatable.", dest="skills", multiple=True)
@option("--script FILE", "Script in the home's scripts folder; the agent gets its output.")
@option(
    "--script-seconds TIME",
    "Time limit of the script (default 2m).",
    callback=context.parse_duration,
)
@choice(
    "--with",
    "Agent that does it (default: the one that `run` would use now).",
    (*HOSTS, OWN_RUNNER),
    dest="runner",
)
@option("--model", "Model to use: one of the agent's (default: as in its settings).")
@option("--provider", "journeyman: name of another endpoint in the settings.")
@option(
    "--tool",
    "journeyman: tool to allow; repeatable; usual means the default tools.",
    dest="tools",
    multiple=True,
)
@option("--warm auto|NAME|off", "What to start with; for journeyman also a template.")
@choice("--access", "Hosts: what it may do without asking.", ("read", "edit", "all"))
@choice("--risky", "Hold risky calls for the confirmation service, or refuse.", ("hold", "refuse"))
@option("--workspace FOLDER", "Folder to work in (default: the current one).", dest="workdir")
@option(
    "--deliver PLACE",
    "Where to deliver: terminal, file:/path or an Apprise URL; repeatable.",
    multiple=True,
)
@option("--seconds TIME", "Time limit of a run (default 30m).", callback=context.parse_duration)
@option("--tokens", "Largest number of tokens in a run.", type=context.POSITIVE_INT)
@option(
    "--cost USD", "Highest cost of a run, in dollars.", dest="cost_usd", type=context.POSITIVE_FLOAT
)
@option("--turns", "Largest number of requests to the model in a run.", type=context.POSITIVE_INT)
@option("--repeat", "Stop after this many runs.", type=context.POSITIVE_INT)
@flag("--replace", "Change the existing job --name; other settings stay.")
def add(
    journeyman: Journeyman,
    *,
    schedule: str,
    prompt: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Run an agent on PROMPT at the times of SCHEDULE.

    Shows how the schedule was understood and the next five times. SCHEDULE is, for example, in 30m
    (once), every 2h, every monday 09:00, a cron expression, or a time such as 2027-01-31T09:00. A
    dash reads PROMPT from standard input. Jobs run while `journeyman jobs serve` is running.

    Examples:
      journeyman jobs add "every monday 09:00" "Summarise what changed in notes/ last week"
      journeyman jobs add "every weekday 18:30" - --name diary --timezone Asia/Tokyo < prompt.txt
      journeyman jobs add "*/15 * * * *" "Look at the new lines" --script new_lines.py --tokens 9000
      journeyman jobs add "in 30m" "Is it done?" --deliver terminal --deliver ntfy://ntfy.sh/x
      journeyman jobs add "every 2h" "Check it" --name watch --replace
    """
    replace = options["replace"]
    if replace and not options["name"]:
        raise click.UsageError("Name the job to replace with --name.")
    text = _prompt(prompt, is_required=not replace)
    settings = {key: value for key, value in options.items() if value not in (None, ())}
    jobs_, console = host_jobs(journeyman), formatting.console()
    report = jobs_.add(schedule, text, **settings)
    if not as_json:
        jobs_view.show_added(console, report, changed=replace)
    with formatting.spinner(
        "checking whether it can run; Ctrl-C skips the check and keeps the job"
    ):
        checked = jobs_.check(report.job)
    if as_json:
        document = jobs_view.report_json(report)
        context.print_json(document | {"check": checked, "scheduler": jobs_.leading()})
        return
    jobs_view.show_checked(console, checked)
    console.print()
    console.print(jobs_view.scheduler_line(jobs_.leading()), markup=False, soft_wrap=True)


def _prompt(words: tuple[str, ...], *, is_required: bool) -> str:
    if len(words) > 1:
        raise click.UsageError(
            "SCHEDULE and PROMPT are one argument each, but there are more. Quote them: "
            'journeyman jobs add "every monday 09:00" "Summarise the week"'
        )
    if is_required and not words:
        raise click.UsageError("Pass a prompt for the agent; a dash reads standard input.")
    return files.task_text(words)


@context.command(jobs, "list", is_paged=True)
@flag("--removed", "List removed jobs instead.")
def list_(journeyman: Journeyman, *, removed: bool, as_json: bool) -> None:
    """List jobs, the next one to run first.

    Examples:
      journeyman jobs list
      journeyman jobs list --removed
      journeyman jobs list --json
    """
    jobs_ = journeyman.jobs
    all_jobs, last, leading = jobs_.list(removed=removed), jobs_.last_runs(), jobs_.leading()
    if as_json:
        rows = [jobs_view.job_json(job) | {"last_run": last.get(job.id)} for job in all_jobs]
        context.print_json({"jobs": rows, "scheduler": leading})
        return
    console = formatting.console()
    if not all_jobs:
        message = "No jobs were removed." if removed else jobs_view.NO_JOBS
        console.print(message, markup=False, soft_wrap=True)
        return
    jobs_view.show_list(console, all_jobs, last, leading, time.time())


@context.command(jobs, render=jobs_view.show_report, to_json=jobs_view.report_json, is_paged=True)
@_name_argument
@option("--runs", "Number of runs to show.", type=context.POSITIVE_INT, default=10)
def show(journeyman: Journeyman, *, name: str, runs: int) -> "JobReport":
    """Show the job NAME with its next times and its runs.

    Examples:
      journeyman jobs show diary
      journeyman jobs show diary --runs 50
      journeyman jobs show diary --json
    """
    return journeyman.jobs.show(name, limit=runs)


@context.command(
    jobs,
    to_json=jobs_view.job_json,
    message=lambda job: f"Paused: {job.name}. To resume it: journeyman jobs resume {job.name}",
)
@_name_argument
@option("--reason", "Reason to show in the list.", default="")
def pause(journeyman: Journeyman, *, name: str, reason: str) -> Job:
    """Pause the job NAME until it is resumed. A run in progress continues.

    Examples:
      journeyman jobs pause diary
      journeyman jobs pause diary --reason "on holiday"
    """
    return journeyman.jobs.pause(name, reason)


@context.command(jobs, to_json=jobs_view.job_json, message=jobs_view.resumed_message)
@_name_argument
def resume(journeyman: Journeyman, *, name: str) -> Job:
    """Resume the job NAME.

    It may be paused, removed, or held after failures. Times missed meanwhile are not made up for.

    Examples:
      journeyman jobs resume diary
    """
    return journeyman.jobs.resume(name)


def _removed_message(job: Job) -> str:
    if click.get_current_context().params["forever"]:
        return f"Deleted: {job.name}."
    return f"Removed: {job.name}. To restore it: journeyman jobs resume {job.name}"


@context.command(jobs, to_json=jobs_view.job_json, message=_removed_message)
@_name_argument
@flag("--forever", "Delete it permanently, with its runs and their files.")
@flag("-y --yes", "With --forever, do not ask for confirmation.")
def remove(journeyman: Journeyman, *, name: str, forever: bool, yes: bool) -> Job:
    """Remove the job NAME. `journeyman jobs resume` restores it, unless --forever.

    Examples:
      journeyman jobs remove diary
      journeyman jobs remove diary --forever --yes
    """
    jobs_ = journeyman.jobs
    if forever and not yes:
        question = f"Delete {jobs_.get(name).name} and its runs permanently?"
        click.confirm(question, abort=True, err=True)
    return jobs_.delete(name) if forever else jobs_.remove(name)


@context.command(jobs, render=jobs_view.show_run, is_failure=lambda run: not run.is_good)
@_name_argument
@flag("--no-deliver", "Show the answer only in this terminal.")
def run(journeyman: Journeyman, *, name: str, no_deliver: bool) -> Run:
    """Run the job NAME now, here; its schedule does not change.

    The exit code is 0 if the run succeeded, even with nothing to report, and 1 otherwise. Ctrl-C
    stops it gracefully, a second Ctrl-C immediately.

    Examples:
      journeyman jobs run diary
      journeyman jobs run diary --no-deliver --json
    """
    jobs_ = host_jobs(journeyman)
    delivered: list[str] = []
    with (
        context.graceful_stop(
            "Stopping the run. Press Ctrl-C again to stop immediately.", _STOP_SIGNALS
        ) as stopping,
        formatting.spinner(f"{readable(jobs_.get(name).name)} is running; Ctrl-C stops it"),
    ):
        finished = jobs_.run(
            name, delivers=not no_deliver, terminal=delivered.append, cancelled=stopping.is_set
        )
    # The answer is shown by the caller; the lines before it may report that an earlier run ended
    # abruptly.
    for text in delivered[:-1] if TERMINAL in finished.delivered else delivered:
        click.echo(readable(text), err=True)
    return finished


@context.command(jobs, has_json=False)
@flag("--once", "Run what is due now, then exit; for your own timer.")
@option(
    "--workers N",
    "Number of jobs to run at the same time (default 4).",
    type=context.WholeNumber(1, 256),
)
def serve(journeyman: Journeyman, *, once: bool, workers: int | None) -> None:
    """Run jobs when they are due, until Ctrl-C.

    You can start several, even on several machines with one PostgreSQL database: one is active,
    and another takes over when it ends. Ctrl-C or SIGTERM stops the running jobs gracefully, a
    second one immediately.

    Examples:
      journeyman jobs serve
      journeyman jobs serve --workers 2 >> jobs.log 2>&1
      journeyman jobs serve --once
    """
    # A service has no other way to report problems.
    handler = logging.StreamHandler()
    handler.setFormatter(_PlainFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    jobs_ = host_jobs(journeyman)
    scheduler = jobs_.scheduler(workers=workers, terminal=_print_answer, tell=_print_event)
    if not once:
        click.echo("Running jobs when they are due. Press Ctrl-C to stop.")
    with context.graceful_stop(
        "Stopping the running jobs. Press Ctrl-C again to stop immediately.", _STOP_SIGNALS
    ) as stopping:
        if once:
            _print_event(f"{formatting.pluralize(scheduler.serve_once(stopping), 'run')}.")
            return
        scheduler.serve(stopping)
    click.echo("Stopped. Jobs that become due meanwhile run once at the next start.")


def _print_event(line: str) -> None:
    now = datetime.now().astimezone()
    _print(f"{now:%Y-%m-%d %H:%M:%S} {readable(' '.join(line.split()))}")


def _print_answer(text: str) -> None:
    """Print an answer, each line marked so that none can pass for the scheduler's own output."""
    lines = (f"  │ {line}".rstrip() for line in readable(text).strip().split("\n"))
    _print("\n".join(("", *lines, "")))


def _print(text: str) -> None:
    # A closed terminal, or a full disk behind it, must not stop the jobs.
    with _output_lock, suppress(OSError, ValueError):
        click.echo(text)


class _PlainFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return readable(super().format(record))
