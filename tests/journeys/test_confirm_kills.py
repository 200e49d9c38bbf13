"""Kill the confirmation service under load a few times. `benchmarks/confirm_kills.py` does the same
two hundred times and documents the checks.
"""

from pathlib import Path

import pytest
from benchmarks.confirm_kills import run

KINDS = ("submitted", "approved", "denied", "redeemed")


def test_kill_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    result = run(tmp_path, kills=1, first_due_s=0.0, answered=KINDS)
    assert result.violations == []
    assert result.expired > 0


@pytest.mark.soak
def test_repeated_kills_lose_nothing_that_was_answered(tmp_path: Path) -> None:
    result = run(tmp_path, kills=12, answered=KINDS)
    assert result.violations == []
    assert result.while_starting > 0
    assert result.expired > 0
