"""How a measurement of foresight looks in the terminal."""

from rich.console import Console
from rich.text import Text

from journeyman.cli import shown
from journeyman.foresight import FIRST, Foresight, Interval


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
