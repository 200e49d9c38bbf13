"""`journeyman foresight`: measures what openings would have foreseen of later sessions."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import option
from journeyman.facade.journeyman import Journeyman
from journeyman.records.defaults import BUDGET_TOKENS
from journeyman.records.errors import WrongInput
from journeyman.trials.foresight import FIRST_COMMANDS, Foresight


def show(console: Console, report: Foresight) -> None:
    console.print(
        f"{report.teaching:,} earlier sessions to learn from; {report.requests:,} requests from "
        f"{report.asking:,} later sessions to predict. They ran {report.commands:,} commands that "
        f"worked, {report.seen:.0%} of which had been seen before."
    )
    numbers = (f"first {FIRST_COMMANDS}", "all", "precision", "any hit", "failures", "tokens")
    rows: Iterator[Sequence[formatting.Cell]] = (
        (
            Text(arm.name, style="bold" if arm is report.arms[0] else ""),
            f"{arm.first.estimate:.2f} ({arm.first.low:.2f} to {arm.first.high:.2f})",
            *(f"{share.estimate:.2f}" for share in (arm.recall, arm.precision, arm.hit)),
            f"{arm.failures} of {report.foreseeable}",
            f"{arm.tokens:,.0f}",
        )
        for arm in report.arms
    )
    console.print(formatting.table("method", *numbers, numbers=numbers, rows=rows))
    console.print(_meaning(report))


def _meaning(report: Foresight) -> str:
    opening, most_used, gain = report.arms[0], report.arms[1], report.gain
    points = f"{100 * gain.estimate:+.1f} points ({100 * gain.low:+.1f} to {100 * gain.high:+.1f})"
    chance = "is more than chance explains"
    if gain.low <= 0 <= gain.high:
        chance = "could be chance with this few sessions"
    text = (
        f"An opening's first {FIRST_COMMANDS} commands cover {opening.first.estimate:.0%} of those "
        f"that a request then needs; a list of the {FIRST_COMMANDS} most used commands covers "
        f"{most_used.first.estimate:.0%}. The difference, {points}, {chance}."
    )
    if gain.estimate <= 0:
        text += " On these sessions, the plain list does as well or better."
    if report.foreseeable:
        text += (
            f" {report.foreseeable} failures were of a kind seen in at least three earlier "
            f"sessions; openings mention {opening.failures} of them."
        )
    return text


@context.command(render=show)
@context.project_option
@option(
    "--budget",
    "Token budget of an opening, estimated.",
    dest="budget_tokens",
    type=context.NON_NEGATIVE_INT,
    default=BUDGET_TOKENS,
)
def foresight(journeyman: Journeyman, *, project: str | None, budget_tokens: int) -> Foresight:
    """Measure on your own sessions how much openings foresee.

    Learns from the earlier 60 % of the sessions. For each request in the later ones that ran
    commands, builds an opening from what was known at the time and compares it with the commands
    that worked and the calls that failed. For comparison, it also scores what you could do by
    hand: a list of the most used commands, the first examples, and the commands of the nearest
    requests.

    Examples:
      journeyman foresight
      journeyman foresight --project .
      journeyman foresight --budget 800 --json
    """
    with formatting.progress_bar("Learning", "sessions") as progress:
        journeyman.learn(progress=progress)
    with formatting.counting_bar("Predicting") as progress:
        report = journeyman.foresight(
            project=project or "", budget_tokens=budget_tokens, progress=progress
        )
    if report is None:
        raise WrongInput(
            "Foresight cannot be measured: too few sessions have shell commands. `journeyman "
            "import` imports what your agents recorded."
        )
    return report
