"""Parsing schedules: their descriptions, and the reasons for refusing invalid ones."""

import re
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.jobs.occurrences import next_occurrence
from journeyman.jobs.schedule_parser import ParsedSchedule, parse_schedule
from journeyman.records.errors import WrongInput
from journeyman.records.job import Schedule

ZONE = "Europe/Berlin"
NOW = datetime.fromisoformat("2026-11-16T13:34:56+01:00").timestamp()


def parse(text: str, zone: str = ZONE, now: float = NOW) -> ParsedSchedule:
    return parse_schedule(text, timezone=zone, now=now)


def refused(text: str) -> str:
    with pytest.raises(WrongInput) as raised:
        parse(text)
    return str(raised.value)


@table(
    ("text", "seconds", "said"),
    [
        ("in 30m", 1800, "Once, in 30 minutes, on Mon 2026-11-16 14:04:56 CET"),
        ("in 2 hours", 7200, "Once, in 2 hours, on Mon 2026-11-16 15:34:56 CET"),
        (" IN  90M ", 5400, "Once, in 1 hour 30 minutes, on Mon 2026-11-16 15:04:56 CET"),
        ("in 1.5 hours", 5400, "Once, in 1 hour 30 minutes, on Mon 2026-11-16 15:04:56 CET"),
        ("in 2w", 1_209_600, "Once, in 14 days, on Mon 2026-11-30 13:34:56 CET"),
        ("in 30s", 30, "Once, in 30 seconds, on Mon 2026-11-16 13:35:26 CET"),
    ],
)
def test_once_after_a_delay(text: str, seconds: float, said: str) -> None:
    found = parse(text)
    wrote = " ".join(text.split())
    assert found.schedule == Schedule(
        text=wrote,
        said=f"Once, {said.split(', ')[2]}",
        kind="once",
        timezone=ZONE,
        at=NOW + seconds,
    )
    assert found.description == said


@table(
    ("text", "seconds", "said"),
    [
        ("every 30m", 1800, "Every 30 minutes"),
        ("Every 2 Hours", 7200, "Every 2 hours"),
        ("every 1d", 86400, "Every 24 hours"),
        ("every 1 hour", 3600, "Every hour"),
        ("every 1 min", 60, "Every minute"),
        ("every 1.5h", 5400, "Every 1 hour 30 minutes"),
        ("every 2 weeks", 1_209_600, "Every 14 days"),
    ],
)
def test_intervals(text: str, seconds: float, said: str) -> None:
    found = parse(text)
    assert found.schedule == Schedule(
        text=text, said=said, kind="every", timezone=ZONE, at=NOW, seconds=seconds
    )
    assert found.description == f"{said}, counted from now"


@table(
    ("text", "cron", "said"),
    [
        ("every monday 09:00", "0 9 * * 1", "Every Monday at 09:00"),
        ("Every Mon 9:00", "0 9 * * 1", "Every Monday at 09:00"),
        ("every mon,thu 18:30", "30 18 * * 1,4", "Every Monday and Thursday at 18:30"),
        ("every thurs ,  tues 18:30", "30 18 * * 2,4", "Every Tuesday and Thursday at 18:30"),
        ("every weekday 8:30", "30 8 * * 1,2,3,4,5", "Every weekday, Monday to Friday, at 08:30"),
        ("every weekend 10:00", "0 10 * * 0,6", "Every Saturday and Sunday at 10:00"),
        ("every fri, weekend 0:05", "5 0 * * 0,5,6", "Every Friday, Saturday and Sunday at 00:05"),
        ("every   day  07:00", "0 7 * * *", "Every day at 07:00"),
        ("every weekday, weekend 7:00", "0 7 * * *", "Every day at 07:00"),
    ],
)
def test_days_and_times(text: str, cron: str, said: str) -> None:
    found = parse(text)
    wrote = " ".join(text.split())
    said = f"{said} (Europe/Berlin)"
    assert found.schedule == Schedule(text=wrote, said=said, kind="cron", timezone=ZONE, cron=cron)
    assert found.description == said


@table(
    ("text", "cron", "said"),
    [
        ("0 9 * * 1-5", "0 9 * * 1-5", "At 09:00 on Monday through Friday"),
        ("0  9 * * mon", "0 9 * * MON", "At 09:00 on Monday"),
        ("0 9 12 * *", "0 9 12 * *", "At 09:00 on the 12th day of every month"),
        ("* * * * *", "* * * * *", "Every minute"),
        ("0 9 1 * 1", "0 9 1 * 1", "At 09:00 on the first day of the month or on Monday"),
        ("0 9 1-31 * 1", "0 9 1-31 * 1", "At 09:00 every day"),
        (
            "0 9 */2 * 1",
            "0 9 */2 * 1",
            "At 09:00 on every second day of the month if it's on Monday",
        ),
        ("*/60 * * * *", "*/60 * * * *", "Every 60th minute of every hour"),
        ("@hourly", "0 * * * *", "At the start of every hour"),
        ("@Daily", "0 0 * * *", "At 00:00 every day"),
        ("@weekly", "0 0 * * 0", "At 00:00 on Sunday"),
        ("@monthly", "0 0 1 * *", "At 00:00 on the first day of every month"),
        ("@yearly", "0 0 1 1 *", "At 00:00 on January 1"),
    ],
)
def test_cron_expressions(text: str, cron: str, said: str) -> None:
    found = parse(text)
    assert (found.schedule.kind, found.schedule.cron) == ("cron", cron)
    assert found.description == f"{said} (Europe/Berlin)"


@table(
    ("text", "instant", "said"),
    [
        ("2026-12-01T09:00", "2026-12-01T09:00+01:00", "Once, on Tue 2026-12-01 09:00 CET"),
        ("2026-12-01 09:00", "2026-12-01T09:00+01:00", "Once, on Tue 2026-12-01 09:00 CET"),
        ("2026-12-01", "2026-12-01T00:00+01:00", "Once, on Tue 2026-12-01 00:00 CET"),
        (
            "2026-12-01T09:00:00+02:00",
            "2026-12-01T08:00+01:00",
            "Once, on Tue 2026-12-01 08:00 CET",
        ),
        ("2026-12-01t09:00-05:30", "2026-12-01T15:30+01:00", "Once, on Tue 2026-12-01 15:30 CET"),
        ("2026-12-01T09:00Z", "2026-12-01T10:00+01:00", "Once, on Tue 2026-12-01 10:00 CET"),
        (
            "2026-12-01 09:00:07",
            "2026-12-01T09:00:07+01:00",
            "Once, on Tue 2026-12-01 09:00:07 CET",
        ),
        (
            "2027-10-31 02:30",
            "2027-10-31T02:30+02:00",
            "Once, on Sun 2027-10-31 02:30 CEST",
        ),
        ("2027-10-31T02:30+01:00", "2027-10-31T02:30+01:00", "Once, on Sun 2027-10-31 02:30 CET"),
    ],
)
def test_dates(text: str, instant: str, said: str) -> None:
    found = parse(text)
    assert (found.schedule.kind, found.schedule.at) == (
        "once",
        datetime.fromisoformat(instant).timestamp(),
    )
    assert found.description == said


@table(
    ("text", "why"),
    [
        ("", "it is empty"),
        (" \t ", "it is empty"),
        ("foo bar", "it has none of the accepted forms"),
        ("first monday of the month 09:00", "it has none of the accepted forms"),
        ("monday 9am", "it has none of the accepted forms"),
        ("30m", "it has none of the accepted forms"),
        ("every monday", "'monday' is neither a length of time"),
        ("every 3 months", "'3 months' is neither a length of time"),
        ("every 1h30m", "'1h30m' is neither a length of time"),
        ("every -5m", "'-5m' is neither a length of time"),
        ("every moonday 09:00", "'moonday' is not a day: write monday to sunday"),
        ("every mo 09:00", "'mo' is not a day"),
        ("every monday 25:00", "'25:00' is not a time of day"),
        ("every monday 9:75", "'9:75' is not a time of day"),
        ("every day 09:00 UTC", "is neither a length of time"),
        ("every 30s", "at least a minute"),
        ("every 0m", "at least a minute"),
        ("in 0m", "shorter than a second"),
        ("in 3 moons", "a length of time"),
        ("in", "it has none of the accepted forms"),
        ("every 99999d", "ten years"),
        ("in " + "9" * 150 + "h", "ten years"),
        ("x" * 201, "more than 200 characters"),
        ("2026-11-16 13:34", "is in the past: it is now Mon 2026-11-16 13:34:56 CET"),
        ("2026-13-01 09:00", "there is no such date"),
        ("2027-02-29", "there is no such date"),
        ("2026-12-01 09:00:60", "there is no such date"),
        ("2026-12-01T09:00+99:00", "there is no such date"),
        ("0001-01-01T00:00+14:00", "out of range"),
        ("9999-12-31T23:59", "out of range"),
        ("0 0 30 2 *", "'30' is not a valid day-of-month, which is 1-31 if the month has it"),
        ("0 0 */31 2 MON#5", "never occurs"),
        ("0 0 9 * * *", "it has 6 fields instead of the five"),
        ("0 9 * *", "it has 4 fields"),
        ("*/5", "it has 1 fields"),
        ("0 25 * * *", "'25' is not a valid hour, which is 0-23"),
        ("0 9 * * noday", "'NODAY' is not a valid day-of-week"),
        ("0 9 32 * *", "'32' is not a valid day-of-month"),
        ("0 9 " + "1" * 180 + " * *", "is not a valid day-of-month"),
        ("@reboot", "@hourly"),
    ],
    ids=lambda value: ascii(value[:40]),
)
def test_invalid_schedules_are_refused_with_the_reason(text: str, why: str) -> None:
    said = refused(text)
    assert why in said
    assert said.endswith(
        " Write for example: in 30m (once), every 2 hours, every monday 09:00, every weekday "
        "18:30, 0 9 * * 1-5 (cron) or 2026-11-23T09:00."
    )


def test_every_example_in_the_refusal_is_valid() -> None:
    shown = refused("foo").split("Write for example: ")[1].removesuffix(".")
    examples = re.sub(r" \((?:once|cron)\)", "", shown).replace(" or ", ", ").split(", ")
    assert [parse(text).schedule.kind for text in examples] == [
        *("once", "every", "cron", "cron", "cron", "once")
    ]


def test_every_form_in_the_docs_is_valid() -> None:
    page = (Path(__file__).parents[3] / "docs" / "jobs.md").read_text()
    rows = page.partition("| what you write | what it means |")[2].partition("\n\n")[0]
    texts = [text for row in rows.splitlines()[2:] for text in re.findall("`([^`]+)`", row)]
    assert len(texts) > 15
    for text in texts:
        parse(text)


PIECES = """
in every each daily weekly monthly hourly at on the of and to , & - / * . : a an @daily
today tomorrow tonight next first second last other half quarter between week months year : :15
17h 9.30am 9:00:30 -5m */90 0/99 utc europe/berlin 2 14 days weeks fridays weekdays tz=
0 1 9 30 59 99 1st 31st 32nd monday mon-fri weekday day month hour 30m 1h30m 2 hours 0.5d 1e9
9am 9:15 24:00 noon pm z +02:00 utc 2027-03-28 2027-03-28t02:30 2027-02-30
*/5 1-5 5-1 L LW mon#2 1#9 5L jan 2/0 ² ٣ ß \x1b[1m \udc80 \0 \N{KELVIN SIGN}
"""
word_lists = st.lists(st.sampled_from(PIECES.split()), max_size=8)


@given(st.one_of(st.text(), word_lists.map(" ".join), word_lists.map("".join)))
@example("0 0 LW/2 1 1#2/3")
@example("9 9 L/2,31 2 6L")
@example("2027-03-28t02:30:00.5 +15:59")
@example("every 0.5d at 9am")
@example("{} {0}")
def test_any_text_is_parsed_or_refused_in_printable_characters(text: str) -> None:
    try:
        found = parse(text)
    except WrongInput as error:
        said = str(error)
    else:
        said = found.description + found.schedule.text + found.schedule.said
        time = next_occurrence(found.schedule, NOW)
        assert time is not None
        assert time > NOW
    assert said.isprintable()
