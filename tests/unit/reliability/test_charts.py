"""Charts: what they show, and the files they become."""

import re
import struct
import subprocess
import sys
from functools import cache
from typing import Any, TypeVar
from xml.etree import ElementTree as ET

from tests.tables import table

from journeyman.records import JudgedCall, JudgedSession, SessionId, Verdict
from journeyman.reliability.charts import (
    figure,
    overview,
    picture,
    rate_along_session,
    rate_by_length,
    reliability_by_tool,
)
from journeyman.reliability.profile import Profile, profile
from journeyman.reliability.rates import wilson

T = TypeVar("T")


def session(
    name: str, calls: list[tuple[str, int, int]], *, messages: int = 10, refused: int = 0
) -> JudgedSession:
    """A session with calls given by tool, errors and all."""
    verdicts = [
        (tool, Verdict(status="failed" if at < errors else "ok", rule="test"))
        for tool, errors, total in calls
        for at in range(total)
    ]
    verdicts += [("Bash", Verdict(status="refused", rule="test"))] * refused
    return JudgedSession(
        id=SessionId(name),
        source="hermes",
        model="m",
        messages=messages,
        tags=(),
        calls=tuple(
            JudgedCall(call_id=f"c{at}", tool=tool, verdict=verdict, index=at)
            for at, (tool, verdict) in enumerate(verdicts)
        ),
    )


@cache
def full() -> Profile:
    """Something for every chart."""
    return profile(
        [
            session("s1", [("Bash", 70, 1517), ("Read", 3, 40), ("rare", 1, 4)], messages=120),
            session("s2", [("Bash", 2, 12), ("Edit", 5, 20)], messages=30),
        ]
    )


NOTHING = {
    "no sessions": profile([]),
    "no calls": profile([session("s", [])]),
    "no calls that count": profile([session("s", [], refused=3)]),
}


def layers(chart: Any) -> list[tuple[str, list[dict[str, Any]]]]:
    """Each layer's mark and data."""
    spec = chart.to_dict()
    return [
        (layer["mark"]["type"], spec["datasets"][layer.get("data", spec.get("data"))["name"]])
        for layer in spec["layer"]
    ]


def rows(chart: Any, mark: str) -> list[dict[str, Any]]:
    return next(values for name, values in reversed(layers(chart)) if name == mark)


def domain(chart: Any, axis: str) -> list[float]:
    found = [
        layer["encoding"][axis]["scale"]["domain"]
        for layer in chart.to_dict()["layer"]
        if "scale" in layer["encoding"].get(axis, {})
    ]
    (only,) = found
    return list(only)


def notes(chart: Any) -> str:
    return " ".join(chart.to_dict()["title"]["subtitle"])


def texts(picture: str) -> list[str]:
    return [
        "".join(element.itertext())
        for element in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
    ]


class TestByTool:
    def test_a_dot_on_its_interval_for_each_tool(self) -> None:
        # A dot on its interval for each tool.
        chart = reliability_by_tool(full())
        assert [mark for mark, _ in layers(chart)] == ["rule", "rule", "point", "text"]
        bash = rows(chart, "point")[0]
        rate = wilson(72, 1529)
        assert (bash["low"], bash["estimate"], bash["high"]) == (
            rate.low,
            rate.estimate,
            rate.high,
        )
        assert bash["words"] == "4.7 %"

        # The most used first with their calls.
        labels = [row["label"] for row in rows(reliability_by_tool(full()), "point")]
        assert labels == ["Bash (1,529)", "Read (40)", "Edit (20)"]

        # The line of all tools.
        found = full()
        assert layers(reliability_by_tool(found))[0][1] == [{"all": found.rate.estimate}]

        # The axis reaches the line of all tools. Also when the tools that are not shown are the bad
        # ones.
        good = [(f"good{at}", 0, 500) for at in range(15)]
        bad = [(f"bad{at}", 400, 400) for at in range(20)]
        found = profile([session("s", good + bad)])
        low, high = domain(reliability_by_tool(found), "x")
        assert found.rate.estimate is not None
        assert low <= found.rate.estimate <= high

    def test_which_tools_are_shown(self) -> None:
        # Tools with few calls are left out and that is said.
        assert "One tool with fewer than 5 counted calls left out." in notes(
            reliability_by_tool(full())
        )
        two = [("a", 0, 9), ("b", 0, 2), ("c", 0, 1)]
        assert "2 tools with fewer" in notes(reliability_by_tool(profile([session("s", two)])))

        # Calls that do not count do not make a tool telling.
        found = profile([session("s", [("Read", 0, 9), ("Bash", 0, 4)], refused=5)])
        assert [row["label"] for row in rows(reliability_by_tool(found), "point")] == ["Read (9)"]

        # No more than fifteen.
        many = [(f"tool{at:02}", 0, 40 - at) for at in range(20)]
        chart = reliability_by_tool(profile([session("s", many)]))
        assert len(rows(chart, "point")) == 15
        assert rows(chart, "point")[-1]["label"] == "tool14 (26)"
        assert "The 15 most used of 20 tools with at least 5 counted calls." in notes(chart)

        # Without a telling tool there is no chart.
        assert reliability_by_tool(profile([session("s", [("a", 1, 4)])])) is None


class TestAlongTheSession:
    def test_ten_parts_with_a_band(self) -> None:
        # Ten parts with a band.
        found = full()
        chart = rate_along_session(found)
        assert [mark for mark, _ in layers(chart)] == ["area", "line", "point"]
        shown = rows(chart, "line")
        assert [round(row["place"], 2) for row in shown] == [
            *(0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95)
        ]
        assert [(row["low"], row["estimate"], row["high"]) for row in shown] == [
            (part.low, part.estimate, part.high) for part in found.curve.parts
        ]

        # It says from what and that it need not be learning.
        said = notes(rate_along_session(full()))
        assert "2 of 2 sessions" in said
        assert "need not be learning" in said

        # It goes from the beginning to the end.
        shown = texts(picture(_known(rate_along_session(full())), ".svg").decode())
        percent = "\N{NO-BREAK SPACE}%"
        assert {"beginning", f"25{percent}", f"50{percent}", f"75{percent}", "end"} <= set(shown)

        # Without long sessions there is no chart.
        assert rate_along_session(profile([session("s", [("a", 0, 9)])])) is None


class TestByLength:
    def test_three_bands(self) -> None:
        # Three bands with their sessions and calls.
        chart = rate_by_length(full())
        assert [mark for mark, _ in layers(chart)] == ["rule", "point", "text"]
        assert [row["label"] for row in rows(chart, "text")] == [
            "short: under 20 messages\n0 sessions, 0 calls",
            "mid: 20 to 99 messages\n1 session, 32 calls",
            "marathon: 100 messages or more\n1 session, 1,561 calls",
        ]

        # A band without calls has words and no dot.
        chart = _known(rate_by_length(full()))
        short = rows(chart, "text")[0]
        assert (short["estimate"], short["words"]) == (None, "no calls that count")
        drawn = picture(chart, ".svg").decode()
        assert "no calls that count" in texts(drawn)
        assert len(re.findall('aria-roledescription="point"', drawn)) == 2


class TestOverview:
    def test_the_charts_with_data(self) -> None:
        # All charts.
        spec = _known(overview(full())).to_dict()
        assert [chart["title"]["text"] for chart in spec["vconcat"]] == [
            "How often each tool fails",
            "How often calls fail along a session",
            "How often calls fail in short and long sessions",
        ]

        # Only the charts with data.
        spec = _known(overview(profile([session("s", [("a", 0, 1)])]))).to_dict()
        assert len(spec["vconcat"]) == 1

    @table("nothing", NOTHING.values(), ids=NOTHING)
    def test_no_counted_calls_no_chart(self, nothing: Profile) -> None:
        assert overview(nothing) is None


@table(
    ("errors", "calls", "top"),
    [(0, 1000, 0.05), (80, 1000, 0.1), (8, 20, 0.8), (5, 5, 1.0), (0, 5, 0.5)],
)
def test_an_axis_begins_at_zero_and_ends_above_the_data(
    errors: int, calls: int, top: float
) -> None:
    found = profile([session("s", [("a", errors, calls)])])
    assert domain(reliability_by_tool(found), "x") == [0, top]
    assert domain(rate_by_length(found), "x") == [0, top]


class TestPictures:
    def test_png_svg_and_figure(self) -> None:
        # A png of twice the size.
        chart = _known(overview(full()))
        drawn = picture(chart, ".png")
        assert drawn.startswith(b"\x89PNG\r\n\x1a\n")
        size = struct.unpack(">II", drawn[16:24])
        plain = ET.fromstring(picture(chart, ".svg").decode())
        assert size == (2 * int(plain.attrib["width"]), 2 * int(plain.attrib["height"]))

        # An svg that is well formed.
        shown = texts(picture(_known(overview(full())), ".svg").decode())
        assert {"Bash (1,529)", "4.7 %", "How often each tool fails"} <= set(shown)

        # A figure has its title beside it.
        title, notes, svg = figure(_known(reliability_by_tool(full())))
        assert title == "How often each tool fails"
        assert "Dashed: all tools" in notes
        assert title not in svg


class TestNames:
    def test_odd_names(self) -> None:
        # Harmful characters do not reach the picture.
        name = "a<b>&\x00\x1b[31m\u202e\ud800\uffff\n\tz"
        chart = reliability_by_tool(profile([session("s", [(name, 0, 5)])]))
        assert "a<b>&��[31m��� z (5)" in texts(picture(_known(chart), ".svg").decode())

        # A long name keeps both ends.
        names = [f"mcp__some_server__{'x' * 60}_{end}" for end in ("one", "two")]
        chart = reliability_by_tool(profile([session("s", [(name, 0, 5) for name in names])]))
        shown = [
            text
            for text in texts(picture(_known(chart), ".svg").decode())
            if text.startswith("mcp__")
        ]
        assert [text[-8:] for text in shown] == ["_one (5)", "_two (5)"]
        assert all(len(text) == 36 for text in shown)


@table("part", ["altair", "vl_convert"])
def test_without_the_extra_the_error_says_what_to_install(part: str) -> None:
    program = f"""
import sys
sys.modules[{part!r}] = None
from journeyman.records.errors import MissingPart
for module in ("charts", "page"):
    try:
        __import__(f"journeyman.reliability.{{module}}")
    except MissingPart as problem:
        print(problem)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        "Drawing charts needs the extra \"plots\": pip install 'journeyman[plots]'.\n" * 2
    )


def _known(chart: T | None) -> T:
    assert chart is not None
    return chart
