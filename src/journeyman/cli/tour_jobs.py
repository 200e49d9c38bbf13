"""The part of the tour in which an agent is put on a schedule: real jobs in a home of their own,
run by hand, and what is delivered of each. No model is asked.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.cli import shown
from journeyman.journeyman import Journeyman
from journeyman.records.errors import MissingPart

ZONE = "Europe/Berlin"
SCRIPTS = {
    "broken.sh": "echo 'df: no such disk' >&2; exit 3",
    "quiet.sh": "echo '{\"wakeAgent\": false}'",
}


def show_jobs(console: Console, folder: Path) -> None:
    """What happens, line by line."""
    lines = Table.grid(padding=(0, 2))
    try:
        for who, what, is_good in jobs(folder):
            lines.add_row(Text(who, style="bold"), Text(what, style="" if is_good else "red"))
    except MissingPart as missing:
        console.print(Text(str(missing)))
    console.print(lines)


def told_jobs(folder: Path) -> list[dict[str, str]]:
    """The same as data."""
    try:
        return [{"who": who, "what": what} for who, what, _ in jobs(folder)]
    except MissingPart as missing:
        return [{"missing": str(missing)}]


def jobs(folder: Path) -> Iterator[tuple[str, str, bool]]:
    """Who does what, what comes of it, and whether it went well."""
    home, workdir = folder / "jobs", folder / "jobs_workdir"
    for made in (home / "scripts", workdir):
        made.mkdir(parents=True, mode=0o700)
    for name, text in SCRIPTS.items():
        (home / "scripts" / name).write_text(f"{text}\n")
        (home / "scripts" / name).chmod(0o600)
    usual = {"HOME": str(folder)}
    with Journeyman(home=home, environ=usual) as journeyman:
        added = journeyman.jobs.add(
            "every monday 9am", "Which disk is nearly full?", timezone=ZONE, workdir=workdir
        )
        times = (datetime.fromtimestamp(at, ZoneInfo(ZONE)) for at in added.upcoming[:3])
        following = ", ".join(f"{at:%d %b %H:%M}" for at in times)
        yield "you", f"every monday 9am: {added.said}; next {following}", True
        yield from _ran(journeyman, added.job.name, "on the model that runs here")
    with Journeyman(
        home=home, environ=usual | {"JOURNEYMAN_JOBS_MIN_CONTEXT": "1000"}
    ) as journeyman:
        for script, title in (("broken.sh", "its script fails"), ("quiet.sh", "nothing is new")):
            name = Path(script).stem
            journeyman.jobs.add(
                "every 30m", "Look at the disks.", name=name, script=script, workdir=workdir
            )
            yield from _ran(journeyman, name, title)


def _ran(journeyman: Journeyman, name: str, title: str) -> Iterator[tuple[str, str, bool]]:
    delivered: list[str] = []
    run = journeyman.jobs.run(name, terminal=delivered.append)
    told = "you are told" if delivered else "nobody is bothered"
    reason = f" ({shown.one_line(run.reason.split('. ')[0], 150)})" if run.reason else ""
    yield "job", f"{title}: {run.status}{reason}; {told}", run.is_good
