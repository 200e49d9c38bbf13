"""Tables of cases: one test that reports every failing case."""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet

Test = Callable[..., None]


def table(
    names: str | Sequence[str],
    rows: Iterable[Any],
    ids: Iterable[object] | Callable[[Any], object] | None = None,
) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize`, but as a single test: fixtures are created once for all
    rows.
    """
    columns = [one.strip() for one in names.split(",")] if isinstance(names, str) else [*names]
    cases = [_case(row, len(columns)) for row in rows]
    assert cases, "a table without rows tests nothing"
    if callable(ids):
        named = [",".join(str(ids(value)) for value in case.values) for case in cases]
    else:
        named = [str(one) for one in ids] if ids else [_name(case) for case in cases]

    def decorated(test: Test) -> Test:
        @functools.wraps(test)
        def every_row(*args: Any, **fixtures: Any) -> None:
            misses = []
            for name, case in zip(named, cases, strict=True):
                try:
                    test(*args, **fixtures, **dict(zip(columns, case.values, strict=True)))
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001
                    misses.append(f"[{name}] {type(error).__name__}: {error}")
            if misses:
                count = f"{len(misses)} of {len(cases)} rows miss"
                pytest.fail("\n".join((f"{test.__name__}: {count}", *misses)), pytrace=False)

        asked = inspect.signature(test)
        kept = [one for name, one in asked.parameters.items() if name not in columns]
        every_row.__signature__ = asked.replace(parameters=kept)  # type: ignore[attr-defined]
        return every_row

    return decorated


def _case(row: Any, columns: int) -> ParameterSet:
    if isinstance(row, ParameterSet):
        assert not row.marks, "a row of a table has no marks of its own"
        return row
    return ParameterSet.param(*row) if columns > 1 else ParameterSet.param(row)


def _name(case: ParameterSet) -> str:
    return str(case.id) if case.id else ", ".join(repr(value)[:80] for value in case.values)
