"""Usage counted in any order adds up to the totals of a simple reference ledger."""

import itertools
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from journeyman.records import Fragment, Session, SessionId, Tokens, Usage
from journeyman.store.accounting import Accounting
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
    usage: Usage
    times: int


steps = st.lists(
    st.builds(Step, st.sampled_from(SESSIONS), usages, st.integers(1, 2)),
    max_size=25,
)


def known_sum(entries: list[Usage], column: str) -> float | None:
    known = [value for one in entries if (value := getattr(one, column)) is not None]
    return sum(known) if known else None


def no_prices(_model: str, _tokens: Tokens, *, base_url: str = "", at: float | None = None) -> None:
    return None


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(f"sqlite:///{tmp_path_factory.mktemp('store') / 'j.db'}")


runs = itertools.count()


@given(steps)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_totals_match_the_reference_ledger(shared_store: Store, drawn_steps: list[Step]) -> None:
    source = f"run{next(runs)}"  # separate sessions per example in a shared store
    ids = {name: SessionId(f"{source}-{name}") for name in SESSIONS}
    with shared_store.writing() as writing:
        for session_id in ids.values():
            writing.add(Fragment(session=Session(id=session_id, source=source)))
        writing.finish()
    ledgers: dict[str, dict[str, Usage]] = {name: {} for name in SESSIONS}
    for step in drawn_steps:
        ledger, accounts = ledgers[step.session], shared_store.usage
        for _ in range(step.times):
            ledger[step.usage.key] = step.usage
            accounts.add(ids[step.session], step.usage)

    for name, ledger in ledgers.items():
        totals = shared_store.sessions.get(ids[name]).tokens
        entries = [*ledger.values()]
        assert totals == Tokens(**{column: known_sum(entries, column) for column in COLUMNS})

    report = Accounting(shared_store, no_prices).report("model", source=source)
    everything = [one for ledger in ledgers.values() for one in ledger.values()]
    assert {line.key for line in report.rows} == {one.model for one in everything}
    for line in [*report.rows, report.total]:
        entries = [one for one in everything if line is report.total or one.model == line.key]
        assert line.api_calls == sum(one.api_calls for one in entries)
        for column in COLUMNS:
            assert getattr(line, column) == known_sum(entries, column)
        assert line.unknown_cost == sum(one.api_calls for one in entries if one.cost_usd is None)
