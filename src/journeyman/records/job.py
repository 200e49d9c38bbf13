"""Jobs, which run on a schedule, and their runs."""

from typing import Literal, NewType

from msgspec import Struct

JobId = NewType("JobId", str)
RunId = NewType("RunId", str)

OWN_RUNNER = "journeyman"
"""The small loop among the runners of jobs; the others are named after their hosts."""

JobState = Literal["scheduled", "paused", "done", "removed"]
"""`done`: all its runs have been made. `removed`: kept, and can be restored."""

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
    "missed",
]
"""`silent`: it succeeded and had nothing to report. `blocked`: the guard or the configuration did
not let it start. `delivery_failed`: it succeeded, but the answer did not reach every destination.
`interrupted`: it was asked to stop. `crashed`: the program that ran it ended during the run.
`missed`: not a run, but the record of due times that could not have one."""

GOOD: frozenset[RunStatus] = frozenset(("ok", "silent"))

Trigger = Literal["schedule", "late", "hand"]
"""`late`: the scheduled time passed while nothing could run it. `hand`: started manually."""


class Schedule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When a job runs. `text` is what the user wrote, `said` how it was understood. `once`: at
    `at`. `every`: each `seconds` after `at`. `cron`: by the expression `cron`, in the time zone
    `timezone`.
    """

    text: str
    said: str = ""
    kind: Literal["once", "every", "cron"]
    timezone: str
    at: float = 0.0
    seconds: float = 0.0
    cron: str = ""


class Job(Struct, frozen=True, kw_only=True):
    """A job. The fields up to `created_at` are the user's definition; the rest is its state.

    `runner` does the work: a host by its name, or the small loop. `provider` and `tools` are for
    the small loop, `access` is for hosts; `tools` None means the default tools. `risky` says what
    becomes of calls that need a person: they wait for the confirmation service, or are refused.
    `script` is the name of a file in the home's scripts folder. `deliver` lists the destinations of
    its answer. `next_run_at` is None if no run is planned; `held_since` is the due time from which
    on it is held after failures. `runs` counts the scheduled runs, `failures` the latest
    consecutive runs that did not succeed. `remark` is the reason for the current state.
    """

    id: JobId
    name: str
    prompt: str
    schedule: Schedule
    skills: tuple[str, ...] = ()
    script: str = ""
    script_seconds: float = 120.0
    runner: str = OWN_RUNNER
    model: str = ""
    provider: str = ""
    tools: tuple[str, ...] | None = None
    warm: str = "auto"
    access: Literal["read", "edit", "all"] = "edit"
    risky: Literal["hold", "refuse"] = "refuse"
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
    held_since: float | None = None
    runs: int = 0
    failures: int = 0
    remark: str = ""


class Run(Struct, frozen=True, kw_only=True):
    """One run of a job. `due_at` is the scheduled time that it serves, None for a manual run. A
    record that is `missed` starts at the first of its due times, and `missed` is their number.
    `reason` says why it is not ok; `remarks` holds further notes. `delivered` and `undelivered`
    name destinations. `answer` is the agent's last message, `output` the file with the complete
    output. `holder` is the process that runs it.
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
