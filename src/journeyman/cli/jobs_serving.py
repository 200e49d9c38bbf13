"""`journeyman jobs run` and `serve`: run one job now, or all of them when they are due."""

import logging
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime

import click

from journeyman.cli import asked, jobs_shown, jobs_times, shown
from journeyman.records.job import Job
from journeyman.schedule.delivery import TERMINAL

_STOPPED_AT_ONCE = "Stopped at once."
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command(
    epilog="""\b
Examples:
  journeyman jobs run diary
  journeyman jobs run diary --no-deliver --json"""
)
@click.argument("name")
@click.option("--no-deliver", is_flag=True, help="Tell nobody but this terminal.")
@asked.json_option
@click.pass_context
def run(ctx: click.Context, name: str, *, no_deliver: bool, as_json: bool) -> None:
    """Run the job NAME now, here; its schedule stays as it is.

    It ends with 0 when the run went well, also when there was nothing to tell, and with 1
    otherwise. Ctrl-C stops it in order, a second one at once.
    """
    jobs = asked.opened(ctx).jobs
    job = jobs.get(name)
    stopping, heard = threading.Event(), list[str]()
    try:
        with (
            shown.waiting(f"{shown.plain(job.name)} is running; Ctrl-C stops it"),
            _stoppable(stopping, "Stopping the run. Ctrl-C again stops it at once."),
        ):
            done = jobs.run(
                name,
                delivers=not no_deliver,
                terminal=heard.append,
                cancelled=stopping.is_set,
            )
    except KeyboardInterrupt:
        click.echo(_STOPPED_AT_ONCE, err=True)
        ctx.exit(1)
    # The answer is shown below; before it may stand that a run before this one broke off.
    for text in heard[:-1] if TERMINAL in done.delivered else heard:
        click.echo(shown.plain(text), err=True)
    if as_json:
        asked.print_json(done)
    else:
        jobs_shown.show_run(shown.console(), done)
    ctx.exit(0 if done.is_good else 1)


@click.command(
    epilog="""\b
Examples:
  journeyman jobs serve
  journeyman jobs serve --workers 2 >> jobs.log 2>&1
  journeyman jobs serve --once"""
)
@click.option("--once", is_flag=True, help="Run what is due now, then end: for your own timer.")
@click.option("--workers", type=click.IntRange(1, 256), help="Jobs side by side (default 4).")
@click.pass_context
def serve(ctx: click.Context, *, once: bool, workers: int | None) -> None:
    """Run jobs when they are due, until Ctrl-C.

    Several may be started, also on several machines with one PostgreSQL: one is at work, and
    another takes over when it ends. Ctrl-C or SIGTERM stops what runs, in order; a second one
    ends at once.
    """
    _log_plainly()
    jobs = asked.opened(ctx).jobs
    saying = _Saying()
    scheduler = jobs.scheduler(workers=workers, terminal=saying.deliver, tell=saying.tell)
    if not once:
        _show_start(jobs.list())
    stopping = threading.Event()
    try:
        with _stoppable(stopping, "Stopping what runs. Once more stops at once."):
            if once:
                saying.tell(f"{shown.many(scheduler.serve_once(stopping), 'run')}.")
                return
            scheduler.serve(stopping)
    except KeyboardInterrupt:
        click.echo(_STOPPED_AT_ONCE, err=True)
        ctx.exit(1)
    click.echo("Stopped. Times that pass until it is served again are made up for once.")


def _show_start(jobs: Sequence[Job]) -> None:
    click.echo("Jobs are run when they are due, until Ctrl-C.")
    coming = [job for job in jobs if job.next_run_at is not None]
    if not coming:
        click.echo("No job has a time to come; those that are added meanwhile are run too.")
        return
    first, at, now = coming[0], coming[0].next_run_at or 0.0, time.time()
    when = jobs_times.in_full(at, first)
    away = f"due since {jobs_times.length(now - at)}" if at <= now else jobs_times.away(at, now)
    count = f"{shown.many(len(coming), 'job')} with a time to come"
    click.echo(f"{count}; next: {shown.plain(first.name)}, {when}, {away}.")


class _Saying:
    """What a scheduler says, line by line with the time, and answers that are delivered here, every
    line of them marked so that none can pass for the scheduler's own.
    """

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()

    def tell(self, line: str) -> None:
        now = datetime.now().astimezone()
        self._say(f"{now:%Y-%m-%d %H:%M:%S} {shown.plain(' '.join(line.split()))}")

    def deliver(self, text: str) -> None:
        lines = (f"  │ {line}".rstrip() for line in shown.plain(text).strip().split("\n"))
        self._say("\n".join(("", *lines, "")))

    def _say(self, text: str) -> None:
        # A terminal that is gone, or a full disk behind it, is no reason to run no jobs.
        with self._one_at_a_time, suppress(OSError, ValueError):
            click.echo(text)


class _PlainFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return shown.plain(super().format(record))


def _log_plainly() -> None:
    """A service has no other way to say that something goes wrong."""
    handler = logging.StreamHandler()
    handler.setFormatter(_PlainFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


@contextmanager
def _stoppable(stopping: threading.Event, said: str) -> Iterator[None]:
    """The first Ctrl-C, SIGTERM or closed terminal asks to stop in order; the second does what it
    always does.
    """
    before: dict[int, object] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def stop(_number: int, _frame: object) -> None:
        restore()
        stopping.set()
        with suppress(OSError, ValueError):
            click.echo(said, err=True)

    # What is ignored stays so: nohup, and shells that start something in the background, mean it.
    heard = [one for one in _SIGNALS if signal.getsignal(one) is not signal.SIG_IGN]
    before |= {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    finally:
        restore()
