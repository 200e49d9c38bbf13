"""What is installed where, what has changed since, and what is left for a person to do."""

import json
import shlex
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

from journeyman.facade.finding import Finding, Status
from journeyman.hosts.programs import user_home
from journeyman.plugin import client
from journeyman.plugin.client import Unanswered
from journeyman.plugin.installation import codex_trust
from journeyman.plugin.installation.hermes_environment import PLUGIN
from journeyman.plugin.installation.installer import ADD_APPROVER, Installer
from journeyman.plugin.installation.record import Record, read_record
from journeyman.plugin.installation.targets import PARTS
from journeyman.records.errors import JourneymanError
from journeyman.records.host import HOSTS, Host
from journeyman.version import __version__

State = Literal["installed", "not active", "outdated", "not installed", "unreadable"]

_STATUSES: dict[State, Status] = {"installed": "ok", "not installed": "ok"}
_ANSWER_S = 2.0
_HOW_TO_TRUST = (
    "Start `codex` in a terminal: it says that hooks need review. Look at the commands, then "
    "choose to trust them; `/hooks` shows them later."
)


class HostStatus(Struct, frozen=True, kw_only=True):
    """A host on this machine: its program and version (empty if it is not found), the file that
    Journeyman changes, and the state of the installation, with what is wrong and what to do. An
    installation is not active if the host does not use it yet.
    """

    name: Host
    program: str
    version: str
    file: str
    state: State
    parts: tuple[str, ...] = ()
    problem: str = ""
    advice: str = ""

    @property
    def finding(self) -> Finding:
        """The status as a check tells it."""
        parts = f" ({', '.join(self.parts)})" if self.parts else ""
        found = self.problem or f"{self.state}{parts} in {self.file}"
        status = _STATUSES.get(self.state, "problem")
        return Finding(f"host: {self.name}", status, found, self.advice)


def list_hosts(installer: Installer) -> list[HostStatus]:
    """Return the status of every host."""
    with ThreadPoolExecutor() as pool:  # each program takes a moment to tell its version
        [*pool.map(installer.program, HOSTS)]
    return [host_status(installer, host) for host in HOSTS]


def host_findings(installer: Installer) -> list[Finding]:
    """Return what a check of this machine says about hosts: those that Journeyman is installed in,
    those that it could be, and the process that answers them.
    """
    listed = list_hosts(installer)
    findings = [one.finding for one in listed if one.state != "not installed" or one.program]
    return [*findings, resident_finding(installer.home)]


def host_status(installer: Installer, host: Host) -> HostStatus:
    """Return the status of a host."""
    record = read_record(installer.home, host)
    target = installer.target(host, record.parts if record else PARTS)
    program = installer.program(host)
    state: State = "not installed"
    problem, advice = "", f"journeyman hosts install {host}"
    try:
        change = target.plan_installation(record.file if record else None)
    except JourneymanError as error:
        if host != "hermes" or record is not None:
            state, problem, advice = "unreadable", str(error), ""
    else:
        is_there = not change.command if host == "hermes" else change.before != change.original
        if record is not None or is_there:
            state = "installed"
            problem = _what_is_old(record, is_current=is_there and not change.is_needed)
            advice = install_command(host, record) if problem else ""
    if state == "installed" and problem:
        state = "outdated"
    elif state == "installed" and program.path:
        problem, advice = _open_step(installer, host)
        state = "not active" if problem else state
    return HostStatus(
        name=host,
        program=program.path,
        version=program.version,
        file=record.file.path if record and record.file else str(target.path),
        state=state,
        parts=record.parts if record else (),
        problem=problem,
        advice=advice,
    )


def _what_is_old(record: Record | None, *, is_current: bool) -> str:
    if record is None:
        return "It was installed from another home, or its record is lost."
    if record.gone or not is_current:
        return "The entries or what they call are gone, or of another version or other settings."
    return ""


def install_command(host: Host, record: Record | None) -> str:
    """Return the command that updates an installation with the same parts."""
    left_out = [part for part in PARTS if record and part not in record.parts]
    return " ".join(("journeyman hosts install", host, *(f"--no-{part}" for part in left_out)))


def _open_step(installer: Installer, host: Host) -> tuple[str, str]:
    """Return why a host does not use what is installed in it, and what to do; empty if it does."""
    if host == "codex":
        states = codex_trust.states(installer.target(host).path.parent)
        skipped = ", ".join(f"{event} ({state})" for event, state in states.items() if state)
        text = f"Codex does not run these hooks before you trust them: {skipped}."
        return (text, _HOW_TO_TRUST) if skipped else ("", "")
    environment = installer.hermes if host == "hermes" else None
    if environment is None:
        return "", ""
    if environment.version != __version__ or not environment.is_plugin:
        text = f"Hermes' environment has Journeyman {environment.version or 'not installed'}."
        return f"{text} Install this version there.", environment.install_command
    if environment.status != "enabled":
        return "The plugin is not enabled in Hermes.", f"hermes plugins enable {PLUGIN}"
    return "", ""


def steps_after(installer: Installer, host: Host) -> list[str]:
    """Return what is left to do for a person after an installation."""
    steps = [" ".join(filter(None, _open_step(installer, host)))]
    if host == "hermes" and installer.home != user_home(installer.environ) / ".journeyman":
        home = shlex.quote(str(installer.home))
        steps.append(f"Set the home where Hermes runs: export JOURNEYMAN_HOME={home}")
    record = read_record(installer.home, host)
    if record is not None and "gate" in record.parts:
        steps.append(installer.where_to_decide)
    if record is not None and record.token and not installer.has_approver:
        text = "No one may decide on held calls yet. Create a login for yourself"
        steps.append(f"{text}: {ADD_APPROVER}")
    return [*filter(None, steps), f"Try it: journeyman hosts check {host}"]


def resident_finding(home: Path) -> Finding:
    """Return whether the resident process answers, and how fast."""
    what, began = "resident process", time.perf_counter()
    try:
        answer = client.request(str(home), "status", HOSTS[0], b"{}", timeout_s=_ANSWER_S)
        status = json.loads(answer)
        pid, version = int(status["pid"]), str(status["version"])
    except Unanswered as error:
        # One that hangs for long does not even accept connections.
        if not error.reached and not isinstance(error.__cause__, TimeoutError):
            advice = "To have it always ready: journeyman serve"
            return Finding(what, "note", "No resident process is running.", advice)
    except (ValueError, KeyError, TypeError):
        pass
    else:
        ms = (time.perf_counter() - began) * 1_000
        found = f"Journeyman {version} answers in {ms:.0f} ms, process {pid}."
        if version == __version__:
            return Finding(what, "ok", found)
        advice = f"End it, so that version {__version__} takes its place: kill {pid}"
        return Finding(what, "problem", found, advice)
    process = "ID"
    with suppress(OSError):
        process = Path(f"{client.socket_path(str(home))}.lock").read_text(encoding="ascii")
    found = f"`journeyman serve` runs (process {process}), but does not answer as it should."
    advice = f"End it, so that a new one can take its place: kill -KILL {process}"
    return Finding(what, "problem", found, advice)
