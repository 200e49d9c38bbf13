"""`journeyman doctor`."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, shown
from journeyman.diagnosis import Finding
from journeyman.journeyman import Journeyman

_MARKS = {"ok": Text("✓", "green"), "note": Text("!", "yellow"), "problem": Text("✗", "red")}


def _show(console: Console, findings: Sequence[Finding]) -> None:
    table = shown.table("", "what", "found")
    table.columns[1].no_wrap = True
    for finding in findings:
        found = shown.cell(finding.found)
        if finding.advice:
            found.append(f"\n→ {finding.advice}", style="cyan")
        table.add_row(_MARKS[finding.status], finding.what, found)
    console.print(table)


@asked.command(shows=_show, fails=lambda findings: any(one.status == "problem" for one in findings))
def doctor(journeyman: Journeyman) -> Sequence[Finding]:
    """Say what is found, what works and what to fix. Changes nothing.

    Examples:
      journeyman doctor
      journeyman doctor --json
    """
    return journeyman.diagnose()
