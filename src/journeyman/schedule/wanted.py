"""A job as a user wants it: what can be given, what is checked, and what stays when it is changed.
Pure but for a look whether its folder is there; keeping the job is left to `jobs`.
"""

import math
import re
from collections.abc import Iterable, Set
from pathlib import Path
from typing import TypedDict, cast

import msgspec

from journeyman.records.errors import WrongInput
from journeyman.records.job import Job

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
_LIKE_AN_ID = re.compile(r"[0-9a-f]{8}")
_NAME_WORDS = 4


class Wanted(TypedDict, total=False):
    """What a job can be given besides its schedule and its prompt; see `records.job.Job`."""

    skills: Iterable[str]
    script: str
    script_seconds: float
    model: str
    provider: str
    tools: Iterable[str] | None
    warm: str
    workdir: Path | str
    deliver: Iterable[str]
    seconds: float | None
    tokens: int | None
    cost_usd: float | None
    turns: int | None
    repeat: int | None


def free_name(prompt: str, taken: Set[str]) -> str:
    """A name from the first words of a prompt that no job has."""
    words = re.findall(r"[a-z0-9]+", prompt.lower())[:_NAME_WORDS]
    name = "-".join(words)[:40].strip("-") or "job"
    if _LIKE_AN_ID.fullmatch(name):
        name = f"job-{name}"
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return name if name not in taken else next(one for one in numbered if one not in taken)


def checked_name(name: str) -> str:
    """A name that the user gives. Raises WrongInput."""
    if not _NAME.fullmatch(name) or _LIKE_AN_ID.fullmatch(name):
        raise WrongInput(
            f"A job cannot be called {name!r}. Use letters, digits, dots and dashes, 60 at most, "
            "and not just eight digits from 0 to f, which would look like an id."
        )
    return name


def made(wanted: Wanted, **given: object) -> Job:
    """A job of what the user wants. Raises WrongInput."""
    fields: dict[str, object] = {**wanted, **given}
    for name in ("skills", "deliver", "tools"):
        value = fields.get(name)
        if isinstance(value, Iterable):
            fields[name] = tuple(dict.fromkeys((value,) if isinstance(value, str) else value))
    workdir = Path(wanted["workdir"]).expanduser().absolute()
    if not workdir.is_dir():
        raise WrongInput(f"The job is to work in {workdir}, which is not a folder. Make it first.")
    try:
        job = msgspec.convert(fields | {"workdir": str(workdir)}, Job)
    except msgspec.ValidationError as error:
        raise WrongInput(f"The job cannot be kept as it is: {error}.") from error
    if not job.deliver:
        raise WrongInput("The job delivers nowhere, so no failure would be heard of. Name a place.")
    for name in ("seconds", "script_seconds", "tokens", "cost_usd", "turns", "repeat"):
        limit = getattr(job, name)
        if limit is not None and not 0 < limit < math.inf:
            raise WrongInput(f"The job's {name} is {limit:g}. Give a number above 0, or none.")
    return job


def authored(job: Job) -> Wanted:
    """What the user wrote of a job, but for its schedule and its prompt."""
    fields = msgspec.structs.asdict(job)
    return cast("Wanted", {name: fields[name] for name in Wanted.__annotations__})


def replaced(old: Job, new: Job) -> Job:
    """A job as it is written now, that stays paused if it was."""
    kept = msgspec.structs.replace(new, id=old.id, created_at=old.created_at)
    if old.state != "paused":
        return kept
    return msgspec.structs.replace(kept, state="paused", next_run_at=None, remark=old.remark)
