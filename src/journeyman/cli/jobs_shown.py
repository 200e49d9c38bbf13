"""How jobs look in the terminal: one that was added, the list, what a run came to. Places to
deliver to are shown without what is secret in them, to people and to programs alike.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.cli import jobs_times, shown
from journeyman.records.job import Job, JobId, Run, RunStatus

if TYPE_CHECKING:
    from journeyman.schedule.jobs import Checked, JobReport, Leading

STYLES: dict[RunStatus, str] = {
    "running": "cyan",
    "ok": "green",
    "silent": "green",
    "failed": "red",
    "blocked": "red",
    "delivery_failed": "yellow",
    "timed_out": "red",
    "over_budget": "red",
    "crashed": "red",
    "interrupted": "yellow",
}
NO_JOBS = (
    "There are no jobs yet. Add one:\n"
    '  journeyman jobs add "every monday 9am" "What should be done"'
)
NO_SCHEDULER = "No scheduler is at work, so nothing runs. Start one: journeyman jobs serve"
_WIDE = 100
_LABEL = 10
_LONGEST_NAME = 26


def places(job: Job) -> list[str]:
    """The places that a job's answer goes to, of addresses only the service."""
    # Loaded here, because it takes longer than showing help.
    from journeyman.schedule.delivery import shown_place  # noqa: PLC0415

    return [shown_place(place) for place in job.deliver]


def told(job: Job) -> dict[str, Any]:
    """A job for programs."""
    fields: dict[str, Any] = msgspec.to_builtins(job)
    return fields | {"deliver": places(job)}


def told_report(report: "JobReport") -> dict[str, Any]:
    """A report for programs."""
    fields: dict[str, Any] = msgspec.to_builtins(report)
    return fields | {"job": told(report.job)}


def field(name: str, value: str, style: str = "not dim") -> Text:
    """A line with a name and a value; more lines of the value stand below its first."""
    text = shown.plain(value).replace("\n", "\n" + " " * _LABEL)
    return Text(f"{name:<{_LABEL}}", style="dim").append(text, style=style)


def show_fields(console: Console, fields: Mapping[str, str]) -> None:
    """Those that have something to say."""
    for name, value in fields.items():
        if value:
            # Not broken into lines here: a path can be copied from the terminal in one piece.
            console.print(field(name, value), soft_wrap=True)


def show_added(console: Console, report: "JobReport", now: float, *, changed: bool) -> None:
    """A job that was just added: what was understood, and when it runs."""
    job = report.job
    head = Text("Changed" if changed else "Added", style="green")
    console.print(head.append(f": {shown.plain(job.name)}", style="bold"))
    show_fields(console, {"when": report.said, "works in": job.workdir})
    show_fields(console, {"delivers": "\n".join(places(job))})
    show_upcoming(console, job, report.upcoming, now)


def show_upcoming(console: Console, job: Job, times: Sequence[float], now: float) -> None:
    """The next times, with the offset from UTC; where that changes, it is said."""
    offset = None
    for number, at in enumerate(times):
        local = jobs_times.on_clock(at, job)
        line = field("" if number else "next", jobs_times.in_full(at, job))
        if number == 0:
            line.append(f"  {jobs_times.away(at, now)}", style="dim")
        elif local.utcoffset() != offset:
            line.append("  the clocks change before it", style="dim")
        offset = local.utcoffset()
        console.print(line)


def show_checked(console: Console, checked: "Checked") -> None:
    """What would become of the job if it ran now, where that is not simply good."""
    blocked = (f"would be blocked now: {checked.blocked}",) if checked.blocked else ()
    for warning in (*blocked, *checked.remarks):
        lines = textwrap.wrap(warning, max(console.width - _LABEL, 30))
        console.print(field("warning", "\n".join(lines), "yellow"))


def scheduler_line(leading: "Leading") -> str:
    """Whether a scheduler is at work, and where."""
    if not leading.is_alive:
        return NO_SCHEDULER
    return shown.plain(f"A scheduler is at work: {leading.shown}.")


def show_list(
    console: Console, jobs: Sequence[Job], last: Mapping[JobId, Run], leading: "Leading", now: float
) -> None:
    """Jobs in lines, and below them what is to be known about some."""
    if jobs:
        console.print(_jobs_table(jobs, last, now, wide=console.width >= _WIDE))
    notes = [*_notes(jobs)]
    for line in (Text(), *notes) if notes else ():
        console.print(line)
    console.print()
    style = "dim" if leading.is_alive else "yellow"
    console.print(Text(scheduler_line(leading), style=style), soft_wrap=True)


def _jobs_table(jobs: Sequence[Job], last: Mapping[JobId, Run], now: float, *, wide: bool) -> Table:
    made = shown.table("name", "next", "in", "schedule", "last run")
    made.columns[0].overflow = "fold"
    # Names are to be typed again: they are broken only where nothing else helps.
    made.columns[0].no_wrap = max(len(job.name) for job in jobs) <= _LONGEST_NAME
    for column in made.columns[1:3]:
        column.no_wrap = True
    for job in jobs:
        made.add_row(
            shown.cell(job.name),
            *_next(job, now, wide=wide),
            Text(shown.one_line(job.schedule.text, 60 if wide else 32)),
            last_run(last.get(job.id), now),
        )
    return made


def _next(job: Job, now: float, *, wide: bool) -> tuple[Text, Text]:
    """The next time, and how far away it is."""
    at = job.next_run_at
    if at is None:
        return Text(job.state, style="dim"), Text()
    away = Text(jobs_times.length(at - now)) if at > now else Text("due", style="yellow")
    return Text(jobs_times.in_brief(at, job, now, with_year=wide)), away


def last_run(run: Run | None, now: float) -> Text:
    """How the newest run went, and when."""
    if run is None:
        return Text("never", style="dim")
    if run.ended_at is None:
        when = f"for {jobs_times.length(now - run.started_at)}"
    else:
        when = jobs_times.away(run.ended_at, now)
    return Text(run.status, style=STYLES[run.status]).append(f" {when}", style="default")


def _notes(jobs: Sequence[Job]) -> Iterator[Text]:
    for job in jobs:
        remark = job.remark if job.remark not in ("paused", "removed") else ""
        if not remark and job.failures > 1 and job.state == "scheduled":
            remark = f"{job.failures} failures in a row"
        if remark:
            note = Text(f"{shown.plain(job.name)}: ", style="bold")
            yield note.append(shown.plain(remark), style="not bold yellow")


def show_run(console: Console, run: Run) -> None:
    """What a run came to: the status, why, the answer, and where everything is."""
    head = Text(run.status, style=STYLES[run.status])
    console.print(head.append(f"  {', '.join(used(run))}", style="dim"))
    if run.reason:
        console.print(Text(shown.plain(run.reason)))
    if run.answer:
        console.print(Text(f"\n{shown.plain(run.answer)}\n"))
    show_fields(
        console,
        {
            "remarks": "\n".join(run.remarks),
            "delivered": ", ".join(run.delivered),
            "failed": "\n".join(run.undelivered),
            "file": run.output,
        },
    )


def used(run: Run) -> Iterator[str]:
    """What a run took."""
    if run.ended_at is not None:
        yield jobs_times.length(run.ended_at - run.started_at)
    if run.tokens is not None:
        yield f"{run.tokens:,} tokens"
    if run.cost_usd:
        yield cost(run.cost_usd)
    if run.model:
        yield shown.plain(f"{run.model} ({run.provider})")


def cost(dollars: float | None) -> str:
    """An amount of money; one that is small is not rounded to nothing."""
    if dollars is None:
        return shown.UNKNOWN
    return f"${dollars:,.2f}" if dollars >= 0.1 else f"${dollars:.4f}"
