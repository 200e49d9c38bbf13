"""The file of one run, with everything there is to know of it. Names of jobs are made safe for
folders here, and texts safe to be read anywhere; who gets an answer is left to `delivery`.
"""

import os
import re
import secrets
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Final

from journeyman.records.errors import OutsideProblem
from journeyman.records.job import Job, Run
from journeyman.schedule.timing.zones import known_zone

_LONGEST_NAME: Final = 50
_LONGEST_ID: Final = 40
_UNSAFE: Final = re.compile(r"[^\w.-]+")
_FENCE: Final = re.compile(r"`{3,}")

# Control characters, those that turn the direction of writing, ends of lines that few programs
# know, halves of characters, and the tags with which a text can hide another.
_UNREADABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_PICTURES: Final = 0x2400
_DELETE: Final = "\x7f"


def readable(text: str) -> str:
    """A text that plays no tricks on who reads it: a sign stands for each character that cannot be
    seen and does something. Newlines and tabs stay.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNREADABLE.sub(lambda found: _sign(found[0]), lines)


def one_line(text: str) -> str:
    """The same on one line."""
    return " ".join(readable(text).split())


def _sign(character: str) -> str:
    if character < " ":
        return chr(_PICTURES + ord(character))
    return "\N{SYMBOL FOR DELETE}" if character == _DELETE else "\N{REPLACEMENT CHARACTER}"


def write_output(folder: Path, job: Job, run: Run, *, prompt: str, script: str) -> Path:
    """Write the file of a run, whole or not at all; where it is. Written again, it replaces the
    one before. Times in names are in UTC. Raises OutsideProblem when it cannot be written.
    """
    begun = datetime.fromtimestamp(run.started_at, UTC)
    within = folder / _folder_name(job)
    place = within / f"{begun:%Y%m%d-%H%M%S}-{_safe(run.id, _LONGEST_ID) or 'run'}.md"
    text = "\n".join(_lines(job, run, prompt, script))
    try:
        for one in (folder, within):
            one.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_whole(place, text.encode())
    except OSError as error:
        raise OutsideProblem(
            f"The output of the job {one_line(job.name)!r} could not be kept in {within}: "
            f"{error.strerror or error}. Make room there, or let this user write there."
        ) from error
    return place


def _folder_name(job: Job) -> str:
    safe = _safe(job.name, _LONGEST_NAME)
    # Where something had to be changed, two names could have become one.
    if safe and safe == job.name:
        return safe
    return f"{safe}-{_safe(job.id, 12)}".strip("-.") or "job"


def _safe(name: str, longest: int) -> str:
    """A name of letters, digits, dots and dashes, which is no way up and not hidden."""
    return _UNSAFE.sub("-", unicodedata.normalize("NFC", name)).strip("-.")[:longest].strip("-.")


def _write_whole(place: Path, content: bytes) -> None:
    aside = place.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        aside.replace(place)
    finally:
        aside.unlink(missing_ok=True)  # there only if something went wrong


def _lines(job: Job, run: Run, prompt: str, script: str) -> Iterator[str]:
    yield f"# {one_line(job.name)}"
    yield ""
    for label, value in _head(job, run):
        if value:
            yield f"- {label}: {one_line(value)}"
    yield ""
    yield from ("## Prompt", "", *_verbatim(prompt), "")
    if script:
        yield from ("## Script", "", *_verbatim(script), "")
    if not run.is_good:
        yield from ("## Error", "", readable(run.reason) or "Nothing is known of it.", "")
    if run.is_good or run.answer:
        yield from ("## Answer", "", readable(run.answer) or "(empty)", "")


def _head(job: Job, run: Run) -> Iterator[tuple[str, str]]:
    zone = known_zone(job.schedule.timezone)
    yield "status", run.status
    yield "reason", run.reason
    yield "schedule", job.schedule.said or job.schedule.text
    yield "started by", run.trigger
    yield "due", _time(run.due_at, zone)
    yield "earlier times missed", str(run.missed or "")
    yield "started", _time(run.started_at, zone)
    yield "ended", _time(run.ended_at, zone)
    if run.ended_at is not None:
        yield "seconds", f"{run.ended_at - run.started_at:.1f}"
    yield "model", run.model
    yield "provider", run.provider
    yield "session", run.session
    yield "tokens", "not known" if run.tokens is None else f"{run.tokens:,}"
    yield "cost", "not known" if run.cost_usd is None else f"{run.cost_usd:.4f} USD"
    yield "delivered", ", ".join(run.delivered)
    yield "not delivered", "; ".join(run.undelivered)
    for remark in run.remarks:
        yield "remark", remark
    yield "job", job.id
    yield "run", run.id


def _time(at: float | None, zone: tzinfo) -> str:
    if at is None:
        return ""
    return datetime.fromtimestamp(at, zone).isoformat(sep=" ", timespec="seconds")


def _verbatim(text: str) -> tuple[str, str, str]:
    """Shown as it is, so that no line of it passes for a heading of this file."""
    shown = readable(text)
    longest = max((len(found) for found in _FENCE.findall(shown)), default=2)
    fence = "`" * (longest + 1)
    return fence, shown, fence
