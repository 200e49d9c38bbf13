"""Usage reports: known, estimated and unknown numbers, and the assignment to days."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.tables import table

from journeyman.records import Fragment, Session, SessionId, Tokens, Usage
from journeyman.records.errors import WrongInput
from journeyman.store.accounting import Accounting
from journeyman.store.store import Store

PRICES = {"cheap": 1e-6, "dear": 1e-3}
NOON = 1_790_000_000.0 - 1_790_000_000.0 % 86_400 + 43_200


def prices(
    model: str, tokens: Tokens, *, base_url: str = "", at: float | None = None
) -> float | None:
    """A price per token, doubled for prompts of more than 200,000 tokens."""
    if model not in PRICES:
        return None
    prompt = sum(
        count or 0
        for count in (tokens.input_tokens, tokens.cache_read_tokens, tokens.cache_write_tokens)
    )
    return PRICES[model] * (2 if prompt > 200_000 else 1) * (prompt + (tokens.output_tokens or 0))


@pytest.fixture
def store(tmp_path: Path, tables: Path) -> Iterator[Store]:
    path = tmp_path / "journeyman.db"
    shutil.copyfile(tables, path)
    with Store(f"sqlite:///{path}") as store:
        yield store


def record(store: Store, *usage: Usage, name: str = "s", source: str = "test") -> None:
    session = Session(id=SessionId(name), source=source)
    with store.writing() as writing:
        writing.add(Fragment(session=session, usage=usage))
        writing.finish()


def used(key: str, model: str = "cheap", size: int = 1000, **facts: object) -> Usage:
    return Usage(**{"key": key, "model": model, "input_tokens": size, "output_tokens": 10, **facts})


class TestCost:
    def test_a_recorded_cost_is_used_unchanged(self, store: Store) -> None:
        record(store, used("a", cost_usd=0.25, cost_origin="actual"), used("b", cost_usd=0.5))
        (line,) = Accounting(store, prices).report().rows
        assert (line.cost_usd, line.unknown_cost, line.estimated_share) == (0.75, 0, 0.0)

    def test_an_unrecorded_cost_is_estimated(self, store: Store) -> None:
        record(store, used("a"), used("b", size=501), used("c", cost_usd=0.002521))
        (line,) = Accounting(store, prices).report().rows
        assert line.cost_usd == pytest.approx(1521e-6 + 2521e-6)
        assert line.estimated_share == pytest.approx(1521 / (1521 + 2521))
        assert line.unknown_cost == 0

    def test_unknown_is_not_zero(self, store: Store) -> None:
        record(store, used("a", model="nameless"))
        report = Accounting(store, prices).report()
        for line in (*report.rows, report.total):
            assert (line.cost_usd, line.unknown_cost, line.estimated_share) == (None, 1, None)

    def test_a_sum_reports_how_many_calls_have_no_cost(self, store: Store) -> None:
        record(store, used("a", cost_usd=0.5), used("b", model="nameless", api_calls=3))
        total = Accounting(store, prices).report().total
        assert (total.cost_usd, total.unknown_cost, total.api_calls) == (0.5, 3, 4)

    @table("column", ["input_tokens", "output_tokens"])
    def test_an_estimate_needs_input_and_output_tokens(self, store: Store, column: str) -> None:
        record(store, used("a", **{column: None}), used("b"), name=column, source=column)
        total = Accounting(store, prices).report(source=column).total
        assert total.cost_usd == pytest.approx(1010e-6)
        assert (total.unknown_tokens, total.unknown_cost, total.api_calls) == (1, 1, 2)

    def test_many_short_calls_are_not_priced_as_a_long_one(self, store: Store) -> None:
        sizes = [(key, 1000 + key) for key in range(300)]
        record(store, *(used(str(key), size=size) for key, size in sizes), used("x", size=250_000))
        (line,) = Accounting(store, prices).report().rows
        short = sum(size + 10 for _, size in sizes)
        assert line.cost_usd == pytest.approx((short + 2 * 250_010) * 1e-6)

    def test_prices_of_the_day_are_used(self, store: Store) -> None:
        record(store, *(used(f"{day}", at=NOON + day * 86_400) for day in range(3)))
        record(store, used("never"), name="timeless")
        asked = []

        def dated(
            model: str, tokens: Tokens, *, base_url: str = "", at: float | None = None
        ) -> float | None:
            asked.append(at)
            return None

        Accounting(store, dated, zone=ZoneInfo("UTC")).report()
        days = [NOON + day * 86_400 for day in range(3)]
        assert sorted(at for at in asked if at) == days
        assert None in asked


class TestRows:
    def test_every_grouping(self, store: Store) -> None:
        record(store, used("a", at=NOON), used("b", "dear", task="compression", at=NOON))
        record(store, used("a", at=NOON + 86_400), name="t", source="other")
        accounting = Accounting(store, prices, zone=ZoneInfo("UTC"))
        sessions = {
            by: {line.key: (line.sessions, line.api_calls) for line in accounting.report(by).rows}
            for by in ("model", "source", "platform", "day", "week", "task", "session")
        }
        assert sessions == {
            "model": {"dear": (1, 1), "cheap": (2, 2)},
            "source": {"test": (1, 2), "other": (1, 1)},
            "day": {"2026-09-21": (1, 2), "2026-09-22": (1, 1)},
            "platform": {"": (2, 3)},
            "week": {"2026-09-21": (2, 3)},
            "task": {"compression": (1, 1), "": (2, 2)},
            "session": {"s": (1, 2), "t": (1, 1)},
        }

    def test_the_most_expensive_come_first_and_days_in_order(self, store: Store) -> None:
        record(
            store,
            used("a", at=NOON + 86_400),
            used("b", "nameless", at=NOON),
            used("c", "dear"),
            used("d", "nobody", size=5000, at=NOON + 172_800),
        )
        accounting = Accounting(store, prices, zone=ZoneInfo("UTC"))
        models = [line.key for line in accounting.report("model").rows]
        assert models == ["dear", "cheap", "nobody", "nameless"]
        days = [line.key for line in accounting.report("day").rows]
        assert days == ["2026-09-21", "2026-09-22", "2026-09-23", ""]

    def test_sessions_without_usage_are_counted(self, store: Store) -> None:
        record(store, used("a"))
        record(store, name="silent")
        report = Accounting(store, prices).report()
        assert (report.sessions, report.total.sessions) == (2, 1)

    def test_an_empty_store_and_an_unknown_grouping(self, store: Store) -> None:
        # An empty store.
        report = Accounting(store, prices).report("day")
        assert (report.rows, report.sessions, report.total.api_calls) == ((), 0, 0)
        assert (report.total.cost_usd, report.total.input_tokens) == (None, None)

        # An unknown grouping.
        with pytest.raises(
            WrongInput, match="model, source, platform, project, day, week, task, session"
        ):
            Accounting(store, prices).report("colour")  # type: ignore[arg-type]


class TestDays:
    @table(
        ("zone", "days"),
        [
            ("UTC", ["2026-03-28", "2026-03-29", "2026-03-29", "2026-03-30"]),
            ("Europe/Berlin", ["2026-03-29", "2026-03-29", "2026-03-30", "2026-03-30"]),
            ("America/St_Johns", ["2026-03-28", "2026-03-28", "2026-03-29", "2026-03-29"]),
            ("Asia/Kathmandu", ["2026-03-29", "2026-03-29", "2026-03-30", "2026-03-30"]),
        ],
    )
    def test_around_a_daylight_saving_change(
        self, store: Store, zone: str, days: list[str]
    ) -> None:
        """In Berlin, clocks moved ahead an hour at 1:00 UTC on 2026-03-29."""
        midnight = 1_774_742_400  # 2026-03-29, UTC
        at = (midnight - 3600, midnight, midnight + 22 * 3600, midnight + 24 * 3600)
        accounting = Accounting(store, prices, zone=ZoneInfo(zone))
        expected = dict.fromkeys(days, 0)
        for number, (moment, day) in enumerate(zip(at, days, strict=True)):
            # Also each alone: the period then begins on either side of the change.
            record(store, used("a", at=float(moment)), name=f"{zone} alone", source=f"{zone} alone")
            record(store, used(f"{number}", at=float(moment)), name=zone, source=zone)
            expected[day] += 1
            (alone,) = accounting.report("day", source=f"{zone} alone").rows
            assert alone.key == day
        report = accounting.report("day", source=zone)
        assert {line.key: line.api_calls for line in report.rows} == expected
        assert report.zone == zone

    def test_without_a_zone_days_are_in_this_machines_zone(self, store: Store) -> None:
        record(store, used("a", at=NOON))
        report = Accounting(store, prices).report("day")
        assert [line.key for line in report.rows] == [
            time.strftime("%Y-%m-%d", time.localtime(NOON))
        ]
        assert report.zone.split("/")[0] == time.tzname[0]
