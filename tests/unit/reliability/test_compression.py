"""Whether compressions preserved proficiency."""

import random
from collections import Counter

import msgspec
import pytest
from tests.tables import table

from journeyman.records import JudgedCall, Verdict
from journeyman.reliability.compression import (
    FEWEST_CALLS,
    CompressionReport,
    Step,
    Stretch,
    compression,
)

OK = Verdict(status="ok", rule="test")
FAILED = Verdict(status="failed", rule="test", evidence="no")


def calls(errors: int, total: int, tool: str = "bash") -> tuple[JudgedCall, ...]:
    return tuple(
        JudgedCall(call_id=f"{tool}{at}", tool=tool, verdict=FAILED if at < errors else OK)
        for at in range(total)
    )


def stretch(*parts: tuple[int, int] | tuple[int, int, str], label: str = "part") -> Stretch:
    """Parts are errors, calls and the tool."""
    return Stretch(label=label, calls=tuple(call for part in parts for call in calls(*part)))


def step(before: Stretch, after: Stretch) -> Step:
    (found,) = compression([before, after]).steps
    return found


class TestStates:
    @table(
        ("before", "after"),
        [
            ((10, 100), (10, 100)),
            ((10, 100), (12, 100)),
            ((10, 100), (0, 100)),
            ((5, 50), (6, 50)),
            ((0, 100), (0, 100)),
            ((FEWEST_CALLS, FEWEST_CALLS), (FEWEST_CALLS, FEWEST_CALLS)),
        ],
    )
    def test_up_to_a_fifth_more_is_preserved(
        self, before: tuple[int, int], after: tuple[int, int]
    ) -> None:
        assert step(stretch(before), stretch(after)).state == "preserved"

    @table(("before", "after"), [((5, 100), (20, 100)), ((0, 60), (10, 60)), ((1, 20), (12, 20))])
    def test_more_than_that_and_surely_is_lost(
        self, before: tuple[int, int], after: tuple[int, int]
    ) -> None:
        found = step(stretch(before), stretch(after))
        assert found.state == "lost"
        assert found.difference.low is not None
        assert found.difference.low > 0

    @table(("before", "after"), [((10, 100), (13, 100)), ((0, 30), (1, 30)), ((2, 40), (4, 40))])
    def test_more_than_that_but_maybe_by_chance_is_undecided(
        self, before: tuple[int, int], after: tuple[int, int]
    ) -> None:
        found = step(stretch(before), stretch(after))
        assert found.state == "undecided"
        assert "may be chance" in found.reading

    def test_counts_and_limits(self) -> None:
        # Surely more but within a fifth is undecided.
        found = step(stretch((3000, 20_000)), stretch((3400, 20_000)))
        assert found.state == "undecided"
        assert "surely more often, but not more than 1.2 times as often" in found.reading

        # Only calls that count are counted.
        unknown = Verdict(status="unknown", rule="test")
        refused = Verdict(status="refused", rule="test")
        silent = tuple(
            JudgedCall(call_id=str(at), tool="bash", verdict=(unknown, refused)[at % 2])
            for at in range(50)
        )
        found = step(Stretch(label="a", calls=silent), stretch((1, 50)))
        assert found.before.total == 0
        assert found.before.estimate is None
        assert found.difference.estimate is None
        assert found.ratio is None
        assert "0 calls before and 50 after" in found.reading

    @table(
        ("before", "after"),
        [((0, 3), (0, 2)), ((0, 19), (0, 100)), ((0, 100), (0, 19)), ((0, 10), (10, 10))],
    )
    def test_few_calls_decide_nothing(
        self, before: tuple[int, int], after: tuple[int, int]
    ) -> None:
        found = step(stretch(before), stretch(after))
        assert found.state == "undecided"
        assert f"{before[1]} calls before and {after[1]} after can be counted" in found.reading
        assert str(FEWEST_CALLS) in found.reading


class TestLikeWithLike:
    def test_what_the_work_explains(self) -> None:
        # Harder work is no lost proficiency. Reads before, writes after, each tool as reliable as
        # ever.
        before = stretch((1, 90, "read_file"), (3, 10, "patch"))
        after = stretch((0, 10, "read_file"), (27, 90, "patch"))
        found = step(before, after)
        assert found.difference.low is not None
        assert found.difference.low > 0
        assert found.state == "undecided"
        assert "with the same tools it may be chance" in found.reading

        # Easier work hides no lost proficiency.
        before = stretch((1, 50, "read_file"), (40, 50, "patch"))
        after = stretch((30, 90, "read_file"), (10, 10, "patch"))
        found = step(before, after)
        assert found.difference.estimate == pytest.approx(-0.01)
        assert found.state == "undecided"
        assert "easier work hides it" in found.reading

        # Without a tool on both sides nothing can be said.
        found = step(stretch((5, 50, "read_file")), stretch((5, 50, "patch")))
        assert found.state == "undecided"
        assert "no tool was used on both sides" in found.reading
        assert found.same_tools_before.estimate is None
        assert found.same_tools_after.estimate is None

    def test_the_rate_before(self) -> None:
        # The rate before is that of the tools used after.
        before = stretch((2, 20, "a"), (10, 20, "b"), (20, 20, "gone"))
        after = stretch((3, 30, "a"), (5, 10, "b"), (9, 9, "new"))
        found = step(before, after)
        # 30 of 40 calls at 10 %, 10 of 40 at 50 %.
        assert found.same_tools_before.estimate == pytest.approx(0.2)
        assert (found.same_tools_before.errors, found.same_tools_before.total) == (12, 40)
        assert (found.same_tools_after.errors, found.same_tools_after.total) == (8, 40)
        assert found.same_tools_difference.estimate == pytest.approx(0.0)

        # With one tool it is the plain comparison.
        found = step(stretch((5, 50)), stretch((9, 40)))
        assert found.same_tools_before.low == pytest.approx(found.before.low)
        assert found.same_tools_before.high == pytest.approx(found.before.high)
        assert found.same_tools_difference.low == pytest.approx(found.difference.low)
        assert found.same_tools_difference.high == pytest.approx(found.difference.high)


def test_what_a_step_says() -> None:
    # Ratio and difference are after against before.
    found = step(stretch((5, 100)), stretch((20, 100)))
    assert found.ratio == pytest.approx(4.0)
    assert found.difference.estimate == pytest.approx(0.15)
    # Wilson gives 2.15 to 11.18 % before and 13.34 to 28.88 % after.
    assert found.difference.low == pytest.approx(0.0592, abs=5e-5)
    assert found.difference.high == pytest.approx(0.2433, abs=5e-5)

    # No error before leaves no ratio.
    assert step(stretch((0, 50)), stretch((2, 50))).ratio is None
    assert step(stretch((2, 50)), stretch((0, 50))).ratio == 0.0

    # Tools that went worse come with the most errors first.
    before = stretch((1, 20, "a"), (1, 20, "b"), (5, 20, "better"), (2, 20, "same"), (1, 5, "gone"))
    after = stretch((5, 20, "a"), (12, 30, "b"), (1, 20, "better"), (2, 20, "same"), (4, 5, "new"))
    worse = step(before, after).worse_tools
    assert [one.tool for one in worse] == ["b", "a"]
    assert (worse[0].before.errors, worse[0].before.total) == (1, 20)
    assert (worse[0].after.errors, worse[0].after.total) == (12, 30)
    assert [one.tool for one in step(stretch((0, 10)), stretch((1, 10))).worse_tools] == ["bash"]

    # What a person reads.
    lost = step(stretch((4, 100)), stretch((20, 100)))
    assert lost.reading == (
        "Lost: 4.0 % of 100 calls failed before, 20.0 % of 100 calls failed after, more than 1.2 "
        "times as often, and that is hardly chance. Worse than before: bash."
    )
    kept = step(stretch((8, 100)), stretch((7, 100)))
    assert kept.reading.startswith(
        "Preserved: 8.0 % of 100 calls failed before, 7.0 % of 100 calls failed after, not more "
        "than 1.2 times as often. A rise of more than 6."
    )
    better = step(stretch((50, 100)), stretch((1, 100)))
    assert better.reading == (
        "Preserved: 50.0 % of 100 calls failed before, 1.0 % of 100 calls failed after, surely "
        "less often."
    )

    # A report is JSON and comes back.
    report = compression([stretch((1, 30)), stretch((9, 30)), stretch()])
    written = msgspec.json.encode(report)
    assert msgspec.json.decode(written, type=CompressionReport) == report
    assert b"NaN" not in written


class TestChains:
    good = stretch((5, 50))
    bad = stretch((30, 50))
    few = stretch((0, 2))

    @table(
        ("stretches", "state", "reading"),
        [
            ((good, good), "preserved", "Proficiency was preserved at the one compression."),
            ((good, good, good), "preserved", "Proficiency was preserved at 2 of 2 compressions."),
            ((good, bad, bad), "lost", "Proficiency was lost at 1 of 2 compressions."),
            ((bad, few, good, bad), "lost", "Proficiency was lost at 1 of 3 compressions."),
            ((good, good, few), "undecided", "It is undecided at 1 of 2 compressions."),
        ],
        ids=["kept", "kept twice", "lost once", "lost among few", "one undecided"],
    )
    def test_the_chain(self, stretches: tuple[Stretch, ...], state: str, reading: str) -> None:
        report = compression(stretches)
        assert (report.state, report.reading) == (state, reading)
        assert len(report.steps) == len(stretches) - 1

    def test_steps_and_what_has_none(self) -> None:
        # Steps name their sides.
        report = compression([stretch((0, 1), label="a"), stretch((0, 1), label="b")])
        assert [(one.before_label, one.after_label) for one in report.steps] == [("a", "b")]

        # One stretch was never compressed.
        report = compression([stretch((1, 50), label="s1")])
        assert report == CompressionReport(steps=(), state=None, reading="s1 was never compressed.")
        assert compression([stretch()]).reading == "part was never compressed."
        assert compression([stretch(label="")]).reading == "The session was never compressed."

        # Nothing at all.
        report = compression([])
        assert (report.steps, report.state) == ((), None)
        assert report.reading == "There is no session to look at."

        # Stretches without calls.
        report = compression([stretch(), stretch(), stretch()])
        assert report.state == "undecided"
        assert "0 calls before and 0 after" in report.steps[0].reading


def simulated(
    chances: dict[str, tuple[float, float]], before: dict[str, int], after: dict[str, int]
) -> Counter[str]:
    """The states of 300 simulated compressions; chances are a tool's error rates before, after."""
    chosen = random.Random(11)
    states: Counter[str] = Counter()
    for _ in range(300):
        sides = [
            stretch(
                *(
                    (sum(chosen.random() < chances[tool][at] for _ in range(count)), count, tool)
                    for tool, count in side.items()
                )
            )
            for at, side in enumerate((before, after))
        ]
        states[step(*sides).state] += 1
    return states


def test_when_nothing_changed_it_is_seldom_called_lost() -> None:
    chances = {"read": (0.05, 0.05), "write": (0.2, 0.2)}
    even = {"read": 40, "write": 40}
    states = simulated(chances, even, even)
    assert states["lost"] <= 300 * 0.05
    assert states["preserved"] >= 300 * 0.5


def test_when_only_the_work_changed_it_is_seldom_called_lost() -> None:
    chances = {"read": (0.02, 0.02), "write": (0.3, 0.3)}
    states = simulated(chances, {"read": 80, "write": 20}, {"read": 20, "write": 80})
    assert states["lost"] <= 300 * 0.05


def test_when_much_was_lost_it_is_mostly_seen() -> None:
    chances = {"read": (0.02, 0.2), "write": (0.2, 0.5)}
    even = {"read": 60, "write": 60}
    states = simulated(chances, even, even)
    assert states["lost"] >= 300 * 0.9
    assert states["preserved"] == 0
