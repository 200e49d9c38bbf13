"""Occurrences of schedules, compared with oracles that step through days or minutes without cron,
on clocks that change by an hour, by half an hour, at midnight, and not at all.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.jobs.occurrences import describe_cron, latest_due, next_occurrence, next_occurrences
from journeyman.records.job import Schedule

CHANGING = (
    "Europe/Berlin",
    "America/New_York",
    "America/Santiago",
    "Africa/Casablanca",
)
ZONES = (*CHANGING, "Asia/Kathmandu", "UTC")
DAY = 86_400
YEAR = (datetime(2027, 1, 1, tzinfo=UTC).timestamp(), datetime(2028, 1, 1, tzinfo=UTC).timestamp())


def cron(expression: str, zone: str = "UTC") -> Schedule:
    return Schedule(text=expression, kind="cron", timezone=zone, cron=expression)


def every(seconds: float, at: float = 0.0) -> Schedule:
    return Schedule(text="", kind="every", timezone="UTC", at=at, seconds=seconds)


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def shown(time: float | None, zone: str) -> str:
    assert time is not None
    return datetime.fromtimestamp(time, ZoneInfo(zone)).isoformat(timespec="minutes")


@cache
def changes(zone: str) -> tuple[int, ...]:
    """The hours of the year in which the clocks of a zone change."""
    hours = range(int(YEAR[0]), int(YEAR[1]), 3600)
    offsets = [datetime.fromtimestamp(hour, ZoneInfo(zone)).utcoffset() for hour in hours]
    return tuple(hours[i + 1] for i, (one, two) in enumerate(pairwise(offsets)) if one != two)


# Fixed times: one instant for each local day.


def of_day(day: date, hour: int, minute: int, zone: ZoneInfo) -> float:
    """The first instant at which the clocks show a time or a later one."""
    wanted = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
    time = int(wanted.timestamp())
    before = datetime.fromtimestamp(time - 60, zone).replace(tzinfo=None)
    while before >= wanted.replace(tzinfo=None):
        time -= 60
        before = datetime.fromtimestamp(time - 60, zone).replace(tzinfo=None)
    return float(time)


def year_of(zone: str, hour: int, minute: int, weekdays: set[int]) -> Iterator[float]:
    days = (date(2027, 1, 1) + timedelta(days=number) for number in range(365))
    return (of_day(day, hour, minute, ZoneInfo(zone)) for day in days if day.weekday() in weekdays)


TIMES = ((0, 0), (0, 30), (1, 45), (2, 0), (2, 30), (3, 0), (9, 15))


@table("zone", CHANGING)
@table("weekdays", ["*", "0", "1,4"])
def test_fixed_times_over_a_year(zone: str, weekdays: str) -> None:
    days = set(range(7)) if weekdays == "*" else {(int(day) - 1) % 7 for day in weekdays.split(",")}
    for hour, minute in TIMES:
        expected = list(year_of(zone, hour, minute, days))
        schedule = cron(f"{minute} {hour} * * {weekdays}", zone)
        assert next_occurrences(schedule, at_midnight(zone) - 1, len(expected)) == expected


def at_midnight(zone: str) -> float:
    return datetime(2027, 1, 1, tzinfo=ZoneInfo(zone)).timestamp()


# Wildcards: every minute in which the clocks show one of the times.

Shows = Callable[[datetime], bool]
WILD: dict[str, Shows] = {
    "*/20 * * * *": lambda local: local.minute % 20 == 0,
    "*/5 2 * * *": lambda local: local.hour == 2 and local.minute % 5 == 0,
    "15 * * * *": lambda local: local.minute == 15,
    "0 */2 * * *": lambda local: local.minute == 0 and local.hour % 2 == 0,
    "45 * * * 0": lambda local: local.minute == 45 and local.weekday() == 6,
    "*/30 0,1 * * *": lambda local: local.minute % 30 == 0 and local.hour < 2,
}


@table("zone", CHANGING)
@table("expression", WILD)
def test_wildcards_around_clock_changes(zone: str, expression: str) -> None:
    shows, clock = WILD[expression], ZoneInfo(zone)
    for change in changes(zone):
        begin, end = change - DAY, change + DAY
        minutes = range(begin, end, 60)
        expected = [m for m in minutes if shows(datetime.fromtimestamp(m, clock))]
        assert next_occurrences(cron(expression, zone), begin - 1, len(expected)) == expected


# Independence of the starting point.

minute_fields = st.sampled_from(["*", "*/7", "*/30", "0", "0-59", "0,30", "15,45", "30"])
hour_fields = st.sampled_from(["*", "*/2", "*/5", "0", "1", "2", "3", "0-3", "0-23", "1,2,3", "23"])
day_fields = st.sampled_from(["*", "*", "*", "1", "L", "28-31", "1-7", "LW", "*/2"])
weekday_fields = st.sampled_from(["*", "*", "*", "0", "SUN", "1-5", "MON#1", "7L", "6,0"])
expressions = st.builds(
    "{} {} {} {} {}".format,
    minute_fields,
    hour_fields,
    day_fields,
    st.sampled_from(["*", "*", "*", "3", "10,11", "JAN-JUN"]),
    weekday_fields,
)


@st.composite
def instants(draw: st.DrawFn, zone: str) -> float:
    """Instants of the year, most of them near a clock change."""
    around = draw(st.sampled_from([*changes(zone), int(YEAR[0])]))
    return around + draw(st.integers(-5 * 3600, 5 * 3600) | st.floats(-2 * DAY, 2 * DAY))


def test_times_that_clocks_always_skip_never_occur() -> None:
    """On the last Sunday of March, Berlin has no hour from two to three."""
    assert next_occurrence(cron("*/7 2 * 3 7L", "Europe/Berlin"), YEAR[0]) is None


@given(st.data(), st.sampled_from(ZONES), expressions, st.integers(1, 9 * 3600))
def test_occurrences_do_not_depend_on_the_starting_point(
    data: st.DataObject, zone: str, expression: str, earlier: int
) -> None:
    schedule, begin = cron(expression, zone), data.draw(instants(zone))
    time = next_occurrence(schedule, begin - earlier)
    while time is not None and time <= begin:
        later = next_occurrence(schedule, time)
        assert later is not None
        assert later > time
        time = later
    assert next_occurrence(schedule, begin) == time


@given(expressions, st.integers(*(1000 * one for one in map(int, YEAR))).map(lambda ms: ms / 1000))
def test_agrees_with_cronsim_without_clock_changes(expression: str, begin: float) -> None:
    try:
        theirs = CronSim(expression, datetime.fromtimestamp(begin, UTC))
    except CronSimError:
        assume(False)
    expected = [next(theirs).timestamp() for _ in range(5)]
    assert next_occurrences(cron(expression), begin, 5) == expected
    assert describe_cron(expression).isprintable()


@table(
    ("zone", "expression", "after", "expected"),
    [
        # 02:30 occurred in the first pass of the repeated hour; this is the second.
        ("Europe/Berlin", "30 2 * * *", "2027-10-31T02:10+01:00", "2027-11-01T02:30+01:00"),
        ("Europe/Berlin", "30 2 * * *", "2027-10-31T02:10+02:00", "2027-10-31T02:30+02:00"),
        ("Europe/Berlin", "30 * * * *", "2027-10-31T02:30+02:00", "2027-10-31T02:30+01:00"),
        # Two times in one gap coincide, and so does a time at its end.
        ("Europe/Berlin", "0,30 2,3 * * *", "2027-03-28T01:59+01:00", "2027-03-28T03:00+02:00"),
        ("Europe/Berlin", "0,30 2,3 * * *", "2027-03-28T03:00+02:00", "2027-03-28T03:30+02:00"),
        ("Europe/Berlin", "*/30 2 * * *", "2027-03-28T01:59+01:00", "2027-03-29T02:00+02:00"),
        ("America/Santiago", "0 0 * * *", "2027-09-04T12:00-04:00", "2027-09-05T01:00-03:00"),
        # Months away, across a clock change.
        ("Europe/Berlin", "*/30 9 1 7 *", "2027-01-15T00:00+01:00", "2027-07-01T09:00+02:00"),
        ("Europe/Berlin", "*/30 9 1 1 *", "2027-07-15T00:00+02:00", "2028-01-01T09:00+01:00"),
        # A day that the zone skipped.
        ("Europe/Berlin", "*/30 9 29 2 *", "2096-03-01T00:00+01:00", "2104-02-29T09:00+01:00"),
    ],
)
def test_known_edge_cases(zone: str, expression: str, after: str, expected: str) -> None:
    assert shown(next_occurrence(cron(expression, zone), at(after)), zone) == expected


@table("fraction", [0.0, 0.25, 0.999999])
def test_next_occurrence_is_the_earliest_after_an_instant(fraction: float) -> None:
    minute = YEAR[0]
    assert next_occurrence(cron("* * * * *"), minute + fraction) == minute + 60
    assert next_occurrence(cron("* * * * *"), minute - 1 + fraction) == minute


def test_once_occurs_once() -> None:
    once = Schedule(text="", kind="once", timezone="UTC", at=100.5)
    assert next_occurrences(once, 100.4, 5) == [100.5]
    assert next_occurrences(once, 100.5, 5) == []
    assert latest_due(once, 100.5, 1e9) == (100.5, 0)
    assert latest_due(once, 50.0, 1e9) == (100.5, 1)


def test_intervals_measure_elapsed_time_across_clock_changes() -> None:
    begin = at("2027-03-28T00:30+01:00")
    berlin = Schedule(text="", kind="every", timezone="Europe/Berlin", at=begin, seconds=3600)
    assert [shown(time, "Europe/Berlin")[11:] for time in next_occurrences(berlin, begin, 3)] == [
        "01:30+01:00",
        "03:30+02:00",
        "04:30+02:00",
    ]


def test_interval_starts_when_it_was_parsed() -> None:
    assert next_occurrence(every(60, at=1000), -5000) == 1060


@given(st.floats(60, 1e6), st.floats(1e9, 2e9), st.floats(-1e6, 1e9))
def test_intervals_advance_by_exactly_one_period(
    seconds: float, begin: float, later: float
) -> None:
    schedule = every(seconds, at=begin)
    one = next_occurrence(schedule, begin + later)
    assert one is not None
    assert one > begin + later
    two = next_occurrence(schedule, one)
    assert two == pytest.approx(one + seconds, abs=1e-5)
    assert next_occurrence(schedule, one - seconds / 2) == one


# Missed occurrences.


def step_through(schedule: Schedule, due: float, now: float) -> tuple[float, int]:
    last, missed = due, 0
    while (time := next_occurrence(schedule, last)) is not None and time <= now:
        last, missed = time, missed + 1
    return last, missed


@given(
    st.data(),
    st.sampled_from(CHANGING),
    st.one_of(expressions.map(cron), st.integers(60, 9000).map(every)),
    st.floats(-1, 2 * DAY),
)
def test_latest_due_agrees_with_stepping_through(
    data: st.DataObject, zone: str, schedule: Schedule, later: float
) -> None:
    begin = data.draw(instants(zone))
    schedule = Schedule(
        text="",
        kind=schedule.kind,
        timezone=zone,
        cron=schedule.cron,
        seconds=schedule.seconds,
        at=begin - 7777,
    )
    due = begin if data.draw(st.booleans()) else next_occurrence(schedule, begin)
    assume(due is not None)  # an expression such as the 31st of April never occurs
    assert due is not None
    assert latest_due(schedule, due, due + later) == step_through(schedule, due, due + later)


@table("schedule", [cron("* * * * *", "Europe/Berlin"), every(60)], ids=["cron", "every"])
def test_a_year_of_missed_minutes(schedule: Schedule) -> None:
    assert latest_due(schedule, YEAR[0], YEAR[1] + 59) == (YEAR[1], 10_000)
