"""`journeyman learn`."""

import click

from journeyman.cli import asked


@click.command(
    epilog="""\b
Examples:
  journeyman learn
  journeyman learn --workers 4
  journeyman learn --project .
  journeyman learn --json"""
)
@asked.project_option
@asked.workers_option
@asked.json_option
@click.pass_context
def learn(ctx: click.Context, *, project: str | None, workers: int, as_json: bool) -> None:
    """Learn from the sessions that are new: which calls worked, and what each was for.

    Only what went well teaches: requests whose last calls worked and that the person did not
    reject. Kept are the calls that served them, the commands and files that they used, and the
    mistakes with what fixed them; secrets, e-mail addresses and the like are left out. What looks
    like an instruction to its reader goes into quarantine and is never used.
    """
    journeyman = asked.opened(ctx)
    if as_json:
        with asked.ending_workers():
            report = journeyman.learn(project=project, workers=workers)
        asked.print_json(report)
        return
    # Loaded here, because it takes longer than finding that nothing is new.
    from journeyman.cli import learning_shown, shown  # noqa: PLC0415

    with asked.ending_workers(), shown.progress_bar("Learning", "sessions") as progress:
        report = journeyman.learn(project=project, workers=workers, progress=progress)
    learning_shown.show_report(shown.console(), report)
