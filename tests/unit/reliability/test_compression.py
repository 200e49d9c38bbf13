"""Whether compression preserves proficiency."""

import random
from collections import Counter

import msgspec
import pytest
from tests.tables import table

from journeyman.records import JudgedCall, Verdict
from journeyman.reliability.compression import (
    MIN_CALLS_PER_SIDE,
    CallSegment,
    CompressionReport,
    CompressionStep,
    compression,
)

OK = Verdict(status="ok", rule="test")
FAILED = Verdict(status="failed", rule="test", evidence="no")


def calls(errors: int, total: int, tool: str = "bash") -> tuple[JudgedCall, ...]:
    return tuple(
        JudgedCall(call_id=f"{tool}{at}", tool=tool, verdict=FAILED if at < errors else OK)
        for at in range(total)
    )


def stretch(*parts: tuple[int, int] | tuple[int, int, str], label: str = "part") -> CallSegment:
    """Return a stretch; each part is errors, calls and optionally the tool."""
    return CallSegment(label=label, calls=tuple(call for part in parts for call in calls(*part)))


def step(before: CallSegment, after: CallSegment) -> CompressionStep:
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
            ((MIN_CALLS_PER_SIDE, MIN_CALLS_PER_SIDE), (MIN_CALLS_PER_SIDE, MIN_CALLS_PER_SIDE)),
        ],
    )
    def test_up_to_a_fifth_more_errors_is_preserved(
        self, before: tuple[int, int], after: tuple[int, int]
    ) -> None:
        assert step(stretch(before), stretch(after)).state == "preserved"

    @table(("before", "after"), [((5, 100), (20, 100)), ((0, 60), (10, 60)), ((1, 20), (12, 20))])
    def test_significantly_more_than_a_fifth_is_lost(
        self, before: tuple[int, int], after: tuple[int, int]
    ) -> None:
        found = step(stretch(before), stretch(after))
        assert found.state == "lost"
        assert found.difference.low is not None
        assert found.difference.low > 0

    @table(("before", "after"), [((10, 100), (13, 100)), ((0, 30), (1, 30)), ((2, 40), (4, 40))])
    def test_more_than_a_fifth_by_chance_is_undecided(
        self, before: tuple[int, int], after: tuple[int, int]
    ) -> None:
        found = step(stretch(before), stretch(after))
        assert found.state == "undecided"
        assert "may be due to chance" in found.reading

    def test_counts_and_limits(self) -> None:
        # Significantly more, but within a fifth, is undecided.
        found = step(stretch((3000, 20_000)), stretch((3400, 20_000)))
        assert found.state == "undecided"
        assert "significantly more often, but not more than 1.2 times as often" in found.reading

        # Only calls that count are counted.
        unknown = Verdict(status="unknown", rule="test")
        refused = Verdict(status="refused", rule="test")
        silent = tuple(
            JudgedCall(call_id=str(at), tool="bash", verdict=(unknown, refused)[at % 2])
            for at in range(50)
        )
        found = step(CallSegment(label="a", calls=silent), stretch((1, 50)))
        assert found.before.total == 0
        assert found.before.estimate is None
        assert found.difference.estimate is None
        assert "0 counted calls before and 50 after" in found.reading


class TestSameTools:
    def test_change_of_tools_is_accounted_for(self) -> None:
        # Harder work is not lost proficiency: reads before, writes after, each tool as reliable as
        # before.
        before = stretch((1, 90, "read_file"), (3, 10, "patch"))
        after = stretch((0, 10, "read_file"), (27, 90, "patch"))
        found = step(before, after)
        assert found.difference.low is not None
        assert found.difference.low > 0
        assert found.state == "undecided"
        assert "for the same tools this may be due to chance" in found.reading

        # Easier work does not hide lost proficiency.
        before = stretch((1, 50, "read_file"), (40, 50, "patch"))
        after = stretch((30, 90, "read_file"), (10, 10, "patch"))
        found = step(before, after)
        assert found.difference.estimate == pytest.approx(-0.01)
        assert found.state == "undecided"
        assert "the change of tools hides it" in found.reading

        # Undecided without a tool on both sides.
        found = step(stretch((5, 50, "read_file")), stretch((5, 50, "patch")))
        assert found.state == "undecided"
        assert "no tool was used on both sides" in found.reading
        assert found.same_tools_difference.estimate is None

    def test_rate_before_is_weighted_by_tools_after(self) -> None:
        # The rate before is weighted by the tools used after.
        before = stretch((2, 20, "a"), (10, 20, "b"), (20, 20, "gone"))
        after = stretch((3, 30, "a"), (5, 10, "b"), (9, 9, "new"))
        found = step(before, after)
        # 30 of 40 calls at 10 %, 10 of 40 at 50 %.
        assert found.same_tools_difference.estimate == pytest.approx(0.0)

        # With one tool, it equals the plain comparison.
        found = step(stretch((5, 50)), stretch((9, 40)))
        assert found.same_tools_difference.low == pytest.approx(found.difference.low)
        assert found.same_tools_difference.high == pytest.approx(found.difference.high)


def test_step_ratio_tools_and_reading() -> None:
    # Ratio and difference compare after with before.
    found = step(stretch((5, 100)), stretch((20, 100)))
    assert found.difference.estimate == pytest.approx(0.15)
    # Wilson gives 2.15 to 11.18 % before and 13.34 to 28.88 % after.
    assert found.difference.low == pytest.approx(0.0592, abs=5e-5)
    assert found.difference.high == pytest.approx(0.2433, abs=5e-5)

    # Tools that got worse are listed by errors.
    before = stretch((1, 20, "a"), (1, 20, "b"), (5, 20, "better"), (2, 20, "same"), (1, 5, "gone"))
    after = stretch((5, 20, "a"), (12, 30, "b"), (1, 20, "better"), (2, 20, "same"), (4, 5, "new"))
    worse = step(before, after).worse_tools
    assert [one.tool for one in worse] == ["b", "a"]
    assert (worse[0].before.errors, worse[0].before.total) == (1, 20)
    assert (worse[0].after.errors, worse[0].after.total) == (12, 30)
    assert [one.tool for one in step(stretch((0, 10)), stretch((1, 10))).worse_tools] == ["bash"]

    # Readings.
    lost = step(stretch((4, 100)), stretch((20, 100)))
    assert lost.reading == (
        "Lost: 4.0 % of 100 calls failed before, 20.0 % of 100 calls failed after "
        "(16.0 points more errors), more than 1.2 times as often, which chance is "
        "unlikely to explain. Worse than before: bash."
    )
    kept = step(stretch((8, 100)), stretch((7, 100)))
    assert kept.reading.startswith(
        "Preserved: 8.0 % of 100 calls failed before, 7.0 % of 100 calls failed after "
        "(1.0 point fewer errors), not more than 1.2 times as often. A rise of more than 6."
    )
    better = step(stretch((50, 100)), stretch((1, 100)))
    assert better.reading == (
        "Preserved: 50.0 % of 100 calls failed before, 1.0 % of 100 calls failed after "
        "(49.0 points fewer errors), significantly less often."
    )

    # JSON round trip.
    report = compression([stretch((1, 30)), stretch((9, 30)), stretch()])
    written = msgspec.json.encode(report)
    assert msgspec.json.decode(written, type=CompressionReport) == report
    assert b"NaN" not in written


class TestChains:
    good = stretch((5, 50))
    bad = stretch((30, 50))
    few = stretch((0, 2))

    @table(
        ("segments", "state", "reading"),
        [
            ((good, good), "preserved", "Proficiency was preserved at 1 of 1 compressions."),
            ((good, good, good), "preserved", "Proficiency was preserved at 2 of 2 compressions."),
            ((good, bad, bad), "lost", "Proficiency was lost at 1 of 2 compressions."),
            ((bad, few, good, bad), "lost", "Proficiency was lost at 1 of 3 compressions."),
            (
                (good, good, few),
                "undecided",
                "The data do not decide whether proficiency was preserved at 1 of 2 compressions.",
            ),
        ],
        ids=["preserved", "preserved twice", "lost once", "lost with few calls", "one undecided"],
    )
    def test_state_of_a_chain(
        self, segments: tuple[CallSegment, ...], state: str, reading: str
    ) -> None:
        report = compression(segments)
        assert (report.state, report.reading) == (state, reading)
        assert len(report.steps) == len(segments) - 1


def simulated_states(
    chances: dict[str, tuple[float, float]], before: dict[str, int], after: dict[str, int]
) -> Counter[str]:
    """Return the states of 300 simulated compressions; chances are error rates before and after."""
    generator = random.Random(11)
    states: Counter[str] = Counter()
    for _ in range(300):
        sides = [
            stretch(
                *(
                    (sum(generator.random() < chances[tool][at] for _ in range(count)), count, tool)
                    for tool, count in side.items()
                )
            )
            for at, side in enumerate((before, after))
        ]
        states[step(*sides).state] += 1
    return states


def test_false_positive_rate_without_a_change() -> None:
    chances = {"read": (0.05, 0.05), "write": (0.2, 0.2)}
    even = {"read": 40, "write": 40}
    states = simulated_states(chances, even, even)
    assert states["lost"] <= 300 * 0.05
    assert states["preserved"] >= 300 * 0.5


def test_false_positive_rate_if_only_the_tools_change() -> None:
    chances = {"read": (0.02, 0.02), "write": (0.3, 0.3)}
    states = simulated_states(chances, {"read": 80, "write": 20}, {"read": 20, "write": 80})
    assert states["lost"] <= 300 * 0.05


def test_large_loss_is_detected() -> None:
    chances = {"read": (0.02, 0.2), "write": (0.2, 0.5)}
    even = {"read": 60, "write": 60}
    states = simulated_states(chances, even, even)
    assert states["lost"] >= 300 * 0.9
    assert states["preserved"] == 0
