"""The scheduler on a fake clock: when and how often it starts jobs, and how it handles schedulers,
runs and databases that disappear.
"""

import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from journeyman.jobs.scheduler import GRACE_S, LEASE_S, LOST, Scheduler, in_thread
from journeyman.records.job import Job, JobId, Run, RunStatus, Schedule
from journeyman.store.store import Store

NOW = 1_800_000_000.0
HOUR = 3600.0
HOURLY = Schedule(text="every 1h", kind="every", timezone="UTC", at=NOW, seconds=HOUR)


class Office:
    """A store with jobs, a clock set by the test, and a runner that only records its calls."""

    def __init__(self, path: Path) -> None:
        self.store = Store(f"sqlite:///{path}", busy_timeout_s=0.05)
        self.now = NOW
        self.elapsed = 0.0
        self.is_own: list[Callable[[], bool]] = []
        self.outcome: RunStatus = "ok"
        self.is_endless = False
        self.begun: list[tuple[str, float, str]] = []
        self.announced: list[tuple[str, RunStatus, str]] = []
        self.said: list[str] = []
        self.queued: list[Callable[[], None]] = []
        self.cancelled: list[Callable[[], bool]] = []

    def work(
        self, job: Job, run: Run, cancelled: Callable[[], bool], *, is_own: Callable[[], bool]
    ) -> Run:
        self.is_own.append(is_own)
        hours = ((run.due_at or 0.0) - NOW) / HOUR
        self.begun.append((job.name, hours, run.trigger))
        self.cancelled.append(cancelled)
        while self.is_endless and not cancelled():
            time.sleep(0.001)
        return replace(run, status=self.outcome, ended_at=self.now)

    def announce(self, job: Job, run: Run) -> Run:
        self.announced.append((job.name, run.status, run.reason))
        return replace(run, delivered=("file",))

    def scheduler(self, holder: str = "a", **facts: Any) -> Scheduler:
        given = {"start": lambda work: work(), "report": self.said.append, **facts}
        return Scheduler(
            self.store.jobs,
            self,
            holder=holder,
            clock=lambda: self.now,
            timer=lambda: self.elapsed,
            **given,
        )

    def slow(self, holder: str = "a", **facts: Any) -> Scheduler:
        """A scheduler that queues its work until `run_queued`."""
        return self.scheduler(holder, start=self.queued.append, **facts)

    def run_queued(self) -> None:
        while self.queued:
            self.queued.pop(0)()

    def add(self, name: str = "job", **facts: Any) -> JobId:
        given = {"prompt": "p", "schedule": HOURLY, "next_run_at": NOW + HOUR, **facts}
        job = Job(id=JobId(f"id-{name}"), name=name, **given)
        self.store.jobs.add(job)
        return job.id

    def at(self, hours: float, seconds: float = 0.0) -> None:
        """Advance clock and timer to this time."""
        before = self.now
        self.now = NOW + hours * HOUR + seconds
        self.elapsed += self.now - before

    def set(self, hours: float) -> None:
        """Set the clock without advancing the timer."""
        self.now = NOW + hours * HOUR

    def job(self, name: str = "job") -> Job:
        return self.store.jobs.get(name)

    def runs(self, name: str = "job") -> list[Run]:
        """Oldest first."""
        return list(self.store.jobs.runs(JobId(f"id-{name}")))[::-1]


@pytest.fixture
def office(tables: Path, tmp_path: Path) -> Iterator[Office]:
    shutil.copyfile(tables, tmp_path / "jobs.db")
    office = Office(tmp_path / "jobs.db")
    yield office
    office.store.close()


class TestDueTimes:
    def test_job_starts_when_due(self, office: Office) -> None:
        office.add()
        scheduler = office.scheduler()
        for hours, seconds, begun in ((1, -1, 0), (1, 0, 1), (1, 1, 0), (2, -1, 0), (2, 7, 1)):
            office.at(hours, seconds)
            assert scheduler.tick() == begun
        assert office.begun == [("job", 1, "schedule"), ("job", 2, "schedule")]
        assert [run.status for run in office.runs()] == ["ok", "ok"]
        assert (office.job().runs, office.job().next_run_at) == (2, NOW + 3 * HOUR)

    def test_missed_times_have_one_record_and_one_late_run(self, office: Office) -> None:
        office.add()
        office.at(5, 120)
        scheduler = office.scheduler()
        assert [scheduler.tick(), scheduler.tick()] == [1, 0]
        office.at(6)
        assert scheduler.tick() == 1
        assert office.begun == [("job", 5, "late"), ("job", 6, "schedule")]
        record, *runs = sorted(office.runs(), key=lambda run: run.due_at or 0.0)
        assert (record.status, record.missed, record.due_at) == ("missed", 4, None)
        assert (record.ended_at, record.delivered) == (NOW + 5 * HOUR + 120, ("file",))
        assert [run.status for run in runs] == ["ok", "ok"]
        ((_, status, reason),) = office.announced
        assert status == "missed"
        assert reason.startswith("4 due times, from 2027-01-15 09:00 UTC on, were not run: no sch")
        assert office.store.jobs.last_runs()[JobId("id-job")].status == "ok"

    def test_late_run_is_marked(self, office: Office) -> None:
        office.add("late", next_run_at=NOW + HOUR - 1)
        office.add("in-time", next_run_at=NOW + HOUR)
        office.at(1, 60)
        office.scheduler().tick()
        assert [(name, trigger) for name, _, trigger in office.begun] == [
            ("late", "late"),
            ("in-time", "schedule"),
        ]

    def test_due_times_during_a_run_are_missed(self, office: Office) -> None:
        office.add(seconds=None)
        scheduler = office.slow()
        for hours, begun in ((1, 1), (2, 0), (3, 0)):
            office.at(hours)
            office.store.jobs.keep_alive([run.id for run in office.runs()], until=office.now + 60)
            assert scheduler.tick() == begun
        office.run_queued()
        assert [scheduler.tick(), scheduler.tick()] == [1, 0]
        office.run_queued()
        assert office.begun == [("job", 1, "schedule"), ("job", 3, "late")]
        assert office.job().next_run_at == NOW + 4 * HOUR
        ((_, status, reason),) = office.announced
        assert status == "missed"
        assert "10:00 UTC was not run: the previous run was still going" in reason

    def test_repeat_limits_the_runs(self, office: Office) -> None:
        office.add(repeat=2)
        scheduler = office.scheduler()
        for hours in (1, 2, 3):
            office.at(hours)
            scheduler.tick()
        assert [hours for _, hours, _ in office.begun] == [1, 2]
        assert (office.job().state, office.job().next_run_at) == ("done", None)

    def test_one_time_job_is_done_after_its_run(self, office: Office) -> None:
        office.add(schedule=Schedule(text="in 1h", kind="once", timezone="UTC", at=NOW + HOUR))
        scheduler = office.scheduler()
        office.at(30)
        assert [scheduler.tick(), scheduler.tick()] == [1, 0]
        assert office.begun == [("job", 1, "late")]
        assert (office.job().state, office.job().next_run_at) == ("done", None)

    def test_concurrent_runs_are_limited(self, office: Office) -> None:
        for number in range(5):
            office.add(f"job{number}", next_run_at=NOW + HOUR - number)
        office.at(1)
        scheduler = office.slow(workers=2)
        ticks = []
        for _ in range(4):
            ticks += [scheduler.tick(), scheduler.tick()]
            office.run_queued()
        assert ticks == [2, 0, 2, 0, 1, 0, 0, 0]
        assert [name for name, *_ in office.begun] == ["job4", "job3", "job2", "job1", "job0"]

    def test_unknown_time_zone_delays_only_its_job(self, office: Office) -> None:
        nowhere = Schedule(text="", kind="cron", timezone="Nowhere/Nothing", cron="0 9 * * *")
        office.add("odd", schedule=nowhere, next_run_at=NOW)
        office.add()
        office.at(1)
        scheduler = office.scheduler()
        scheduler.tick()
        assert {name for name, *_ in office.begun} == {"job", "odd"}
        assert office.job("odd").state == "scheduled"
        assert office.job("odd").next_run_at == office.now + 600

    def test_failing_job_is_held(self, office: Office) -> None:
        minutely = replace(HOURLY, text="every 1m", seconds=60.0)
        office.add(schedule=minutely, next_run_at=NOW + 60)
        office.outcome = "failed"
        scheduler = office.scheduler()
        for minutes in range(1, 9):
            office.at(0, 60 * minutes)
            scheduler.tick()
        assert len(office.begun) == 3
        assert office.job().next_run_at == NOW + 180 + 600
        office.outcome = "ok"
        office.at(0, 781)
        assert scheduler.tick() == 1
        assert (office.job().failures, office.job().next_run_at) == (0, NOW + 840)
        # Of the times until then, the one when it runs again is not missed.
        ((_, status, reason),) = office.announced
        assert status == "missed"
        assert reason.startswith("9 due times, from 2027-01-15 08:04 UTC on, were not run: the job")
        assert "held after failures" in reason


class TestLostRuns:
    def test_crashed_run_is_detected_and_reported(self, office: Office) -> None:
        office.add()
        office.at(1)
        assert office.slow("dead").tick() == 1
        scheduler = office.scheduler("b")
        for seconds in (0, 29, 30, 60):
            office.at(1, seconds)
            assert scheduler.tick() == 0
        assert office.runs()[0].status == "running"
        office.at(1, 61)
        assert scheduler.tick() == 0
        run = office.runs()[0]
        assert (run.status, run.reason, run.ended_at) == ("crashed", LOST, office.now)
        assert run.delivered == ("file",)
        assert office.announced == [("job", "crashed", LOST)]
        assert office.job().failures == 1
        office.at(2)
        assert scheduler.tick() == 1
        assert [run.status for run in office.runs()] == ["crashed", "ok"]

    def test_run_that_does_not_stop_is_abandoned(self, office: Office) -> None:
        office.add(seconds=100.0)
        office.add("other", next_run_at=NOW + HOUR + 1)
        office.at(1)
        scheduler = office.slow(workers=1)
        scheduler.tick()
        for seconds, status in ((101, "running"), (129, "running"), (131, "timed_out")):
            office.at(1, seconds + GRACE_S)
            scheduler.tick()
            assert office.runs()[0].status == status
        stuck, announce, _other = office.queued  # the worker slot is free again
        announce()
        assert [(name, status) for name, status, _ in office.announced] == [("job", "timed_out")]
        stuck()
        assert office.cancelled[0]()
        assert [run.status for run in office.runs()] == ["timed_out"]


class TestLease:
    def test_another_scheduler_takes_over_an_expired_lease(self, office: Office) -> None:
        office.add()
        first, second = office.scheduler("a"), office.scheduler("b")
        office.at(0)
        first.tick()
        second.tick()
        office.at(1, -1)
        first.tick()
        office.at(1, LEASE_S - 2)
        assert second.tick() == 0
        office.at(1, LEASE_S - 1)
        assert second.tick() == 1
        assert first.tick() == 0
        assert office.store.jobs.lease() == ("b", office.now + LEASE_S)
        assert [line.split(" (")[0] for line in office.said if "scheduler" in line] == [
            "This scheduler is active.",
            "Another scheduler is active",
            "This scheduler is active.",
            "Another scheduler is active",
        ]

    def test_stop_ends_runs_and_releases_the_lease(self, office: Office) -> None:
        office.add()
        office.is_endless = True
        office.at(1)
        scheduler = office.scheduler(start=in_thread)
        assert scheduler.tick() == 1
        scheduler.stop()
        assert [run.status for run in office.runs()] == ["ok"]
        assert office.store.jobs.lease() is None
        assert office.scheduler("b").tick() == 0
        assert office.store.jobs.lease() == ("b", office.now + LEASE_S)


class Steps(threading.Event):
    """An event that runs one step per wait, and is set when all steps are done."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        super().__init__()
        self._steps = list(steps)
        self.waited: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout)
        self._steps.pop(0)()
        if not self._steps:
            self.set()
        return self.is_set()


class TestServe:
    def test_locked_database_does_not_prevent_the_stop(
        self, office: Office, tmp_path: Path
    ) -> None:
        with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as other:
            office.scheduler().serve(Steps(lambda: other.execute("BEGIN IMMEDIATE")))
        assert "releasing the scheduler" in office.said[-1]


class TestClockChanges:
    def test_due_times_recover_when_the_clock_is_corrected(self, office: Office) -> None:
        office.add()
        office.add("weekly", schedule=replace(HOURLY, seconds=168 * HOUR), next_run_at=NOW + HOUR)
        scheduler = office.scheduler()
        office.set(10_000.5)
        assert scheduler.tick() == 2
        office.set(0.5)
        assert scheduler.tick() == 0
        assert office.job().next_run_at == NOW + HOUR
        assert office.job("weekly").next_run_at == NOW + 168 * HOUR
        office.at(1)
        assert scheduler.tick() == 1

    def test_due_times_are_corrected_at_startup(self, office: Office) -> None:
        office.add(next_run_at=NOW + 10_000 * HOUR)
        office.add("once", schedule=replace(HOURLY, kind="once", at=NOW + 9 * HOUR))
        office.scheduler().tick()
        assert office.job().next_run_at == NOW + HOUR
        assert office.job("once").next_run_at == NOW + HOUR

    def test_clock_set_back_repeats_and_drops_nothing(self, office: Office) -> None:
        names = {"always": None, "four-times": 4}
        for name, repeat in names.items():
            office.add(name, repeat=repeat)
        scheduler = office.scheduler()
        for hours in (1, 2, 3, 0.5, 1, 2, 3, 4):
            office.set(hours)
            scheduler.tick()
        for name in names:
            assert [hours for job, hours, _ in office.begun if job == name] == [1, 2, 3, 4]
            assert office.job(name).runs == 4

    def test_clock_jump_does_not_expire_another_scheduler(self, office: Office) -> None:
        """Two minutes ahead, the other scheduler's run and lease seem to have expired."""
        office.add()
        office.at(1)
        other, mine = office.slow("other"), office.scheduler("mine")
        assert other.tick() == 1
        assert mine.tick() == 0
        office.set(1 + 2 / 60)
        assert mine.tick() == 0
        assert [run.status for run in office.runs()] == ["running"]
        assert other.tick() == 0  # renews its lease
        office.run_queued()
        office.at(2)
        assert other.tick() == 1
        assert [run.status for run in office.runs()] == ["ok", "running"]

    def test_time_limits_use_the_timer(self, office: Office) -> None:
        office.add(seconds=100.0)
        office.at(1)
        scheduler = office.slow("a")
        scheduler.tick()
        office.set(30)
        scheduler.tick()
        assert not office.queued[1:]
        assert [run.status for run in office.runs()] == ["running"]


class TestFaults:
    def test_run_taken_over_by_another_scheduler_is_not_own(self, office: Office) -> None:
        office.add()
        office.at(1)
        mine = office.slow("mine")
        mine.tick()
        office.at(1, 61)
        office.scheduler("other").tick()
        office.run_queued()
        assert not office.is_own[0]()
        assert office.begun == [("job", 1, "schedule")]
        assert [run.status for run in office.runs()] == ["crashed"]
        assert office.job().failures == 1

    def test_serve_once_runs_only_what_is_due(self, office: Office) -> None:
        office.add()
        office.add("later", next_run_at=NOW + HOUR + 1)
        office.at(1)

        def start(work: Callable[[], None]) -> None:
            office.at(1, 5)  # the other job is due by then, too
            in_thread(work)

        assert office.scheduler(start=start).serve_once(threading.Event()) == 1
        assert office.begun == [("job", 1, "schedule")]
        assert office.store.jobs.lease() is None
        assert office.scheduler("next").serve_once(threading.Event()) == 1

    def test_run_that_outlives_the_stop_is_interrupted(self, office: Office) -> None:
        office.add()
        office.at(1)
        scheduler = office.slow()
        scheduler.tick()
        scheduler.stop(timeout_s=0.0)
        (run,) = office.runs()
        assert run.status == "interrupted"
        assert office.job().failures == 0
        office.run_queued()
        assert [run.status for run in office.runs()] == ["interrupted"]
