"""What the clocks of a zone show, and when: between instants, in seconds since 1970, and local
times without a zone. Clock changes are dealt with here and in no other module.
"""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo


def reading(at: int, zone: ZoneInfo) -> datetime:
    """What the clocks show at an instant."""
    return datetime.fromtimestamp(at, zone).replace(tzinfo=None, fold=0)


def instant(local: datetime, zone: ZoneInfo) -> int:
    """When the clocks show a local time: the first time, where it comes twice; the end of the gap,
    where a change skips it. A later local time is never at an earlier instant.
    """
    at = _on_clock(local, zone)
    if reading(at, zone) == local:
        return at
    # Before the change the clocks run by one offset, after it by another; each puts the skipped
    # time on the other side of the change.
    change = find_change(_on_clock(local.replace(fold=1), zone), at, zone)
    return at if change is None else change


def comes_twice(local: datetime, zone: ZoneInfo) -> bool:
    """Whether the clocks show a local time, are set back, and show it again."""
    return _on_clock(local, zone) < _on_clock(local.replace(fold=1), zone)


def find_change(after: int, until: int, zone: ZoneInfo) -> int | None:
    """The instant of the clock change after one instant and not after another; None when there is
    none. The two must be so near to each other that there is no second one.
    """
    before = _offset(after, zone)
    if _offset(until, zone) == before:
        return None
    while until - after > 1:
        middle = (after + until) // 2
        if _offset(middle, zone) == before:
            after = middle
        else:
            until = middle
    return until


def _on_clock(local: datetime, zone: ZoneInfo) -> int:
    return int(local.replace(tzinfo=zone).timestamp())


def _offset(at: int, zone: ZoneInfo) -> int:
    local = datetime.fromtimestamp(at, zone).replace(tzinfo=UTC)
    return int(local.timestamp()) - at
