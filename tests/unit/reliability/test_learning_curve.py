"""Improvement within sessions, and the bootstrap behind its intervals."""

from math import sqrt

import numpy as np
import pytest
from tests.tables import table

from journeyman.records import JudgedCall, JudgedSession, SessionId, Verdict
from journeyman.reliability.clusters import t_quantile
from journeyman.reliability.learning_curve import (
    MAX_GROUPS,
    SessionTable,
    bootstrap_difference,
    learning,
)
from journeyman.reliability.rates import Difference

VERDICTS = {
    "+": Verdict(status="ok", rule=""),
    "-": Verdict(status="failed", rule=""),
    "?": Verdict(status="unknown", rule=""),
    "!": Verdict(status="refused", rule=""),
}


def session(calls: str, name: str = "s") -> JudgedSession:
    """Return a session from calls like `read+ write-`: + worked, - failed, ? unknown, ! refused."""
    judged = tuple(
        JudgedCall(call_id=str(n), tool=call[:-1], verdict=VERDICTS[call[-1]], index=n)
        for n, call in enumerate(calls.split())
    )
    return JudgedSession(
        id=SessionId(name), source="test", model="", messages=0, tags=(), calls=judged
    )


def sessions(*kinds: tuple[int, str]) -> list[JudgedSession]:
    """Return sessions: each text repeated the given number of times, with unique names."""
    return [
        session(calls, f"{kind}.{n}")
        for kind, (times, calls) in enumerate(kinds)
        for n in range(times)
    ]


class TestParts:
    def test_early_and_late_calls(self) -> None:
        # A fifth of the counted calls at each end.
        ten = "a- ? a+ " + "a? " * 30 + "a+ a+ a+ a+ a+ a- a- a!"
        found = learning([session(ten.replace(" ? ", " a? "))])
        assert (found.early.errors, found.early.total) == (1, 2)
        assert (found.late.errors, found.late.total) == (2, 2)
        assert found.sessions == 1

        # A session passed twice counts once.
        assert learning([session("a+ " * 5)] * 3).early.total == 1

    @table(
        ("calls", "share", "size"),
        [(4, 0.2, 0), (5, 0.2, 1), (7, 0.2, 1), (8, 0.2, 2), (5, 0.5, 2), (7, 0.5, 3), (8, 0.5, 4)],
    )
    def test_size_of_the_parts(self, calls: int, share: float, size: int) -> None:
        found = learning([session("a+ " * calls)], share=share)
        assert (found.early.total, found.late.total) == (size, size)


class TestSameTools:
    # Reads never fail and come first; a late write fails less often than an early one.
    CONFOUNDED = (
        (6, "read+ read+ read+ write- read+ write+ write+ write- write+ write+"),
        (6, "read+ read+ read+ write- read+ write+ write+ write- write- write+"),
        (3, "read+ read+ read+ read+ write- write+ write+ write- write- write+"),
    )

    def test_crude_figure_may_have_the_wrong_sign(self) -> None:
        found = learning(sessions(*self.CONFOUNDED), share=0.5)
        assert (found.late.estimate or 0) > (found.early.estimate or 0)
        assert found.stratified.decided
        assert found.stratified.estimate is not None
        assert found.stratified.estimate < 0
        assert found.reading.startswith("The agent improves within a session: with the same")
        assert "point the other way" in found.reading
        assert "do not rely on that figure" in found.reading

    def test_readings(self) -> None:
        # Worse.
        worse = sessions((6, "a+ a+ a+ a- a-"), (6, "a+ a+ a+ a+ a-"), (2, "a- a+ a+ a+ a+"))
        found = learning(worse, share=0.5)
        assert found.stratified.decided
        assert found.reading.startswith("The agent gets worse within a session: with the same")
        assert "other way" not in found.reading

        # No significant change.
        found = learning(sessions((5, "a- a+ a+ a+ a+"), (4, "a+ a+ a+ a+ a-")))
        assert not found.stratified.decided
        assert found.stratified.low is not None
        assert found.reading.startswith("No significant change within a session: with the same")


def insufficient_sessions(name: str) -> list[JudgedSession]:
    return {
        "no sessions": [],
        "no calls": sessions((20, "")),
        "one call": sessions((1, "a-")),
        "short sessions": sessions((20, "a- a+ a+ a+")),
        "all unknown": sessions((20, "a? " * 20)),
        "all ok": sessions((20, "a+ " * 20)),
        "all errors": sessions((20, "a- " * 20)),
        "few sessions": sessions((3, "a- a+ a+ a+ a+"), (4, "a+ a+ a+ a+ a-")),
        "no tool in both parts": sessions((9, "a- a+ b+ c+ c-"), (9, "a+ a+ b+ c+ c-")),
    }[name]


@table(
    ("name", "missing"),
    [
        ("no sessions", "0 sessions with at least 5 counted calls; 8 are needed"),
        ("no calls", "0 sessions with at least 5 counted calls; 8 are needed"),
        ("one call", "0 sessions with at least 5 counted calls; 8 are needed"),
        ("short sessions", "0 sessions with at least 5 counted calls; 8 are needed"),
        ("all unknown", "0 sessions with at least 5 counted calls; 8 are needed"),
        ("all ok", "0 sessions with errors; 5 are needed"),
        ("all errors", "0 sessions with successful calls; 5 are needed"),
        ("few sessions", "7 sessions with at least 5 counted calls; 8 are needed"),
        ("no tool in both parts", "0 sessions with calls of a tool that is used early and late"),
    ],
)
def test_insufficient_data_is_explained(name: str, missing: str) -> None:
    found = learning(insufficient_sessions(name))
    assert (found.stratified.low, found.stratified.high) == (None, None)
    assert missing in found.stratified.note
    assert found.reading == (
        "Not enough data to say whether the agent improves within a session: "
        f"{found.stratified.note.removeprefix('not enough data: ')}."
    )


def tables(number: int, *, tools: int = 1, seed: int = 0) -> list[SessionTable]:
    """Return tables with ten calls per tool and side; 20 % fail on the first, 10 % on the other."""
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


def test_bootstrap_resamples_sessions() -> None:
    # For sessions of equal size, the interval is that of their mean.
    sessions = tables(40)
    each = np.array([(row[0] - row[2]) / 10 for table in sessions for row in table.values()])
    found = difference(sessions, draws=20_000)
    failing = sum(any(row[0] + row[2] for row in table.values()) for table in sessions)
    expected = 2 * t_quantile(failing - 1) * each.std(ddof=1) / sqrt(40)
    assert found.estimate == pytest.approx(each.mean())
    assert width(found) == pytest.approx(expected, rel=0.03)

    # Sessions, not calls, are the unit: sessions that fail as a whole carry much less information.
    whole = [{"": (10, 10, 0, 10)}] * 6 + [{"": (0, 10, 10, 10)}] * 6
    mixed = [{"": (5, 10, 5, 10)}, {"": (6, 10, 4, 10)}, {"": (4, 10, 6, 10)}] * 4
    assert width(difference(whole)) > 3 * width(difference(mixed))

    # A stratum is compared with itself: reads never fail and come second; writes fail half the time
    # and come first.
    sessions = [{"read": (0, 1, 0, 9), "write": (n % 2 * 4, 8, n % 3 % 2, 2)} for n in range(12)]
    together = [{"": (n % 2 * 4, 9, n % 3 % 2, 11)} for n in range(12)]
    by_tool, crude = difference(sessions), difference(together)
    assert by_tool.estimate == pytest.approx((8 * 2 / 10 * (24 / 96 - 4 / 24)) / (1.6 + 0.9))
    assert crude.estimate == pytest.approx(24 / 108 - 4 / 132)


def test_bootstrap_is_repeatable_and_bounded() -> None:
    # The same sessions give the same interval.
    sessions = tables(30, tools=3)
    assert difference(sessions) == difference(sessions)
    other = difference(sessions, seed=7)
    assert other != difference(sessions)
    assert width(other) == pytest.approx(width(difference(sessions)), rel=0.1)

    # Very many sessions are resampled in groups.
    number = MAX_GROUPS * 3
    found = difference(tables(number))
    each = [(row[0] - row[2]) / 10 for table in tables(number) for row in table.values()]
    assert found.estimate == pytest.approx(np.mean(each))
    assert width(found) == pytest.approx(2 * 1.96 * np.std(each) / sqrt(number), rel=0.1)


@table(
    ("sessions", "note"),
    [
        ([], "0 sessions with calls; 8 are needed"),
        ([{"": (0, 0, 0, 0)}] * 20, "0 sessions with calls; 8 are needed"),
        (tables(1), "1 session with calls; 8 are needed"),
        (tables(7), "7 sessions with calls; 8 are needed"),
        ([{"": (0, 5, 0, 5)}] * 20, "0 sessions with errors; 5 are needed"),
        ([{"": (5, 5, 5, 5)}] * 20, "0 sessions with successful calls; 5 are needed"),
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
def test_too_few_sessions_to_resample_are_explained(
    sessions: list[SessionTable], note: str
) -> None:
    found = difference(sessions)
    assert (found.low, found.high) == (None, None)
    assert found.note.startswith("not enough data: ")
    assert note in found.note
