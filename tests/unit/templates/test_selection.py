"""Selecting the patterns that an opening shows."""

from tests.tables import table
from tests.turns import pattern

from journeyman.records import Effect, Step
from journeyman.templates.selection import Candidate, OpeningLimits, Selection, select
from journeyman.templates.tool_schemas import LiveTools

LIMITS = OpeningLimits(tokens=1_000)


def candidate(intent="x", *tools, similarity=0.8, score=1.0, effect=None, **other):
    return Candidate(
        pattern=pattern(intent, *tools, **other),
        similarity=similarity,
        score=score,
        effect=effect or Effect(),
    )


def chosen(*candidates: Candidate, limits: OpeningLimits = LIMITS, **other) -> Selection:
    return select(candidates, limits, **other)


def intents(selection: Selection) -> set[str]:
    return {choice.pattern.intent for choice in selection.choices}


def reasons(selection: Selection) -> dict[str, str]:
    return {one.pattern.intent: one.reason for one in selection.left_out}


def test_empty_input_floor_and_determinism():
    # No candidates give an empty selection.
    assert chosen() == Selection()

    # Candidates below the floor are left out.
    found = chosen(candidate("near", similarity=0.31), candidate("far", similarity=0.27))
    assert intents(found) == {"near"}
    assert reasons(found) == {"far": "not similar enough: 0.27, below the floor of 0.28"}

    # Selection is deterministic.
    some = [candidate(str(n), f"t{n % 4}", score=0.5, session=f"s{n % 3}") for n in range(30)]
    assert chosen(*some) == chosen(*some)


def test_each_needed_tool_is_shown_once():
    # A tool that is already shown is left out.
    found = chosen(
        candidate("a", "get", session="s1"),
        candidate("b", "get", session="s2", score=0.9),
        candidate("c", "book", session="s1", score=0.5),
    )
    assert intents(found) == {"a", "c"}
    assert reasons(found) == {"b": "what it shows is not needed, or already shown"}

    # A sequence that shows all tools replaces its parts.
    found = chosen(
        candidate("one", "get"),
        candidate("two", "book"),
        candidate("all", "get", "book", kind="sequence", score=0.9),
    )
    assert intents(found) == {"all"}

    # One mistake with its correction is added.
    found = chosen(
        candidate("all", "get", "book", kind="sequence"),
        candidate("mistake", "book", kind="recovery", score=0.5),
        candidate("another", "get", kind="recovery", score=0.4),
    )
    assert intents(found) == {"all", "mistake"}

    # A tool that few similar sessions used is not needed.
    many = [candidate(f"a{n}", "get", session=f"s{n}") for n in range(20)]
    found = chosen(*many, candidate("odd", "wipe", session="t", similarity=0.3, score=0.1))
    assert "odd" not in intents(found)


def test_the_budget_is_kept():
    found = chosen(
        candidate("a", "get", tokens=600),
        candidate("b", "book", tokens=500, score=0.9),
        candidate("c", "pay", tokens=400, score=0.8),
        candidate("huge", "send", tokens=2_000),
    )
    assert sum(choice.tokens for choice in found.choices) <= 1_000
    assert intents(found) == {"a", "c"}
    assert reasons(found)["b"] == "no room: 500 tokens, 0 left"
    assert reasons(found)["huge"] == "too long: 2000 tokens, with room for 1000"


@table("most", [1, 2, 3])
def test_number_of_patterns_is_limited(most):
    some = [candidate(str(n), f"tool{n}") for n in range(5)]
    found = chosen(*some, limits=OpeningLimits(tokens=9_999, most=most))
    assert len(found.choices) == most
    assert f"the limit of {most} is reached" in reasons(found).values()


def test_unfit_patterns_are_never_selected():
    # Quarantined patterns are left out.
    found = chosen(candidate("bad", quarantined="override"))
    assert found.choices == ()
    assert reasons(found) == {"bad": "it is in quarantine (override)"}

    # Patterns that cannot be shown are left out.
    found = chosen(candidate("bad", "no such name!"))
    assert found.choices == ()
    assert reasons(found)["bad"]

    # Patterns that do not fit the current tools are left out.
    live = LiveTools.read(
        [
            {
                "name": "book",
                "input_schema": {"type": "object", "properties": {"id": {"type": "string"}}},
            }
        ]
    )
    good = (Step(tool="book", arguments='{"id": "x"}'),)
    found = chosen(
        candidate("stale"), candidate("gone", "drop"), candidate("fits", steps=good), live=live
    )
    assert intents(found) == {"fits"}
    assert reasons(found)["stale"].startswith("it does not fit the current tools: ")
    assert "not offered" in reasons(found)["gone"]


class TestTrials:
    def test_effects_count_when_certain(self):
        # Patterns that helped come first.
        helped = Effect(tried=20, gained=6.0)
        found = chosen(candidate("a", score=1.0), candidate("b", score=0.95, effect=helped))
        assert intents(found) == {"b"}
        assert "+0.30 on average in 20 trials" in found.choices[0].reason

        # One lucky trial is not enough.
        lucky = Effect(tried=1, gained=1.0)
        found = chosen(candidate("a", score=1.0), candidate("b", score=0.5, effect=lucky))
        assert intents(found) == {"a"}

        # Patterns that hurt are left out.
        hurt = Effect(tried=5, gained=-1.0)
        found = chosen(candidate("a", effect=hurt))
        assert reasons(found) == {"a": "it made things worse in 5 trials"}

        # A few bad trials are not enough to exclude a pattern.
        assert chosen(candidate("a", effect=Effect(tried=4, gained=-2.0))).choices


def test_order_and_reasons():
    # The most similar pattern comes last.
    found = chosen(
        candidate("near", "get", similarity=0.9),
        candidate("far", "book", similarity=0.4, score=0.9),
    )
    assert [one.pattern.intent for one in found.choices] == ["far", "near"]

    # Each choice states its reasons.
    found = chosen(
        candidate("a", "get", kind="recovery", similarity=0.91, times=3, session_count=2)
    )
    assert found.choices[0].reason == (
        "similar to the task (0.91); shows get; shows a mistake and its correction; "
        "seen 3 times in 2 sessions"
    )

    # Without a task, the order of the template decides.
    found = chosen(
        *(candidate(str(n), f"t{n}", similarity=None, score=1 - n / 9) for n in range(9)),
        limits=OpeningLimits(tokens=300),
    )
    assert intents(found) == {"0", "1", "2"}
    assert "similar" not in found.choices[0].reason


def test_tool_affinity_and_agents():
    # Affinity of the tool descriptions breaks ties.
    some = [candidate("a", "get"), candidate("b", "put")]
    one = chosen(*some, limits=OpeningLimits(tokens=100), affinity={"put": 0.9})
    other = chosen(*some, limits=OpeningLimits(tokens=100), affinity={"get": 0.9})
    assert (intents(one), intents(other)) == ({"b"}, {"a"})

    # Without tool definitions, all patterns come from one agent.
    some = [
        candidate(name, tool, score=1 - n / 9, source=source)
        for n, (name, tool, source) in enumerate(
            [
                ("a", "Read", "claude_code"),
                ("b", "read_file", "hermes"),
                ("c", "Bash", "claude_code"),
            ]
        )
    ]
    found = chosen(*some)
    assert intents(found) == {"a", "c"}
    assert reasons(found) == {"b": "it uses the tools of another agent (hermes)"}
    live = LiveTools.read({name: {"type": "object"} for name in ("Read", "read_file", "Bash")})
    assert intents(chosen(*some, live=live)) == {"a", "b", "c"}


class TestAlike:
    """For small models: the nearest request and others that start with the same tool."""

    limits = OpeningLimits(tokens=1_000, most=3, alike=True)

    def test_the_nearest_requests(self):
        # Other requests with the same tools are preferred.
        found = chosen(
            candidate("near", "get", "book", kind="sequence", similarity=0.9),
            candidate("also", "get", "book", kind="sequence", similarity=0.8),
            candidate("other way", "drop", similarity=0.85),
            candidate("farther", "get", "book", kind="sequence", similarity=0.5),
            limits=self.limits,
        )
        assert intents(found) == {"near", "also", "farther"}
        assert reasons(found) == {"other way": "the limit of 3 is reached"}

        # Of one request, the longest pattern is shown.
        found = chosen(
            candidate("near", "get", similarity=0.9),
            candidate("near", "get", "book", kind="sequence", similarity=0.9),
            candidate("near", "book", similarity=0.9),
            limits=self.limits,
        )
        assert [choice.pattern.tools for choice in found.choices] == [("get", "book")]

        # The nearest requests are selected, the nearest of all last.
        found = chosen(
            *(candidate(f"n{at}", "get", similarity=0.8 + at / 100) for at in range(6)),
            limits=self.limits,
        )
        assert [choice.pattern.intent for choice in found.choices] == ["n3", "n4", "n5"]
