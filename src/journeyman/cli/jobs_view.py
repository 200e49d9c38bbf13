"""Terminal and JSON output of jobs: a new job, the list, a job with its history, a run. Delivery
addresses are always shown without their secrets, in both kinds of output.
"""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.cli import formatting
from journeyman.cli.formatting import Column
from journeyman.jobs.time_zones import zone_or_utc
from journeyman.records.job import OWN_RUNNER, Job, JobId, Run, RunStatus
from journeyman.text.display import readable
from journeyman.text.durations import abbreviate_duration, describe_duration

if TYPE_CHECKING:
    from journeyman.jobs.jobs import JobCheck, JobReport, SchedulerStatus

_STYLES: dict[RunStatus, str] = {
    "running": "cyan",
    "ok": "green",
    "silent": "green",
    "delivery_failed": "yellow",
    "interrupted": "yellow",
    "missed": "yellow",
}
NO_JOBS = (
    "There are no jobs yet. Add one:\n"
    '  journeyman jobs add "every monday 09:00" "Summarise the week"'
)


def _delivery_places(job: Job) -> str:
    """Return where a job's answer is delivered; of an address, only the service is shown."""
    # Imported here because loading it takes longer than showing help.
    from journeyman.jobs.delivery import destination_label  # noqa: PLC0415

    return "\n".join(map(destination_label, job.deliver))


def job_json(job: Job) -> dict[str, Any]:
    return {**msgspec.to_builtins(job), "deliver": _delivery_places(job).splitlines()}


def report_json(report: "JobReport") -> dict[str, Any]:
    return {**msgspec.to_builtins(report), "job": job_json(report.job)}


def _status(run: Run) -> Text:
    return Text(run.status, style=_STYLES.get(run.status, "red"))


def show_added(console: Console, report: "JobReport", *, changed: bool) -> None:
    head = Text("Changed" if changed else "Added", style="green")
    console.print(head.append(f": {readable(report.job.name)}", style="bold"))
    fields = {
        "when": report.said,
        "agent": report.job.runner,
        "works in": report.job.workdir,
        "delivers": _delivery_places(report.job),
    }
    formatting.print_fields(console, fields | {"next": _upcoming(report)})


def _upcoming(report: "JobReport") -> str:
    """Return the next times with their UTC offset."""
    return "\n".join(_full_time(at, report.job) for at in report.upcoming)


def show_checked(console: Console, checked: "JobCheck") -> None:
    """Show what would prevent the job from running now, and other remarks."""
    blocked = (f"would be blocked now: {checked.blocked}",) if checked.blocked else ()
    for warning in (*blocked, *checked.remarks):
        shown = Text(readable(warning), style="yellow")
        formatting.print_fields(console, {"warning": shown}, wrap=True)


def scheduler_line(leading: "SchedulerStatus") -> str:
    if not leading.is_alive:
        return "No scheduler is running, so no job runs. To start one: journeyman jobs serve"
    from journeyman.jobs.scheduler import describe_holder  # noqa: PLC0415 - as above

    return readable(f"A scheduler is running: {describe_holder(leading.holder)}.")


def show_list(
    console: Console,
    jobs: Sequence[Job],
    last: Mapping[JobId, Run],
    leading: "SchedulerStatus",
    now: float,
) -> None:
    columns = (
        Column("name", lambda job: job.name, overflow="fold"),
        Column("next", _next_run, no_wrap=True),
        Column("schedule", lambda job: formatting.one_line(job.schedule.text, 32)),
        Column("agent", lambda job: job.runner, optional=True),
        Column("last run", lambda job: _last_run(last.get(job.id), now)),
    )
    if jobs:
        console.print(formatting.fit_table(jobs, columns, console.width))
    console.print()
    for job in jobs:
        if job.remark not in ("", "paused", "removed"):
            console.print(Text(readable(f"{job.name}: {job.remark}"), style="yellow"))
    style = "dim" if leading.is_alive else "yellow"
    console.print(Text(scheduler_line(leading), style=style), soft_wrap=True)


def _last_run(run: Run | None, now: float) -> Text:
    if run is None:
        return Text("never", style="dim")
    since = f"for {abbreviate_duration(now - run.started_at)}"
    when = since if run.ended_at is None else f"{abbreviate_duration(now - run.ended_at)} ago"
    return _status(run).append(f" {when}", style="default")


def show_run(console: Console, run: Run) -> None:
    took = "" if run.ended_at is None else abbreviate_duration(run.ended_at - run.started_at)
    model = readable(f"{run.model} ({run.provider})") if run.model else ""
    used = ", ".join(filter(None, (took, *_amounts(run.tokens, run.cost_usd), model)))
    console.print(_status(run).append(f"  {used}", style="dim"))
    if run.reason:
        console.print(Text(readable(run.reason)))
    if run.answer:
        console.print(Text(f"\n{readable(run.answer)}\n"))
    fields = {
        "remarks": "\n".join(run.remarks),
        "delivered": ", ".join(run.delivered),
        "failed": "\n".join(run.undelivered),
        "file": run.output,
    }
    formatting.print_fields(console, fields)


def _amounts(tokens: int | None, cost_usd: float | None) -> tuple[str, str]:
    """Return tokens and cost as text; empty if unknown or zero."""
    return f"{tokens:,} tokens" if tokens else "", _cost(cost_usd) if cost_usd else ""


def _cost(dollars: float | None) -> str:
    """Return an amount of money; small amounts keep four digits, so that none is rounded to 0."""
    if dollars is None:
        return formatting.UNKNOWN
    return f"${dollars:,.2f}" if dollars >= 0.1 else f"${dollars:.4f}"


def show_report(console: Console, report: "JobReport", now: float | None = None) -> None:
    job, runs, now = report.job, report.runs, time.time() if now is None else now
    head = Text(readable(job.name), style="bold")
    if job.state != "scheduled":
        head.append(f"  {job.state}", style="not bold yellow")
    console.print(head)
    remark = Text(readable("" if job.remark == job.state else job.remark), style="yellow")
    formatting.print_fields(
        console, _job_fields(report) | {"next": _upcoming(report), "remark": remark}
    )
    console.print()
    if not runs:
        console.print(Text(f"It has not run yet. To run it now: journeyman jobs run {job.name}"))
        return
    _show_runs(console, runs, job, now)
    if file := next((run.output for run in runs if run.output), ""):
        formatting.print_fields(console, {"newest": file})


def _job_fields(report: "JobReport") -> dict[str, str | Text]:
    job, text = report.job, report.job.schedule.text
    limits = (
        describe_duration(job.seconds) if job.seconds else "",
        *_amounts(job.tokens, job.cost_usd),
        f"{formatting.pluralize(job.turns, 'request')} to the model" if job.turns else "",
    )
    return {
        "id": job.id,
        "when": report.said or text,
        "schedule": text if report.said else "",
        "time zone": job.schedule.timezone,
        "prompt": job.prompt.strip(),
        "skills": ", ".join(job.skills),
        "script": job.script and f"{job.script}, {describe_duration(job.script_seconds)} limit",
        "agent": job.runner,
        "model": " at ".join(filter(None, (job.model, job.provider))) or "the default",
        **_permissions(job),
        "warm": job.warm,
        "works in": job.workdir,
        "delivers": _delivery_places(job),
        "limits": ", ".join(filter(None, limits)) or "none on time, tokens or cost",
        "repeat": "" if job.repeat is None else f"{job.runs:,} of {job.repeat:,} times",
        "added": _full_time(job.created_at, job),
        "failures": f"{job.failures:,} in a row" if job.failures else "",
    }


def _permissions(job: Job) -> dict[str, str]:
    risky = {"hold": "held for the confirmation service", "refuse": "refused"}[job.risky]
    if job.runner != OWN_RUNNER:
        return {"access": job.access, "risky calls": risky}
    tools = "the default tools" if job.tools is None else ", ".join(job.tools) or "none"
    return {"tools": tools, "risky calls": risky}


def _show_runs(console: Console, runs: Sequence[Run], job: Job, now: float) -> None:
    def took(run: Run) -> str:
        return abbreviate_duration((now if run.ended_at is None else run.ended_at) - run.started_at)

    unwrapped: dict[str, Any] = {"no_wrap": True}
    columns = (
        Column("started", lambda run: f"{_local(run.started_at, job):%Y-%m-%d %H:%M}", **unwrapped),
        Column("took", took, numeric=True),
        Column("status", _status, **unwrapped),
        Column(
            "tokens", lambda run: formatting.short_count(run.tokens), numeric=True, optional=True
        ),
        Column("cost", lambda run: _cost(run.cost_usd), numeric=True, optional=True),
        Column("result", lambda run: formatting.one_line(_result(run), 80)),
    )
    console.print(formatting.fit_table(runs, columns, console.width))


def _result(run: Run) -> str:
    text = run.answer or run.reason if run.is_good else run.reason or run.answer
    mark = "(manual)" if run.trigger == "hand" else ""
    if run.trigger == "late":
        mark = "(late)"
    return f"{mark} {text}".strip() or formatting.UNKNOWN


def _local(at: float, job: Job) -> datetime:
    """Return a time in the job's time zone."""
    return datetime.fromtimestamp(int(at), zone_or_utc(job.schedule.timezone))


def _full_time(at: float, job: Job) -> str:
    """Return a time with its weekday and UTC offset, so that a clock change is visible."""
    local = _local(at, job)
    clock = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    return f"{local:%a %Y-%m-%d} {clock} {local.isoformat()[19:]}"


def resumed_message(job: Job) -> str:
    return f"Resumed: {job.name}.\nNext: {_full_time(job.next_run_at or 0.0, job)}."


def _next_run(job: Job) -> Text | str:
    """Return the time of the next run, to the minute, with the short name of its zone."""
    if job.next_run_at is None:
        return Text(job.state, style="dim")
    local = _local(job.next_run_at, job)
    return f"{local:%a %Y-%m-%d %H:%M} {local.tzname()}"
