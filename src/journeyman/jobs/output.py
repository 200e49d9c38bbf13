"""The output file of a run."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from journeyman.jobs.lifecycle import is_valid_name
from journeyman.jobs.time_zones import zone_or_utc
from journeyman.records.errors import OutsideProblem
from journeyman.records.job import Job, Run
from journeyman.text.atomic_write import replace_file
from journeyman.text.display import readable, readable_line


def fenced(text: str) -> str:
    """Return a text in a code fence that no line of it can close."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}\n{text}\n{fence}"


def write_output(folder: Path, job: Job, run: Run, *, prompt: str, script: str) -> Path:
    """Write the file of a run atomically and return its path. Raise OutsideProblem on failure."""
    # A name is valid when a job is added; one that was stored otherwise must not lead elsewhere.
    job_folder = folder / (job.name if is_valid_name(job.name) else job.id)
    path = job_folder / f"{datetime.fromtimestamp(run.started_at, UTC):%Y%m%d-%H%M%S}-{run.id}.md"
    text = "\n".join(_lines(job, run, prompt, script))
    try:
        for parent in (folder, job_folder):
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, text.encode())
    except OSError as error:
        raise OutsideProblem(
            f"The output of the job {readable_line(job.name)!r} could not be written to "
            f"{job_folder}: {error.strerror or error}. Free some space, or let this user write "
            "there."
        ) from error
    return path


def _lines(job: Job, run: Run, prompt: str, script: str) -> Iterator[str]:
    yield f"# {readable_line(job.name)}\n"
    for label, value in _metadata(job, run):
        if value:
            yield f"- {label}: {readable_line(value)}"
    yield f"\n## Prompt\n\n{fenced(readable(prompt))}\n"
    if script:
        yield f"## Script\n\n{fenced(readable(script))}\n"
    if not run.is_good:
        yield f"## Error\n\n{readable(run.reason) or 'The reason is not known.'}\n"
    if run.is_good or run.answer:
        yield f"## Answer\n\n{readable(run.answer) or '(empty)'}\n"


def _metadata(job: Job, run: Run) -> Iterator[tuple[str, str]]:
    def time(at: float) -> str:
        zone = zone_or_utc(job.schedule.timezone)
        return datetime.fromtimestamp(at, zone).isoformat(sep=" ", timespec="seconds")

    yield "status", run.status
    yield "reason", run.reason
    yield "schedule", job.schedule.said or job.schedule.text
    yield "started by", run.trigger
    yield "due", "" if run.due_at is None else time(run.due_at)
    yield "due times missed", str(run.missed or "")
    yield "started", time(run.started_at)
    if run.ended_at is not None:
        yield "ended", time(run.ended_at)
        yield "seconds", f"{run.ended_at - run.started_at:.1f}"
    yield "model", run.model
    yield "provider", run.provider
    yield "session", run.session
    yield "tokens", "not known" if run.tokens is None else f"{run.tokens:,}"
    yield "cost", "not known" if run.cost_usd is None else f"{run.cost_usd:.4f} USD"
    yield from (("remark", remark) for remark in run.remarks)
    yield "job", job.id
    yield "run", run.id
