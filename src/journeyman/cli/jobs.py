"""`journeyman jobs`: agents on a schedule."""

import logging
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from journeyman.cli import asked, files, jobs_view, shown
from journeyman.cli.asked import flag, option
from journeyman.jobs.delivery import TERMINAL
from journeyman.journeyman import Journeyman
from journeyman.records.job import Job, Run

if TYPE_CHECKING:
    from journeyman.jobs.jobs import JobReport

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_one_at_a_time = threading.Lock()


@click.group(
    epilog="""\b
Examples:
  journeyman jobs add "every monday 09:00" "Summarise what changed in notes/ last week"
  journeyman jobs list
  journeyman jobs serve"""
)
def jobs() -> None:
    """Agents on a schedule.

    A job is a prompt with the times at which an agent does it. Its answer is delivered, each run
    is kept with its status, tokens and cost, and failures are always told.
    """


_name = click.argument("name")


@asked.command(jobs)
@click.argument("schedule")
@click.argument("prompt", nargs=-1, metavar="[PROMPT]")
@option("--name", "What to call it (default: from the prompt's words).", default="")
@option("--tz ZONE", "Whose clock counts (default: yours).", to="timezone", default="")
@option("--prompt-file FILE", "Read the prompt from FILE, or input (-).")
@option("--skill", "A skill it is to follow; repeatable.", to="skills", multiple=True)
@option("--script FILE", "In the home's scripts folder; its output is given.")
@option("--script-seconds TIME", "The script's time (default 2m).", callback=asked.seconds)
@option("--model", "The model it asks (default: as in the settings).")
@option("--provider", "The name of another endpoint in the settings.")
@option("--tool", "A tool; repeatable; usual: all usual.", to="tools", multiple=True)
@option("--warm auto|NAME|off", "Examples to start with (default auto).")
@option("--workdir FOLDER", "Where it works (default: here).")
@option(
    "--deliver PLACE",
    "terminal, file:/path or an address of apprise's; repeatable.",
    multiple=True,
)
@option("--seconds TIME", "How long a run may take (default 30m).", callback=asked.seconds)
@option("--tokens", "Most tokens in a run.", type=asked.SOME)
@option("--cost USD", "Most dollars in a run.", to="cost_usd", type=asked.MORE)
@option("--turns", "Most requests to the model in a run.", type=asked.SOME)
@option("--repeat", "Stop after this many runs.", type=asked.SOME)
@flag("--replace", "Change the job of that --name; the rest stays.")
def add(
    journeyman: Journeyman,
    *,
    schedule: str,
    prompt: tuple[str, ...],
    prompt_file: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Have an agent do PROMPT at the times of SCHEDULE.

    What was understood and the next five times are shown. SCHEDULE is, for example, in 30m (once),
    every 2h, every monday 09:00, a cron expression or a time such as 2027-01-31T09:00. A dash reads
    PROMPT from standard input. It runs while `journeyman jobs serve` does.

    Examples:
      journeyman jobs add "every monday 09:00" "Summarise what changed in notes/ last week"
      journeyman jobs add "every weekday 18:30" - --name diary --tz Europe/Berlin < prompt.txt
      journeyman jobs add "*/15 * * * *" "Look at the new lines" --script new_lines.py --tokens 9000
      journeyman jobs add "in 30m" "Is it done?" --deliver terminal --deliver ntfy://ntfy.sh/x
      journeyman jobs add "every 2h" "Check it" --name watch --replace
    """
    replace = options["replace"]
    if replace and not options["name"]:
        raise click.UsageError("Say with --name which job is to be replaced.")
    said = _prompt(prompt, prompt_file, needed=not replace)
    given = {key: value for key, value in options.items() if value not in (None, ())}
    kept, console = journeyman.jobs, shown.console()
    report = kept.add(schedule, said, **given)
    if not as_json:
        jobs_view.show_added(console, report, time.time(), changed=replace)
    with shown.waiting("looking whether it could run; Ctrl-C ends that, the job is kept"):
        checked = kept.check(report.job)
    if as_json:
        told = jobs_view.told_report(report) | {"check": checked, "scheduler": kept.leading()}
        asked.print_json(told)
        return
    jobs_view.show_checked(console, checked)
    console.print()
    console.print(jobs_view.scheduler_line(kept.leading()), markup=False, soft_wrap=True)


def _prompt(words: tuple[str, ...], file: str | None, *, needed: bool) -> str:
    if len(words) > 1:
        raise click.UsageError(
            "SCHEDULE and PROMPT are one argument each. Put quotes around them: "
            'journeyman jobs add "every monday 09:00" "What should be done"'
        )
    if words and file is not None:
        raise click.UsageError("Give PROMPT or --prompt-file, not both.")
    if needed and not words and file is None:
        raise click.UsageError("Say what the agent is to do: PROMPT or --prompt-file.")
    return files.task_text(words) if file is None else files.read_text(file, "prompt")


@asked.command(jobs, "list")
@flag("--all", "Also those that are done.", to="everything")
@flag("--removed", "Those that were removed, instead.")
def list_(journeyman: Journeyman, *, everything: bool, removed: bool, as_json: bool) -> None:
    """List jobs, the next to run first.

    Examples:
      journeyman jobs list
      journeyman jobs list --removed
      journeyman jobs list --json
    """
    kept = journeyman.jobs
    found, last, leading = kept.list(removed=removed), kept.last_runs(), kept.leading()
    if as_json:
        told = [jobs_view.told(job) | {"last_run": last.get(job.id)} for job in found]
        asked.print_json({"jobs": told, "scheduler": leading})
        return
    console = shown.console()
    if not found:
        nothing = "No job was removed." if removed else jobs_view.NO_JOBS
        console.print(nothing, markup=False, soft_wrap=True)
        return
    listed = [job for job in found if everything or removed or job.state != "done"]
    jobs_view.show_list(console, listed, last, leading, time.time())
    if done := len(found) - len(listed):
        console.print(f"{shown.many(done, 'more job')} done: journeyman jobs list --all")


@asked.command(jobs, shows=jobs_view.show_report, tells=jobs_view.told_report)
@_name
@option("--runs", "How many runs.", type=asked.SOME, default=10)
def show(journeyman: Journeyman, *, name: str, runs: int) -> "JobReport":
    """Show the job NAME with its next times and its runs.

    Examples:
      journeyman jobs show diary
      journeyman jobs show diary --runs 50
      journeyman jobs show diary --json
    """
    return journeyman.jobs.show(name, limit=runs)


@asked.command(
    jobs,
    tells=jobs_view.told,
    says=lambda job: f"Paused: {job.name}. To let it run again: journeyman jobs resume {job.name}",
)
@_name
@option("--reason", "Why, for the list.", default="")
def pause(journeyman: Journeyman, *, name: str, reason: str) -> Job:
    """Pause the job NAME until it is resumed. A run that is going on goes on.

    Examples:
      journeyman jobs pause diary
      journeyman jobs pause diary --reason "on holiday"
    """
    return journeyman.jobs.pause(name, reason)


@asked.command(jobs, tells=jobs_view.told, says=jobs_view.resumed)
@_name
def resume(journeyman: Journeyman, *, name: str) -> Job:
    """Resume the job NAME.

    One that was paused, removed, or held back after failures. Times that have passed meanwhile
    are not made up for.

    Examples:
      journeyman jobs resume diary
    """
    return journeyman.jobs.resume(name)


def _say_removed(job: Job) -> str:
    if click.get_current_context().params["forever"]:
        return f"Forgotten: {job.name}."
    return f"Removed: {job.name}. To have it back: journeyman jobs resume {job.name}"


@asked.command(jobs, tells=jobs_view.told, says=_say_removed)
@_name
@flag("--forever", "Forget it, its runs and their files.")
@flag("-y --yes", "With --forever, do not ask.")
def remove(journeyman: Journeyman, *, name: str, forever: bool, yes: bool) -> Job:
    """Remove the job NAME. `journeyman jobs resume` brings it back, unless --forever.

    Examples:
      journeyman jobs remove diary
      journeyman jobs remove diary --forever --yes
    """
    kept = journeyman.jobs
    if forever and not yes:
        report = kept.show(name)
        runs = shown.many(sum(report.totals.statuses.values()), "run")
        click.confirm(f"Forget {report.job.name} and its {runs} for good?", abort=True, err=True)
    return kept.delete(name) if forever else kept.remove(name)


@asked.command(jobs, shows=jobs_view.show_run, fails=lambda done: not done.is_good)
@_name
@flag("--no-deliver", "Tell nobody but this terminal.")
def run(journeyman: Journeyman, *, name: str, no_deliver: bool) -> Run:
    """Run the job NAME now, here; its schedule stays as it is.

    It ends with 0 when the run went well, also when there was nothing to tell, and with 1
    otherwise. Ctrl-C stops it in order, a second one at once.

    Examples:
      journeyman jobs run diary
      journeyman jobs run diary --no-deliver --json
    """
    kept = journeyman.jobs
    heard: list[str] = []
    with (
        asked.stoppable("Stopping the run. Ctrl-C again stops it at once.", _SIGNALS) as stopping,
        shown.waiting(f"{shown.plain(kept.get(name).name)} is running; Ctrl-C stops it"),
    ):
        done = kept.run(
            name, delivers=not no_deliver, terminal=heard.append, cancelled=stopping.is_set
        )
    # The answer is shown below; before it may stand that a run before this one broke off.
    for text in heard[:-1] if TERMINAL in done.delivered else heard:
        click.echo(shown.plain(text), err=True)
    return done


@asked.command(jobs, has_json=False)
@flag("--once", "Run what is due now, then end: for your own timer.")
@option("--workers", "Jobs side by side (default 4).", type=asked.WholeNumber(1, 256))
def serve(journeyman: Journeyman, *, once: bool, workers: int | None) -> None:
    """Run jobs when they are due, until Ctrl-C.

    Several may be started, also on several machines with one PostgreSQL: one is at work, and
    another takes over when it ends. Ctrl-C or SIGTERM stops what runs, in order; a second one
    ends at once.

    Examples:
      journeyman jobs serve
      journeyman jobs serve --workers 2 >> jobs.log 2>&1
      journeyman jobs serve --once
    """
    # A service has no other way to say that something goes wrong.
    handler = logging.StreamHandler()
    handler.setFormatter(_PlainFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    kept = journeyman.jobs
    scheduler = kept.scheduler(workers=workers, terminal=_deliver, tell=_tell)
    if not once:
        _show_start(kept.list())
    with asked.stoppable("Stopping what runs. Once more stops at once.", _SIGNALS) as stopping:
        if once:
            _tell(f"{shown.many(scheduler.serve_once(stopping), 'run')}.")
            return
        scheduler.serve(stopping)
    click.echo("Stopped. Times that pass until it is served again are made up for once.")


def _show_start(found: Sequence[Job]) -> None:
    click.echo("Jobs are run when they are due, until Ctrl-C.")
    coming = [(job, job.next_run_at) for job in found if job.next_run_at is not None]
    if not coming:
        click.echo("No job has a time to come; those that are added meanwhile are run too.")
        return
    first, at = coming[0]
    count, when = shown.many(len(coming), "job"), jobs_view.when(at, first)
    click.echo(f"{count} with a time to come; next: {shown.plain(first.name)}, {when}.")


def _tell(line: str) -> None:
    now = datetime.now().astimezone()
    _say(f"{now:%Y-%m-%d %H:%M:%S} {shown.plain(' '.join(line.split()))}")


def _deliver(text: str) -> None:
    """An answer, every line of it marked so that none can pass for the scheduler's own."""
    lines = (f"  │ {line}".rstrip() for line in shown.plain(text).strip().split("\n"))
    _say("\n".join(("", *lines, "")))


def _say(text: str) -> None:
    # A terminal that is gone, or a full disk behind it, is no reason to run no jobs.
    with _one_at_a_time, suppress(OSError, ValueError):
        click.echo(text)


class _PlainFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return shown.plain(super().format(record))
