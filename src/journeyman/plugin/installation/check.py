"""Checks an installation: fires test events through the host's own mechanism, and says what came
back, how fast, and what to do if something is wrong.
"""

import secrets
from collections.abc import Iterator

from journeyman.confirm.service_options import FOREIGN_SERVICE, home_id, probe
from journeyman.facade.finding import Finding
from journeyman.facade.journeyman import Journeyman
from journeyman.plugin.engines import engine_finding
from journeyman.plugin.installation.file_change import read_file
from journeyman.plugin.installation.hermes_environment import PLUGIN
from journeyman.plugin.installation.hook_probe import find_resident, fire
from journeyman.plugin.installation.hooks_file import own_hooks
from journeyman.plugin.installation.installer import ADD_APPROVER, Installer, known_host
from journeyman.plugin.installation.record import SERVICE, Record, read_record
from journeyman.plugin.installation.status import HostStatus, host_status, host_steps
from journeyman.plugin.installation.targets import HooksTarget
from journeyman.records.errors import ConfirmationRefused, JourneymanError
from journeyman.records.host import HOSTS, Host
from journeyman.version import __version__

_UNKNOWN_ID = "0" * 32
_CHECKED = ("SessionStart", "UserPromptSubmit", "PreToolUse")


def check(installer: Installer, journeyman: Journeyman, name: str) -> list[Finding]:
    """Return what a check of a host, or of the service, has found."""
    status = host_status(installer, name)
    engines = [engine_finding(installer, host) for host in HOSTS if host == name]
    findings = [*engines, *_check_status(status)]
    if status.state in ("not installed", "unreadable"):
        return findings
    record = read_record(installer.home, name) or Record(host=name)
    if name in ("claude-code", "codex"):
        session = f"journeyman-check-{secrets.token_hex(6)}"
        findings += _check_hooks(installer, known_host(name), session)
        journeyman.host_sessions.erase(name, [session])
    findings += _check_use(installer, name)
    findings += _check_resident(installer)
    if "gate" in record.parts:
        findings.append(_check_confirmations(installer, journeyman, record))
    if name == SERVICE and not installer.around.unit.is_enabled:
        start = installer.around.unit.start
        findings.append(Finding("unit", "note", "It is not enabled.", start))
    return findings


def _check_status(status: HostStatus) -> Iterator[Finding]:
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


def _check_resident(installer: Installer) -> Iterator[Finding]:
    """Yield whether the resident process answers."""
    what, process = "resident process", find_resident(installer.home)
    if process is None:
        advice = "To have it always ready: journeyman hosts install service"
        yield Finding(what, "note", "No resident process is running.", advice)
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
    if settings.get("disableAllHooks"):
        yield Finding("settings", "problem", "disableAllHooks is set: no hook runs.")
    hooks = {event: hook for event, hook in own_hooks(settings).items() if event in _CHECKED}
    for event, hook in hooks.items():
        yield fire(event, hook, session, installer.environ).judge(host)


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
