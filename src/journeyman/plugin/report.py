"""The report on hosts: how many sessions started warm, whether they failed less, what openings
cost, and what was refused or failed.
"""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from journeyman.facade.journeyman import Journeyman
from journeyman.records.host import HELD_OUT, HOSTS, HostEvent, source_of
from journeyman.redaction.masking import mask_text
from journeyman.reliability.comparison import compare
from journeyman.reliability.rates import Difference, Rate

FAILURES_FILE = "hook-failures.log"


class HostReport(Struct, frozen=True, kw_only=True):
    """What Journeyman did in one host. The rates are errors per call; `difference` is warm minus
    cold. `is_random` means that the cold side are sessions left without an opening at random;
    otherwise they are all others. `tokens_per_warm_session` is the mean of the sessions that got
    tokens, whether or not they are imported. Of the calls that the gate held, `prompted` are those
    that the host asked about, `approved` and `blocked` those that people decided in Journeyman.
    """

    host: str
    sessions: int
    warm: int
    warm_rate: Rate
    cold_rate: Rate
    difference: Difference
    verdict: str
    is_random: bool
    tokens_added: int
    tokens_per_warm_session: float | None
    prompted: int
    approved: int
    blocked: int
    failures: int
    last_failure: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known about the host."""
        return not (self.sessions or self.tokens_added or self.failures)


class HookFailure(Struct, frozen=True, kw_only=True):
    """A hook that got no answer, as its client noted it."""

    at: float
    host: str
    event: str
    reason: str


def report(journeyman: Journeyman, *, since: float = 0.0) -> list[HostReport]:
    """Return what happened in each host since a moment, without hosts that were not used."""
    events = journeyman.host_sessions.events(since=since)
    failed = [one for one in read_failures(journeyman.settings.home) if one.at >= since]
    reports = (_host_report(journeyman, host, events, failed, since) for host in HOSTS)
    return [one for one in reports if not one.is_empty]


def read_failures(home: Path) -> list[HookFailure]:
    """Return the failures that hooks could only write to a file; broken lines are skipped."""
    try:
        lines = (home / FAILURES_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    failures = []
    for line in lines:
        at, _, rest = line.partition(" ")
        host, _, rest = rest.partition(" ")
        event, _, reason = rest.partition(" ")
        if at.isdigit() and host in HOSTS:
            failures.append(HookFailure(at=float(at), host=host, event=event, reason=reason))
    return failures


def _host_report(
    journeyman: Journeyman,
    host: str,
    all_events: Iterable[HostEvent],
    all_failures: Iterable[HookFailure],
    since: float,
) -> HostReport:
    events = [event for event in all_events if event.host == host]
    failures = [failure for failure in all_failures if failure.host == host]
    filters: dict[str, Any] = {"source": source_of(host), "subagents": False}
    filters["since"] = since or None
    warm, cold = (journeyman.judged(warm=is_warm, **filters) for is_warm in (True, False))
    held_out = journeyman.host_sessions.with_reason(host, HELD_OUT)
    others = [session for session in cold if session.id in held_out]
    compared = compare(warm, others or cold)
    added = [event for event in events if event.kind in ("opening", "hint")]
    tokens = sum(event.tokens for event in added)
    receivers = {event.session_id for event in added if event.tokens}
    noted = _failures(events, failures)
    return HostReport(
        host=host,
        sessions=len(warm) + len(cold),
        warm=len(warm),
        warm_rate=compared.warm.rate,
        cold_rate=compared.cold.rate,
        difference=compared.difference,
        verdict=compared.verdict,
        is_random=bool(others),
        tokens_added=tokens,
        tokens_per_warm_session=tokens / len(receivers) if receivers else None,
        prompted=_count(events, "ask"),
        approved=_count(events, "allow"),
        blocked=_count(events, "deny"),
        failures=len(noted),
        last_failure=mask_text(noted[-1]) if noted else "",
    )


def _count(events: Sequence[HostEvent], outcome: str) -> int:
    return sum(event.kind == "gate" and event.outcome == outcome for event in events)


def _failures(events: Sequence[HostEvent], failures: Sequence[HookFailure]) -> list[str]:
    """Return all failures in words, oldest first."""
    dated = [(one.at, f"{one.event}: {one.reason}") for one in failures]
    dated += [(event.at, event.detail) for event in events if event.kind == "failure"]
    return [
        f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(at))} {text}"
        for at, text in sorted(dated)
    ]
