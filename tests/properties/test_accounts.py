"""Whatever is counted in whatever order, the totals are those of a model that one can check."""

import itertools
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from journeyman.accounting import Accounting
from journeyman.records import Fragment, Session, SessionId, Tokens, Usage
from journeyman.store.store import Store

COLUMNS = Tokens.__struct_fields__
SESSIONS = ("one", "two")

counts = st.none() | st.integers(0, 10**6)
costs = st.none() | st.integers(0, 1000).map(lambda eighths: eighths / 8)
usages = st.builds(
    Usage,
    key=st.sampled_from(["a", "b", "c", "d"]),
    model=st.sampled_from(["m", "n"]),
    task=st.sampled_from(["", "compression"]),
    at=st.none() | st.integers(10**9, 10**9 + 10**6).map(float),
    api_calls=st.integers(1, 4),
    input_tokens=counts,
    output_tokens=counts,
    cache_read_tokens=counts,
    cache_write_tokens=counts,
    reasoning_tokens=counts,
    cost_usd=costs,
)


class Step(NamedTuple):
    session: str
    is_total: bool
    usage: Usage
    times: int


steps = st.lists(
    st.builds(Step, st.sampled_from(SESSIONS), st.booleans(), usages, st.integers(1, 2)),
    max_size=25,
)


class Book:
    """The model: for a session, its increments by key, its totals, and the keys in a total."""

    def __init__(self) -> None:
        self.increments: dict[str, Usage] = {}
        self.totals: dict[tuple[str, str], Usage] = {}
        self.in_total: dict[str, tuple[str, str]] = {}

    def add(self, usage: Usage) -> None:
        account = (usage.model, usage.task)
        if self.in_total.get(usage.key) == account:
            return
        self.in_total.pop(usage.key, None)
        self.increments[usage.key] = usage

    def set_total(self, usage: Usage) -> None:
        account = (usage.model, usage.task)
        for key, one in list(self.increments.items()):
            if (one.model, one.task) == account:
                del self.increments[key]
                self.in_total[key] = account
        self.totals[account] = usage

    def entries(self) -> list[Usage]:
        return [*self.increments.values(), *self.totals.values()]


def known_sum(entries: list[Usage], column: str) -> float | None:
    known = [value for one in entries if (value := getattr(one, column)) is not None]
    return sum(known) if known else None


def no_prices(_model: str, _tokens: Tokens, *, base_url: str = "", at: float | None = None) -> None:
    return None


@pytest.fixture(scope="module")
def one_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(f"sqlite:///{tmp_path_factory.mktemp('store') / 'j.db'}")


runs = itertools.count()


@given(steps)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_totals_are_those_of_the_model(one_store: Store, given_steps: list[Step]) -> None:
    source = f"run{next(runs)}"  # one store, and sessions of their own for each example
    ids = {name: SessionId(f"{source}-{name}") for name in SESSIONS}
    with one_store.writing() as writing:
        for session_id in ids.values():
            writing.add(Fragment(session=Session(id=session_id, source=source)))
        writing.finish()
    books = {name: Book() for name in SESSIONS}
    for step in given_steps:
        book, accounts = books[step.session], one_store.accounts
        for _ in range(step.times):
            if step.is_total:
                book.set_total(step.usage)
                accounts.set_total(ids[step.session], step.usage)
            else:
                book.add(step.usage)
                accounts.add(ids[step.session], step.usage)

    for name, book in books.items():
        found = one_store.sessions.get(ids[name]).tokens
        entries = book.entries()
        assert found == Tokens(**{column: known_sum(entries, column) for column in COLUMNS})

    report = Accounting(one_store, no_prices).report("model", source=source)
    everything = [one for book in books.values() for one in book.entries()]
    assert {line.key for line in report.rows} == {one.model for one in everything}
    for line in [*report.rows, report.total]:
        entries = [one for one in everything if line is report.total or one.model == line.key]
        assert line.api_calls == sum(one.api_calls for one in entries)
        for column in COLUMNS:
            assert getattr(line, column) == known_sum(entries, column)
        assert line.unknown_cost == sum(one.api_calls for one in entries if one.cost_usd is None)
