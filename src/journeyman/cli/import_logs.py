"""`journeyman import` and `journeyman learn`: bring in recorded sessions, and learn from them."""

import os
import tempfile
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import flag, number, option
from journeyman.cli.formatting import Column
from journeyman.facade.journeyman import Journeyman
from journeyman.records.report import ImportReport, LearnReport, LogLocation

_MAX_WORKERS = 64

_Imported = tuple[ImportReport, list[LogLocation] | None]
"""The report of an import, and the locations that were searched if no path was supplied."""


def _counted(name: str) -> Column:
    return Column(name, lambda row: getattr(row[1], name), numeric=True)


_COLUMNS = (
    Column("source", lambda row: row[0]),
    *map(_counted, ("new", "updated", "unchanged", "sessions")),
)


def _has_failed(imported: _Imported) -> bool:
    report, places = imported
    return bool(report.problems) or (places is not None and not report.sources)


def _show_imported(console: Console, imported: _Imported) -> None:
    report, places = imported
    for place in places or ():
        logs = formatting.pluralize(len(place.logs), "log")
        contents = f"{logs}, {formatting.size(place.size_bytes)}" if place.logs else "nothing"
        line = f"{place.source:12s} {contents} in {place.folder}"
        console.print(Text(line, style="" if place.logs else "dim"), soft_wrap=True)
    if report.sources:
        console.print()
        formatting.print_table(console, [*report.sources.items()], _COLUMNS, "")
        console.print()
    elif places is not None:
        console.print(
            "\nNo logs were found in the default locations.\n"
            "To import a file or a folder: `journeyman import PATH`.\n"
            "To see what Journeyman does: `journeyman tour`."
        )
    if report.skipped_lines:
        skipped = (f"{skip.log}:{skip.line or ''} {skip.reason}" for skip in report.skipped)
        title = f"{report.skipped_lines:,} skipped"
        formatting.print_problems(console, title, [*skipped], total=report.skipped_lines)
    if report.ignored:
        title = formatting.pluralize(len(report.ignored), "file is not a log", "files are not logs")
        formatting.print_problems(console, title, [file.reason for file in report.ignored])
    for problem in report.problems:
        text = formatting.safe_text(f"problem: {problem.reason}")
        console.print(text, style="red", soft_wrap=True)
    logs, size = formatting.pluralize(report.logs_read, "log"), formatting.size(report.read_bytes)
    unchanged = f"{report.logs_unchanged:,} unchanged"
    console.print(f"{logs} read ({size}), {unchanged}, in {report.seconds:.1f} s")
    if report.new:
        console.print("Next: `journeyman profile`, `journeyman learn`, `journeyman sessions list`")


@context.command(
    name="import",
    render=_show_imported,
    to_json=lambda imported: imported[0],
    is_failure=_has_failed,
)
@click.argument(
    "paths", nargs=-1, type=click.Path(path_type=Path, readable=False), metavar="[PATH]..."
)
@option("--source", "Format of the logs; auto detects it.", default="auto")
@flag("--reread", "Read all logs again, even unchanged ones.")
@flag("--sample", "Import sample sessions instead.")
def import_(
    journeyman: Journeyman, *, paths: tuple[Path, ...], sample: bool, **options: Any
) -> _Imported:
    """Import the sessions that your agents recorded.

    Without a PATH, searches the folders where Hermes, Claude Code, Codex, opencode, GitHub
    Copilot CLI and Gemini CLI keep their logs. Unchanged logs are not read again; a log that
    grew is read from where it ended. The sample sessions were recorded by scripted agents that
    really ran their calls.

    Examples:
      journeyman import                                the logs found on this machine
      journeyman import ~/.claude/projects             a folder
      journeyman import run1.jsonl run2.jsonl --json   files, a report for programs
      journeyman import --source openai chat.json      a format by name
      journeyman import --sample                       sample sessions, to try things with

    Sources: hermes, claude_code, codex, opencode, copilot, gemini, openai,
    journeyman. Files of other programs are never changed.
    """
    if sample and paths:
        raise click.UsageError("Pass paths or --sample, not both.")
    if sample:
        from journeyman.testing import write_corpus  # noqa: PLC0415 - loads slowly

        temporary = tempfile.TemporaryDirectory(prefix="journeyman-sample-")
        folder = click.get_current_context().with_resource(temporary)
        paths = (write_corpus(Path(folder)).folder,)
    places = None if paths else journeyman.places()
    with context.exit_on_sigterm(), formatting.progress_bar("Importing logs") as progress:
        report = journeyman.import_logs(paths or None, progress=progress, **options)
    return report, places


def _show_learned(console: Console, report: LearnReport) -> None:
    if not report.sessions:
        console.print(
            "There are no sessions to learn from.\n"
            "`journeyman import` imports those that your agents recorded."
        )
        return
    mined = f"{formatting.pluralize(report.mined, 'session')}, new or due again"
    console.print(f"Processed {mined}, in {report.seconds:.1f} s; {report.sessions:,} in total.\n")
    console.print(f"{formatting.pluralize(report.teaching, 'session')} learned from", style="bold")
    if report.reasons:
        # Imported here to keep frequent calls fast: usually nothing is new.
        from journeyman.learning.episodes import NOT_LEARNED_REASONS  # noqa: PLC0415

        rest = formatting.pluralize(report.sessions - report.teaching, "session")
        console.print(f"{rest} not learned from:")
        for reason, number in sorted(report.reasons.items(), key=lambda item: -item[1]):
            console.print(f"{number:7,d}  {NOT_LEARNED_REASONS.get(reason, reason)}", markup=False)
    requests = formatting.pluralize(report.examples, "request")
    console.print(f"\n{requests} can serve as examples", style="bold")
    if report.examples:
        console.print("Next: `journeyman playbook` shows what is known of this project.")


@context.command(render=_show_learned)
@context.project_option
@number(
    "--workers N",
    "Processes for larger amounts of work.",
    most=_MAX_WORKERS,
    default=lambda: min(os.cpu_count() or 1, _MAX_WORKERS),
    show_default="all cores",
)
def learn(journeyman: Journeyman, **options: Any) -> LearnReport:
    """Learn from new sessions which calls worked, and what each was for.

    Only successful work is learned from: requests whose last calls worked and that the person did
    not reject. Stored are the calls that fulfilled them, the commands and files they used, and
    mistakes with their fixes. Secrets, e-mail addresses and other personal data are redacted. Text
    that reads like an instruction, and what a person would have to confirm, are left out.

    Examples:
      journeyman learn
      journeyman learn --project . --workers 4
    """
    with context.exit_on_sigterm(), formatting.progress_bar("Learning") as progress:
        return journeyman.learn(progress=progress, **options)
