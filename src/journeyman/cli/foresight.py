"""`journeyman foresight`: what openings would have foreseen of your own later sessions."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, shown
from journeyman.cli.asked import option
from journeyman.foresight import FIRST, Foresight
from journeyman.journeyman import Journeyman
from journeyman.records.errors import WrongInput
from journeyman.templates.defaults import BUDGET_TOKENS


def show(console: Console, found: Foresight) -> None:
    console.print(
        f"{found.teaching:,} earlier sessions teach; {found.requests:,} requests of "
        f"{found.asking:,} later ones ask. They ran {found.commands:,} commands that worked, of "
        f"which {found.seen:.0%} had been seen before."
    )
    numbers = (f"first {FIRST}", "all", "precision", "any hit", "failures", "tokens")
    rows: Iterator[Sequence[shown.Cell]] = (
        (
            Text(arm.name, style="bold" if arm is found.arms[0] else ""),
            f"{arm.first.estimate:.2f} ({arm.first.low:.2f} to {arm.first.high:.2f})",
            *(f"{share.estimate:.2f}" for share in (arm.recall, arm.precision, arm.hit)),
            f"{arm.failures} of {found.foreseeable}",
            f"{arm.tokens:,.0f}",
        )
        for arm in found.arms
    )
    console.print(shown.table("way", *numbers, numbers=numbers, rows=rows))
    console.print(_meaning(found))


def _meaning(found: Foresight) -> str:
    ours, listed, gain = found.arms[0], found.arms[1], found.gain
    points = f"{100 * gain.estimate:+.1f} points ({100 * gain.low:+.1f} to {100 * gain.high:+.1f})"
    chance = "is more than chance explains"
    if gain.low <= 0 <= gain.high:
        chance = "is within what chance explains for so few sessions"
    said = (
        f"An opening's first {FIRST} commands hold {ours.first.estimate:.0%} of those that a "
        f"request then needs; the list of the {FIRST} most used holds {listed.first.estimate:.0%}. "
        f"The difference, {points}, {chance}."
    )
    if gain.estimate <= 0:
        said += " On these sessions the plain list does as well or better."
    if found.foreseeable:
        said += (
            f" {found.foreseeable} failures were of a kind that three earlier sessions had met; "
            f"openings mention {ours.failures} of them."
        )
    return said


@asked.command(shows=show)
@asked.project_option
@option(
    "--budget",
    "How many tokens an opening may cost, by estimate.",
    to="budget_tokens",
    type=asked.COUNT,
    default=BUDGET_TOKENS,
)
def foresight(journeyman: Journeyman, *, project: str | None, budget_tokens: int) -> Foresight:
    """Measure on your own sessions how much openings foresee.

    The earlier 60 % of the sessions teach. For each request of the later ones that ran commands,
    an opening is made from what was known then, and compared with the commands that worked and the
    calls that failed. Beside it stand what anyone could do by hand: a list of the most used
    commands, the first examples, and the commands of the nearest requests.

    Examples:
      journeyman foresight
      journeyman foresight --project .
      journeyman foresight --budget 800 --json
    """
    with shown.progress_bar("Learning", "sessions") as progress:
        journeyman.learn(progress=progress)
    with shown.counting_bar("Asking") as progress:
        found = journeyman.foresight(
            project=project or "", budget_tokens=budget_tokens, progress=progress
        )
    if found is None:
        raise WrongInput(
            "There are too few sessions with shell commands to measure foresight on. "
            "`journeyman import` brings in what your agents have recorded."
        )
    return found
