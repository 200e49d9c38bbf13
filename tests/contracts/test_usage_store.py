"""The contract of usage accounting, on SQLite and on a real PostgreSQL."""

import threading
from collections.abc import Callable
from datetime import UTC

import pytest

from journeyman.records import Fragment, Lineage, Message, Session, SessionId, Tokens, Usage
from journeyman.records.errors import UnknownSession
from journeyman.records.host import REPORTED_USAGE
from journeyman.records.usage import UsageBy, UsageReport
from journeyman.store.accounting import Accounting
from journeyman.store.session_filters import SessionFilters
from journeyman.store.store import Store

DAY_S = 86_400
DAY = 1000 * DAY_S


def write(store: Store, *names: str, usage: tuple[Usage, ...] = (), **facts: object) -> None:
    with store.writing() as writing:
        for name in names:
            session = Session(**{"id": SessionId(name), "source": "test", "log": "/l", **facts})
            message = Message(key="u", position=1, role="user", text="hello")
            writing.add(Fragment(session=session, messages=(message,), usage=usage))
        writing.finish()


def tokens(store: Store, name: str = "s") -> Tokens:
    return store.sessions.get(name).tokens


def report(store: Store, by: UsageBy, **chosen: object) -> UsageReport:
    without_prices = Accounting(store, lambda *_, **__: None, zone=UTC)
    return without_prices.report(by, **SessionFilters(**chosen))


def calls_by(store: Store, by: UsageBy, **chosen: object) -> dict[str, int]:
    return {line.key: line.api_calls for line in report(store, by, **chosen).rows}


class TestIncrements:
    def test_increments_add_up(self, store: Store) -> None:
        write(store, "s", "other")
        store.usage.add("s", Usage(key="a", model="m", input_tokens=3, output_tokens=1))
        store.usage.add("s", Usage(key="b", model="m", input_tokens=4, cost_usd=0.5))
        assert tokens(store) == Tokens(input_tokens=7, output_tokens=1, cost_usd=0.5)
        assert tokens(store, "other") == Tokens()

    def test_what_a_host_reported_stays_when_its_log_is_read_again(self, store: Store) -> None:
        write(store, "s", usage=(Usage(key="a", model="m", input_tokens=3),))
        reported = Usage(key=f"{REPORTED_USAGE}r", model="m", task="review", input_tokens=5)
        store.usage.add("s", reported)
        session = Session(id=SessionId("s"), source="test", log="/l")
        anew = Usage(key="b", model="m", input_tokens=4)
        with store.writing() as writing:
            writing.add(Fragment(session=session, usage=(anew,), replaces=True))
            writing.finish()
        assert [one.key for one in store.sessions.usage("s")] == ["b", reported.key]

    def test_repeating_changes_nothing(self, store: Store) -> None:
        write(store, "s")
        one = Usage(key="a", model="m", at=5.0, input_tokens=3, cost_usd=0.1, cost_origin="model")
        store.usage.add("s", one)
        store.usage.add("s", one)
        assert store.sessions.usage("s") == [one]


WRONG: dict[str, object] = {
    "negative": -1,
    "nan": float("nan"),
    "infinite": float("inf"),
    "too_large": 2**70,
    "text": "12",
    "flag": True,
    "half": 0.5,
    "list": [1],
}


class TestNumbers:
    def test_an_invalid_count_is_unknown(self, store: Store) -> None:
        write(store, *WRONG)
        for kind, value in WRONG.items():
            wrong = {
                field: value
                for field in (*Tokens.__struct_fields__, "api_calls", "at")
                if kind != "half" or field not in ("cost_usd", "at")
            }
            store.usage.add(kind, Usage(**{"key": "a", "model": "m", **wrong}))
            assert store.sessions.usage(kind) == [Usage(key="a", model="m")], kind


class TestErrors:
    def test_a_missing_session(self, store: Store) -> None:
        """A prefix of an id is not enough to count by."""
        write(store, "s1")
        for name in ("absent", "", "s", "\x00"):
            with pytest.raises(UnknownSession, match="Record the session first"):
                store.usage.add(name, Usage(key="a", input_tokens=1))


class TestConcurrency:
    def run(self, url: str, *works: Callable[[Store], None]) -> None:
        failures: list[Exception] = []

        def run_one(work: Callable[[Store], None]) -> None:
            try:
                with Store(url, busy_timeout_s=60) as own:
                    work(own)
            except Exception as error:  # noqa: BLE001 - reported to the test below
                failures.append(error)

        threads = [threading.Thread(target=run_one, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []

    def test_no_increment_is_lost_and_none_is_counted_twice(
        self, store: Store, database_url: str
    ) -> None:
        write(store, "s")

        def work(own: Store) -> None:
            for number in range(20):
                own.usage.add("s", Usage(key=f"{number}", model="m", input_tokens=1))

        self.run(database_url, work, work, work)
        assert tokens(store).input_tokens == 20


CHOICES: list[SessionFilters] = [
    {"source": "x"},
    {"model": "big"},
    {"tag": "warm"},
    {"since": DAY},
    {"until": DAY},
    {"subagents": False},
    {"min_messages": 1},
    {"min_messages": 2},
]


class TestSums:
    def test_a_session_is_counted_once_whatever_its_usage(self, store: Store) -> None:
        write(store, "a", "b", "silent")
        for name in "ab":
            for number, model in enumerate(["m", "m", "n"]):
                usage = Usage(key=f"{number}", model=model, at=DAY + number * DAY_S, api_calls=0)
                store.usage.add(name, usage)
        found = report(store, "model")
        assert {line.key: line.sessions for line in found.rows} == {"m": 2, "n": 2}
        assert (found.total.sessions, found.sessions) == (2, 3)
        assert calls_by(store, "model") == {"m": 4, "n": 2}
        days = {line.key: line.sessions for line in report(store, "day").rows}
        assert days == {"1972-09-27": 2, "1972-09-28": 2, "1972-09-29": 2}

    def test_usage_without_a_time_counts_on_the_day_of_its_session(self, store: Store) -> None:
        write(store, "s", started_at=DAY + 5.0)
        store.usage.add("s", Usage(key="a", input_tokens=1))
        assert calls_by(store, "day") == {"1972-09-27": 1}

    def test_filters_select_like_the_list(self, store: Store) -> None:
        sub = Lineage(parent=SessionId("a"), kind="subagent")
        write(store, "a", source="x", model="big", started_at=DAY + 1, tags=("warm", "x"))
        write(store, "b", source="y", model="small", started_at=DAY - 1, tags=("warmer",))
        write(store, "c", source="x", model="small", lineage=sub)
        names = ["a", "b", "c"]
        for name in names:
            store.usage.add(name, Usage(key="k", model=name))
        sizes = []
        for chosen in CHOICES:
            listed = {one.session.id for one in store.sessions.list(**chosen)}
            assert calls_by(store, "model", **chosen) == dict.fromkeys(listed, 1), chosen
            assert report(store, "task", **chosen).sessions == len(listed)
            sizes.append(len(listed))
        assert sizes == [2, 1, 1, 1, 1, 2, 3, 0]
