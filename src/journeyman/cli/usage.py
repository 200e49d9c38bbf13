"""`journeyman usage`: what sessions used, and what it cost."""

from typing import get_args

import click

from journeyman.cli import asked, shown
from journeyman.cli.usage_shown import show_usage
from journeyman.records.errors import WrongInput
from journeyman.records.usage import UsageBy


@click.command(
    epilog="""\b
Examples:
  journeyman usage
  journeyman usage --by day --since 2026-11-01
  journeyman usage --by task --source hermes
  journeyman usage --by project
  journeyman usage --project .
  journeyman usage --by source --json"""
)
@click.option(
    "--by",
    type=click.Choice(get_args(UsageBy)),
    default="model",
    show_default=True,
    help="A line for each of these.",
)
@asked.session_options
@asked.json_option
@click.pass_context
def usage(ctx: click.Context, *, by: UsageBy, chosen: asked.Chosen, as_json: bool) -> None:
    """Show the tokens that sessions used, and what they cost.

    Input is what the model read anew; what a cache served or stored stands beside it. Reasoning is
    part of the output. A cost that was recorded is shown as it is; others are estimated from the
    prices of the models. What was not recorded is not counted as zero: a dot stands for it, and a
    sum that lacks something is marked.
    """
    journeyman = asked.opened(ctx)
    report = journeyman.accounting.report(by, **chosen)
    if as_json:
        asked.print_json(report)
        return
    if not report.sessions and chosen and journeyman.sessions.list(limit=1):
        raise WrongInput(asked.nothing_fits(journeyman, chosen))
    show_usage(shown.console(), report)
