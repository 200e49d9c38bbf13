"""`journeyman profile`: how reliable the calls of sessions were."""

import time
from pathlib import Path
from typing import get_args

import click
import msgspec

from journeyman.cli import asked, shown
from journeyman.cli.profile_shown import show_groups, show_profile, show_remedies, show_summary
from journeyman.records.errors import WrongInput
from journeyman.reliability.profile import By, grouped, profile
from journeyman.reports import draw, write_page

_REMEDIES = 3

_file = click.Path(path_type=Path, dir_okay=False)


@click.command(
    "profile",
    epilog="""\b
Examples:
  journeyman profile
  journeyman profile --by model
  journeyman profile --by length --source claude_code
  journeyman profile --by tool --project .
  journeyman profile SESSION
  journeyman profile --plot reliability.png
  journeyman profile --html report.html""",
)
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
@click.option("--by", type=click.Choice(get_args(By)), help="Error rates by this, all of them.")
@asked.session_options
@click.option("--plot", type=_file, metavar="FILE", help="Draw the rates (.png or .svg).")
@click.option("--html", type=_file, metavar="FILE", help="Write the report as one page to send.")
@asked.json_option
@click.pass_context
def profile_command(
    ctx: click.Context,
    *,
    sessions: tuple[str, ...],
    by: By | None,
    chosen: asked.Chosen,
    plot: Path | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Show how reliable the tool calls of sessions were.

    Without SESSION, of all stored sessions that fit the options. Errors are calls that failed or
    could not be made as asked. Calls that a person refused or that were interrupted say nothing
    about a tool and are counted apart. Each call is judged once and remembered.
    """
    journeyman = asked.opened(ctx)
    with shown.counting_bar("Judging") as progress:
        judged = journeyman.judged(sessions or None, progress=progress, **chosen)
    if not judged and chosen and journeyman.sessions.list(limit=1):
        raise WrongInput(asked.nothing_fits(journeyman, chosen))
    found = profile(judged)
    if plot:
        draw(found, plot)
    if html:
        write_page(found, judged, html, made_at=time.time())
    groups = grouped(judged, by) if by else ()
    remedies = journeyman.remedies(one.id for one in judged)[:_REMEDIES]
    if as_json:
        told = msgspec.to_builtins(found) | {"remedies": remedies}
        asked.print_json(told | {"by": by, "groups": groups} if by else told)
        return
    console = shown.console()
    if by:
        show_summary(console, found)
        console.print()
        show_groups(console, by, groups)
    else:
        show_profile(console, found)
    show_remedies(console, remedies, failures=found.rate.errors)
    for path in (plot, html):
        if path:
            console.print(f"Written: {path}", style="dim", soft_wrap=True)
