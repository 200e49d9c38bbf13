"""Time zones by name."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, tzinfo
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from journeyman.records.errors import WrongInput

# Other files in the zone folder: second names of zones, zones that count leap seconds, and this
# machine's own setting.
_NOT_ZONES = ("right/", "posix/", "localtime", "posixrules")
_MAX_NAME_LENGTH = 60


@lru_cache(maxsize=128)
def get_zone(name: str) -> ZoneInfo:
    """Return the time zone with this name. Raise WrongInput."""
    zone = _load_zone(name)
    if zone is None:
        raise WrongInput(
            f"There is no time zone {name[:_MAX_NAME_LENGTH]!r}. Use a name "
            "such as Europe/Berlin, America/New_York or UTC."
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


def _load_zone(name: str) -> ZoneInfo | None:
    # A name is a file path, and different invalid paths raise different errors.
    try:
        return None if name.startswith(_NOT_ZONES) else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
