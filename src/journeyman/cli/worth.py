"""`journeyman worth`: measures what facts are worth on the recorded sessions."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import option
from journeyman.facade.journeyman import Journeyman
from journeyman.records.errors import WrongInput
from journeyman.text.display import readable

if TYPE_CHECKING:
    from journeyman.trials.worth import Interval, Worth


@context.command()
@option("--project NAME|DIR", "Only this project: a name or a folder (default: all of them).")
def worth(journeyman: Journeyman, *, project: str | None, as_json: bool) -> None:
    """Measure what facts would have been worth in your recorded sessions.

    Each session is met with what was known before it. Counted are the calls that really happened
    and that a told fact makes needless, minus the facts that were told and not used; and the same
    for the simplest alternatives: nothing, lists of commands and files, the instructions files,
    another project's facts. `at the most` counts all searches and lasting failures. Intervals hold
    95 % of resampled sessions.

    Examples:
      journeyman worth --project .
    """
    name = journeyman.project_named(project) if project else None
    with formatting.counting_bar("Replaying") as progress:
        found = journeyman.worth(name, progress=progress)
    if not found:
        raise WrongInput(
            (project and journeyman.sessions.no_match(project=name))
            or "There are too few sessions to measure anything on: a project needs three. "
            "`journeyman import` imports sessions, `journeyman learn` learns from them."
        )
    if as_json:
        context.print_json(found)
        return
    console = formatting.console()
    for one in found:
        show_worth(console, one)


def show_worth(console: Console, worth: "Worth") -> None:
    sessions = formatting.pluralize(worth.sessions, "session")
    console.print(
        Text(readable(f"{worth.project}: {sessions}, calls and facts per session"), style="bold")
    )
    arms = [
        (arm.name, *map(_interval, (arm.needless, arm.unused, arm.net)), f"{arm.tokens:.0f}")
        for arm in worth.arms
    ]
    arms.append(("at the most", _interval(worth.ceiling), "", "", ""))
    names = ("told", "needless", "not used", "net", "tokens")
    console.print(formatting.table(*names, numbers=("tokens",), rows=arms))
    if worth.kinds:
        formatting.print_heading(console, "By kind of fact and moment, in all sessions")
        counts = ("told", "used", "needless calls")
        kinds = ((row.kind, row.moment, row.told, row.used, row.needless) for row in worth.kinds)
        console.print(formatting.table("kind", "moment", *counts, numbers=counts, rows=kinds))
    console.print(Text(f"\nlongest start, in tokens: {worth.start_tokens:,}\n"))


def _interval(value: "Interval") -> str:
    return f"{value.estimate:.1f} [{value.low:.1f}, {value.high:.1f}]"
