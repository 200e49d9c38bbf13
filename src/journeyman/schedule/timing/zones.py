"""Time zones by name: the one a user wrote, and the one of this machine. What the clocks of a zone
show is the business of `clocks`.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from journeyman.records.errors import WrongInput

# Files beside the zones: the same zones under a second name, with other seconds, or whatever this
# machine is set to.
_NOT_ZONES = ("right/", "posix/", "localtime", "posixrules")
_FOLDER = "zoneinfo/"


@lru_cache(maxsize=128)
def find_zone(name: str) -> ZoneInfo:
    """The time zone of this name, in whichever letters; its key has the right ones. Raises
    WrongInput, with close names, when none has it.
    """
    zone = _zone(name) if _is_zone(name) else _zone(_spelt().get(name.lower(), ""))
    if zone is None:
        raise WrongInput(
            f"There is no time zone {_shown(name)}. {_meant(name)}A time zone is a name such as "
            "Europe/Berlin, America/New_York or UTC."
        )
    return zone


def machine_zone(environ: Mapping[str, str], etc: Path = Path("/etc")) -> str:
    """The name of this machine's time zone: the TZ variable, what `localtime` links to, the name
    in `timezone`, or UTC.
    """
    return next((name for name in _names(environ, etc) if name and _is_zone(name)), "UTC")


def _names(environ: Mapping[str, str], etc: Path) -> Iterator[str]:
    """What could be the name, the surest first."""
    if "TZ" in environ:
        # An empty one is UTC by the same rule that lets a colon stand before a name.
        yield _within(environ["TZ"].removeprefix(":")) or "UTC"
    link = etc / "localtime"
    with suppress(OSError, RuntimeError):  # no link, or one that goes in a circle
        yield _within(str(link.readlink()))
        yield _within(str(link.resolve()))
    with suppress(OSError, UnicodeDecodeError):
        yield (etc / "timezone").read_text(encoding="utf-8").strip()


def _within(path: str) -> str:
    """The name of a zone from its file's path."""
    return path.rpartition(_FOLDER)[2].removeprefix("posix/")


def _is_zone(name: str) -> bool:
    return not name.startswith(_NOT_ZONES) and _zone(name) is not None


def _zone(name: str) -> ZoneInfo | None:
    # A name is a path to a file; what a wrong path meets there differs from name to name.
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


@lru_cache(maxsize=1)
def _spelt() -> dict[str, str]:
    """All names by their small letters. To find them takes long, as each is a file to look into."""
    return {zone.lower(): zone for zone in sorted(available_timezones().difference(_NOT_ZONES))}


def _shown(name: str) -> str:
    return repr(name if len(name) <= 60 else name[:59] + "…")


def _meant(name: str) -> str:
    asked = name[:60].lower().replace(" ", "_")
    zones = _spelt()
    close = [zones[asked]] if asked in zones else []
    close += [zone for low, zone in zones.items() if low.rpartition("/")[2] == asked]
    close += [zones[low] for low in get_close_matches(asked, zones, n=3, cutoff=0.75)]
    names = list(dict.fromkeys(close))[:3]
    return f"Did you mean {' or '.join(names)}? " if names else ""


def known_zone(name: str) -> tzinfo:
    """A zone by its name; UTC where this machine does not know it, for what is only shown."""
    try:
        return find_zone(name)
    except WrongInput:
        return UTC
