"""Length bands, and comparing marathons with mid-length sessions."""

import numpy as np
from tests.tables import table

from journeyman.records import JudgedCall, JudgedSession, SessionId, Verdict
from journeyman.reliability.lengths import length_band, marathons


@table(
    ("messages", "name"),
    [
        (-1, "short"),
        (0, "short"),
        (1, "short"),
        (19, "short"),
        (20, "mid"),
        (99, "mid"),
        (100, "marathon"),
        (100_000, "marathon"),
    ],
)
def test_bounds_of_the_bands(messages: int, name: str) -> None:
    assert length_band(messages) == name


OK = Verdict(status="ok", rule="r")
FAILED = Verdict(status="failed", rule="r")


def session(name: str, messages: int, errors: int, calls: int) -> JudgedSession:
    verdicts = [FAILED] * errors + [OK] * (calls - errors)
    return JudgedSession(
        id=SessionId(name),
        source="test",
        model="m",
        messages=messages,
        tags=(),
        calls=tuple(
            JudgedCall(call_id=str(at), tool="t", verdict=verdict)
            for at, verdict in enumerate(verdicts)
        ),
    )


def sessions(number: int, messages: int, errors: list[int], calls: int) -> list[JudgedSession]:
    """Return sessions with error counts that cycle through the list."""
    return [
        session(f"{messages}-{at}", messages, errors[at % len(errors)], calls)
        for at in range(number)
    ]


@table(
    ("judged", "expected", "is_decided"),
    [
        (
            [*sessions(40, 50, [2, 3], 20), *sessions(40, 150, [1, 2], 60)],
            "fewer errors per call",
            True,
        ),
        (
            [*sessions(40, 50, [1, 0], 20), *sessions(40, 150, [9, 8], 60)],
            "more errors per call",
            True,
        ),
        (
            [*sessions(40, 50, [2, 3], 20), *sessions(40, 150, [7, 8], 60)],
            "may be due to chance",
            False,
        ),
        ([*sessions(40, 50, [2, 3], 20), *sessions(3, 150, [1, 2], 60)], "Not enough data", False),
        (sessions(40, 50, [2, 3], 20), "cannot be compared", False),
        (sessions(40, 150, [2, 3], 20), "cannot be compared", False),
        (sessions(40, 5, [2, 3], 20), "cannot be compared", False),
        ([], "cannot be compared", False),
    ],
    ids=[
        *("fewer errors", "more errors", "no difference", "few marathons"),
        *("no marathons", "no mid-length", "only short", "no sessions"),
    ],
)
def test_reading_of_the_comparison(
    judged: list[JudgedSession], expected: str, *, is_decided: bool
) -> None:
    found = marathons(judged)
    assert expected in found.reading
    assert found.difference.decided is is_decided


def test_false_positive_rate_without_a_difference() -> None:
    """Counting calls alone, nine marathons with many calls would seem decisive."""
    random = np.random.default_rng(1)
    false_findings = 0
    for _ in range(300):
        bands = []
        for number, messages, calls in ((9, 150, 110), (90, 50, 12)):
            rates = random.beta(0.08 * 4, 0.92 * 4, size=number)
            for at, rate in enumerate(rates):
                errors = int(random.binomial(calls, rate))
                bands.append(session(f"{messages}-{at}", messages, errors, calls))
        false_findings += marathons(bands).difference.decided
    assert false_findings <= 300 * 0.08
