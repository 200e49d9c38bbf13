"""Parsing and formatting durations."""

from tests.tables import table

from journeyman.text.durations import abbreviate_duration, describe_duration, parse_duration


@table(
    ("text", "seconds"),
    [
        ("30s", 30.0),
        ("5 min", 300.0),
        ("2h", 7_200.0),
        ("1.5 hours", 5_400.0),
        ("7d", 604_800.0),
        ("2 weeks", 1_209_600.0),
        ("0.4s", 0.0),
        ("9" * 400 + "s", 1e10),
        *((text, None) for text in ("", "30", "m", "-1h", "1h30m", "2  h", "2 fortnights", "2H")),
    ],
)
def test_parse(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == seconds


@table(
    ("seconds", "words"),
    [
        (0, "no time"),
        (1, "1 second"),
        (90, "1 minute 30 seconds"),
        (93_600, "1 day 2 hours"),
        (1_209_600, "14 days"),
    ],
)
def test_describe(seconds: float, words: str) -> None:
    assert describe_duration(seconds) == words


@table(
    ("seconds", "text"),
    [
        (-1, "0.0 s"),
        (0.4, "0.4 s"),
        (42, "42 s"),
        (90, "1.5 min"),
        (93_600, "26 h"),
        (1_036_800, "12 d"),
    ],
)
def test_abbreviate(seconds: float, text: str) -> None:
    assert abbreviate_duration(seconds) == text
