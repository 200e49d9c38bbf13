"""Schedules as people write them, what is said back, and what is refused with a reason."""

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.records.errors import WrongInput
from journeyman.records.job import Schedule
from journeyman.schedule.timing.reading import Read, read_schedule
from journeyman.schedule.timing.times import following

ZONE = "Europe/Berlin"
NOW = datetime.fromisoformat("2026-11-16T13:34:56+01:00").timestamp()


def read(text: str, zone: str = ZONE, now: float = NOW) -> Read:
    return read_schedule(text, timezone=zone, now=now)


def refused(text: str) -> str:
    with pytest.raises(WrongInput) as raised:
        read(text)
    return str(raised.value)


def suggested(said: str) -> list[str]:
    """What a refusal tells to write."""
    return re.findall(r'"([^"]*)"', said.rpartition(" cannot be used: ")[2])


@table(
    ("text", "seconds", "said"),
    [
        ("in 30m", 1800, "Once, in 30 minutes, on Mon 2026-11-16 14:04:56 CET"),
        ("in 2 hours", 7200, "Once, in 2 hours, on Mon 2026-11-16 15:34:56 CET"),
        (" IN  1h30m ", 5400, "Once, in 1 hour 30 minutes, on Mon 2026-11-16 15:04:56 CET"),
        ("in 1.5 hours", 5400, "Once, in 1 hour 30 minutes, on Mon 2026-11-16 15:04:56 CET"),
        ("in an hour and 5 min", 3900, "Once, in 1 hour 5 minutes, on Mon 2026-11-16 14:39:56 CET"),
        ("in 2w", 1_209_600, "Once, in 14 days, on Mon 2026-11-30 13:34:56 CET"),
        ("in half an hour", 1800, "Once, in 30 minutes, on Mon 2026-11-16 14:04:56 CET"),
        ("in 30s", 30, "Once, in 30 seconds, on Mon 2026-11-16 13:35:26 CET"),
    ],
)
def test_once_after_a_while(text: str, seconds: float, said: str) -> None:
    found = read(text)
    wrote = " ".join(text.split())
    assert found.schedule == Schedule(
        text=wrote,
        said=f"Once, {said.split(', ')[2]}",
        kind="once",
        timezone=ZONE,
        at=NOW + seconds,
    )
    assert found.said == said


def test_a_bare_length_of_time_means_once_and_says_how_to_repeat() -> None:
    found = read("30m")
    assert (found.schedule.kind, found.schedule.at) == ("once", NOW + 1800)
    assert found.said == (
        "Once, in 30 minutes, on Mon 2026-11-16 14:04:56 CET; "
        'to have it again and again, write "every 30m"'
    )
    assert read("every 30m").schedule.kind == "every"


def test_what_is_said_about_repeating_can_be_written() -> None:
    for text in ("30s", "1 hour and 30 minutes", "90s"):
        again = read(text).said.split('"')[1]
        assert read(again).schedule.kind == "every"


@table(
    ("text", "seconds", "said"),
    [
        ("every 30m", 1800, "Every 30 minutes"),
        ("Every 2 Hours", 7200, "Every 2 hours"),
        ("every 1d", 86400, "Every 24 hours"),
        ("every hour", 3600, "Every hour"),
        ("each minute", 60, "Every minute"),
        ("every 1h 30m", 5400, "Every 1 hour 30 minutes"),
        ("every 2 weeks", 1_209_600, "Every 14 days"),
        ("every half hour", 1800, "Every 30 minutes"),
        ("every half an hour", 1800, "Every 30 minutes"),
        ("every quarter hour", 900, "Every 15 minutes"),
        ("every quarter of an hour", 900, "Every 15 minutes"),
        ("every other hour", 7200, "Every 2 hours"),
    ],
)
def test_intervals(text: str, seconds: float, said: str) -> None:
    found = read(text)
    assert found.schedule == Schedule(
        text=text, said=said, kind="every", timezone=ZONE, at=NOW, seconds=seconds
    )
    assert found.said == f"{said}, counted from now"


@table(
    ("text", "cron", "said"),
    [
        ("every monday 9am", "0 9 * * 1", "Every Monday at 09:00"),
        ("every mon,thu at 18:30", "30 18 * * 1,4", "Every Monday and Thursday at 18:30"),
        ("every Mon and Thu 18:30", "30 18 * * 1,4", "Every Monday and Thursday at 18:30"),
        (
            "every weekday 9:15",
            "15 9 * * 1,2,3,4,5",
            "Every weekday, Monday to Friday, at 09:15",
        ),
        ("every weekend 10am", "0 10 * * 0,6", "Every Saturday and Sunday at 10:00"),
        ("every fri-sun at 8 pm", "0 20 * * 0,5,6", "Every Friday, Saturday and Sunday at 20:00"),
        ("every sat to mon at 12am", "0 0 * * 0,1,6", "Every Monday, Saturday and Sunday at 00:00"),
        ("every day at 7", "0 7 * * *", "Every day at 07:00"),
        ("every   day  7", "0 7 * * *", "Every day at 07:00"),
        ("daily 9am", "0 9 * * *", "Every day at 09:00"),
        ("daily at noon", "0 12 * * *", "Every day at 12:00"),
        ("weekly on tuesday at 12:05 p.m.", "5 12 * * 2", "Every Tuesday at 12:05"),
        ("every day at 9am and 6pm", "0 9,18 * * *", "Every day at 09:00 and 18:00"),
        ("every month on the 1st at 9am", "0 9 1 * *", "On the 1st of every month at 09:00"),
        ("every 2nd and 22nd at 9", "0 9 2,22 * *", "On the 2nd and 22nd of every month at 09:00"),
        (
            "monthly on the 31st at 9",
            "0 9 31 * *",
            "On the 31st of every month, where there is one, at 09:00",
        ),
        ("every day at 17h", "0 17 * * *", "Every day at 17:00"),
        ("every day 9h30", "30 9 * * *", "Every day at 09:30"),
        ("every day at 9.30am", "30 9 * * *", "Every day at 09:30"),
        ("every day at 9 and 18", "0 9,18 * * *", "Every day at 09:00 and 18:00"),
        ("9am every monday", "0 9 * * 1", "Every Monday at 09:00"),
        ("at 9 every day", "0 9 * * *", "Every day at 09:00"),
        ("every week at 9am on monday", "0 9 * * 1", "Every Monday at 09:00"),
        ("every week on monday at 9", "0 9 * * 1", "Every Monday at 09:00"),
        ("weekly on monday 9am", "0 9 * * 1", "Every Monday at 09:00"),
        ("monthly on the 1st at 9am", "0 9 1 * *", "On the 1st of every month at 09:00"),
        ("on the 1st of every month at 9", "0 9 1 * *", "On the 1st of every month at 09:00"),
        ("first of the month 9am", "0 9 1 * *", "On the 1st of every month at 09:00"),
        ("hourly", "0 * * * *", "Every hour at :00"),
        ("hourly at :15", "15 * * * *", "Every hour at :15"),
        ("every hour at :45 and :05", "5,45 * * * *", "Every hour at :05 and :45"),
        (
            "first monday of the month at 9am",
            "0 9 * * MON#1",
            "On the first Monday of every month at 09:00",
        ),
        ("every first monday 9am", "0 9 * * MON#1", "On the first Monday of every month at 09:00"),
        (
            "on the 1st and third sun of the month 9am",
            "0 9 * * SUN#1,SUN#3",
            "On the first Sunday and third Sunday of every month at 09:00",
        ),
        (
            "every month on the fifth friday at 9",
            "0 9 * * FRI#5",
            "On the fifth Friday of every month, where there is one, at 09:00",
        ),
        (
            "last friday of the month 5pm",
            "0 17 * * 5L",
            "On the last Friday of every month at 17:00",
        ),
        (
            "last day of the month at 18:00",
            "0 18 L * *",
            "On the last day of every month at 18:00",
        ),
        (
            "on the 15th and last day of the month at 9",
            "0 9 15,L * *",
            "On the 15th and last day of every month at 09:00",
        ),
        (
            "last weekday of the month at 9am",
            "0 9 LW * *",
            "On the last weekday, Monday to Friday, of every month at 09:00",
        ),
    ],
)
def test_days_and_times(text: str, cron: str, said: str) -> None:
    found = read(text)
    wrote = " ".join(text.split())
    said = f"{said} (Europe/Berlin)"
    assert found.schedule == Schedule(text=wrote, said=said, kind="cron", timezone=ZONE, cron=cron)
    assert found.said == said


@table(
    ("text", "cron", "said"),
    [
        ("0 9 * * 1-5", "0 9 * * 1-5", "At 09:00 on Monday through Friday"),
        ("0  9 * * mon", "0 9 * * MON", "At 09:00 on Monday"),
        ("0 9 22 * *", "0 9 22 * *", "At 09:00 on the 22nd day of every month"),
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
    found = read(text)
    assert (found.schedule.kind, found.schedule.cron) == ("cron", cron)
    assert found.said == f"{said} (Europe/Berlin)"


@table(
    ("text", "instant", "said"),
    [
        ("2026-12-01T09:00", "2026-12-01T09:00+01:00", "Once, on Tue 2026-12-01 09:00 CET"),
        ("2026-12-01 09:00", "2026-12-01T09:00+01:00", "Once, on Tue 2026-12-01 09:00 CET"),
        ("on 2026-12-1 at 9am", "2026-12-01T09:00+01:00", "Once, on Tue 2026-12-01 09:00 CET"),
        (
            "2026-12-01T09:00:00+02:00",
            "2026-12-01T08:00+01:00",
            "Once, on Tue 2026-12-01 08:00 CET",
        ),
        ("2026-12-01t09:00-0530", "2026-12-01T15:30+01:00", "Once, on Tue 2026-12-01 15:30 CET"),
        ("2026-12-01T09:00Z", "2026-12-01T10:00+01:00", "Once, on Tue 2026-12-01 10:00 CET"),
        (
            "2026-12-01 09:00:07",
            "2026-12-01T09:00:07+01:00",
            "Once, on Tue 2026-12-01 09:00:07 CET",
        ),
        (
            "2027-03-28 02:30",
            "2027-03-28T03:00+02:00",
            "Once, on Sun 2027-03-28 03:00 CEST, as the clocks skip 02:30 that day",
        ),
        (
            "2027-10-31 02:30",
            "2027-10-31T02:30+02:00",
            "Once, on Sun 2027-10-31 02:30 CEST, the first of the two times it is 02:30 that day",
        ),
        ("2027-10-31T02:30+01:00", "2027-10-31T02:30+01:00", "Once, on Sun 2027-10-31 02:30 CET"),
    ],
)
def test_dates(text: str, instant: str, said: str) -> None:
    found = read(text)
    assert (found.schedule.kind, found.schedule.at) == (
        "once",
        datetime.fromisoformat(instant).timestamp(),
    )
    assert found.said == said


@table(
    ("text", "now", "said"),
    [
        ("tomorrow 9am", "2026-11-16T13:34", "Tue 2026-11-17 09:00 CET"),
        ("noon tomorrow", "2026-11-16T13:34", "Tue 2026-11-17 12:00 CET"),
        ("at 9 tomorrow", "2026-12-31T13:34", "Fri 2027-01-01 09:00 CET"),
        ("Day after tomorrow, 9:15", "2026-11-16T13:34", "Wed 2026-11-18 09:15 CET"),
        ("today 18:00", "2026-11-16T13:34", "Mon 2026-11-16 18:00 CET"),
        ("tonight at 8pm", "2026-11-16T13:34", "Mon 2026-11-16 20:00 CET"),
        ("tonight at midnight", "2026-11-16T13:34", "Tue 2026-11-17 00:00 CET"),
        ("tonight at 2am", "2026-11-17T01:00", "Tue 2026-11-17 02:00 CET"),
        ("tonight at midnight", "2026-11-17T00:10", "Wed 2026-11-18 00:00 CET"),
        ("tonight at 1am", "2026-11-17T02:00", "Wed 2026-11-18 01:00 CET"),
        ("next monday 9am", "2026-11-16T08:00", "Mon 2026-11-23 09:00 CET"),
        ("next tue at 9:00:30", "2026-11-16T13:34", "Tue 2026-11-17 09:00:30 CET"),
        ("on next sunday 17h", "2026-11-16T13:34", "Sun 2026-11-22 17:00 CET"),
        (
            "tomorrow 2:30",
            "2027-03-27T13:34",
            "Sun 2027-03-28 03:00 CEST, as the clocks skip 02:30 that day",
        ),
        (
            "next sunday 2:30",
            "2027-10-30T13:34",
            "Sun 2027-10-31 02:30 CEST, the first of the two times it is 02:30 that day",
        ),
    ],
)
def test_days_from_today(text: str, now: str, said: str) -> None:
    found = read(text, now=datetime.fromisoformat(now).replace(tzinfo=ZoneInfo(ZONE)).timestamp())
    assert found.schedule.kind == "once"
    assert found.said == f"Once, on {said}"


def test_today_is_the_day_in_the_zone() -> None:
    late = datetime.fromisoformat("2026-11-16T23:30+01:00").timestamp()
    assert read("tomorrow 9am", "Asia/Tokyo", late).said == "Once, on Wed 2026-11-18 09:00 JST"
    assert read("tomorrow 9am", "UTC", late).said == "Once, on Tue 2026-11-17 09:00 UTC"


@table(
    ("text", "why"),
    [
        ("", "it is empty"),
        (" \t ", "it is empty"),
        ("foo bar", "'foo' is not a word that a schedule begins with"),
        ("monday 9am", 'did you mean "every monday 9am" or, once, "next monday at 9am"?'),
        ("monday", 'did you mean "every monday at 9am" or, once, "next monday at 9am"?'),
        ("weekdays at 9", 'did you mean "every weekday at 9"?'),
        ("on mon at 9am and 6pm", 'did you mean "every mon at 9am and 6pm"?'),
        ("9am", 'is it once, "tomorrow at 9am", or again and again, "every day at 9am"?'),
        ("at 3pm", 'is it once, "today at 3pm", or again and again, "every day at 3pm"?'),
        ("noon", 'is it once, "tomorrow at noon", or again and again, "every day at noon"?'),
        ("yearly", 'did you mean "@yearly"?'),
        ("daily", 'the time of day is missing: write for example "every day at 9am"'),
        ("every day", '"every day at 9am", or "every 24h" for a distance, counted from now'),
        ("weekly", '"every monday at 9am", or "every 7d" for a distance, counted from now'),
        ("each week", '"every monday at 9am", or "every 7d" for a distance, counted from now'),
        ("weekly 9am", "the day is missing"),
        ("monthly", 'write for example "every month on the 1st at 9am"'),
        ("every other day", 'write "every 48h" for a distance, counted from now, or the cron'),
        (
            "every other day at 9am",
            'write "every 2 days", which is counted from now, or the nearest',
        ),
        ("every 3 days 9:15", 'the nearest cron expression, "15 9 */3 * *"'),
        ("every 2 weeks on tue at 9am", 'or "first and third tuesday of the month at 9am"'),
        ("every 7d at 9am", 'or "every monday at 9am"'),
        ("every 2 hours at :15", 'or the cron expression "15 */2 * * *"'),
        ("every 99999d at 9am", 'a distance has no time of day: write "every day at 9am"'),
        ("every 59 minutes between 9 and 5", "'between 9 and 5' cannot follow it: for some hours"),
        ("every 30m please", "'please' cannot follow it: write \"every 30m\""),
        ("every weekday between 9 and 5", "write a cron expression"),
        ("every hour at 15", 'write "every hour at :15"'),
        ("every hour at :60", "the minutes :00 to :59"),
        ("every other monday 9am", 'for every second week, write "every 2 weeks"'),
        (
            "every second monday 9am",
            'write "second monday of the month at 9am", or "every 2 weeks"',
        ),
        ("every 3 months", "'3 months' is no length of time: there are minutes, hours, days"),
        ("every 3 months", 'for months, write a cron expression: "0 9 1 */3 *"'),
        ("every -5m", "'-5m' is no length of time: there are minutes"),
        ("every 5", "'5' is no length of time"),
        ("every 9am", 'the day is missing: did you mean "every day at 9am"?'),
        ("every day at 9:00:30", "'9:00:30' is no time of day"),
        ("every day at 25h", "'25h' is no time of day"),
        ("every day at nine", "'nine' is no time of day"),
        ("every day at 9am on weekdays", "every day has all other days in it"),
        ("every mon at 9am and thu at 10am", "make a job for each"),
        ("31st monday of the month 9am", "the first to the fifth and the last"),
        ("first weekday of the month 9am", "only the last weekday"),
        ("1st and monday of the month 9am", "do not go together"),
        ("tomorrow", 'write for example "tomorrow at 9am"'),
        ("today 9am", "Mon 2026-11-16 09:00 CET is in the past"),
        ("tonight at 8", 'is not in the night: write for example "tonight at 8pm"'),
        ("tonight at all", "'all' is no time of day"),
        ("next week", "after next comes a day of the week"),
        ("every day at 9am UTC", "name the zone with --tz UTC (in Python timezone='UTC')"),
        ("every day at 9am Europe/Berlin", "name the zone with --tz Europe/Berlin (in Python"),
        ("2027-01-31T09:00 America/La_Paz", "name the zone with --tz America/La_Paz"),
        ("0 9 * * 1 Europe/Berlin", "name the zone with --tz Europe/Berlin"),
        ("TZ=Europe/Berlin 0 9 * * 1", "name the zone with --tz Europe/Berlin"),
        ("every day at 9am in PST", "name the zone with --tz, for example America/New_York"),
        ("every moonday 9am UTC", "'moonday' is no day"),
        ("2026-11-16 11:00 UTC", "Mon 2026-11-16 12:00 CET is in the past"),
        ("every monday", 'the time of day is missing: write for example "every monday at 9am"'),
        ("every", "the day is missing"),
        ("every month", "the day is missing"),
        ("every month at 9am", "the day is missing"),
        ("every moonday 9am", "'moonday' is no day"),
        ("every monday 25:00", "'25:00' is no time of day"),
        ("every monday 13pm", "'13pm' is no time of day"),
        ("every monday 9:75", "'9:75' is no time of day"),
        ("every day 9:00, 18:30", "make a job for each"),
        ("every 2 days at 9am", 'write "every 2 days"'),
        ("weekly 30m", "'30m' is no day"),
        ("every 0th at 9am", "1st to 31st"),
        ("every monday and 1st at 9am", "do not go together"),
        ("every 30s", "a minute is the shortest"),
        ("every 0m", "a minute is the shortest"),
        ("in 0m", "no time at all"),
        ("in 3 moons", "a length of time"),
        ("in", "'in' is not"),
        ("every 99999d", "ten years"),
        ("in " + "9" * 150 + "h", "ten years"),
        ("x" * 201, "more than 200 characters"),
        ("2026-12-01", 'write "2026-12-01T09:00"'),
        ("2026-11-16 13:34", "is in the past: now it is Mon 2026-11-16 13:34:56 CET"),
        ("2026-13-01 09:00", "there is no day 2026-13-01"),
        ("2027-02-29 09:00", "there is no day 2027-02-29"),
        ("2026-12-01 24:00", "no time of day"),
        ("2026-12-01 09:00:60", "no time of day"),
        ("2026-12-01T09:00+99:00", "no offset"),
        ("0001-01-01T00:00+14:00", "out of reach"),
        ("9999-12-31T23:59", "out of reach"),
        ("2300-01-01 09:00", "100 years"),
        ("0 0 30 2 *", "never comes: month '2' has no day '30'"),
        ("0 0 */31 2 MON#5", "never comes"),
        ("0 0 9 * * *", "leave out the seconds, and it is '0 9 * * *'"),
        ("*/90 * * * *", "as the minute is 0-59, and begins anew each time: did you mean "),
        ("*/90 * * * *", 'did you mean "every 90m"?'),
        ("0 0-20/36 * * *", 'did you mean "every 36h"?'),
        ("0 9 1 */13 *", "the step in '*/13' is never taken, as the month is 1-12"),
        ("*/" + "9" * 90 + " * * * *", "is never taken"),
        ("0 9 * *", "4 of the five fields"),
        ("*/5", "1 of the five fields"),
        ("0 25 * * *", "'25' cannot be the hour, which is 0-23"),
        ("0 9 * * noday", "'NODAY' cannot be the day-of-week"),
        ("0 9 32 * *", "'32' cannot be the day-of-month"),
        ("0 9 " + "1" * 180 + " * *", "cannot be the day-of-month"),
        ("@reboot", "@hourly"),
    ],
    ids=lambda value: ascii(value[:40]),
)
def test_what_is_refused_and_why(text: str, why: str) -> None:
    said = refused(text)
    assert why in said
    assert said.endswith(
        "Write for example: in 30m (once), every 2 hours, every monday 9am, every weekday 18:30, "
        "0 9 * * 1-5 or 2026-11-23T09:00."
    )
    for meant in suggested(said.rpartition(" Write for example: ")[0]):
        read(meant)


def test_every_example_in_the_refusal_can_be_written() -> None:
    shown = refused("foo").split("Write for example: ")[1].removesuffix(".")
    examples = shown.replace(" (once)", "").replace(" or ", ", ").split(", ")
    assert [read(text).schedule.kind for text in examples] == [
        *("once", "every", "cron", "cron", "cron", "once")
    ]


def test_a_zone_keeps_its_own_spelling() -> None:
    found = read("every day at 9am", "europe/berlin")
    assert found.schedule.timezone == "Europe/Berlin"
    assert found.said == "Every day at 09:00 (Europe/Berlin)"


PIECES = """
in every each daily weekly monthly hourly at on the of and to , & - / * . : a an @daily
today tomorrow tonight next first second last other half quarter between week months year : :15
17h 9.30am 9:00:30 -5m */90 0/99 utc europe/berlin 2 14 days weeks fridays weekdays tz=
0 1 9 30 59 99 1st 31st 32nd monday mon-fri weekday day month hour 30m 1h30m 2 hours 0.5d 1e9
9am 9:15 24:00 noon pm z +02:00 utc 2027-03-28 2027-03-28t02:30 2027-02-30
*/5 1-5 5-1 L LW mon#2 1#9 5L jan 2/0 ² ٣ ß \x1b[1m \udc80 \0 \N{KELVIN SIGN}
"""
worded = st.lists(st.sampled_from(PIECES.split()), max_size=8)


@given(st.one_of(st.text(), worded.map(" ".join), worded.map("".join)))
@example("0 0 LW/2 1 1#2/3")
@example("9 9 L/2,31 2 6L")
@example("2027-03-28t02:30:00.5 +15:59")
@example("every 0.5d at 9am")
@example("{} {0}")
def test_any_text_is_read_or_refused_in_plain_letters(text: str) -> None:
    try:
        found = read(text)
    except WrongInput as error:
        said = str(error)
        if not {*text} & {"'", '"'}:
            for meant in suggested(said):
                read(meant)
    else:
        said = found.said + found.schedule.text + found.schedule.said
        time = following(found.schedule, NOW)
        assert time is not None
        assert time > NOW
    assert said.isprintable()
