"""`journeyman import` and `journeyman learn`."""

import tempfile
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, shown
from journeyman.cli.asked import flag, option
from journeyman.journeyman import Journeyman
from journeyman.records.report import ImportReport, LearnReport, Place

_ABOUT_KIND = {
    "sequence": "the few calls that together served a request",
    "recovery": "a failed call and its correction",
    "final": "the call after which the agent was done",
    "first_try": "a call that worked at once",
}


_Imported = tuple[ImportReport, list[Place] | None]
"""What importing did, and where it looked if no path was given."""


def _failed(imported: _Imported) -> bool:
    report, places = imported
    return bool(report.problems) or (places is not None and not report.sources)


def _show_imported(console: Console, imported: _Imported) -> None:
    report, places = imported
    for place in places or ():
        found = f"{shown.many(len(place.logs), 'log')}, {shown.size(place.size_bytes)}"
        said = f"{place.source:12s} {found if place.logs else 'nothing'} in {place.folder}"
        console.print(Text(said, style="" if place.logs else "dim"), soft_wrap=True)
    if report.sources:
        names = ("new", "updated", "unchanged", "sessions")
        counts = [[getattr(one, name) for name in names] for one in report.sources.values()]
        rows = [(source, *row) for source, row in zip(report.sources, counts, strict=True)]
        table = shown.table("source", *names, numbers=names, rows=rows)
        if len(rows) > 1:
            sums = map(sum, zip(*counts, strict=True))
            table.add_row("all", *map(shown.count, sums), style="bold")
        console.print("", table, "", sep="\n")
    elif places is not None:
        console.print(
            "\nNo logs were found in the usual places.\n"
            "Name a file or a folder: `journeyman import PATH`.\n"
            "See what Journeyman does: `journeyman tour`."
        )
    if report.skipped_lines:
        lines = [
            f"{one.log}:{one.line}: {one.reason}" if one.line else f"{one.log}: {one.reason}"
            for one in report.skipped
        ]
        title = f"{report.skipped_lines:,} skipped"
        shown.problems(console, title, lines, total=report.skipped_lines)
    if report.ignored:
        title = shown.counted(len(report.ignored), "file is no log", "files are no logs")
        shown.problems(console, title, [one.reason for one in report.ignored])
    for problem in report.problems:
        console.print(shown.cell(f"problem: {problem.reason}"), style="red", soft_wrap=True)
    read = f"{shown.many(report.logs_read, 'log')} read ({shown.size(report.read_bytes)})"
    console.print(f"{read}, {report.logs_unchanged:,} unchanged, in {report.seconds:.1f} s")
    if report.new:
        console.print("Next: `journeyman profile`, `journeyman learn`, `journeyman sessions list`")


@asked.command(name="import", shows=_show_imported, tells=lambda found: found[0], fails=_failed)
@click.argument(
    "paths", nargs=-1, type=click.Path(path_type=Path, readable=False), metavar="[PATH]..."
)
@option("--source", "The format, if known.", default="auto")
@flag("--reread", "Read everything again, also what is unchanged.")
@flag("--sample", "Import sample sessions instead, made for it.")
@asked.workers_option
def import_(
    journeyman: Journeyman, *, paths: tuple[Path, ...], sample: bool, **options: Any
) -> _Imported:
    """Import the sessions that agents have recorded.

    Without a PATH, looks where Hermes, Claude Code and Codex keep their logs. What was imported
    before is not read again; a log that grew is read from where it ended. The sample sessions are
    those of scripted agents that really run their calls while you wait.

    Examples:
      journeyman import                                the logs found on this machine
      journeyman import ~/.claude/projects             a folder
      journeyman import run1.jsonl run2.jsonl --json   files, a report for programs
      journeyman import --source openai chat.json      a format by name
      journeyman import --sample                       sample sessions, to try things with

    Sources: hermes, hermes_export, claude_code, codex, openai, tau_bench, tau2,
    mini_swe_agent, sharegpt, journeyman. Files of other programs are only read.
    """
    if sample and paths:
        raise click.UsageError("Give paths, or --sample, not both.")
    if sample:
        from journeyman.testing import write_corpus  # noqa: PLC0415 - loads slowly

        made = tempfile.TemporaryDirectory(prefix="journeyman-sample-")
        folder = click.get_current_context().with_resource(made)
        paths = (write_corpus(Path(folder)).folder,)
    places = None if paths else journeyman.places()
    with asked.ending_workers(), shown.progress_bar("Importing", "logs") as progress:
        report = journeyman.import_logs(paths or None, progress=progress, **options)
    return report, places


def _show_learned(console: Console, report: LearnReport) -> None:
    if not report.sessions:
        console.print(
            "There are no sessions to learn from.\n"
            "`journeyman import` brings in those that your agents have recorded."
        )
        return
    said = f"Nothing is new since the last time; {shown.many(report.sessions, 'session')} in all."
    if report.mined:
        mined = f"{shown.many(report.mined, 'session')}, new or due again"
        said = f"Went through {mined}, in {report.seconds:.1f} s; {report.sessions:,} in all."
    console.print(f"{said}\n")
    teaching = shown.counted(report.teaching, "session teaches", "sessions teach")
    console.print(Text(teaching, style="bold"))
    if report.reasons:
        # Loaded here: most who call this often have nothing new, and want the answer at once.
        from journeyman.templates.mining.episodes import WHY_NOT  # noqa: PLC0415

        rest = report.sessions - report.teaching
        because = ("teaches nothing, because", "teach nothing, each because")
        console.print(shown.counted(rest, *because))
        for reason, number in sorted(report.reasons.items(), key=lambda one: (-one[1], one[0])):
            console.print(Text(f"{number:7,d}  {WHY_NOT.get(reason, reason)}"))
    console.print()
    console.print(Text(shown.many(report.patterns, "pattern"), style="bold"))
    for kind, about in _ABOUT_KIND.items():
        if number := report.kinds.get(kind, 0):
            console.print(Text.assemble(f"{number:7,d}  {kind:10s} ", (about, "dim")))
    if report.quarantined:
        held = shown.counted(report.quarantined, "call or text was", "calls and texts were")
        console.print(f"{held} kept out: `journeyman templates quarantine`", style="yellow")
    if report.patterns:
        console.print('Next: `journeyman open "what the next session is to do" --explain`')


@asked.command(shows=_show_learned)
@asked.project_option
@asked.workers_option
def learn(journeyman: Journeyman, **options: Any) -> LearnReport:
    """Learn from the sessions that are new: which calls worked, and what each was for.

    Only what went well teaches: requests whose last calls worked and that the person did not
    reject. Kept are the calls that served them, the commands and files that they used, and the
    mistakes with what fixed them; secrets, e-mail addresses and the like are left out. What looks
    like an instruction to its reader goes into quarantine and is never used.

    Examples:
      journeyman learn
      journeyman learn --workers 4
      journeyman learn --project .
      journeyman learn --json
    """
    with asked.ending_workers(), shown.progress_bar("Learning", "sessions") as progress:
        return journeyman.learn(progress=progress, **options)
