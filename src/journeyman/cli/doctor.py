"""`journeyman doctor`: an inspection of this machine."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.facade.finding import Finding
from journeyman.facade.journeyman import Journeyman
from journeyman.plugin.engines import engine_findings
from journeyman.plugin.installation.installer import Installer
from journeyman.plugin.installation.status import host_findings

_MARKS = {"ok": Text("✓", "green"), "note": Text("!", "yellow"), "problem": Text("✗", "red")}


def show_findings(console: Console, findings: Sequence[Finding]) -> None:
    """Print what a check has found, and what to do about it."""
    table = formatting.table("", "check", "result")
    table.columns[1].no_wrap = True
    table.columns[2].overflow = "fold"  # a command that is cut cannot be run
    for finding in findings:
        result = formatting.safe_text(finding.found)
        if finding.advice:
            result.append(f"\n→ {finding.advice}", style="cyan")
        table.add_row(_MARKS[finding.status], finding.what, result)
    console.print(table)


def has_problem(findings: Sequence[Finding]) -> bool:
    return any(finding.status == "problem" for finding in findings)


@context.command(render=show_findings, is_failure=has_problem, tolerant=True)
def doctor(journeyman: Journeyman) -> Sequence[Finding]:
    """Check this machine: what is installed, what works, and what to fix. Changes nothing.

    Examples:
      journeyman doctor
    """
    installer = Installer(journeyman)
    return [
        *journeyman.diagnose(),
        *engine_findings(installer, journeyman),
        *host_findings(installer),
    ]
