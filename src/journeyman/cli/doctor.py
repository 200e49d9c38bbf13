"""`journeyman doctor`."""

import click

from journeyman.cli import asked, shown

_MARKS = {"ok": "[green]✓[/]", "note": "[yellow]![/]", "problem": "[red]✗[/]"}


@click.command(
    epilog="""\b
Examples:
  journeyman doctor
  journeyman doctor --json"""
)
@asked.json_option
@click.pass_context
def doctor(ctx: click.Context, *, as_json: bool) -> None:
    """Say what is found, what works and what to fix. Changes nothing."""
    findings = asked.opened(ctx).diagnose()
    if as_json:
        asked.print_json(findings)
    else:
        console = shown.console()
        table = shown.table("", "what", "found")
        table.columns[1].no_wrap = True
        for finding in findings:
            found = shown.cell(finding.found)
            if finding.advice:
                found.append(f"\n→ {finding.advice}", style="cyan")
            table.add_row(_MARKS[finding.status], finding.what, found)
        console.print(table)
    if any(finding.status == "problem" for finding in findings):
        ctx.exit(1)
