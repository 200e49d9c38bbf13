"""Getting better inside sessions, and the bootstrap behind its intervals."""

from math import sqrt

import numpy as np
import pytest
from tests.tables import table

from journeyman.records import JudgedCall, JudgedSession, SessionId, Verdict
from journeyman.reliability.clusters import t_quantile
from journeyman.reliability.learning import (
    MOST_GROUPS,
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
    """A session from calls like `read+ write-`: + worked, - failed, ? unknown, ! refused."""
    judged = tuple(
        JudgedCall(call_id=str(n), tool=call[:-1], verdict=VERDICTS[call[-1]], index=n)
        for n, call in enumerate(calls.split())
    )
    return JudgedSession(
        id=SessionId(name), source="test", model="", messages=0, tags=(), calls=judged
    )


def sessions(*kinds: tuple[int, str]) -> list[JudgedSession]:
    """Each text that many times, under names of their own."""
    return [
        session(calls, f"{kind}.{n}")
        for kind, (times, calls) in enumerate(kinds)
        for n in range(times)
    ]


class TestParts:
    def test_which_calls(self) -> None:
        # A fifth of the calls that count at each end.
        ten = "a- ? a+ " + "a? " * 30 + "a+ a+ a+ a+ a+ a- a- a!"
        found = learning([session(ten.replace(" ? ", " a? "))])
        assert (found.early.errors, found.early.total) == (1, 2)
        assert (found.late.errors, found.late.total) == (2, 2)
        assert found.sessions == 1

        # A session given twice counts once.
        assert learning([session("a+ " * 5)] * 3).early.total == 1

    @table(
        ("calls", "share", "size"),
        [(4, 0.2, 0), (5, 0.2, 1), (7, 0.2, 1), (8, 0.2, 2), (5, 0.5, 2), (7, 0.5, 3), (8, 0.5, 4)],
    )
    def test_their_size(self, calls: int, share: float, size: int) -> None:
        found = learning([session("a+ " * calls)], share=share)
        assert (found.early.total, found.late.total) == (size, size)

    @table("share", [0.0, -0.2, 0.6])
    def test_a_share_that_is_none_is_refused(self, share: float) -> None:
        with pytest.raises(ValueError, match=r"at most 0\.5"):
            learning([], share=share)


class TestLikeWithLike:
    # Reads never fail and come first; a late write fails less often than an early one.
    TRAP = (
        (6, "read+ read+ read+ write- read+ write+ write+ write- write+ write+"),
        (6, "read+ read+ read+ write- read+ write+ write+ write- write- write+"),
        (3, "read+ read+ read+ read+ write- write+ write+ write- write- write+"),
    )

    def test_the_crude_figure_has_the_wrong_sign(self) -> None:
        # The crude figure has the wrong sign.
        found = learning(sessions(*self.TRAP), share=0.5)
        assert found.crude.estimate is not None
        assert found.crude.estimate > 0
        assert found.stratified.decided
        assert found.stratified.estimate is not None
        assert found.stratified.estimate < 0
        assert found.reading.startswith("The agent improves within a session: with the same")
        assert "point the other way" in found.reading
        assert "do not go by that figure" in found.reading

        # Only tools used in both parts are compared.
        found = learning(sessions(*self.TRAP), share=0.5)
        assert found.strata == 1
        assert found.used == pytest.approx((12 * 6 + 3 * 6) / 150)

    def test_readings(self) -> None:
        # Worse is called worse.
        worse = sessions((6, "a+ a+ a+ a- a-"), (6, "a+ a+ a+ a+ a-"), (2, "a- a+ a+ a+ a+"))
        found = learning(worse, share=0.5)
        assert found.stratified.decided
        assert found.reading.startswith("The agent gets worse within a session: with the same")
        assert "other way" not in found.reading

        # An open question is left open.
        found = learning(sessions((5, "a- a+ a+ a+ a+"), (4, "a+ a+ a+ a+ a-")))
        assert not found.stratified.decided
        assert found.stratified.low is not None
        assert found.reading.startswith("No change within a session is shown: with the same")


class TestFirstUse:
    def test_first_uses(self) -> None:
        # Each tool has its first use in each session.
        found = learning(sessions((2, "a- b+ a+ a+ b-")))
        assert (found.first.errors, found.first.total) == (2, 4)
        assert (found.later.errors, found.later.total) == (2, 6)

        # An agent that only tries again has not learnt. Half of all calls fail, and a failed one is
        # made again until it works.
        again = sessions((16, "a+"), (8, "a- a+"), (4, "a- a- a+"), (4, "a- a- a- a+"))
        found = learning(again)
        assert found.first_later.estimate == pytest.approx(12 / 28 - 16 / 32)
        assert not found.first_later.decided


def nothing_known(name: str) -> list[JudgedSession]:
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
        ("no sessions", "0 sessions with at least 5 calls that count, 8 are needed"),
        ("no calls", "0 sessions with at least 5 calls that count, 8 are needed"),
        ("one call", "0 sessions with at least 5 calls that count, 8 are needed"),
        ("short sessions", "0 sessions with at least 5 calls that count, 8 are needed"),
        ("all unknown", "0 sessions with at least 5 calls that count, 8 are needed"),
        ("all ok", "0 sessions with errors, 5 are needed"),
        ("all errors", "0 sessions with calls that worked, 5 are needed"),
        ("few sessions", "7 sessions with at least 5 calls that count, 8 are needed"),
        ("no tool in both parts", "0 sessions with calls of a tool that is used early and late"),
    ],
)
def test_too_little_is_said_in_words(name: str, missing: str) -> None:
    found = learning(nothing_known(name))
    assert (found.stratified.low, found.stratified.high) == (None, None)
    assert missing in found.stratified.note
    assert found.reading == (
        "Not enough data to say whether the agent improves within a session: "
        f"{found.stratified.note.removeprefix('not enough data: ')}."
    )


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
    number = MOST_GROUPS * 3
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
def test_too_few_sessions_to_draw_are_said_in_words(
    sessions: list[SessionTable], note: str
) -> None:
    found = difference(sessions)
    assert (found.low, found.high) == (None, None)
    assert found.note.startswith("not enough data: ")
    assert note in found.note
