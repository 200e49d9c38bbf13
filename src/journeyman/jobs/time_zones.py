"""Time zones, and conversion between instants and local times. Instants are Unix times."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from journeyman.records.errors import WrongInput

# Other files in the zone folder: second names of zones, zones that count leap seconds, and this
# machine's own setting.
_NOT_ZONES = ("right/", "posix/", "localtime", "posixrules")
_MAX_NAME_LENGTH = 60


@lru_cache(maxsize=128)
def get_zone(name: str) -> ZoneInfo:
    """Return the time zone with this name, ignoring case. Raise WrongInput, with similar names."""
    zone = _load_zone(name) or _load_zone(_names_by_lower_case().get(name.lower(), ""))
    if zone is None:
        raise WrongInput(
            f"There is no time zone {name[:_MAX_NAME_LENGTH]!r}. {_suggestion(name)}Use a "
            "name such as Europe/Berlin, America/New_York or UTC."
        )
    return zone


def zone_or_utc(name: str) -> tzinfo:
    """Return a zone by name, or UTC if this machine does not have it. For display only."""
    try:
        return get_zone(name)
    except WrongInput:
        return UTC


def machine_zone(environ: Mapping[str, str], etc: Path = Path("/etc")) -> str:
    """Return the zone of this machine: from TZ, the target of `localtime`, `timezone`, or UTC."""
    paths, link = [], etc / "localtime"
    if "TZ" in environ:
        # POSIX: an empty TZ means UTC, and a name may start with a colon.
        paths.append(environ["TZ"].removeprefix(":") or "UTC")
    with suppress(OSError, RuntimeError):  # no link, or a loop
        paths += [str(link.readlink()), str(link.resolve())]
    with suppress(OSError, UnicodeDecodeError):
        paths.append((etc / "timezone").read_text(encoding="utf-8").strip())
    names = (path.rpartition("zoneinfo/")[2].removeprefix("posix/") for path in paths)
    return next((name for name in names if name and _load_zone(name)), "UTC")


def clock_reading(at: int, zone: ZoneInfo) -> datetime:
    """Return the local time at an instant."""
    return datetime.fromtimestamp(at, zone).replace(tzinfo=None, fold=0)


def instant(local: datetime, zone: ZoneInfo) -> int:
    """Return the instant of a local time: the first one if it is ambiguous, the end of the gap if a
    clock change skips it. A later local time never has an earlier instant.
    """
    at = _timestamp(local, zone)
    if clock_reading(at, zone) == local:
        return at
    # The offsets before and after the change each place the skipped time on the other side of it.
    change = find_change(_timestamp(local.replace(fold=1), zone), at, zone)
    return at if change is None else change


def is_ambiguous(local: datetime, zone: ZoneInfo) -> bool:
    """Return whether a local time occurs twice because the clocks are set back."""
    return _timestamp(local, zone) < _timestamp(local.replace(fold=1), zone)


def find_change(after: int, until: int, zone: ZoneInfo) -> int | None:
    """Return the instant of the clock change in `(after, until]`, or None. The interval must be too
    short to hold two changes.
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


def _timestamp(local: datetime, zone: ZoneInfo) -> int:
    return int(local.replace(tzinfo=zone).timestamp())


def _load_zone(name: str) -> ZoneInfo | None:
    # A name is a file path, and different invalid paths raise different errors.
    try:
        return None if name.startswith(_NOT_ZONES) else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


@lru_cache(maxsize=1)
def _names_by_lower_case() -> dict[str, str]:
    """All zone names by their lower case. The first call is slow: it opens every zone file."""
    return {zone.lower(): zone for zone in sorted(available_timezones().difference(_NOT_ZONES))}


def _suggestion(name: str) -> str:
    key = name[:_MAX_NAME_LENGTH].lower().replace(" ", "_")
    zones = _names_by_lower_case()
    similar = [zones[key]] if key in zones else []
    similar += [zone for lower, zone in zones.items() if lower.rpartition("/")[2] == key]
    similar += [zones[lower] for lower in get_close_matches(key, zones, n=3, cutoff=0.75)]
    names = list(dict.fromkeys(similar))[:3]
    return f"Did you mean {' or '.join(map(repr, names))}? " if names else ""
