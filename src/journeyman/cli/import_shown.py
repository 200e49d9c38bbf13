"""What an import did, for people."""

from rich.console import Console

from journeyman.cli import shown
from journeyman.records.report import ImportReport, Place

_SHOWN_LINES = 10


def show_places(console: Console, places: list[Place]) -> None:
    for place in places:
        found = f"{shown.many(len(place.logs), 'log')}, {shown.size(place.size_bytes)}"
        console.print(
            f"{place.source:12s} {found if place.logs else 'nothing'} in {place.folder}",
            markup=False,
            style="" if place.logs else "dim",
            soft_wrap=True,
        )


def show_report(console: Console, report: ImportReport, *, asked: bool) -> None:
    if report.sources:
        console.print()
        _show_sources(console, report)
        console.print()
    elif not asked:
        console.print(
            "\nNo logs were found in the usual places.\n"
            "Name a file or a folder: `journeyman import PATH`.\n"
            "See what Journeyman does: `journeyman tour`."
        )
    _show_left_out(console, report)
    read = f"{shown.many(report.logs_read, 'log')} read ({shown.size(report.read_bytes)})"
    unchanged = f"{report.logs_unchanged:,} unchanged"
    console.print(f"{read}, {unchanged}, in {report.seconds:.1f} s")
    if report.new:
        console.print("Next: `journeyman profile`, `journeyman learn`, `journeyman sessions list`")


def _show_sources(console: Console, report: ImportReport) -> None:
    names = ("new", "updated", "unchanged", "sessions")
    table = shown.table("source", *names, numbers=names)
    for source, one in report.sources.items():
        numbers = (one.new, one.updated, one.unchanged, one.sessions)
        table.add_row(shown.cell(source), *map(shown.count, numbers))
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
        are_no = "file is no log" if len(report.ignored) == 1 else "files are no logs"
        console.print(f"{len(report.ignored):,} {are_no}:", style="yellow")
        for ignored in report.ignored[:_SHOWN_LINES]:
            console.print(shown.cell(f"  {ignored.reason}"), soft_wrap=True)
        more = len(report.ignored) - _SHOWN_LINES
        if more > 0:
            console.print(f"  and {more:,} more (--json lists them)")
    for problem in report.problems:
        console.print(shown.cell(f"problem: {problem.reason}"), style="red", soft_wrap=True)
