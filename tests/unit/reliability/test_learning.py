"""Early against late, first against later use."""

import pytest
from tests.tables import table

from journeyman.records import JudgedCall, JudgedSession, SessionId, Verdict
from journeyman.reliability.learning import learning

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
