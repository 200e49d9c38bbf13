"""How jobs look in the terminal: one that was added, the list, one with its history, a run. Places
to deliver to are shown without what is secret in them, to people and to programs alike.
"""

import textwrap
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.cli import shown
from journeyman.cli.shown import Column
from journeyman.jobs.clocks import describe_duration, zone_or_utc
from journeyman.records.job import Job, JobId, JobTotals, Run, RunStatus

if TYPE_CHECKING:
    from journeyman.jobs.jobs import Checked, JobReport, Leading

_STYLES: dict[RunStatus, str] = {
    "running": "cyan",
    "ok": "green",
    "silent": "green",
    "delivery_failed": "yellow",
    "interrupted": "yellow",
}
NO_JOBS = (
    "There are no jobs yet. Add one:\n"
    '  journeyman jobs add "every monday 09:00" "What should be done"'
)
_WIDE = 100
_LONGEST_NAME = 26


def _places(job: Job) -> str:
    """The places that a job's answer goes to, of addresses only the service."""
    # Loaded here, because it takes longer than showing help.
    from journeyman.jobs.delivery import shown_place  # noqa: PLC0415

    return "\n".join(map(shown_place, job.deliver))


def told(job: Job) -> dict[str, Any]:
    return {**msgspec.to_builtins(job), "deliver": _places(job).splitlines()}


def told_report(report: "JobReport") -> dict[str, Any]:
    return {**msgspec.to_builtins(report), "job": told(report.job)}


def _status(run: Run) -> Text:
    return Text(run.status, style=_STYLES.get(run.status, "red"))


def show_added(console: Console, report: "JobReport", now: float, *, changed: bool) -> None:
    head = Text("Changed" if changed else "Added", style="green")
    console.print(head.append(f": {shown.plain(report.job.name)}", style="bold"))
    facts = {"when": report.said, "works in": report.job.workdir, "delivers": _places(report.job)}
    shown.facts(console, facts | {"next": _upcoming(report, now)})


def _upcoming(report: "JobReport", now: float) -> str:
    """The next times, with the offset from UTC; where that changes, it is said."""
    offsets = [_on_clock(at, report.job).utcoffset() for at in report.upcoming]
    changes = ["the clocks change before it" if a != b else "" for a, b in pairwise(offsets)]
    notes = [*(_away(at, now) for at in report.upcoming[:1]), *changes]
    lines = zip(report.upcoming, notes, strict=True)
    return "\n".join(f"{_in_full(at, report.job)}  {note}".rstrip() for at, note in lines)


def show_checked(console: Console, checked: "Checked") -> None:
    """What would become of the job if it ran now, where that is not simply good."""
    blocked = (f"would be blocked now: {checked.blocked}",) if checked.blocked else ()
    for warning in (*blocked, *checked.remarks):
        lines = textwrap.wrap(shown.plain(warning), max(console.width - 10, 30))
        shown.facts(console, {"warning": Text("\n".join(lines), style="yellow")})


def scheduler_line(leading: "Leading") -> str:
    if not leading.is_alive:
        return "No scheduler is at work, so nothing runs. Start one: journeyman jobs serve"
    return shown.plain(f"A scheduler is at work: {leading.shown}.")


def show_list(
    console: Console, jobs: Sequence[Job], last: Mapping[JobId, Run], leading: "Leading", now: float
) -> None:
    wide = console.width >= _WIDE
    # Names are to be typed again: they are broken only where nothing else helps.
    whole = max((len(job.name) for job in jobs), default=0) <= _LONGEST_NAME

    def far(job: Job) -> Text | str:
        at = job.next_run_at
        return "" if at is None else length(at - now) if at > now else Text("due", style="yellow")

    columns = (
        Column("name", lambda job: job.name, overflow="fold", no_wrap=whole),
        Column("next", lambda job: _in_brief(job, with_year=wide), no_wrap=True),
        Column("in", far, no_wrap=True),
        Column("schedule", lambda job: shown.one_line(job.schedule.text, 60 if wide else 32)),
        Column("last run", lambda job: _last_run(last.get(job.id), now)),
    )
    if jobs:
        console.print(shown.fitting_table(jobs, columns, console.width))
    notes = [(job.name, _note(job)) for job in jobs if _note(job)]
    lines = [Text.assemble((f"{name}: ", "bold"), (note, "yellow")) for name, note in notes]
    console.print(*([Text(), *lines] if lines else []), Text(), sep="\n")
    style = "dim" if leading.is_alive else "yellow"
    console.print(Text(scheduler_line(leading), style=style), soft_wrap=True)


def _last_run(run: Run | None, now: float) -> Text:
    if run is None:
        return Text("never", style="dim")
    since = f"for {length(now - run.started_at)}"
    when = since if run.ended_at is None else _away(run.ended_at, now)
    return _status(run).append(f" {when}", style="default")


def _note(job: Job) -> str:
    if not job.remark and job.failures > 1 and job.state == "scheduled":
        return f"{job.failures} failures in a row"
    return "" if job.remark in ("paused", "removed") else shown.plain(job.remark)


def show_run(console: Console, run: Run) -> None:
    took = "" if run.ended_at is None else length(run.ended_at - run.started_at)
    model = shown.plain(f"{run.model} ({run.provider})") if run.model else ""
    used = ", ".join(filter(None, (took, *_amounts(run.tokens, run.cost_usd), model)))
    console.print(_status(run).append(f"  {used}", style="dim"))
    if run.reason:
        console.print(Text(shown.plain(run.reason)))
    if run.answer:
        console.print(Text(f"\n{shown.plain(run.answer)}\n"))
    known = {
        "remarks": "\n".join(run.remarks),
        "delivered": ", ".join(run.delivered),
        "failed": "\n".join(run.undelivered),
        "file": run.output,
    }
    shown.facts(console, known)


def _amounts(tokens: int | None, cost_usd: float | None) -> tuple[str, str]:
    """Tokens and dollars in words, empty where they are not known or nothing."""
    return f"{tokens:,} tokens" if tokens else "", _cost(cost_usd) if cost_usd else ""


def _cost(dollars: float | None) -> str:
    """An amount of money; one that is small is not rounded to nothing."""
    if dollars is None:
        return shown.UNKNOWN
    return f"${dollars:,.2f}" if dollars >= 0.1 else f"${dollars:.4f}"


def show_report(console: Console, report: "JobReport", now: float | None = None) -> None:
    job, runs, now = report.job, report.runs, time.time() if now is None else now
    head = Text(shown.plain(job.name), style="bold")
    if job.state != "scheduled":
        head.append(f"  {job.state}", style="not bold yellow")
    console.print(head)
    remark = Text(shown.plain("" if job.remark == job.state else job.remark), style="yellow")
    shown.facts(console, _facts(report) | {"next": _upcoming(report, now), "remark": remark})
    console.print()
    if not runs:
        console.print(Text(f"It has not run yet. Now: journeyman jobs run {job.name}"))
        return
    _show_runs(console, runs, job, now)
    console.print(Text(f"\n{_totals(report.totals, len(runs))}"))
    if file := next((run.output for run in runs if run.output), ""):
        # Its names begin with the time of the run, so one line is enough to find each file.
        facts = {"newest": Path(file).name, "files in": str(Path(file).parent)}
        shown.facts(console, facts)


def _facts(report: "JobReport") -> dict[str, str | Text]:
    job, text = report.job, report.job.schedule.text
    limits = (
        describe_duration(job.seconds) if job.seconds else "",
        *_amounts(job.tokens, job.cost_usd),
        f"{shown.many(job.turns, 'request')} to the model" if job.turns else "",
    )
    return {
        "id": job.id,
        "when": report.said or text,
        "schedule": text if report.said else "",
        "clock": job.schedule.timezone,
        "prompt": job.prompt.strip(),
        "skills": ", ".join(job.skills),
        "script": job.script and f"{job.script}, {describe_duration(job.script_seconds)} at most",
        "model": " at ".join(filter(None, (job.model, job.provider))) or "the usual one",
        "tools": "the usual ones" if job.tools is None else ", ".join(job.tools) or "none",
        "warm": job.warm,
        "works in": job.workdir,
        "delivers": _places(job),
        "limits": ", ".join(filter(None, limits)) or "none on time, tokens and cost",
        "repeat": "" if job.repeat is None else f"{job.runs:,} of {job.repeat:,} times",
        "added": _in_full(job.created_at, job),
        "failures": f"{job.failures:,} in a row" if job.failures else "",
    }


def _show_runs(console: Console, runs: Sequence[Run], job: Job, now: float) -> None:
    day = "%Y-%m-%d %H:%M" if console.width >= _WIDE else "%m-%d %H:%M"

    def took(run: Run) -> str:
        return length((now if run.ended_at is None else run.ended_at) - run.started_at)

    def came(run: Run) -> Text:
        # The column that may wrap is the one that gives way; its cells are cut all the same.
        return Text(shown.one_line(_came_of(run), 200), no_wrap=True, overflow="ellipsis")

    whole: dict[str, Any] = {"no_wrap": True}
    columns = (
        Column("started", lambda run: format(_on_clock(run.started_at, job), day), **whole),
        Column("took", took, number=True),
        Column("status", _status, **whole),
        Column("tokens", lambda run: shown.short_count(run.tokens), number=True, optional=True),
        Column("cost", lambda run: _cost(run.cost_usd), number=True, optional=True),
        Column("what came of it", came),
        Column("file", lambda run: Path(run.output).name or None, needs=_WIDE, **whole),
    )
    console.print(shown.fitting_table(runs, columns, console.width))


def _came_of(run: Run) -> str:
    said = run.answer or run.reason if run.is_good else run.reason or run.answer
    mark = "(by hand)" if run.trigger == "hand" else ""
    if run.trigger == "late":
        mark = f"(late, for {run.missed:,} more)" if run.missed else "(late)"
    return f"{mark} {said}".strip() or shown.UNKNOWN


def _totals(totals: JobTotals, listed: int) -> str:
    every = sum(totals.statuses.values())
    ended = ", ".join(f"{number:,} {status}" for status, number in totals.statuses.items())
    amounts = _amounts(totals.tokens, totals.cost_usd)
    said = "; ".join(filter(None, (f"{shown.many(every, 'run')}: {ended}", *amounts)))
    return f"{said} ({listed:,} shown; more with --runs)" if listed < every else said


def _on_clock(at: float, job: Job) -> datetime:
    """An instant as the clocks of the job's zone show it."""
    return datetime.fromtimestamp(int(at), zone_or_utc(job.schedule.timezone))


def _in_full(at: float, job: Job) -> str:
    """With the day of the week and the offset from UTC, so that a clock change can be seen."""
    local = _on_clock(at, job)
    clock = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    return f"{local:%a %Y-%m-%d} {clock} {local.isoformat()[19:]}"


def when(at: float, job: Job) -> str:
    return f"{_in_full(at, job)}, {_away(at, time.time())}"


def resumed(job: Job) -> str:
    return f"Resumed: {job.name}.\nNext: {when(job.next_run_at or 0.0, job)}."


def _in_brief(job: Job, *, with_year: bool) -> Text | str:
    """To the minute, with the zone's short name."""
    if job.next_run_at is None:
        return Text(job.state, style="dim")
    local = _on_clock(job.next_run_at, job)
    return f"{local:{'%a %Y-%m-%d' if with_year else '%a %m-%d'} %H:%M} {local.tzname()}"


def length(seconds: float) -> str:
    """A length of time in a few characters: 0.4 s, 42 s, 1.5 min, 26 h, 12 d."""
    seconds = max(0.0, seconds)
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"
    if seconds < 3_600:
        return f"{seconds / 60:.2g} min"
    hours = seconds / 3_600
    return f"{hours:.2g} h" if hours < 48 else f"{hours / 24:,.0f} d"


def _away(at: float, now: float) -> str:
    return f"in {length(at - now)}" if at > now else f"{length(now - at)} ago"
