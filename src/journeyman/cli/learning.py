"""`journeyman learn`."""

import click

from journeyman.cli import asked

_WORKERS = click.IntRange(1, 64)


@click.command(
    epilog="""\b
Examples:
  journeyman learn
  journeyman learn --workers 4
  journeyman learn --project .
  journeyman learn --json"""
)
@asked.project_option
@click.option(
    "--workers",
    type=_WORKERS,
    default=1,
    show_default=True,
    metavar="N",
    help="How many processes mine sessions; more than one pays from some hundred sessions on.",
)
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
        asked.print_json(journeyman.learn(project=project, workers=workers))
        return
    # Loaded here, because it takes longer than finding that nothing is new.
    from journeyman.cli import learning_shown, shown  # noqa: PLC0415

    with shown.counting_bar("Learning") as progress:
        report = journeyman.learn(project=project, workers=workers, progress=progress)
    learning_shown.show_report(shown.console(), report)
