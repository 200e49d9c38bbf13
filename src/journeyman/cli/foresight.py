"""`journeyman foresight`: what openings would have foreseen of your own later sessions."""

import click

from journeyman.cli import asked, shown
from journeyman.records.errors import WrongInput
from journeyman.templates.defaults import BUDGET_TOKENS


@click.command(
    epilog="""\b
Examples:
  journeyman foresight
  journeyman foresight --project .
  journeyman foresight --budget 800 --json"""
)
@asked.project_option
@click.option(
    "--budget",
    type=asked.COUNT,
    default=BUDGET_TOKENS,
    show_default=True,
    help="How many tokens an opening may cost, by estimate.",
)
@asked.json_option
@click.pass_context
def foresight(ctx: click.Context, *, project: str | None, budget: int, as_json: bool) -> None:
    """Measure on your own sessions how much openings foresee.

    The earlier 60 % of the sessions teach. For each request of the later ones that ran commands,
    an opening is made from what was known then, and compared with the commands that worked and the
    calls that failed. Beside it stand what anyone could do by hand: a list of the most used
    commands, the first examples, and the commands of the nearest requests.
    """
    journeyman = asked.opened(ctx)
    with shown.progress_bar("Learning", "sessions") as progress:
        journeyman.learn(progress=progress)
    with shown.counting_bar("Asking") as progress:
        found = journeyman.foresight(project=project or "", budget_tokens=budget, progress=progress)
    if found is None:
        raise WrongInput(
            "There are too few sessions with shell commands to measure foresight on. "
            "`journeyman import` brings in what your agents have recorded."
        )
    if as_json:
        asked.print_json(found)
        return
    # Loaded here, because the measurement loads much that help needs nothing of.
    from journeyman.cli.foresight_shown import show  # noqa: PLC0415

    show(shown.console(), found)
