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

    Only sessions that went well teach. What is learned is a pattern: the request, the call or the
    few calls that served it, and what came back, with secrets and personal data left out. What
    looks like an instruction to its reader goes into quarantine and is never used.
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
