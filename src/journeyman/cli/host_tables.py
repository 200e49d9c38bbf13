"""What `journeyman hosts` prints."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from journeyman.cli import formatting
from journeyman.cli.rate_tables import change, change_interval, interval, percent
from journeyman.hosts.installation.programs import SERVICE
from journeyman.hosts.installation.status import HostStatus
from journeyman.text.display import readable

if TYPE_CHECKING:
    from journeyman.hosts.opening_parts import Explanation
    from journeyman.hosts.report import HostReport

_STATES = {
    "installed": "green",
    "not active": "yellow",
    "outdated": "yellow",
    "unreadable": "red",
    "not installed": "dim",
}


_NOT_RANDOM = (
    "Sessions were not assigned at random: other things may explain the difference. "
    "For a fair comparison: journeyman config set hosts.holdout 0.2"
)


def show_hosts(console: Console, listed: Sequence[HostStatus]) -> None:
    """Show every host; what is wrong is said below the table."""
    table = formatting.table("name", "program", "state", "parts", "file")
    for one in listed:
        program = one.version or "found" if one.program else formatting.UNKNOWN
        if one.name == SERVICE:
            program = _process(one)
        state = Text(one.state, _STATES[one.state])
        file = formatting.Name(one.file.replace(f"{Path.home()}/", "~/", 1))
        table.add_row(one.name, program, state, ", ".join(one.parts), file)
    console.print(table)
    for one in listed:
        if one.problem:
            console.print(Text(f"\n{one.name}: {readable(one.problem)}"), soft_wrap=True)
        if one.advice:
            console.print(Text(f"→ {one.advice}", "cyan"), soft_wrap=True)


def _process(service: HostStatus) -> str:
    """Say whether `journeyman serve` runs."""
    if service.process is None and not service.problem:
        return "journeyman serve: not running"
    if not service.answers:
        return "journeyman serve: does not answer"
    return f"journeyman serve: process {service.process}"


def show_report(console: Console, reports: "Sequence[HostReport]") -> None:
    """Show what Journeyman did in each host."""
    if not reports:
        console.print("No session of an agent is stored yet. Set one up: journeyman hosts install")
        return
    for one in reports:
        formatting.print_heading(console, one.host)
        lines = {
            "sessions": f"{one.sessions:,}, {one.warm:,} of them warm",
            "errors per call": _error_rates(one),
            "difference": f"{change(one.difference)} points {change_interval(one.difference)}",
            "tokens added": f"{one.tokens_added:,}",
            "time to answer": _time_to_answer(one),
            "held calls": f"{one.gate.approved:,} approved, {one.gate.blocked:,} blocked, "
            f"{one.gate.prompted:,} asked about by the host",
            "failed hooks": f"{one.failures:,}",
        }
        if one.difference.estimate is None:
            lines["difference"] = readable(one.difference.note)
        else:
            lines["difference"] += f": {one.verdict}"
        if one.tokens_per_warm_session:
            lines["tokens added"] += f", {one.tokens_per_warm_session:,.0f} per warm session"
        if one.last_failure:
            lines["failed hooks"] += f"; the last: {readable(one.last_failure)}"
        table = formatting.table("", "")
        for title, line in lines.items():
            table.add_row(Text(title, "dim"), line)
        table.show_header = False
        console.print(table)
        if one.warm and not one.is_random:
            console.print(_NOT_RANDOM, style="dim")


def _error_rates(report: "HostReport") -> str:
    side = "held out" if report.is_random else "cold"
    rates = (("warm", report.warm_rate), (side, report.cold_rate))
    return ", ".join(
        f"{name} {percent(rate.estimate)} ({interval(rate)}) of {rate.total:,}"
        if rate.total
        else f"{name} {formatting.UNKNOWN}"
        for name, rate in rates
    )


def _time_to_answer(report: "HostReport") -> str:
    if report.median_ms is None:
        return formatting.UNKNOWN
    return f"median {report.median_ms:,.0f} ms, at most {report.slowest_ms:,.0f} ms"


def show_explanation(console: Console, explained: "Sequence[Explanation]") -> None:
    """Print why sessions started as they did, and what they were given."""
    for one in explained:
        console.print(Text(f"{one.host}  {readable(one.session)}", "bold"))
        console.print(Text(readable(one.explanation)))
        for text in one.texts:
            console.print(Text(f"\n{readable(text)}", "dim"), soft_wrap=True)
