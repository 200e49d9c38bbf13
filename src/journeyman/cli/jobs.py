"""`journeyman jobs`: agents on a schedule; list, show, pause, resume and remove them. Adding and
running have their own modules.
"""

import time

import click

from journeyman.cli import (
    asked,
    jobs_adding,
    jobs_history,
    jobs_serving,
    jobs_shown,
    jobs_times,
    shown,
)


@click.group(
    epilog="""\b
Examples:
  journeyman jobs add "every monday 9am" "Summarise what changed in notes/ last week"
  journeyman jobs list
  journeyman jobs serve"""
)
def jobs() -> None:
    """Agents on a schedule.

    A job is a prompt with the times at which an agent does it. Its answer is delivered, each run
    is kept with its status, tokens and cost, and failures are always told.
    """


jobs.add_command(jobs_adding.add)


@jobs.command(
    "list",
    epilog="""\b
Examples:
  journeyman jobs list
  journeyman jobs list --removed
  journeyman jobs list --json""",
)
@click.option("--all", "everything", is_flag=True, help="Also those that are done.")
@click.option("--removed", is_flag=True, help="Those that were removed, instead.")
@asked.json_option
@click.pass_context
def list_(ctx: click.Context, *, everything: bool, removed: bool, as_json: bool) -> None:
    """List jobs, the next to run first."""
    kept = asked.opened(ctx).jobs
    found, last, leading = kept.list(removed=removed), kept.last_runs(), kept.leading()
    done = [] if everything or removed or as_json else [job for job in found if job.state == "done"]
    found = [job for job in found if job not in done]
    if as_json:
        told = [jobs_shown.told(job) | {"last_run": last.get(job.id)} for job in found]
        asked.print_json({"jobs": told, "scheduler": leading})
        return
    console = shown.console()
    if not found and not done:
        nothing = "No job was removed." if removed else jobs_shown.NO_JOBS
        console.print(nothing, markup=False, soft_wrap=True)
        return
    jobs_shown.show_list(console, found, last, leading, time.time())
    if done:
        console.print(f"{shown.many(len(done), 'more job')} done: journeyman jobs list --all")


@jobs.command(
    epilog="""\b
Examples:
  journeyman jobs show diary
  journeyman jobs show diary --runs 50
  journeyman jobs show diary --json"""
)
@click.argument("name")
@click.option("--runs", type=click.IntRange(1), default=10, show_default=True, help="So many.")
@asked.json_option
@click.pass_context
def show(ctx: click.Context, name: str, *, runs: int, as_json: bool) -> None:
    """Show the job NAME with its next times and its runs."""
    report = asked.opened(ctx).jobs.show(name, limit=runs)
    if as_json:
        asked.print_json(jobs_shown.told_report(report))
    else:
        jobs_history.show_report(shown.console(), report, time.time())


jobs.add_command(jobs_serving.run)


@jobs.command(
    epilog="""\b
Examples:
  journeyman jobs pause diary
  journeyman jobs pause diary --reason "on holiday" """
)
@click.argument("name")
@click.option("--reason", default="", help="Why, for the list.")
@asked.json_option
@click.pass_context
def pause(ctx: click.Context, name: str, *, reason: str, as_json: bool) -> None:
    """Pause the job NAME until it is resumed. A run that is going on goes on."""
    job = asked.opened(ctx).jobs.pause(name, reason)
    if as_json:
        asked.print_json(jobs_shown.told(job))
    else:
        click.echo(f"Paused: {job.name}. To let it run again: journeyman jobs resume {job.name}")


@jobs.command(
    epilog="""\b
Examples:
  journeyman jobs resume diary"""
)
@click.argument("name")
@asked.json_option
@click.pass_context
def resume(ctx: click.Context, name: str, *, as_json: bool) -> None:
    """Resume the job NAME.

    One that was paused, removed, or held back after failures. Times that have passed meanwhile
    are not made up for.
    """
    job = asked.opened(ctx).jobs.resume(name)
    if as_json:
        asked.print_json(jobs_shown.told(job))
        return
    click.echo(f"Resumed: {job.name}.")
    if job.next_run_at is not None:
        when = jobs_times.in_full(job.next_run_at, job)
        click.echo(f"Next: {when}, {jobs_times.away(job.next_run_at, time.time())}.")


@jobs.command(
    epilog="""\b
Examples:
  journeyman jobs remove diary
  journeyman jobs remove diary --forever --yes"""
)
@click.argument("name")
@click.option("--forever", is_flag=True, help="Forget it, its runs and their files.")
@click.option("-y", "--yes", is_flag=True, help="With --forever, do not ask.")
@asked.json_option
@click.pass_context
def remove(ctx: click.Context, name: str, *, forever: bool, yes: bool, as_json: bool) -> None:
    """Remove the job NAME. `journeyman jobs resume` brings it back, unless --forever."""
    kept = asked.opened(ctx).jobs
    if forever:
        found = kept.get(name)
        if not yes:
            runs = shown.many(len(kept.runs(name)), "run")
            click.confirm(f"Forget {found.name} and its {runs} for good?", abort=True, err=True)
        job = kept.delete(name)
        said = f"Forgotten: {job.name}."
    else:
        job = kept.remove(name)
        said = f"Removed: {job.name}. To have it back: journeyman jobs resume {job.name}"
    if as_json:
        asked.print_json(jobs_shown.told(job))
    else:
        click.echo(said)


jobs.add_command(jobs_serving.serve)
