"""The state of a job after a run."""

from typing import get_args

from msgspec.structs import replace
from tests.tables import table

from journeyman.jobs.lifecycle import apply_result, backoff_s
from journeyman.records.job import GOOD, Job, JobId, JobState, Run, RunId, RunStatus, Schedule

NOW = 1_741_000_000.0  # 2025-03-03 11:06:40 UTC
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0


def schedule(seconds: float) -> Schedule:
    return Schedule(text="", kind="every", timezone="UTC", at=NOW, seconds=seconds)


JOB = Job(
    id=JobId("j1"),
    name="my news",
    prompt="Tell.",
    schedule=schedule(MINUTE),
    next_run_at=NOW + MINUTE,
    remark="old",
)
RUN = Run(id=RunId("r1"), job=JOB.id, trigger="schedule", started_at=NOW - 5, due_at=NOW - 5)


def after(job: Job, status: RunStatus, *, now: float = NOW, by_hand: bool = False) -> Job:
    run = replace(RUN, status=status, trigger="hand" if by_hand else "schedule")
    return apply_result(job, run, now)


@table(
    ("failures", "seconds"),
    [
        *((0, 0.0), (1, 0.0), (2, 0.0), (3, 10 * MINUTE), (4, 20 * MINUTE), (5, 40 * MINUTE)),
        *((9, 640 * MINUTE), (10, 1280 * MINUTE), (11, DAY), (12, DAY), (100_000, DAY)),
    ],
)
def test_backoff_grows_with_each_failure(failures: int, seconds: float) -> None:
    assert backoff_s(failures) == seconds


def test_good_run_resets_failures_and_remark() -> None:
    assert after(replace(JOB, failures=1), "ok") == replace(JOB, failures=0, remark="")
    assert after(JOB, "silent") == replace(JOB, remark="")


@table(
    "status",
    [
        one
        for one in get_args(RunStatus)
        if one not in GOOD and one not in ("running", "interrupted")
    ],
)
def test_every_other_status_is_a_failure(status: RunStatus) -> None:
    assert after(JOB, status) == replace(JOB, failures=1)


def test_interrupted_run_does_not_count_as_a_failure() -> None:
    assert after(replace(JOB, failures=2), "interrupted") == replace(JOB, failures=2)


def test_repeated_failures_hold_the_job_with_a_remark() -> None:
    job = after(replace(JOB, failures=3), "failed")
    assert job.failures == 4
    assert job.next_run_at == NOW + 20 * MINUTE
    assert job.remark == (
        "4 failures in a row: held until 2025-03-03 11:26 UTC; "
        "journeyman jobs resume 'my news' clears it"
    )


def test_job_is_held_until_a_scheduled_time() -> None:
    job = replace(JOB, schedule=schedule(7 * MINUTE), next_run_at=NOW + 7 * MINUTE, failures=2)
    assert after(job, "failed").next_run_at == NOW + 14 * MINUTE
    assert after(job, "failed", now=NOW + 4 * MINUTE).next_run_at == NOW + 14 * MINUTE
    assert after(job, "failed", now=NOW + 4 * MINUTE + 0.5).next_run_at == NOW + 21 * MINUTE


def test_infrequent_job_is_not_held() -> None:
    job = replace(JOB, schedule=schedule(7 * DAY), next_run_at=NOW + 7 * DAY, failures=3)
    assert after(job, "failed") == replace(job, failures=4, remark="4 failures in a row")


def test_schedule_without_further_times_still_backs_off() -> None:
    once = Schedule(text="", kind="once", timezone="UTC", at=NOW + MINUTE)
    job = replace(JOB, schedule=once, failures=2)
    assert after(job, "failed").next_run_at == NOW + 10 * MINUTE


def test_good_run_ends_the_hold() -> None:
    held = after(replace(JOB, failures=9), "failed")
    assert held.next_run_at == NOW + 1280 * MINUTE
    recovered = after(held, "ok", now=NOW + 90, by_hand=True)
    assert recovered == replace(JOB, failures=0, remark="", next_run_at=NOW + 2 * MINUTE)


def test_overdue_run_stays_due() -> None:
    job = replace(JOB, failures=5, next_run_at=NOW - 30)
    assert after(job, "ok").next_run_at == NOW - 30


def test_failure_of_a_manual_run_does_not_count() -> None:
    job = replace(JOB, failures=2)
    assert after(job, "failed", by_hand=True) == job


@table("state", [one for one in get_args(JobState) if one != "scheduled"])
def test_unscheduled_job_keeps_its_state(state: JobState) -> None:
    job = replace(JOB, state=state, failures=4, next_run_at=None)
    assert after(job, "failed") == replace(job, failures=5)
    assert after(job, "ok") == replace(job, failures=0)
