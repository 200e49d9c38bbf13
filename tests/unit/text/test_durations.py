"""Parsing and formatting durations."""

from datetime import datetime

from tests.tables import table

from journeyman.text.durations import (
    abbreviate_duration,
    describe_duration,
    parse_duration,
    parse_moment,
)


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


def test_moments() -> None:
    now = "2026-11-17 22:30"
    expected = {
        "7d": "2026-11-10 22:30",
        "2 weeks": "2026-11-03 22:30",
        "2  Weeks ago": "2026-11-03 22:30",
        "90 min": "2026-11-17 21:00",
        "now": now,
        "today": "2026-11-17",
        "Yesterday": "2026-11-16",
        "2026-11-01": "2026-11-01",
        "2026-11-01 18:30": "2026-11-01 18:30",
        "2026-11-01t18:30z": "2026-11-01T18:30+00:00",
        **dict.fromkeys(("", "7", "ago", "d", "tomorrow", "2026-13-01", "-7d", "soon")),
    }
    read = {text: parse_moment(text, _seconds(now)) for text in expected}
    assert read == {text: at and _seconds(at) for text, at in expected.items()}


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


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
