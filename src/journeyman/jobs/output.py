"""The file of one run, and texts made safe to be read anywhere."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from journeyman.atomic_write import replace_file
from journeyman.jobs.clocks import zone_or_utc
from journeyman.records.errors import OutsideProblem
from journeyman.records.job import Job, Run

_LONGEST_NAME: Final = 50

# Control characters, those that turn the direction of writing, ends of lines that few programs
# know, halves of characters, and the tags with which a text can hide another.
_UNREADABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_SIGNS: Final = {chr(code): chr(0x2400 + code) for code in range(32)} | {"\x7f": "\u2421"}


def readable(text: str) -> str:
    """A text with signs for characters that do something unseen. Newlines and tabs stay."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNREADABLE.sub(lambda one: _SIGNS.get(one[0], "\N{REPLACEMENT CHARACTER}"), lines)


def one_line(text: str) -> str:
    """The same on one line."""
    return " ".join(readable(text).split())


def fenced(text: str) -> str:
    """A text in a fence that no line of it can close."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}\n{text}\n{fence}"


def write_output(folder: Path, job: Job, run: Run, *, prompt: str, script: str) -> Path:
    """Write the file of a run, whole or not at all, and return its path. Raises OutsideProblem."""
    # Of letters, digits, dots and dashes, no way up and not hidden. Where something had to be
    # changed, two names could have become one.
    name = re.sub(r"[^\w.-]+", "-", job.name).strip("-.")[:_LONGEST_NAME].strip("-.")
    within = folder / (name if name and name == job.name else f"{name}-{job.id}".strip("-."))
    place = within / f"{datetime.fromtimestamp(run.started_at, UTC):%Y%m%d-%H%M%S}-{run.id}.md"
    text = "\n".join(_lines(job, run, prompt, script))
    try:
        for one in (folder, within):
            one.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(place, text.encode())
    except OSError as error:
        raise OutsideProblem(
            f"The output of the job {one_line(job.name)!r} could not be kept in {within}: "
            f"{error.strerror or error}. Make room there, or let this user write there."
        ) from error
    return place


def _lines(job: Job, run: Run, prompt: str, script: str) -> Iterator[str]:
    yield f"# {one_line(job.name)}\n"
    for label, value in _head(job, run):
        if value:
            yield f"- {label}: {one_line(value)}"
    yield f"\n## Prompt\n\n{fenced(readable(prompt))}\n"
    if script:
        yield f"## Script\n\n{fenced(readable(script))}\n"
    if not run.is_good:
        yield f"## Error\n\n{readable(run.reason) or 'Nothing is known of it.'}\n"
    if run.is_good or run.answer:
        yield f"## Answer\n\n{readable(run.answer) or '(empty)'}\n"


def _head(job: Job, run: Run) -> Iterator[tuple[str, str]]:
    def time(at: float) -> str:
        zone = zone_or_utc(job.schedule.timezone)
        return datetime.fromtimestamp(at, zone).isoformat(sep=" ", timespec="seconds")

    yield "status", run.status
    yield "reason", run.reason
    yield "schedule", job.schedule.said or job.schedule.text
    yield "started by", run.trigger
    yield "due", "" if run.due_at is None else time(run.due_at)
    yield "earlier times missed", str(run.missed or "")
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
