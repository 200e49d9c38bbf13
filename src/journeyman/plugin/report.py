"""The report on hosts: how many sessions started warm, whether they failed less, what openings
cost, and what was refused or failed.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
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


def report(journeyman: Journeyman, *, since: float = 0.0) -> list[HostReport]:
    """Return what happened in each host since a moment, without hosts that were not used."""
    events = journeyman.host_sessions.events(since=since)
    failures = [one for one in _read_failures(journeyman.settings.home) if one[0] >= since]
    reports = []
    for host in HOSTS:
        of_host = [event for event in events if event.host == host]
        failed = [(at, text) for at, name, text in failures if name == host]
        one = _host_report(journeyman, host, of_host, failed, since)
        if one.sessions or one.tokens_added or one.failures:
            reports.append(one)
    return reports


def _read_failures(home: Path) -> Iterator[tuple[float, str, str]]:
    """Yield the failures that hooks could only write to a file: when, in which host, and what.
    Broken lines are skipped.
    """
    try:
        lines = (home / FAILURES_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        at, host, event, reason = (*line.split(" ", 3), "", "", "", "")[:4]
        if at.isdigit():
            yield float(at), host, f"{event}: {reason}"


def _host_report(
    journeyman: Journeyman,
    host: str,
    events: Sequence[HostEvent],
    failed: Sequence[tuple[float, str]],
    since: float,
) -> HostReport:
    filters: dict[str, Any] = {"source": source_of(host), "subagents": False}
    filters["since"] = since or None
    warm, cold = (journeyman.judged(warm=is_warm, **filters) for is_warm in (True, False))
    held_out = journeyman.host_sessions.with_reason(host, HELD_OUT)
    others = [session for session in cold if session.id in held_out]
    compared = compare(warm, others or cold)
    added = [event for event in events if event.kind in ("opening", "hint")]
    tokens = sum(event.tokens for event in added)
    receivers = {event.session_id for event in added if event.tokens}
    outcomes = Counter(event.outcome for event in events if event.kind == "gate")
    noted = [(event.at, event.detail) for event in events if event.kind == "failure"]
    failures = sorted((*failed, *noted))
    last_failure = ""
    if failures:
        at, text = failures[-1]
        moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
        last_failure = mask_text(f"{moment} {text}")
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
        prompted=outcomes["ask"],
        approved=outcomes["allow"],
        blocked=outcomes["deny"],
        failures=len(failures),
        last_failure=last_failure,
    )
