"""Charts: valid SVG in which every value and every label is safe, whatever there is to draw."""

from xml.etree import ElementTree as ET

from tests.tables import table

from journeyman.reliability.charts import draw_profile, draw_rates
from journeyman.reliability.profile import profile
from journeyman.reliability.rates import wilson

SVG = "{http://www.w3.org/2000/svg}"


def found(document: str, name: str) -> list[ET.Element]:
    return [*ET.fromstring(document).iter(f"{SVG}{name}")]


def test_rows_have_their_values_and_stay_inside() -> None:
    rows = [("Bash", wilson(14, 54)), ("Read", wilson(0, 30)), ("never", wilson(0, 0))]
    document = draw_rates("Three tools", rows, overall=wilson(14, 84))
    titles = [title.text or "" for title in found(document, "title")]
    assert any(title.startswith("Bash: 25.9 %, 14 errors in 54 counted calls") for title in titles)
    assert any(title.startswith("all calls: 16.7 %") for title in titles)
    dots = [float(dot.attrib["cx"]) for dot in found(document, "circle")]
    assert len(dots) == 2
    assert dots[0] > dots[1]
    assert all(0 <= float(text.attrib["x"]) <= 760 for text in found(document, "text"))


def test_labels_cannot_be_markup_or_control_a_reader() -> None:
    name = '<script>alert("&")</script>\x00\x1b[31m \ud800'
    document = draw_rates(name, [(name, wilson(1, 9))], name)
    assert "<script" not in document
    assert document.encode().isascii() or "\x1b" not in document


@table(
    "rates",
    [
        [],
        [wilson(0, 0)],
        [wilson(1, 9)],
        [wilson(9, 9)] * 3 + [wilson(0, 0)],
        [wilson(1, 999)] * 90,
    ],
)
def test_any_number_of_values_can_be_drawn(rates: list) -> None:
    rows = [
        (f"a_tool_with_a_rather_long_name_and_a_number_{at}", rate) for at, rate in enumerate(rates)
    ]
    document = draw_rates("Rows", rows)
    assert len(found(document, "circle")) == sum(rate.total > 0 for rate in rates)
    assert "nan" not in document
    assert "inf" not in document


def test_a_profile_without_calls_has_no_chart() -> None:
    assert draw_profile(profile([]), None, ()) == ""
