"""The bootstrap over sessions."""

from math import sqrt

import numpy as np
import pytest
from tests.tables import table

from journeyman.reliability import bootstrap
from journeyman.reliability.bootstrap import SessionTable, bootstrap_difference
from journeyman.reliability.clusters import t_quantile
from journeyman.reliability.differences import Difference


def tables(number: int, *, tools: int = 1, seed: int = 0) -> list[SessionTable]:
    """Ten calls of each tool on each side; 20 % of the first fail and 10 % of the second."""
    random = np.random.default_rng(seed)
    errors = random.binomial(10, np.array([0.2, 0.1]), size=(number, tools, 2))
    return [
        {f"tool{n}": (int(first), 10, int(second), 10) for n, (first, second) in enumerate(session)}
        for session in errors
    ]


def difference(sessions: list[SessionTable], **options: int) -> Difference:
    return bootstrap_difference(sessions, method="m", **options)


def width(found: Difference) -> float:
    assert found.low is not None
    assert found.high is not None
    return found.high - found.low


def test_sessions_are_drawn() -> None:
    # The spread of equal sessions is that of their mean.
    sessions = tables(40)
    each = np.array([(row[0] - row[2]) / 10 for table in sessions for row in table.values()])
    found = difference(sessions, draws=20_000)
    failing = sum(any(row[0] + row[2] for row in table.values()) for table in sessions)
    expected = 2 * t_quantile(failing - 1) * each.std(ddof=1) / sqrt(40)
    assert found.estimate == pytest.approx(each.mean())
    assert width(found) == pytest.approx(expected, rel=0.03)

    # Sessions are the unit and not their calls. The same calls in sessions that fail as a whole
    # tell much less.
    whole = [{"": (10, 10, 0, 10)}] * 6 + [{"": (0, 10, 10, 10)}] * 6
    mixed = [{"": (5, 10, 5, 10)}, {"": (6, 10, 4, 10)}, {"": (4, 10, 6, 10)}] * 4
    assert width(difference(whole)) > 3 * width(difference(mixed))

    # A stratum is compared with itself. Reads never fail and come second; writes fail half the time
    # and come first.
    sessions = [{"read": (0, 1, 0, 9), "write": (n % 2 * 4, 8, n % 3 % 2, 2)} for n in range(12)]
    together = [{"": (n % 2 * 4, 9, n % 3 % 2, 11)} for n in range(12)]
    by_tool, crude = difference(sessions), difference(together)
    assert by_tool.estimate == pytest.approx((8 * 2 / 10 * (24 / 96 - 4 / 24)) / (1.6 + 0.9))
    assert crude.estimate == pytest.approx(24 / 108 - 4 / 132)


def test_drawing_is_repeatable_and_bounded() -> None:
    # The same sessions give the same interval.
    sessions = tables(30, tools=3)
    assert difference(sessions) == difference(sessions)
    other = difference(sessions, seed=7)
    assert other != difference(sessions)
    assert width(other) == pytest.approx(width(difference(sessions)), rel=0.1)

    # Very many sessions are drawn in groups.
    number = bootstrap.MOST_GROUPS * 3
    found = difference(tables(number))
    each = [(row[0] - row[2]) / 10 for table in tables(number) for row in table.values()]
    assert found.estimate == pytest.approx(np.mean(each))
    assert width(found) == pytest.approx(2 * 1.96 * np.std(each) / sqrt(number), rel=0.1)


@table(
    ("sessions", "note"),
    [
        ([], "0 sessions with calls, 8 are needed"),
        ([{"": (0, 0, 0, 0)}] * 20, "0 sessions with calls, 8 are needed"),
        (tables(1), "1 session with calls, 8 are needed"),
        (tables(7), "7 sessions with calls, 8 are needed"),
        ([{"": (0, 5, 0, 5)}] * 20, "0 sessions with errors, 5 are needed"),
        ([{"": (5, 5, 5, 5)}] * 20, "0 sessions with calls that worked, 5 are needed"),
        ([{"": (1, 5, 0, 5)}] * 4 + [{"": (0, 5, 0, 5)}] * 20, "4 sessions with errors"),
        ([{"": (3, 5, 1, 5)}] * 20, "all sessions are alike"),
        ([{"a": (3, 5, 0, 0), "b": (0, 0, 1, 5)}] * 20, "no tool has calls on both sides"),
        (
            [{"a": (n % 2, 2, 0, 0)} for n in range(20)] + [{"a": (0, 0, 1, 2)}],
            "too few sessions have calls of the same tool on both sides",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_too_little_is_said_in_words(sessions: list[SessionTable], note: str) -> None:
    found = difference(sessions)
    assert (found.low, found.high) == (None, None)
    assert found.note.startswith("not enough data: ")
    assert note in found.note
