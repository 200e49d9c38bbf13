"""The confirmation service killed under load, a few times; `benchmarks/confirm_kills.py` does the
same two hundred times and says what is held against what.
"""

from pathlib import Path

from benchmarks.confirm_kills import run


def test_nothing_that_was_answered_is_lost_by_kills(tmp_path: Path) -> None:
    result = run(tmp_path, kills=4, tell=print)
    assert result.violations == []
    for kind in ("submitted", "approved", "denied", "redeemed"):
        assert result.answers.get(kind, 0) > 0, f"the load was too light: {result.answers}"
    assert result.expired > 0
