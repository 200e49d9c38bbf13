"""When to ask again, and how long to wait before."""

import pytest
from tests.tables import table

from journeyman.models.model import Cancelled
from journeyman.models.retries import SLICE_S, delay_s, find_asked_delay, passes, pause

NOON = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@table("status", [408, 409, 429, 500, 529])
def test_statuses_that_pass(status: int) -> None:
    assert passes(status)


@table("status", [400, 401, 404, 422])
def test_statuses_that_do_not(status: int) -> None:
    assert not passes(status)


@table(
    ("headers", "seconds"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"retry-after": "3"}, 3, id="seconds"),
        pytest.param({"retry-after": "0.25"}, 0.25, id="parts_of_a_second"),
        pytest.param({"retry-after-ms": "250", "retry-after": "3"}, 0.25, id="milliseconds"),
        pytest.param({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30, id="date"),
        pytest.param({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0, id="date_gone_by"),
        pytest.param({"retry-after": "-1"}, None, id="negative"),
        pytest.param({"retry-after": "nan"}, None, id="no_number"),
        pytest.param({"retry-after": "tomorrow"}, None, id="words"),
        pytest.param({"retry-after": ""}, None, id="empty"),
        pytest.param({"retry-after-ms": "x", "retry-after": "3"}, 3, id="second_best"),
        pytest.param({"retry-after": "Tue, 99 Nov 9999999 22:13:50 GMT"}, None, id="no_date"),
    ],
)
def test_what_the_server_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    assert find_asked_delay(headers, NOON) == seconds


def test_the_wait_doubles_up_to_a_limit() -> None:
    waits = [delay_s(failures, None, lambda: 0.0) for failures in (1, 2, 3, 4, 50, 5000)]
    assert waits == [0.5, 1, 2, 4, 30, 30]


def test_chance_takes_up_to_half_away() -> None:
    assert delay_s(3, None, lambda: 1.0) == 1
    assert delay_s(3, None, lambda: 0.5) == 1.5


def test_what_is_asked_for_counts_up_to_a_limit() -> None:
    assert delay_s(1, 9, lambda: 1.0) == 9
    assert delay_s(1, 1e9, lambda: 1.0) == 120


def test_a_pause_is_made_in_slices() -> None:
    slept: list[float] = []
    pause(SLICE_S * 2.5, slept.append, lambda: False)
    assert slept == pytest.approx([SLICE_S, SLICE_S, SLICE_S / 2])


def test_a_pause_hears_that_it_was_cancelled() -> None:
    slept: list[float] = []
    with pytest.raises(Cancelled):
        pause(60, slept.append, lambda: len(slept) == 2)
    assert len(slept) == 2
