"""`journeyman import`."""

from pathlib import Path

import click
from rich.console import Console

from journeyman.cli import shown
from journeyman.records.report import ImportReport, Place

_SHOWN_LINES = 10


@click.command(
    "import",
    epilog="""\b
Examples:
  journeyman import                                the logs found on this machine
  journeyman import ~/.claude/projects             a folder
  journeyman import run1.jsonl run2.jsonl --json   files, a report for programs
  journeyman import --source openai chat.json      a format by name

Sources: hermes, hermes_export, claude_code, codex, openai, tau_bench, tau2,
mini_swe_agent, sharegpt, journeyman. Files of other programs are only read.""",
)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option("--source", default="auto", show_default=True, help="The format, if known.")
@click.option("--reread", is_flag=True, help="Read everything again, also what is unchanged.")
@shown.json_option
@click.pass_context
def import_(
    ctx: click.Context, paths: tuple[Path, ...], source: str, *, reread: bool, as_json: bool
) -> None:
    """Import the sessions that agents have recorded.

    Without a PATH, looks where Hermes, Claude Code and Codex keep their logs. What was imported
    before is not read again; a log that grew is read from where it ended.
    """
    journeyman = shown.opened(ctx)
    console = shown.console()
    if not paths and not as_json:
        _show_places(console, journeyman.places())
    with shown.progress_bar("Importing", quiet=as_json) as progress:
        report = journeyman.import_logs(
            paths or None, source=source, reread=reread, progress=progress
        )
    if as_json:
        shown.print_json(report)
    else:
        _show_report(console, report, asked=bool(paths))
    if report.problems or (not paths and not report.sources):
        ctx.exit(1)


def _show_places(console: Console, places: list[Place]) -> None:
    for place in places:
        found = f"{shown.many(len(place.logs), 'log')}, {shown.size(place.size_bytes)}"
        console.print(
            f"{place.source:12s} {found if place.logs else 'nothing'} in {place.folder}",
            markup=False,
            style="" if place.logs else "dim",
            soft_wrap=True,
        )


def _show_report(console: Console, report: ImportReport, *, asked: bool) -> None:
    if report.sources:
        console.print()
        _show_sources(console, report)
        console.print()
    elif not asked:
        console.print(
            "\nNo logs were found in the usual places. Name a file or a folder: "
            "`journeyman import PATH`,\nor see `journeyman tour` for what Journeyman does."
        )
    _show_left_out(console, report)
    read = f"{shown.many(report.logs_read, 'log')} read ({shown.size(report.read_bytes)})"
    unchanged = f"{report.logs_unchanged:,} unchanged"
    console.print(f"{read}, {unchanged}, in {report.seconds:.1f} s")
    if report.new:
        console.print("Next: `journeyman sessions list`, `journeyman sessions search WORDS`")


def _show_sources(console: Console, report: ImportReport) -> None:
    names = ("new", "updated", "unchanged", "sessions")
    table = shown.table("source", *names, numbers=names)
    for source, one in report.sources.items():
        numbers = (one.new, one.updated, one.unchanged, one.sessions)
        table.add_row(source, *map(shown.count, numbers))
    if len(report.sources) > 1:
        total = report.new + report.updated + report.unchanged
        numbers = (report.new, report.updated, report.unchanged, total)
        table.add_row("all", *map(shown.count, numbers), style="bold")
    console.print(table)


def _show_left_out(console: Console, report: ImportReport) -> None:
    if report.skipped_lines:
        console.print(f"{report.skipped_lines:,} skipped:", style="yellow")
        for line in report.skipped[:_SHOWN_LINES]:
            place = f"{line.log}:{line.line}" if line.line else line.log
            console.print(shown.cell(f"  {place}: {line.reason}"), soft_wrap=True)
        more = report.skipped_lines - _SHOWN_LINES
        if more > 0:
            console.print(f"  and {more:,} more (--json lists them)")
    if report.ignored:
        console.print(f"{len(report.ignored):,} files are no logs:", style="yellow")
        for ignored in report.ignored[:_SHOWN_LINES]:
            console.print(shown.cell(f"  {ignored.reason}"), soft_wrap=True)
        more = len(report.ignored) - _SHOWN_LINES
        if more > 0:
            console.print(f"  and {more:,} more (--json lists them)")
    for problem in report.problems:
        console.print(shown.cell(f"problem: {problem.reason}"), style="red", soft_wrap=True)
