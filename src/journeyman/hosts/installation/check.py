"""Checks an installation: fires test events through the host's own mechanism, and says what came
back, how fast, and what to do if something is wrong.
"""

import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from journeyman.confirm.service_options import FOREIGN_SERVICE, home_id, probe
from journeyman.facade.finding import Finding
from journeyman.facade.journeyman import Journeyman
from journeyman.hosts.installation.file_change import read_file
from journeyman.hosts.installation.hermes_environment import PLUGIN
from journeyman.hosts.installation.hook_probe import find_resident, fire
from journeyman.hosts.installation.hooks_file import own_hooks
from journeyman.hosts.installation.installer import ADD_APPROVER, Installer, known_host
from journeyman.hosts.installation.programs import INSTALLABLE, KINDS, SERVICE
from journeyman.hosts.installation.record import Record, read_record
from journeyman.hosts.installation.status import HostStatus, claude_notes, host_status, host_steps
from journeyman.hosts.installation.targets import HooksTarget
from journeyman.hosts.report import read_failures
from journeyman.records.errors import ConfirmationRefused, JourneymanError
from journeyman.records.host import Host
from journeyman.version import __version__

_RECENT_S = 86_400.0
_UNKNOWN_ID = "0" * 32
_CHECKED = ("SessionStart", "UserPromptSubmit", "PreToolUse")


def check(installer: Installer, journeyman: Journeyman, name: str) -> list[Finding]:
    """Return what a check of a host, or of the service, has found."""
    status = host_status(installer, name)
    findings = [*_check_status(status)]
    if status.state in ("not installed", "unreadable"):
        return findings
    record = read_record(installer.home, name) or Record(host=name)
    if name in ("claude-code", "codex"):
        session = f"journeyman-check-{secrets.token_hex(6)}"
        findings += _check_hooks(installer, known_host(name), session)
        journeyman.host_sessions.erase(name, [session])
    if name == "opencode":
        found = "Only opencode itself can load it: start a session, then see the report."
        findings.append(Finding("plugin", "note", found, "journeyman hosts report"))
    findings += _check_use(installer, name)
    findings += _check_resident(installer, journeyman)
    if "gate" in record.parts:
        findings.append(_check_confirmations(installer, journeyman, record))
    if name == SERVICE and not installer.around.unit.is_enabled:
        start = installer.around.unit.start
        findings.append(Finding("unit", "note", "It is not enabled.", start))
    findings += _recent_failures(installer.home, name)
    return findings


def _check_status(status: HostStatus) -> Iterator[Finding]:
    if status.name in INSTALLABLE:
        kind = KINDS[status.name]
        if status.program:
            version = f"{kind.title} {status.version}".strip()
            yield Finding("program", "ok", f"{version} ({status.program})")
        else:
            found = f"{kind.program} is not on the search path."
            yield Finding("program", "note", found, f"Install {kind.title}.")
    if status.state == "installed":
        parts = f"{', '.join(status.parts)} in " if status.parts else ""
        yield Finding("installation", "ok", f"{parts}{status.file}")
    elif status.state == "not installed":
        found = f"Journeyman is not installed in {status.file}."
        yield Finding("installation", "problem", found, f"journeyman hosts install {status.name}")
    else:
        yield Finding("installation", "problem", status.problem, status.advice)


def _check_use(installer: Installer, name: str) -> Iterator[Finding]:
    """Ask Codex and Hermes whether they use what is installed."""
    if name not in ("codex", "hermes") or not installer.program(known_host(name)).path:
        return
    what = "trust" if name == "codex" else "plugin"
    steps = host_steps(installer, name)
    for step in steps:
        yield Finding(what, "problem", step.text, step.advice)
    if not steps:
        found = "Codex trusts all hooks." if name == "codex" else f"Hermes has {PLUGIN} enabled."
        yield Finding(what, "ok", found)


def _check_resident(installer: Installer, journeyman: Journeyman) -> Iterator[Finding]:
    """Yield whether the resident process answers."""
    what, process = "resident process", find_resident(installer.home)
    if process is None:
        found = "No resident process is running."
        if journeyman.settings.hosts.start != "never":
            found += " The next hook starts it."
        advice = "To have it always ready: journeyman hosts install service"
        if read_record(installer.home, SERVICE) is not None:
            advice = installer.around.unit.start
        yield Finding(what, "note", found, advice)
    elif process.ms is None:
        yield Finding(what, "problem", process.problem, process.advice)
    else:
        found = f"Journeyman {process.version} answers in {process.ms:.0f} ms"
        found += f", process {process.pid}."
        is_current = process.version == __version__
        advice = f"End it, so that version {__version__} takes its place: kill {process.pid}"
        yield Finding(what, "ok", found) if is_current else Finding(what, "problem", found, advice)


def _check_hooks(installer: Installer, host: Host, session: str) -> Iterator[Finding]:
    """Run the configured hooks as the host would, and yield what they answered."""
    target = installer.target(host)
    assert isinstance(target, HooksTarget)
    settings = target.settings(read_file(target.path))
    if host == "claude-code":
        for note in claude_notes(settings, installer.program(host).release):
            yield Finding("settings", "problem", note)
    hooks = {event: hook for event, hook in own_hooks(settings).items() if event in _CHECKED}
    process = find_resident(installer.home)
    for event, hook in hooks.items():
        finding = fire(event, hook, session, installer.environ).judge(host)
        is_hanging = process is not None and process.ms is None and finding.advice
        advice = "See the resident process below." if is_hanging else finding.advice
        yield Finding(event, finding.status, finding.found, advice)


def _check_confirmations(installer: Installer, journeyman: Journeyman, record: Record) -> Finding:
    """Return whether the gate could ask a person now."""
    name, confirm = "confirmations", journeyman.settings.confirm
    served = "" if confirm.url else probe(confirm.host, confirm.port).home
    if served not in ("", home_id(installer.home)):
        found = f"Risky calls are blocked: {FOREIGN_SERVICE.format(port=confirm.port)}."
        advice = "Stop it, or: journeyman config set confirm.port PORT"
        return Finding(name, "problem", found, advice)
    try:
        with journeyman.confirm_client(record.token) as service:
            service.get(_UNKNOWN_ID)
    except ConfirmationRefused as error:
        if error.code == "unauthenticated":
            advice = f"journeyman hosts install {record.host}"
            return Finding(name, "problem", f"The host's token is refused. {error}", advice)
    except JourneymanError as error:
        found = f"Risky calls are blocked, because no one can be asked. {error}"
        return Finding(name, "note", f"{found} {installer.where_to_decide}", "journeyman serve")
    found = "The service answers, and accepts the host's token."
    if not record.token or installer.has_approver:
        return Finding(name, "ok", f"{found} {installer.where_to_decide}")
    return Finding(name, "problem", f"{found} But no one may decide.", ADD_APPROVER)


def _recent_failures(home: Path, name: str) -> Iterator[Finding]:
    since = time.time() - _RECENT_S
    recent = [one for one in read_failures(home) if one.host == name and one.at >= since]
    if recent:
        last = recent[-1]
        when = time.strftime("%H:%M", time.localtime(last.at))
        found = f"{len(recent)} within a day, the last at {when}: {last.event}: {last.reason}"
        yield Finding("failures", "note", found, "journeyman hosts report")
