"""`journeyman serve`: hooks, confirmations, the page and jobs in one process. `journeyman hook` is
one operation of it alone.
"""

import logging
import os
import signal
import sys
import time

import click

from journeyman.cli import context
from journeyman.cli.confirm_view import show_first_login
from journeyman.cli.context import flag
from journeyman.facade.journeyman import Journeyman
from journeyman.records.errors import ServiceUnavailable
from journeyman.records.host import HOSTS
from journeyman.text.display import readable, visible

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@context.command(has_json=False)
@flag("--no-confirmations", "Do not serve confirmations, nor the page.")
@flag("--no-jobs", "Do not run scheduled jobs.")
@click.option("--on-demand", is_flag=True, hidden=True)
def serve(
    journeyman: Journeyman, *, no_confirmations: bool, no_jobs: bool, on_demand: bool
) -> None:
    """Serve everything from one process: the hooks of Claude Code, Codex, Hermes and opencode, the
    confirmations and their page, and scheduled jobs, until Ctrl-C.

    Hooks come through a socket in the home folder that only you can open; confirmations and the
    page are on this machine's loopback address. Openings stay in memory, so that hooks answer
    within milliseconds. Hooks start such a process by themselves when none is running, unless
    hosts.start is never; this command takes over from one that a hook started. When config.toml
    changes, it starts again with the new settings as soon as nothing is in progress.

    Examples:
      journeyman serve --no-jobs
    """
    from journeyman.plugin.resident import Resident, ServedParts  # noqa: PLC0415 - heavy

    # A service has no other way to report problems.
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    wanted = ServedParts(confirmations=not no_confirmations, jobs=not no_jobs, on_demand=on_demand)
    resident = Resident(journeyman, wanted, tell=_print_line)

    def show_started() -> None:
        click.echo("Serving. Press Ctrl-C to stop.")
        for name, place in resident.parts.items():
            click.echo(f"  {name:14s} {visible(place)}")
        for problem in resident.problems:
            click.echo(f"  note           {visible(problem)}")
        show_first_login(resident.service.login if resident.service else None)

    message = "Stopping. Press Ctrl-C again to stop immediately."
    try:
        with context.graceful_stop(message, _STOP_SIGNALS) as stopping:
            resident.run(stopping, show_started)
    except ServiceUnavailable:
        if on_demand:  # another hook was faster
            return
        raise
    if resident.is_outdated and not on_demand:  # the next hook starts another
        click.echo("The settings have changed. Starting again.")
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - this program
    click.echo("Stopped.")


def _print_line(line: str) -> None:
    click.echo(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {readable(line)}")


@click.command(hidden=True)
@click.argument("operation")
@click.argument("host", type=click.Choice(HOSTS))
@click.option("--until", type=float, help="When the caller stops waiting, in seconds since 1970.")
def hook(operation: str, host: str, until: float | None) -> None:
    """Run one operation for a host without a resident process.

    The request is JSON on standard input; the answer is a line `ok`, one of JSON, and an empty one
    on standard output. Hooks use this when no resident process answers; it also starts one, unless
    hosts.start is never.
    """
    from journeyman.plugin.resident import run_operation  # noqa: PLC0415 - heavy

    body = sys.stdin.buffer.read()

    def send(answer: bytes) -> None:
        sys.stdout.buffer.write(b"ok\n" + answer + b"\n\n")
        sys.stdout.buffer.flush()

    run_operation(context.open_journeyman(), operation, host, body, send, until=until)
