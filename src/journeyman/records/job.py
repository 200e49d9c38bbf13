"""Jobs: work that runs on a schedule, and what became of each run."""

from typing import Literal, NewType

from msgspec import Struct

JobId = NewType("JobId", str)
RunId = NewType("RunId", str)

JobState = Literal["scheduled", "paused", "done", "removed"]
"""`done`: it has run as often as it was to. `removed` ones are kept, and can be had back."""

RunStatus = Literal[
    "running",
    "ok",
    "silent",
    "failed",
    "blocked",
    "delivery_failed",
    "timed_out",
    "over_budget",
    "interrupted",
    "crashed",
]
"""`silent`: it went well and there was nothing to tell. `blocked`: the guard or the configuration
did not let it begin. `delivery_failed`: it went well, but a place did not get the answer.
`interrupted`: it was told to stop. `crashed`: the program that ran it ended in mid-run."""

GOOD: frozenset[RunStatus] = frozenset(("ok", "silent"))

Trigger = Literal["schedule", "late", "hand"]
"""`late`: its time had passed while nothing could run it. `hand`: someone said so."""


class Schedule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When something runs. `text` is what the user wrote, `said` what that was taken to mean.
    `once`: at `at`. `every`: each `seconds` after `at`. `cron`: by the expression `cron`, on the
    clocks of `timezone`.
    """

    text: str
    said: str = ""
    kind: Literal["once", "every", "cron"]
    timezone: str
    at: float = 0.0
    seconds: float = 0.0
    cron: str = ""


class Job(Struct, frozen=True, kw_only=True):
    """A job. Up to `created_at` it is what the user wrote; the rest is how it stands.

    `tools` None means the usual ones. `script` is a file's name in the home's scripts folder.
    `deliver` are the places that its answer goes to. `next_run_at` is None when there is none.
    `runs` counts those by the schedule, `failures` those in a row that did not go well, and
    `remark` says why it stands as it does.
    """

    id: JobId
    name: str
    prompt: str
    schedule: Schedule
    skills: tuple[str, ...] = ()
    script: str = ""
    script_seconds: float = 120.0
    model: str = ""
    provider: str = ""
    tools: tuple[str, ...] | None = None
    warm: str = "auto"
    workdir: str = ""
    deliver: tuple[str, ...] = ("terminal",)
    seconds: float | None = 1800.0
    tokens: int | None = None
    cost_usd: float | None = None
    turns: int | None = None
    repeat: int | None = None
    created_at: float = 0.0
    state: JobState = "scheduled"
    next_run_at: float | None = None
    runs: int = 0
    failures: int = 0
    remark: str = ""


class Run(Struct, frozen=True, kw_only=True):
    """One run of a job. `due_at` is the time on the schedule it stands for, None for one by hand;
    `missed` is how many earlier times it stands for too. `reason` says why it is not ok;
    `remarks` are what else there is to know. `delivered` and `undelivered` name the places.
    `answer` is what the agent said last, `output` the file that has everything. `holder` is the
    process that runs it.
    """

    id: RunId
    job: JobId
    trigger: Trigger
    started_at: float
    due_at: float | None = None
    missed: int = 0
    status: RunStatus = "running"
    ended_at: float | None = None
    reason: str = ""
    remarks: tuple[str, ...] = ()
    model: str = ""
    provider: str = ""
    session: str = ""
    answer: str = ""
    tokens: int | None = None
    cost_usd: float | None = None
    output: str = ""
    delivered: tuple[str, ...] = ()
    undelivered: tuple[str, ...] = ()
    holder: str = ""

    @property
    def is_good(self) -> bool:
        return self.status in GOOD


class JobTotals(Struct, frozen=True, kw_only=True):
    """All runs of a job: how many ended how, and what they used, as far as that is known."""

    statuses: dict[RunStatus, int]
    tokens: int | None = None
    cost_usd: float | None = None
