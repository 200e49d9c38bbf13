"""How one job looks in the terminal with all that is known of it: what it is, when it runs next,
and how its runs went.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.cli import jobs_shown, jobs_times, shown
from journeyman.records.job import Job, JobTotals, Run
from journeyman.schedule.timing.durations import say_duration

if TYPE_CHECKING:
    from journeyman.schedule.jobs import JobReport

_WIDE = 100
_CAME_OF_IT = "what came of it"


def show_report(console: Console, report: "JobReport", now: float) -> None:
    """A job, whole."""
    job = report.job
    head = Text(shown.plain(job.name), style="bold")
    if job.state != "scheduled":
        head.append(f"  {job.state}", style="not bold yellow")
    console.print(head)
    jobs_shown.show_fields(console, _facts(report))
    jobs_shown.show_upcoming(console, job, report.upcoming, now)
    if job.remark and job.remark != job.state:
        console.print(jobs_shown.field("remark", job.remark, "yellow"))
    console.print()
    _show_runs(console, report, now)


def _facts(report: "JobReport") -> dict[str, str]:
    job = report.job
    text = job.schedule.text
    return {
        "id": job.id,
        "when": report.said or text,
        "schedule": text if report.said else "",
        "clock": job.schedule.timezone,
        "prompt": job.prompt.strip(),
        "skills": ", ".join(job.skills),
        "script": job.script and f"{job.script}, {say_duration(job.script_seconds)} at most",
        "model": " at ".join(filter(None, (job.model, job.provider))) or "the usual one",
        "tools": "the usual ones" if job.tools is None else ", ".join(job.tools) or "none",
        "warm": job.warm,
        "works in": job.workdir,
        "delivers": "\n".join(jobs_shown.places(job)),
        "limits": ", ".join(_limits(job)),
        "repeat": "" if job.repeat is None else f"{job.runs:,} of {job.repeat:,} times",
        "added": jobs_times.in_full(job.created_at, job),
        "failures": f"{job.failures:,} in a row" if job.failures else "",
    }


def _limits(job: Job) -> list[str]:
    limits = [
        job.seconds and say_duration(job.seconds),
        job.tokens and f"{job.tokens:,} tokens",
        job.cost_usd and jobs_shown.cost(job.cost_usd),
        job.turns and shown.many(job.turns, "request") + " to the model",
    ]
    return [limit for limit in limits if limit] or ["none on time, tokens and cost"]


def _show_runs(console: Console, report: "JobReport", now: float) -> None:
    runs = report.runs
    if not runs:
        console.print(Text(f"It has not run yet. Now: journeyman jobs run {report.job.name}"))
        return
    console.print(_runs_table(runs, report.job, now, console.width))
    console.print(Text(f"\n{_totals(report.totals, len(runs))}"))
    if file := next((run.output for run in runs if run.output), ""):
        console.print(jobs_shown.field("newest", Path(file).name))
        # Its names begin with the time of the run, so one line is enough to find each file.
        console.print(jobs_shown.field("files in", str(Path(file).parent)), soft_wrap=True)


def _runs_table(runs: Sequence[Run], job: Job, now: float, width: int) -> Table:
    wide = width >= _WIDE
    numbers = ["took"]
    numbers += ["tokens"] if any(run.tokens is not None for run in runs) else []
    numbers += ["cost"] if any(run.cost_usd is not None for run in runs) else []
    names = ["started", "took", "status", *numbers[1:], _CAME_OF_IT]
    names += ["file"] if wide else []
    made = shown.table(*names, numbers=numbers)
    for column in made.columns:
        # The one that may wrap is the one that gives way; its cells are cut all the same.
        column.no_wrap = column.header != _CAME_OF_IT
    for run in runs:
        cells = _cells(run, job, now, wide=wide)
        made.add_row(*(cells[name] for name in names))
    return made


def _cells(run: Run, job: Job, now: float, *, wide: bool) -> dict[str, Text]:
    started = jobs_times.on_clock(run.started_at, job)
    took = (now if run.ended_at is None else run.ended_at) - run.started_at
    return {
        "started": Text(f"{started:%Y-%m-%d %H:%M}" if wide else f"{started:%m-%d %H:%M}"),
        "took": Text(jobs_times.length(took)),
        "status": Text(run.status, style=jobs_shown.STYLES[run.status]),
        "tokens": Text(shown.short_count(run.tokens)),
        "cost": Text(jobs_shown.cost(run.cost_usd)),
        _CAME_OF_IT: Text(shown.one_line(_came_of(run), 200), no_wrap=True, overflow="ellipsis"),
        "file": Text(shown.plain(Path(run.output).name) or shown.UNKNOWN, style="dim"),
    }


def _came_of(run: Run) -> str:
    said = run.answer or run.reason if run.is_good else run.reason or run.answer
    marks = ["by hand"] if run.trigger == "hand" else []
    if run.trigger == "late":
        marks = [f"late, for {run.missed:,} more" if run.missed else "late"]
    return " ".join((*(f"({mark})" for mark in marks), said)) or shown.UNKNOWN


def _totals(totals: JobTotals, listed: int) -> str:
    every = sum(totals.statuses.values())
    ended = ", ".join(f"{number:,} {status}" for status, number in totals.statuses.items())
    parts = [f"{shown.many(every, 'run')}: {ended}"]
    if totals.tokens is not None:
        parts.append(f"{totals.tokens:,} tokens")
    if totals.cost_usd is not None:
        parts.append(jobs_shown.cost(totals.cost_usd))
    more = f" ({listed:,} shown; more with --runs)" if listed < every else ""
    return "; ".join(parts) + more
