"""Selecting the requests that a small model is shown."""

import pytest
from tests.tables import table

from journeyman.records import Pattern, PatternId, PatternKind, Step
from journeyman.templates.selection import nearest_requests

Ranked = tuple[Pattern, float, float]


def ranked(
    intent: str,
    *tools: str,
    relevance: float = 0.5,
    affinity: float = 0.0,
    kind: PatternKind = "first_try",
) -> Ranked:
    steps = tuple(Step(tool=tool) for tool in tools)
    name = PatternId(f"{intent} {' '.join(tools)} {kind}")
    return Pattern(id=name, kind=kind, intent=intent, steps=steps), relevance, affinity


@table(
    ("patterns", "places"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param(
            [ranked("a", "get", relevance=0.4), ranked("b", "set", relevance=0.6)],
            [1, 0],
            id="most relevant first",
        ),
        pytest.param(
            [ranked("a", "get", relevance=0.5), ranked("b", "set", relevance=0.4, affinity=0.5)],
            [1, 0],
            id="affinity of the tool description counts",
        ),
        pytest.param(
            [
                ranked("a", "book", relevance=0.9),
                ranked("a", "get", "book", relevance=0.3, kind="sequence"),
                ranked("b", "get", relevance=0.6),
                ranked("c", "get", relevance=0.2),
            ],
            [1, 2, 3],
            id="longest pattern of a request, ranked by its best",
        ),
        pytest.param(
            [ranked("a", "get", "get", kind="recovery"), ranked("a", "get")],
            [1],
            id="recovery is skipped if there is an alternative",
        ),
        pytest.param(
            [ranked("a", "get", "get", kind="recovery")], [0], id="recovery without an alternative"
        ),
        pytest.param(
            [
                ranked("a", "get", relevance=0.9),
                ranked("b", "set", relevance=0.8),
                ranked("c", "get", "set", relevance=0.2),
            ],
            [0, 2],
            id="others that start with the same tool",
        ),
        pytest.param(
            [
                ranked("a", "get", relevance=0.9),
                ranked("b", "set", relevance=0.8),
                ranked("c", "drop", relevance=0.7),
            ],
            [0, 1],
            id="next nearest if none starts with the same tool",
        ),
    ],
)
def test_nearest_requests(patterns: list[Ranked], places: list[int]) -> None:
    affinity = {one.steps[0].tool: near for one, _, near in patterns}
    found = nearest_requests(
        [one for one, *_ in patterns], [relevance for _, relevance, _ in patterns], affinity
    )
    assert found == places
