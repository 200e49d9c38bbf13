"""Comparing warm with cold sessions."""

import pytest
from tests.tables import table

from journeyman.records import JudgedCall, JudgedSession, SessionId, Verdict
from journeyman.reliability.comparison import Comparison, compare
from journeyman.reliability.rates import newcombe, wilson

OK = Verdict(status="ok", rule="")
FAILED = Verdict(status="failed", rule="")
UNKNOWN = Verdict(status="unknown", rule="")


def session(name: str, errors: int, calls: int, *, tool: str = "a") -> JudgedSession:
    verdicts = [FAILED] * errors + [OK] * (calls - errors) + [UNKNOWN] * 3
    return JudgedSession(
        id=SessionId(name),
        source="test",
        model="",
        messages=0,
        tags=(),
        calls=tuple(
            JudgedCall(call_id=str(n), tool=tool, verdict=verdict, index=n)
            for n, verdict in enumerate(verdicts)
        ),
    )


def many(name: str, *counts: tuple[int, int], times: int = 1) -> list[JudgedSession]:
    return [
        session(f"{name}{round_}.{n}", *pair)
        for round_ in range(times)
        for n, pair in enumerate(counts)
    ]


class TestTwoSessions:
    def test_verdicts_and_readings(self) -> None:
        # Newcombe's interval.
        found = compare([session("w", 3, 100)], [session("c", 15, 100)])
        assert found.difference == newcombe(wilson(3, 100), wilson(15, 100))
        assert found.verdict == "better"
        assert (found.warm.sessions, found.warm.calls) == (1, 100)
        assert found.reading == (
            "The warm session has 12.0 points fewer errors than the"
            " cold one (3.0 % against 15.0 %; 95 % interval: 4.1 to 20.5 fewer). Chance is"
            " unlikely to explain this."
        )
        assert found.note.startswith("The result applies to these two sessions")

        # Sides swapped.
        assert compare([session("w", 15, 100)], [session("c", 3, 100)]).verdict == "worse"

        # Equal sessions.
        found = compare([session("w", 2, 20)], [session("c", 3, 30)])
        assert "has the same error rate as the cold one" in found.reading
        assert found.reading.endswith("This may be due to chance.")


class TestTwoSets:
    def test_verdicts_and_intervals(self) -> None:
        # A clear difference.
        found = compare(
            many("w", (0, 20), (1, 25), (2, 22), times=5),
            many("c", (4, 20), (5, 25), (3, 22), times=5),
        )
        assert found.verdict == "better"
        assert (found.warm.sessions, found.warm.calls, found.warm.rate.errors) == (15, 335, 15)
        assert found.difference.method == "Newcombe 95 %, by session"
        assert found.reading.startswith(
            "Warm sessions have 13.4 points fewer errors than cold ones"
        )

        # A side without errors is not considered perfect.
        found = compare(many("w", (0, 10), times=10), many("c", (4, 10), (0, 10), times=5))
        assert found.difference.high is not None
        assert found.warm.rate.high is not None
        assert found.warm.rate.high > 0.1

        # One session against several is undecided.
        found = compare([session("w", 0, 500)], many("c", (5, 20), (6, 20), times=10))
        assert found.verdict == "undecided"
        assert found.difference.estimate == pytest.approx(-11 / 40)
        assert found.difference.low is None
        assert found.difference.note == ("not enough data: 1 warm session with calls; 8 are needed")
        assert found.reading == (
            "Not enough data to compare warm with cold: 1 warm session with calls; 8 are needed."
            " So far the error rates are 0.0 % against 27.5 %."
        )

    def test_sessions_that_fail_as_a_whole_decide_nothing(self) -> None:
        spread = compare(many("w", (1, 10), times=10), many("c", (3, 10), times=10))
        whole = compare(
            many("w", (10, 10)) + many("v", (0, 10), times=9),
            many("c", (10, 10), times=3) + many("d", (0, 10), times=7),
        )
        assert spread.difference.estimate == whole.difference.estimate
        assert spread.verdict == "better"
        assert whole.difference.low is None
        assert whole.verdict == "undecided"
        more = compare(
            many("w", (10, 10), times=3) + many("v", (0, 10), times=27),
            many("c", (10, 10), times=7) + many("d", (0, 10), times=23),
        )
        assert more.difference.low is not None
        assert more.verdict == "undecided"

    def test_counted_sessions(self) -> None:
        # Sessions without calls do not count.
        found = compare(
            many("w", (1, 9), (0, 9), times=6) + many("e", (0, 0), times=9),
            many("c", (2, 9), times=7) + many("f", (0, 0), times=3),
        )
        assert found.warm.sessions == 21
        assert found.difference.note == "not enough data: 7 cold sessions with calls; 8 are needed"

        # A session on both sides is reported.
        warm = many("w", (1, 9), (0, 9), times=6)
        both = compare(warm, [*many("c", (1, 9), times=9), warm[0]])
        assert both.note.startswith("1 session is on both sides")
        assert compare(warm[:2], warm[:2]).note.startswith("2 sessions are on both sides")
        assert compare(warm[:1], warm[:1]).note.startswith("1 session is on both sides")

        # A session passed twice counts once.
        assert compare([session("w", 1, 9)] * 9, [session("c", 1, 9)] * 9).warm.calls == 9


DEGENERATE = {
    "nothing": [],
    "no calls": many("n", (0, 0), times=10),
    "one call": [session("o", 1, 1)],
    "all ok": many("k", (0, 9), times=10),
    "all errors": many("e", (9, 9), times=10),
}


def is_unknown(found: Comparison) -> bool:
    return (found.difference.low, found.difference.high) == (None, None)


@table("warm", DEGENERATE)
@table("cold", DEGENERATE)
def test_degenerate_input_is_explained(warm: str, cold: str) -> None:
    found = compare(DEGENERATE[warm], DEGENERATE[cold])
    if {warm, cold} == {"all ok", "all errors"}:
        assert found.verdict == ("better" if warm == "all ok" else "worse")
        return
    assert found.verdict == "undecided"
    assert found.reading.endswith(".")
    if (warm, cold) != ("one call", "one call"):
        assert is_unknown(found)
        assert found.difference.note.startswith("not enough data: ")
