"""How sessions get going, and which tools can be left out."""

import random
from statistics import median

from journeyman.records import JudgedCall, JudgedSession, SessionId, Verdict
from journeyman.records.defaults import TRIVIAL_TOOLS
from journeyman.reliability.comparison import compare
from journeyman.reliability.groups import grouped
from journeyman.reliability.profile import profile
from journeyman.reliability.rates import shown_with_worst, wilson
from journeyman.reliability.warm_up import FIRST_TURNS, median_over_sessions, warm_up

OK, FAILED = Verdict(status="ok", rule="test"), Verdict(status="failed", rule="test")
REFUSED = Verdict(status="refused", rule="test")
VERDICTS = {"+": OK, "-": FAILED, "r": REFUSED}


def session(name: str, made: str, *, tool: str = "Bash", start: float | None = 0.0, **facts):
    """A session with a call for each sign, one in each turn, ten seconds apart."""
    calls = tuple(
        JudgedCall(
            call_id=str(at), tool=tool, verdict=VERDICTS[sign], index=at, turn=at + 1, at=10.0 * at
        )
        for at, sign in enumerate(made)
    )
    return JudgedSession(
        **{
            "id": SessionId(name),
            "source": "test",
            "model": "m",
            "messages": 2 * len(made),
            "tags": (),
            "started_at": start,
            "calls": calls,
            **facts,
        }
    )


class TestWarmUp:
    def test_the_first_success_by_calls_and_time(self) -> None:
        begun = warm_up(
            [
                session("a", "+++"),
                session("b", "--+-"),
                session("c", "r-+"),  # a refusal is not counted
                session("d", "---"),
                session("undated", "-+", start=None),
                session("clock set back", "+", start=500.0),
                session("silent", ""),
            ]
        )
        assert (begun.calls.estimate, begun.calls.sessions) == (2, 5)
        assert (begun.seconds.estimate, begun.seconds.sessions) == (20.0, 3)
        assert begun.without_success == 1

    def test_only_the_first_turns_count(self) -> None:
        late = "-" * FIRST_TURNS + "+" * 500
        begun = warm_up([session("a", late)])
        assert (begun.first_turns.errors, begun.first_turns.total) == (FIRST_TURNS, FIRST_TURNS)

    def test_interval_of_a_median(self) -> None:
        assert median_over_sessions([1, 2, 3, 4, 5]).low is None
        six = median_over_sessions([6, 1, 5, 2, 4, 3])
        assert (six.estimate, six.low, six.high) == (3.5, 1, 6)
        chance = random.Random(4)
        covered = 0
        for _ in range(400):
            found = median_over_sessions(chance.expovariate(1.0) for _ in range(25))
            covered += (found.low or 0) <= 0.6931 <= (found.high or 0)
        assert covered >= 0.93 * 400
        many = sorted(chance.random() for _ in range(2001))
        assert median_over_sessions(many).estimate == median(many)


class TestEarlyAndLateByType:
    def test_code_improves_while_file_work_degrades(self) -> None:
        better, worse = "-----+----" + "++-+++++++", "++++++++++" + "----------"
        sessions = [
            *(session(f"c{n}", better, tool="Bash") for n in range(12)),
            *(session(f"f{n}", worse, tool="Read") for n in range(12)),
        ]
        # Sessions that are all alike say nothing about how sessions differ.
        sessions[0] = session("c0", "+" * 20)
        sessions[12] = session("f0", "+" * 20, tool="Read")
        types = {group.name: group.learning for group in profile(sessions).types}
        code, file = types["code"], types["file"]
        assert code is not None
        assert file is not None
        assert (code.stratified.high or 0) < 0 < (file.stratified.low or 0)
        assert "points fewer errors than early ones" in code.reading
        assert "points more errors than early ones" in file.reading

    def test_grouped_by_tool_has_no_early_and_late_calls(self) -> None:
        sessions = [session("a", "+" * 10)]
        assert grouped(sessions, "tool", with_learning=True)[0].learning is None
        assert grouped(sessions, "platform", with_learning=True)[0].learning is not None
        assert grouped(sessions, "platform")[0].learning is None


class TestTrivialTools:
    def test_calls_of_trivial_tools_are_left_out_and_counted(self) -> None:
        sessions = [
            session("a", "+++-"),
            session("b", "++", tool="memory"),
            session("c", "+", tool="mcp__notes__todo"),
        ]
        whole, kept = profile(sessions), profile(sessions, trivial=TRIVIAL_TOOLS)
        assert (whole.rate.total, kept.rate.total, kept.rate.errors) == (7, 4, 1)
        assert (whole.left_out, kept.left_out) == ({}, {"memory": 2, "mcp__notes__todo": 1})
        assert (kept.sessions, kept.messages, kept.calls) == (3, 14, 4)
        assert [tool.name for tool in kept.tools] == ["Bash"]


class TestComparedLikeWithLike:
    def test_a_difference_that_turns_around_by_tool_decides_nothing(self) -> None:
        # Warm sessions use the tool that often fails more often, but fail less with either tool.
        def both(name: str, hard: str, easy: str) -> JudgedSession:
            parts = [*session("", hard, tool="hard").calls, *session("", easy, tool="easy").calls]
            return session(name, "", calls=tuple(parts))

        warm = [both(f"w{n}", "-----+++++" * 4, "+" * 4) for n in range(20)]
        cold = [both(f"c{n}", "-----++++", "-" + "+" * 39) for n in range(20)]
        # Sessions differ a little.
        warm[0], cold[0] = both("w0", "+" * 40, "+" * 4), both("c0", "+" * 9, "+" * 40)
        compared = compare(warm, cold)
        assert (compared.difference.low or 0) > 0 > (compared.same_tools.estimate or 0)
        assert compared.verdict == "undecided"
        assert "the other way round" in compared.reading


def test_the_worst_is_always_shown() -> None:
    rates = [wilson(0, 100 - at) for at in range(30)]
    rates[20] = wilson(6, 6)
    rates[25] = wilson(1, 1)
    shown = shown_with_worst(rates, 5, lambda rate: rate)
    assert len(shown) == 5
    assert shown[:4] == rates[:4]
    assert shown[4] is rates[20]
    assert shown_with_worst(rates[:3], 5, lambda rate: rate) == rates[:3]
    assert shown_with_worst(rates[:20], 5, lambda rate: rate) == rates[:5]
