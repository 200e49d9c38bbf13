"""Checks an installation: what is there, what works and what to fix."""

import os
import platform
import shlex
import stat
from importlib.util import find_spec
from pathlib import Path

import msgspec

from journeyman.agent.tools.confinement import find_confinement
from journeyman.configuration import FLAG, Configuration
from journeyman.confirm.service_options import FOREIGN_SERVICE, home_id, probe
from journeyman.facade.finding import Finding
from journeyman.facade.model_check import check_model
from journeyman.learning import learning_rules
from journeyman.logs.registry import Readers
from journeyman.records.errors import JourneymanError
from journeyman.records.report import LogLocation
from journeyman.redaction.masking import mask_text
from journeyman.settings import Settings, sqlite_path
from journeyman.store.jobs import is_lease_free
from journeyman.store.store import Store

_EXTRAS = {
    "postgres": "psycopg",
    "agent": "openai",
    "local": "xllamacpp",
    "mcp": "mcp",
    "confirm": "litestar",
    "jobs": "cronsim",
}
"""A module by which each extra is known to be installed."""

_MOST_NAMES = 5
_MAX_WAIT_S = 2.0
"""Seconds to wait for a locked database: it is reported, so there is no need to wait longer."""
_CHOOSE_HOME = 'export JOURNEYMAN_HOME="$HOME/.journeyman"  (or another folder of yours)'


def diagnose(
    configuration: Configuration,
    readers: Readers,
    places: list[LogLocation],
    *,
    version: str,
    now: float,
) -> list[Finding]:
    """Return all findings, most basic first. Users paste them into bug reports, so secrets in
    addresses are masked.
    """
    settings, program = configuration.settings, configuration.program
    findings = [
        Finding("program", "ok", f"Journeyman {version}, Python {platform.python_version()}"),
        _home(settings.home),
        *_settings(configuration),
        *_database(settings, program, now),
        check_model(settings, program),
        _confinement(confine=settings.agent.confine),
        _confirmations(settings, program),
        *_readers(readers),
        *(_place(place, program) for place in places),
        _extras(),
    ]
    return [
        msgspec.structs.replace(finding, found=mask_text(finding.found)) for finding in findings
    ]


def _home(home: Path) -> Finding:
    quoted = shlex.quote(str(home))
    try:
        if not home.exists():
            found = f"{home} does not exist yet; the first import creates it"
            return Finding("home", "ok", found)
        if not home.is_dir():
            found = f"{home} is a file, not a folder"
            return Finding("home", "problem", found, f"mv {quoted} {quoted}.old")
        if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
            found = f"{home} cannot be read and written by your user"
            return Finding("home", "problem", found, _make_yours(home))
        if stat.S_IMODE(home.stat().st_mode) & 0o077:
            found = f"{home} is readable by other users of this machine"
            return Finding("home", "note", found, f"chmod 700 {quoted}")
    except OSError as error:  # a folder above it cannot be entered
        return Finding("home", "problem", f"{home}: {error.strerror}", _CHOOSE_HOME)
    return Finding("home", "ok", str(home))


def _make_yours(path: Path) -> str:
    """Return the command that gives a file or a folder back to this user."""
    return (
        f'sudo chown -R "$USER" {shlex.quote(str(path))} && chmod -R u+rwX {shlex.quote(str(path))}'
    )


def _settings(configuration: Configuration) -> list[Finding]:
    """Report what is wrong in the file and the variables, or where the settings come from."""
    what, file = "settings", configuration.file
    if problems := configuration.problems:
        return [Finding(what, "problem", problem.what, problem.fix) for problem in problems]
    variables = sorted({*configuration.origins.values()} - {str(file), FLAG})
    found = str(file) if file.exists() else "defaults; there is no config.toml"
    found += f"; from the environment: {', '.join(variables)}" if variables else ""
    return [Finding(what, "ok", found)]


def _database(settings: Settings, program: str, now: float) -> list[Finding]:
    what, path = "database", sqlite_path(settings.database)
    if path is not None and not path.exists():
        found = f"{settings.database} does not exist yet; the first import creates it"
        return [Finding(what, "ok", found)]
    try:
        timeout = min(settings.busy_timeout_s, _MAX_WAIT_S)
        with Store(settings.database, busy_timeout_s=timeout, only_looking=True) as store:
            if not store.is_ready:
                found = "its tables are created on first use"
                return [Finding(what, "ok", f"{store.url} exists; {found}")]
            sessions = sum(total.sessions + total.subagents for total in store.sessions.totals())
            if faults := store.faults():
                advice = _database_advice("damaged", path, program) if path else ""
                return [Finding(what, "problem", faults[0], advice)]
            found = f"{store.url}, sessions: {sessions:,}, no faults"
            rest = (_learned(store, settings, program), _jobs(store, program, now))
            return [Finding(what, "ok", found), *rest]
    except JourneymanError as error:
        advice = _database_advice(str(error), path, program)
        return [Finding(what, "problem", str(error), advice)]


def _database_advice(error: str, path: Path | None, program: str) -> str:
    """Return the command that mends a database that is damaged or cannot be opened."""
    if path is None:
        return f"{program} config set database postgresql://USER:PASSWORD@HOST/NAME"
    quoted = shlex.quote(str(path))
    if "locked" in error:
        return f"fuser -v {quoted}  (shows the process to wait for)"
    if not os.access(path, os.R_OK | os.W_OK):
        return _make_yours(path)
    return f"mv {quoted} {quoted}.damaged && {program} import"


def _jobs(store: Store, program: str, now: float) -> Finding:
    """Check whether scheduled jobs have a scheduler, and which of them fail."""
    scheduled = store.jobs.list(("scheduled",))
    found = f"{len(scheduled):,} scheduled"
    if not scheduled:
        return Finding("jobs", "ok", found)
    lease = store.jobs.lease()
    if lease is None or is_lease_free(lease[1], now):
        return Finding("jobs", "note", f"{found}; no scheduler is running", f"{program} jobs serve")
    if failing := [job.name for job in scheduled if job.failures]:
        found += f"; failing: {', '.join(failing[:_MOST_NAMES])}"
        return Finding("jobs", "note", found, f"{program} jobs show {failing[0]}")
    return Finding("jobs", "ok", found)


def _learned(store: Store, settings: Settings, program: str) -> Finding:
    missing = len(store.learned.missing(learning_rules(settings.trivial_tools)))
    found = f"examples: {store.episodes.examples():,}"
    if missing:
        found += f"; sessions still to learn from: {missing:,}"
    return Finding("learned", "ok", found, f"{program} learn" if missing else "")


def _confinement(*, confine: bool) -> Finding:
    """Check what confines an agent's commands, by running one."""
    what = "confinement"
    bubblewrap, problem = find_confinement() if confine else ("", "agent.confine is false")
    if problem:
        found = f"the agent's commands are not confined: {problem}"
        return Finding(what, "note", found, "Every command asks for confirmation.")
    found = bubblewrap or "namespaces of the kernel, without bubblewrap"
    return Finding(what, "ok", f"the agent's commands are confined by {found}")


def _confirmations(settings: Settings, program: str) -> Finding:
    """Check whether confirmations are served on both ports, and whether others use these."""
    what, confirm = "confirmations", settings.confirm
    ports = {"confirm.port": confirm.port, "confirm.page_port": confirm.page_port}
    probed = {name: probe(confirm.host, port) for name, port in ports.items()}
    for name, port in ports.items():
        is_foreign = probed[name].home not in ("", home_id(settings.home))
        if is_foreign or probed[name].answer == "other":
            advice = f"To serve confirmations, stop it, or: {program} config set {name} PORT"
            used = FOREIGN_SERVICE.format(port=port)
            found = used if is_foreign else f"another program uses port {port}"
            return Finding(what, "note", found, advice)
    both = f"{confirm.port} and {confirm.page_port}"
    if "free" in {result.answer for result in probed.values()}:
        return Finding(what, "ok", f"not served; ports {both} can be used")
    if problem := probed["confirm.port"].problem:
        found = f"served, but writing fails: {problem}"
        return Finding(what, "problem", found, "Check the disk and the database.")
    return Finding(what, "ok", f"served on ports {both}; {probed['confirm.port'].pending} waiting")


def _readers(readers: Readers) -> list[Finding]:
    advice = "Upgrade or remove the package that provides it."
    return [
        Finding("readers", "ok", ", ".join(reader.name for reader in readers.all)),
        *(Finding("readers", "problem", problem.reason, advice) for problem in readers.problems),
    ]


def _place(place: LogLocation, program: str) -> Finding:
    what = f"logs: {place.source}"
    if place.problems:
        advice = f"chmod -R u+rX {shlex.quote(str(place.folder))}"
        return Finding(what, "problem", place.problems[0].reason, advice)
    if not place.logs:
        none = f"none in {place.folder}" if place.exists else f"none: no folder {place.folder}"
        return Finding(what, "ok", none)
    found = f"{len(place.logs):,} logs, {place.size_bytes / 1e6:,.1f} MB in {place.folder}"
    return Finding(what, "ok", found, f"{program} import")


def _extras() -> Finding:
    missing = [name for name, module in _EXTRAS.items() if find_spec(module) is None]
    found = ", ".join(name for name in _EXTRAS if name not in missing) or "none is installed"
    if not missing:
        return Finding("extras", "ok", found)
    advice = f"pip install 'journeyman[{','.join(missing)}]'"
    return Finding("extras", "ok", f"{found}; without {', '.join(missing)}", advice)
