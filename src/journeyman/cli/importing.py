"""`journeyman import`."""

import tempfile
from pathlib import Path

import click

from journeyman.cli import asked


@click.command(
    "import",
    epilog="""\b
Examples:
  journeyman import                                the logs found on this machine
  journeyman import ~/.claude/projects             a folder
  journeyman import run1.jsonl run2.jsonl --json   files, a report for programs
  journeyman import --source openai chat.json      a format by name
  journeyman import --sample                       sample sessions, to try things with

Sources: hermes, hermes_export, claude_code, codex, openai, tau_bench, tau2,
mini_swe_agent, sharegpt, journeyman. Files of other programs are only read.""",
)
@click.argument(
    "paths", nargs=-1, type=click.Path(path_type=Path, readable=False), metavar="[PATH]..."
)
@click.option("--source", default="auto", show_default=True, help="The format, if known.")
@click.option("--reread", is_flag=True, help="Read everything again, also what is unchanged.")
@click.option("--sample", is_flag=True, help="Import sample sessions instead, made for it.")
@asked.workers_option
@asked.json_option
@click.pass_context
def import_(
    ctx: click.Context,
    paths: tuple[Path, ...],
    source: str,
    *,
    reread: bool,
    sample: bool,
    workers: int,
    as_json: bool,
) -> None:
    """Import the sessions that agents have recorded.

    Without a PATH, looks where Hermes, Claude Code and Codex keep their logs. What was imported
    before is not read again; a log that grew is read from where it ended. The sample sessions are
    those of scripted agents that really run their calls while you wait.
    """
    if sample:
        if paths:
            raise click.UsageError("Give paths, or --sample, not both.")
        paths = (_samples(ctx),)
    journeyman = asked.opened(ctx)
    if as_json:
        with asked.ending_workers():
            report = journeyman.import_logs(
                paths or None, source=source, reread=reread, workers=workers
            )
        asked.print_json(report)
    else:
        # Loaded here, because it takes longer than finding that nothing is new.
        from journeyman.cli import import_shown, shown  # noqa: PLC0415

        console = shown.console()
        if not paths:
            import_shown.show_places(console, journeyman.places())
        with asked.ending_workers(), shown.progress_bar("Importing", "logs") as progress:
            report = journeyman.import_logs(
                paths or None, source=source, reread=reread, workers=workers, progress=progress
            )
        import_shown.show_report(console, report, asked=bool(paths))
    if report.problems or (not paths and not report.sources):
        ctx.exit(1)


def _samples(ctx: click.Context) -> Path:
    """The sample logs, in a folder that is gone when the command ends."""
    from journeyman.testing import write_corpus  # noqa: PLC0415

    folder = ctx.with_resource(tempfile.TemporaryDirectory(prefix="journeyman-sample-"))
    return write_corpus(Path(folder)).folder
