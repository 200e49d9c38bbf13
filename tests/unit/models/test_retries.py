"""When to ask again, and how long to wait before."""

import pytest
from tests.tables import table

from journeyman.models.retries import delay_s, find_asked_delay, passes

NOON = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@table("status", [400, 401, 404, 408, 409, 422, 429, 500, 529])
def test_statuses_that_pass(status: int) -> None:
    assert passes(status) == (status in (408, 409, 429, 500, 529))


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


@table(
    ("failures", "asked_s", "chance", "waited"),
    [
        *((failures, None, 0.0, s) for failures, s in ((1, 0.5), (2, 1), (3, 2), (50, 30))),
        *((3, None, chance, s) for chance, s in ((1.0, 1), (0.5, 1.5))),
        *((1, asked, 1.0, s) for asked, s in ((9, 9), (1e9, 120))),
    ],
)
def test_how_long_to_wait(
    failures: int, asked_s: float | None, chance: float, waited: float
) -> None:
    assert delay_s(failures, asked_s, lambda: chance) == waited
