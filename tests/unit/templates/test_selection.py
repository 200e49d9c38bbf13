"""Selecting the patterns that an opening shows."""

from tests.tables import table
from tests.turns import pattern

from journeyman.records import Step
from journeyman.templates.opening import Choice
from journeyman.templates.selection import Candidate, OpeningLimits, select, why_not_selected
from journeyman.templates.tool_schemas import LiveTools

LIMITS = OpeningLimits(tokens=1_000)


def candidate(intent="x", *tools, similarity=0.8, score=1.0, **other):
    return Candidate(pattern=pattern(intent, *tools, **other), similarity=similarity, score=score)


def chosen(*candidates: Candidate, limits: OpeningLimits = LIMITS, **other) -> tuple[Choice, ...]:
    return select(candidates, limits, **other)


def intents(choices: tuple[Choice, ...]) -> set[str]:
    return {choice.pattern.intent for choice in choices}


def test_empty_input_floor_and_determinism():
    assert chosen() == ()
    found = chosen(candidate("near", similarity=0.31), candidate("far", similarity=0.27))
    assert intents(found) == {"near"}
    some = [candidate(str(n), f"t{n % 4}", score=0.5, session=f"s{n % 3}") for n in range(30)]
    assert chosen(*some) == chosen(*some)


def test_each_needed_tool_is_shown_once():
    found = chosen(
        candidate("a", "get", session="s1"),
        candidate("b", "get", session="s2", score=0.9),
        candidate("c", "book", session="s1", score=0.5),
    )
    assert intents(found) == {"a", "c"}

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


def test_the_limits_are_kept():
    found = chosen(
        candidate("a", "get", tokens=600),
        candidate("b", "book", tokens=500, score=0.9),
        candidate("c", "pay", tokens=400, score=0.8),
        candidate("huge", "send", tokens=2_000),
    )
    assert intents(found) == {"a", "c"}
    for most in (1, 2, 3):
        some = [candidate(str(n), f"tool{n}") for n in range(5)]
        assert len(chosen(*some, limits=OpeningLimits(tokens=9_999, most=most))) == most


@table(
    ("unfit", "reason"),
    [
        (candidate("bad", quarantined="override"), "it is in quarantine (override)"),
        (candidate("bad", "no such name!"), "no host accepts"),
        (candidate("stale", "book", steps=(Step(tool="book"),)), "it does not fit the current"),
        (candidate("gone", "drop"), "not offered"),
        (candidate("far", similarity=0.1), "below the floor"),
    ],
)
def test_unfit_patterns_are_never_selected(unfit, reason):
    schema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    live = LiveTools.read([{"name": "book", "input_schema": schema}])
    good = candidate("fits", steps=(Step(tool="book", arguments='{"id": "x"}'),))
    assert intents(chosen(unfit, good, live=live)) == {"fits"}
    assert reason in why_not_selected(unfit, LIMITS, live)


def test_order_and_reasons():
    # The most similar pattern comes last.
    found = chosen(
        candidate("near", "get", similarity=0.9),
        candidate("far", "book", similarity=0.4, score=0.9),
    )
    assert [one.pattern.intent for one in found] == ["far", "near"]
    (found,) = chosen(
        candidate("a", "get", kind="recovery", similarity=0.91, times=3, session_count=2)
    )
    assert found.reason == (
        "similar to the task (0.91); shows get; shows a mistake and its correction; "
        "seen 3 times in 2 sessions"
    )


def test_tool_affinity_and_agents():
    # Affinity of the tool descriptions breaks ties.
    some = [candidate("a", "get"), candidate("b", "put")]
    one = chosen(*some, limits=OpeningLimits(tokens=100), affinity={"put": 0.9})
    other = chosen(*some, limits=OpeningLimits(tokens=100), affinity={"get": 0.9})
    assert (intents(one), intents(other)) == ({"b"}, {"a"})

    # Without tool definitions, all patterns come from one agent.
    rows = [
        ("a", "Read", "claude_code"),
        ("b", "read_file", "hermes"),
        ("c", "Bash", "claude_code"),
    ]
    some = [
        candidate(name, tool, score=1 - n / 9, source=source)
        for n, (name, tool, source) in enumerate(rows)
    ]
    assert intents(chosen(*some)) == {"a", "c"}
    live = LiveTools.read([{"name": name} for name in ("Read", "read_file", "Bash")])
    assert intents(chosen(*some, live=live)) == {"a", "b", "c"}


def test_small_models_get_the_nearest_requests():
    limits = OpeningLimits(tokens=1_000, most=3, alike=True)
    found = chosen(
        candidate("near", "get", "book", kind="sequence", similarity=0.9),
        candidate("also", "get", "book", kind="sequence", similarity=0.8),
        candidate("other way", "drop", similarity=0.85),
        candidate("farther", "get", "book", kind="sequence", similarity=0.5),
        limits=limits,
    )
    assert intents(found) == {"near", "also", "farther"}

    # Of one request, the longest pattern is shown.
    found = chosen(
        candidate("near", "get", similarity=0.9),
        candidate("near", "get", "book", kind="sequence", similarity=0.9),
        candidate("near", "book", similarity=0.9),
        limits=limits,
    )
    assert [choice.pattern.tools for choice in found] == [("get", "book")]

    # The nearest of all comes last.
    some = (candidate(f"n{at}", "get", similarity=0.8 + at / 100) for at in range(6))
    found = chosen(*some, limits=limits)
    assert [choice.pattern.intent for choice in found] == ["n3", "n4", "n5"]

    # Tools that fit are the guard, not the floor.
    far = candidate("far", "get", similarity=0.1)
    assert chosen(far) == ()
    live = LiveTools.read([{"name": "get"}])
    assert intents(chosen(far, candidate("no", "drop"), limits=limits, live=live)) == {"far"}
