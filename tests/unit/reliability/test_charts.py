"""Charts: their data, and the image files rendered from them."""

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
    overview_chart,
    rate_along_session,
    rate_by_length,
    reliability_by_tool,
    render,
    svg_with_caption,
)
from journeyman.reliability.profile import Profile, profile
from journeyman.reliability.rates import wilson

T = TypeVar("T")


def session(
    name: str, calls: list[tuple[str, int, int]], *, messages: int = 10, refused: int = 0
) -> JudgedSession:
    """Return a session; calls are given as tool, errors and total."""
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
def full_profile() -> Profile:
    """Return a profile with data for every chart."""
    return profile(
        [
            session("s1", [("Bash", 70, 1517), ("Read", 3, 40), ("rare", 1, 4)], messages=120),
            session("s2", [("Bash", 2, 12), ("Edit", 5, 20)], messages=30),
        ]
    )


EMPTY_PROFILES = {
    "no sessions": profile([]),
    "no calls": profile([session("s", [])]),
    "no counted calls": profile([session("s", [], refused=3)]),
}


def layers(chart: Any) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the mark and the data of each layer."""
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


def texts(image: str) -> list[str]:
    return [
        "".join(element.itertext())
        for element in ET.fromstring(image).iter("{http://www.w3.org/2000/svg}text")
    ]


class TestByTool:
    def test_tools_with_rates_and_intervals(self) -> None:
        chart = reliability_by_tool(full_profile())
        assert [mark for mark, _ in layers(chart)] == ["rule", "rule", "point", "text"]
        bash = rows(chart, "point")[0]
        rate = wilson(72, 1529)
        assert (bash["low"], bash["estimate"], bash["high"]) == (
            rate.low,
            rate.estimate,
            rate.high,
        )
        assert bash["words"] == "4.7 %"

        # The most used tools come first, labelled with their calls.
        labels = [row["label"] for row in rows(reliability_by_tool(full_profile()), "point")]
        assert labels == ["Bash (1,529)", "Read (40)", "Edit (20)"]

        # A line marks the rate of all tools.
        found = full_profile()
        assert layers(reliability_by_tool(found))[0][1] == [{"all": found.rate.estimate}]

        # The axis includes that line even if the worst tools are not shown.
        good = [(f"good{at}", 0, 500) for at in range(15)]
        bad = [(f"bad{at}", 400, 400) for at in range(20)]
        found = profile([session("s", good + bad)])
        low, high = domain(reliability_by_tool(found), "x")
        assert found.rate.estimate is not None
        assert low <= found.rate.estimate <= high

    def test_selection_of_tools(self) -> None:
        # Tools with few calls are left out, which the subtitle states.
        assert "One tool with fewer than 5 counted calls is omitted." in notes(
            reliability_by_tool(full_profile())
        )
        two = [("a", 0, 9), ("b", 0, 2), ("c", 0, 1)]
        assert "2 tools with fewer" in notes(reliability_by_tool(profile([session("s", two)])))

        # Calls that do not count do not add to the minimum.
        found = profile([session("s", [("Read", 0, 9), ("Bash", 0, 4)], refused=5)])
        assert [row["label"] for row in rows(reliability_by_tool(found), "point")] == ["Read (9)"]

        # At most fifteen tools.
        many = [(f"tool{at:02}", 0, 40 - at) for at in range(20)]
        chart = reliability_by_tool(profile([session("s", many)]))
        assert len(rows(chart, "point")) == 15
        assert rows(chart, "point")[-1]["label"] == "tool14 (26)"
        assert "15 of 20 tools with at least 5 counted calls, the worst among them." in notes(chart)

        # The worst tool is among them, however rarely it is used.
        chart = reliability_by_tool(profile([session("s", [*many, ("worst", 5, 6)])]))
        assert len(rows(chart, "point")) == 15
        assert rows(chart, "point")[-1]["label"] == "worst (6)"

        # Labels count the calls that count.
        found = profile([session("s", [("Bash", 1, 9)], refused=5)])
        assert [row["label"] for row in rows(reliability_by_tool(found), "point")] == ["Bash (9)"]

        # No chart without a tool that has enough calls.
        assert reliability_by_tool(profile([session("s", [("a", 1, 4)])])) is None


class TestAlongSession:
    def test_curve_in_ten_parts(self) -> None:
        found = full_profile()
        chart = rate_along_session(found)
        assert [mark for mark, _ in layers(chart)] == ["area", "line", "point"]
        shown = rows(chart, "line")
        assert [round(row["place"], 2) for row in shown] == [
            *(0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95)
        ]
        assert [(row["low"], row["estimate"], row["high"]) for row in shown] == [
            (part.low, part.estimate, part.high) for part in found.curve.parts
        ]

        # The subtitle names the data and warns against reading it as learning.
        subtitle = notes(rate_along_session(full_profile()))
        assert "2 of 2 sessions" in subtitle
        assert "not necessarily learning" in subtitle

        # The axis runs from start to end.
        shown = texts(render(existing(rate_along_session(full_profile())), ".svg").decode())
        percent = "\N{NO-BREAK SPACE}%"
        assert {"start", f"25{percent}", f"50{percent}", f"75{percent}", "end"} <= set(shown)

        # No chart without long sessions.
        assert rate_along_session(profile([session("s", [("a", 0, 9)])])) is None


class TestByLength:
    def test_length_bands(self) -> None:
        # Labels show the sessions and calls of each band.
        chart = rate_by_length(full_profile())
        assert [mark for mark, _ in layers(chart)] == ["rule", "point", "text"]
        assert [row["label"] for row in rows(chart, "text")] == [
            "short: under 20 messages\n0 sessions, 0 counted calls",
            "mid: 20 to 99 messages\n1 session, 32 counted calls",
            "marathon: 100 messages or more\n1 session, 1,561 counted calls",
        ]

        # A band without calls has a label and no dot.
        chart = existing(rate_by_length(full_profile()))
        short = rows(chart, "text")[0]
        assert (short["estimate"], short["words"]) == (None, "no counted calls")
        drawn = render(chart, ".svg").decode()
        assert "no counted calls" in texts(drawn)
        assert len(re.findall('aria-roledescription="point"', drawn)) == 2


class TestOverview:
    def test_only_charts_with_data(self) -> None:
        # All charts.
        spec = existing(overview_chart(full_profile())).to_dict()
        assert [chart["title"]["text"] for chart in spec["vconcat"]] == [
            "How often each tool fails",
            "How often calls fail along a session",
            "How often calls fail in short and long sessions",
        ]

        # Only the charts with data.
        spec = existing(overview_chart(profile([session("s", [("a", 0, 1)])]))).to_dict()
        assert len(spec["vconcat"]) == 1

    @table("empty", EMPTY_PROFILES.values(), ids=EMPTY_PROFILES)
    def test_no_chart_without_counted_calls(self, empty: Profile) -> None:
        assert overview_chart(empty) is None


@table(
    ("errors", "calls", "top"),
    [(0, 1000, 0.05), (80, 1000, 0.1), (8, 20, 0.8), (5, 5, 1.0), (0, 5, 0.5)],
)
def test_axis_starts_at_zero_and_ends_above_the_data(errors: int, calls: int, top: float) -> None:
    found = profile([session("s", [("a", errors, calls)])])
    assert domain(reliability_by_tool(found), "x") == [0, top]
    assert domain(rate_by_length(found), "x") == [0, top]


class TestImages:
    def test_png_svg_and_figure(self) -> None:
        # A PNG at twice the size.
        chart = existing(overview_chart(full_profile()))
        drawn = render(chart, ".png")
        assert drawn.startswith(b"\x89PNG\r\n\x1a\n")
        size = struct.unpack(">II", drawn[16:24])
        plain = ET.fromstring(render(chart, ".svg").decode())
        assert size == (2 * int(plain.attrib["width"]), 2 * int(plain.attrib["height"]))

        # A well-formed SVG.
        shown = texts(render(existing(overview_chart(full_profile())), ".svg").decode())
        assert {"Bash (1,529)", "4.7 %", "How often each tool fails"} <= set(shown)

        # An SVG with its title and notes separate.
        title, notes, svg = svg_with_caption(existing(reliability_by_tool(full_profile())))
        assert title == "How often each tool fails"
        assert "Dashed: all calls" in notes
        assert title not in svg


class TestToolNames:
    def test_harmful_and_long_names(self) -> None:
        # Harmful characters are replaced in the image.
        name = "a<b>&\x00\x1b[31m\u202e\ud800\uffff\n\tz"
        chart = reliability_by_tool(profile([session("s", [(name, 0, 5)])]))
        assert "a<b>&��[31m��� z (5)" in texts(render(existing(chart), ".svg").decode())

        # A long name keeps both ends.
        names = [f"mcp__some_server__{'x' * 60}_{end}" for end in ("one", "two")]
        chart = reliability_by_tool(profile([session("s", [(name, 0, 5) for name in names])]))
        shown = [
            text
            for text in texts(render(existing(chart), ".svg").decode())
            if text.startswith("mcp__")
        ]
        assert [text[-8:] for text in shown] == ["_one (5)", "_two (5)"]
        assert all(len(text) == 36 for text in shown)


@table("part", ["altair", "vl_convert"])
def test_error_without_the_extra_states_what_to_install(part: str) -> None:
    program = f"""
import sys
sys.modules[{part!r}] = None
from journeyman.records.errors import MissingPart
for module in ("charts", "html_report"):
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


def existing(chart: T | None) -> T:
    assert chart is not None
    return chart
