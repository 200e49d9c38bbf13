"""What is installed where, what is left to do after an installation, and what has changed since."""

import shlex
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import msgspec
from msgspec import Struct

from journeyman.facade.finding import Finding, Status
from journeyman.hosts.programs import user_home
from journeyman.plugin.installation import codex_trust
from journeyman.plugin.installation.codex_trust import Step
from journeyman.plugin.installation.hermes_environment import PLUGIN
from journeyman.plugin.installation.hook_probe import find_resident
from journeyman.plugin.installation.installer import ADD_APPROVER, NAMES, Installer
from journeyman.plugin.installation.record import SERVICE, Record, read_record
from journeyman.plugin.installation.targets import PARTS
from journeyman.records.errors import JourneymanError
from journeyman.records.host import HOSTS
from journeyman.version import __version__

State = Literal["installed", "not active", "outdated", "not installed", "unreadable"]


class HostStatus(Struct, frozen=True, kw_only=True):
    """A host on this machine: its program and version (empty if it is not found), the file that
    Journeyman changes, and the state of the installation, with what is wrong and what to do. An
    installation is not active if the host does not use it yet. For the service, `process` is the id
    of the resident process, however it was started, and `answers` whether it answers.
    """

    name: str
    program: str
    version: str
    file: str
    state: State
    parts: tuple[str, ...] = ()
    problem: str = ""
    advice: str = ""
    process: int | None = None
    answers: bool = False


def list_hosts(installer: Installer) -> list[HostStatus]:
    """Return the status of every host, and of the service."""
    with ThreadPoolExecutor() as pool:  # each program takes a moment to tell its version
        [*pool.map(installer.program, HOSTS)]
    return [_with_activity(installer, host_status(installer, name)) for name in NAMES]


def _with_activity(installer: Installer, status: HostStatus) -> HostStatus:
    """Return the status with what the host itself says: whether it uses what is installed."""
    if status.state != "installed" or not status.program:
        return status
    for step in host_steps(installer, status.name):
        return msgspec.structs.replace(
            status, state="not active", problem=step.text, advice=step.advice
        )
    return status


def host_steps(installer: Installer, name: str) -> list[Step]:
    """Return what is left to do, so that a host uses what is installed in it."""
    if name == "codex":
        return [*codex_trust.steps(installer.target("codex").path.parent)]
    environment = installer.hermes if name == "hermes" else None
    if environment is None:
        return []
    if environment.version != __version__ or not environment.is_plugin:
        text = f"Hermes' environment has Journeyman {environment.version or 'not installed'}."
        return [
            Step(text=f"{text} Install this version there.", advice=environment.install_command)
        ]
    if environment.status != "enabled":
        text = "The plugin is not enabled in Hermes."
        return [Step(text=text, advice=f"hermes plugins enable {PLUGIN}")]
    return []


def steps_after(installer: Installer, name: str) -> list[str]:
    """Return what is left to do for a person after an installation."""
    if name == SERVICE:
        return [f"Start it, now and at every login: {installer.around.unit.start}"]
    steps = [f"{step.text} {step.advice}" for step in host_steps(installer, name)]
    if name == "hermes" and installer.home != user_home(installer.environ) / ".journeyman":
        home = shlex.quote(str(installer.home))
        steps.append(f"Set the home where Hermes runs: export JOURNEYMAN_HOME={home}")
    record = read_record(installer.home, name)
    if record is not None and "gate" in record.parts:
        steps.append(installer.where_to_decide)
    if record is not None and record.token and not installer.has_approver:
        text = "No one may decide on held calls yet. Create a login for yourself"
        steps.append(f"{text}: {ADD_APPROVER}")
    return [*steps, f"Try it: journeyman hosts check {name}"]


def host_findings(installer: Installer) -> list[Finding]:
    """Return what a check of this machine says about hosts: those that Journeyman is installed in,
    and those that it could be.
    """
    findings = []
    for one in list_hosts(installer):
        what = f"host: {one.name}"
        if one.state == "not installed" and not one.problem:
            if one.program:
                advice = f"journeyman hosts install {one.name}"
                findings.append(Finding(what, "ok", "Journeyman is not installed in it", advice))
            continue
        parts = f" ({', '.join(one.parts)})" if one.parts else ""
        found = one.problem or f"installed{parts} in {one.file}"
        status: Status = "problem" if one.problem else "ok"
        if one.state == "not active":
            status = "note"
        findings.append(Finding(what, status, found, one.advice))
    return findings


def host_status(installer: Installer, name: str) -> HostStatus:
    """Return the status of a host, or of the service."""
    record = read_record(installer.home, name)
    target = installer.target(name, record.parts if record and record.parts else PARTS)
    found = installer.program(name) if name in HOSTS else None
    file = record.file.path if record and record.file else str(target.path)
    state: State = "not installed"
    problem = ""
    try:
        change = target.plan_installation(record.file if record else None)
        has_entries = change.before != change.original
        if name == "hermes":
            has_entries = not change.command
        if record is not None or has_entries:
            problem = _what_is_old(record, is_changed=change.is_needed, has_entries=has_entries)
            state = "outdated" if problem else "installed"
    except JourneymanError as error:
        if name != "hermes" or record is not None:
            state, problem = "unreadable", str(error)
    advice = install_command(name, record) if state == "outdated" else ""
    process = find_resident(installer.home) if name == SERVICE else None
    if process is not None and process.ms is None:
        problem, advice = process.problem, process.advice
    return HostStatus(
        name=name,
        program=found.path if found else "",
        version=found.version if found else "",
        file=file,
        state=state,
        parts=record.parts if record else (),
        problem=problem,
        advice=advice,
        process=process.pid if process else None,
        answers=process is not None and process.ms is not None,
    )


def _what_is_old(record: Record | None, *, is_changed: bool, has_entries: bool) -> str:
    if record is None:
        return "It was installed from another home, or its record is lost."
    if record.gone or is_changed or not has_entries:
        return "The entries or what they call are gone, or of another version or other settings."
    return ""


def install_command(name: str, record: Record | None) -> str:
    """Return the command that updates an installation with the same parts."""
    left_out = [part for part in PARTS if record and record.parts and part not in record.parts]
    return " ".join(("journeyman hosts install", name, *(f"--no-{part}" for part in left_out)))
