"""`journeyman foresight`: what openings would have foreseen of your own later sessions."""

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, shown
from journeyman.foresight import FIRST, Foresight, Interval
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
    with shown.counting_bar("Learning") as progress:
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
    show(shown.console(), found)


def show(console: Console, found: Foresight) -> None:
    """The measurement as a table, with a sentence on what it means."""
    console.print(
        f"{found.teaching:,} earlier sessions teach; {found.requests:,} requests of "
        f"{found.asking:,} later ones ask. They ran {found.commands:,} commands that worked, of "
        f"which {found.seen:.0%} had been seen before."
    )
    numbers = (f"first {FIRST}", "all", "precision", "any hit", "failures", "tokens")
    table = shown.table("way", *numbers, numbers=numbers)
    for arm in found.arms:
        table.add_row(
            Text(arm.name, style="bold" if arm is found.arms[0] else ""),
            _interval(arm.first),
            f"{arm.recall.estimate:.2f}",
            f"{arm.precision.estimate:.2f}",
            f"{arm.hit.estimate:.2f}",
            f"{arm.failures} of {found.foreseeable}",
            f"{arm.tokens:,.0f}",
        )
    console.print(table)
    console.print(meaning(found))


def meaning(found: Foresight) -> str:
    """What the figures say, in words."""
    ours, listed = found.arms[0], found.arms[1]
    said = [
        f"An opening's first {FIRST} commands hold {ours.first.estimate:.0%} of those that a "
        f"request then needs; the list of the {FIRST} most used holds {listed.first.estimate:.0%}."
    ]
    said.append(_compared(found.gain))
    if found.foreseeable:
        said.append(
            f"{found.foreseeable} failures were of a kind that three earlier sessions had met; "
            f"openings mention {ours.failures} of them."
        )
    return " ".join(said)


def _compared(gain: Interval) -> str:
    points = f"{100 * gain.estimate:+.1f} points ({100 * gain.low:+.1f} to {100 * gain.high:+.1f})"
    if gain.low > 0:
        return f"The difference, {points}, is more than chance explains."
    if gain.estimate > 0:
        return f"The difference, {points}, is within what chance explains for so few sessions."
    return f"On these sessions the plain list does as well or better: {points}."


def _interval(share: Interval) -> str:
    return f"{share.estimate:.2f} ({share.low:.2f} to {share.high:.2f})"
