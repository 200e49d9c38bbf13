"""The guard before anything is spent."""

import pytest
from tests.tables import table

from journeyman.records.errors import JobBlocked
from journeyman.schedule.guard import check_window
from journeyman.settings import JobsSettings

MINIMUM = JobsSettings().min_context


def check(model: str, provider: str, window: int | None, minimum: int = MINIMUM) -> str:
    setting = "model.context_length"
    return check_window(model, provider, window, minimum=minimum, setting=setting)


@table("window", [MINIMUM, MINIMUM + 1, 1_000_000])
def test_a_window_that_is_large_enough(window: int) -> None:
    assert check("m", "p", window) == ""


@table("window", [0, 8_192, MINIMUM - 1])
def test_a_window_below_the_minimum_stops_the_job(window: int) -> None:
    with pytest.raises(JobBlocked) as caught:
        check("small-1b", "api.example.org", window)
    told = str(caught.value)
    assert "small-1b (api.example.org)" in told
    assert f"{window:,} tokens" in told
    assert "64,000" in told
    assert "set model.context_length in config.toml" in told
    assert "--model" in told
    assert "model.name" in told


def test_a_window_that_is_not_known_gives_a_warning() -> None:
    warning = check("m", "", None)
    assert warning.startswith("The context window of m could not be found out")
    assert "64,000" in warning
    assert "runs all the same" in warning
