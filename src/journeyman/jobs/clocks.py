"""Time zones, what their clocks show and when, and lengths of time. Instants are Unix times."""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from journeyman.records.errors import WrongInput

# Files beside the zones: the same zones under a second name, with other seconds, or whatever this
# machine is set to.
_NOT_ZONES = ("right/", "posix/", "localtime", "posixrules")
_LONGEST_NAME = 60
DAY_S = 86_400

# A unit, its seconds, and the ways to write it.
_UNITS = (
    ("week", 7 * DAY_S, ("w", "week", "weeks")),
    ("day", DAY_S, ("d", "day", "days")),
    ("hour", 3_600, ("h", "hr", "hrs", "hour", "hours")),
    ("minute", 60, ("m", "min", "mins", "minute", "minutes")),
    ("second", 1, ("s", "sec", "secs", "second", "seconds")),
)
_SECONDS = {spelling: seconds for _, seconds, spellings in _UNITS for spelling in spellings}
_ENDLESS = 1e10
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([a-z]+)")


@lru_cache(maxsize=128)
def find_zone(name: str) -> ZoneInfo:
    """The time zone of this name, in any case. Raises WrongInput, with similar names."""
    zone = _zone(name) or _zone(_spellings().get(name.lower(), ""))
    if zone is None:
        raise WrongInput(
            f"There is no time zone {name[:_LONGEST_NAME]!r}. {_similar(name)}A time zone is a "
            "name such as Europe/Berlin, America/New_York or UTC."
        )
    return zone


def zone_or_utc(name: str) -> tzinfo:
    """A zone by its name; UTC where this machine does not know it, for what is only shown."""
    try:
        return find_zone(name)
    except WrongInput:
        return UTC


def machine_zone(environ: Mapping[str, str], etc: Path = Path("/etc")) -> str:
    """The zone of this machine: TZ, what `localtime` links to, the name in `timezone`, or UTC."""
    paths, link = [], etc / "localtime"
    if "TZ" in environ:
        # An empty one is UTC by the same rule that lets a colon stand before a name.
        paths.append(environ["TZ"].removeprefix(":") or "UTC")
    with suppress(OSError, RuntimeError):  # no link, or one that goes in a circle
        paths += [str(link.readlink()), str(link.resolve())]
    with suppress(OSError, UnicodeDecodeError):
        paths.append((etc / "timezone").read_text(encoding="utf-8").strip())
    names = (path.rpartition("zoneinfo/")[2].removeprefix("posix/") for path in paths)
    return next((name for name in names if name and _zone(name)), "UTC")


def clock_reading(at: int, zone: ZoneInfo) -> datetime:
    """What the clocks show at an instant."""
    return datetime.fromtimestamp(at, zone).replace(tzinfo=None, fold=0)


def instant(local: datetime, zone: ZoneInfo) -> int:
    """When the clocks show a local time: the first time, where it comes twice; the end of the gap,
    where a change skips it. A later local time is never at an earlier instant.
    """
    at = _timestamp(local, zone)
    if clock_reading(at, zone) == local:
        return at
    # Before the change the clocks run by one offset, after it by another; each puts the skipped
    # time on the other side of the change.
    change = find_change(_timestamp(local.replace(fold=1), zone), at, zone)
    return at if change is None else change


def comes_twice(local: datetime, zone: ZoneInfo) -> bool:
    """Whether the clocks show a local time, are set back, and show it again."""
    return _timestamp(local, zone) < _timestamp(local.replace(fold=1), zone)


def find_change(after: int, until: int, zone: ZoneInfo) -> int | None:
    """The instant of the clock change after one instant and not after another; None when there is
    none. The two must be so near to each other that there is no second one.
    """

    def offset(at: int) -> timedelta | None:
        return datetime.fromtimestamp(at, zone).utcoffset()

    before = offset(after)
    if offset(until) == before:
        return None
    while until - after > 1:
        middle = (after + until) // 2
        after, until = (middle, until) if offset(middle) == before else (after, middle)
    return until


def find_duration(text: str) -> float | None:
    """The seconds of a length of time such as `30m` or `2 hours`; None when the text is none."""
    parts = _DURATION.fullmatch(text)
    if parts is None or parts[2] not in _SECONDS:
        return None
    return float(round(min(float(parts[1]), _ENDLESS) * _SECONDS[parts[2]]))


def describe_duration(seconds: float) -> str:
    """A length of time in words, to the second."""
    left, said = round(seconds), []
    for unit, length, _ in _UNITS[1:]:  # "14 days" is plainer than "2 weeks"
        count, left = divmod(left, length)
        if count:
            said.append(f"{count} {unit}{'s' if count > 1 else ''}")
    return " ".join(said) or "no time"


def _timestamp(local: datetime, zone: ZoneInfo) -> int:
    return int(local.replace(tzinfo=zone).timestamp())


def _zone(name: str) -> ZoneInfo | None:
    # A name is a path to a file; what a wrong path meets there differs from name to name.
    try:
        return None if name.startswith(_NOT_ZONES) else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


@lru_cache(maxsize=1)
def _spellings() -> dict[str, str]:
    """All names by their lower case. Slow the first time, as each is a file to look into."""
    return {zone.lower(): zone for zone in sorted(available_timezones().difference(_NOT_ZONES))}


def _similar(name: str) -> str:
    wanted = name[:_LONGEST_NAME].lower().replace(" ", "_")
    zones = _spellings()
    close = [zones[wanted]] if wanted in zones else []
    close += [zone for low, zone in zones.items() if low.rpartition("/")[2] == wanted]
    close += [zones[low] for low in get_close_matches(wanted, zones, n=3, cutoff=0.75)]
    names = list(dict.fromkeys(close))[:3]
    return f"Did you mean {' or '.join(names)}? " if names else ""
