"""What was learned, for people."""

from rich.console import Console
from rich.text import Text

from journeyman.cli import shown
from journeyman.records.report import LearnReport

_ABOUT_KIND = {
    "sequence": "the few calls that together served a request",
    "recovery": "a failed call and its correction",
    "final": "the call after which the agent was done",
    "first_try": "a call that worked at once",
}


def show_report(console: Console, report: LearnReport) -> None:
    """What is new, who teaches, and what there is now."""
    if not report.sessions:
        console.print(
            "There are no sessions to learn from.\n"
            "`journeyman import` brings in those that your agents have recorded."
        )
        return
    if report.mined:
        gone_through = f"{shown.many(report.mined, 'session')}, new or due again"
        console.print(
            f"Went through {gone_through}, in {report.seconds:.1f} s; {report.sessions:,} in all."
        )
    else:
        stored = shown.many(report.sessions, "session")
        console.print(f"Nothing is new since the last time; {stored} in all.")
    console.print()
    _show_teachers(console, report)
    console.print()
    _show_patterns(console, report)


def _show_teachers(console: Console, report: LearnReport) -> None:
    console.print(
        Text(_counted(report.teaching, "session teaches", "sessions teach"), style="bold")
    )
    if not report.reasons:
        return
    # Loaded here: most who call this often have nothing new, and want the answer at once.
    from journeyman.templates.mining.gate import WHY_NOT  # noqa: PLC0415

    rest = report.sessions - report.teaching
    console.print(_counted(rest, "teaches nothing, because", "teach nothing, each because"))
    for reason, number in sorted(report.reasons.items(), key=lambda one: (-one[1], one[0])):
        console.print(Text(f"{number:7,d}  {WHY_NOT.get(reason, reason)}"))


def _show_patterns(console: Console, report: LearnReport) -> None:
    console.print(Text(_counted(report.patterns, "pattern", "patterns"), style="bold"))
    for kind, about in _ABOUT_KIND.items():
        if number := report.kinds.get(kind, 0):
            line = Text(f"{number:7,d}  {kind:10s} ")
            console.print(line.append(about, style="dim"))
    if report.quarantined:
        held = _counted(report.quarantined, "call or text was", "calls and texts were")
        console.print(f"{held} kept out: `journeyman templates quarantine`", style="yellow")
    if report.patterns:
        console.print('Next: `journeyman open "what the next session is to do" --explain`')


def _counted(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"
