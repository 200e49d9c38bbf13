"""50 jobs on a fake clock for a few weeks, and the days around clock changes with schedulers that
are killed. `benchmarks/jobs_year.py` runs a full year of each and documents the comparison.
"""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from benchmarks.jobs_year import END, Place, Span, driven, plain, plan
from tests.conftest import PostgresServer


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


# Together with AWAY, only the days around the clock changes of three zones remain.
CHANGES = Span(start=at("2026-03-07"), end=at("2026-11-02"), light=True)
AWAY = tuple(
    (at(f"2026-{since}"), at(f"2026-{until}"))
    for since, until in (("03-09", "03-28"), ("04-06", "10-03"), ("10-05", "10-24"))
)
# The first half of that, with the clock changes of two zones.
WEEKS = Span(start=at("2026-03-07"), end=at("2026-03-31"), light=True)


def place_on_file(tables: Path, folder: Path) -> Place:
    shutil.copyfile(tables, folder / "jobs.db")
    return Place(url=f"sqlite:///{folder / 'jobs.db'}", folder=folder)


def test_every_due_time_runs_once_in_weeks_with_clock_changes(tables: Path, tmp_path: Path) -> None:
    planned = plan(WEEKS)
    result = plain(place_on_file(tables, tmp_path), planned)
    assert result.violations == []
    assert (result.missed, result.interrupted) == (0, 0)
    assert result.runs == sum(len(one.due[: one.job.repeat]) for one in planned) > 100


def test_killed_scheduler_loses_and_repeats_nothing(tables: Path, tmp_path: Path) -> None:
    place, planned = place_on_file(tables, tmp_path), plan(WEEKS)[::3]
    result = driven(place, planned, schedulers=1, kills=3, away=AWAY[:1])
    assert result.violations == []
    assert result.kills > 3
    assert result.interrupted > 0
    assert result.missed > 0


@pytest.mark.soak
def test_every_due_time_runs_once_in_a_year(tables: Path, tmp_path: Path) -> None:
    planned = plan(Span(light=True))
    assert len(planned) == 50
    result = plain(place_on_file(tables, tmp_path), planned)
    assert result.violations == []
    assert (result.missed, result.interrupted) == (0, 0)
    assert result.runs == sum(len(one.due[: one.job.repeat]) for one in planned) > 300
    assert max(one.due[-1] for one in planned) > END - 86_400


@pytest.mark.soak
def test_many_kills_lose_and_repeat_nothing(tables: Path, tmp_path: Path) -> None:
    place, planned = place_on_file(tables, tmp_path), plan(CHANGES)[::3]
    result = driven(place, planned, schedulers=1, kills=6, away=AWAY)
    assert result.violations == []
    assert result.kills > 6
    assert result.interrupted > 0
    assert result.missed > 0


@pytest.mark.soak
def test_two_schedulers_on_one_database_lose_and_repeat_nothing(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    place = Place(url=postgres_server.with_tables(), folder=tmp_path)
    result = driven(place, plan(CHANGES)[1::5], schedulers=2, kills=3, away=AWAY)
    assert result.violations == []
    assert result.kills > 3
    assert result.handovers > 4
