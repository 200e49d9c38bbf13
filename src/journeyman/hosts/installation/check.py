"""Checks an installation: fires test events through the host's own mechanism, and says what came
back, how fast, and what to do if something is wrong.
"""

import json
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from journeyman.confirm.service_options import FOREIGN_SERVICE, home_id, probe
from journeyman.facade.finding import Finding
from journeyman.facade.journeyman import Journeyman
from journeyman.hosts.client import Unanswered
from journeyman.hosts.installation.codex_trust import (
    HOW_TO_SEE,
    HOW_TO_TRUST,
    NOT_SEEN,
    has_run,
    read_hooks,
)
from journeyman.hosts.installation.editors import PLUGIN
from journeyman.hosts.installation.file_change import read_file
from journeyman.hosts.installation.hook_probe import (
    FiredHook,
    FoundProcess,
    answered_requests,
    find_resident,
    fire,
    hangs,
    judge_context,
    judge_gate,
    listening_process,
    resident_status,
    wait_for_resident,
)
from journeyman.hosts.installation.hooks_file import own_hooks
from journeyman.hosts.installation.installer import ADD_APPROVER, Installer, known_host
from journeyman.hosts.installation.programs import INSTALLABLE, KINDS, SERVICE, run_quietly
from journeyman.hosts.installation.record import Record, read_record
from journeyman.hosts.installation.status import (
    FIRST_BLOCKING,
    HostStatus,
    host_status,
    skips_hooks,
)
from journeyman.hosts.installation.steps import hermes_steps
from journeyman.hosts.installation.targets import unit_of
from journeyman.hosts.installation.trial_run import run_host
from journeyman.hosts.report import read_failures
from journeyman.records.errors import ConfirmationRefused, JourneymanError
from journeyman.records.host import Host
from journeyman.version import __version__

_RECENT_S = 86_400.0
_UNKNOWN_ID = "0" * 32


def check(installer: Installer, journeyman: Journeyman, name: str, task: str = "") -> list[Finding]:
    """Return what a check of a host, or of the service, has found. With a task, the host's program
    is run with it.
    """
    status = host_status(installer, name)
    findings = [*_check_status(status)]
    if status.state in ("not installed", "unreadable"):
        return findings
    record = read_record(installer.home, name) or Record(host=name)
    sessions = [f"journeyman-check-{secrets.token_hex(6)}" for _ in range(2)]
    if name in ("claude-code", "codex"):
        findings += _check_hooks(installer, journeyman, known_host(name), sessions)
    if name == "codex":
        findings += _check_trust(installer)
    if name == "hermes":
        findings += _check_hermes(installer)
    if name == "opencode" and not task:
        found = "Only opencode itself can load it."
        advice = "To have opencode run it: journeyman hosts check opencode --real"
        findings.append(Finding("plugin", "note", found, advice))
    findings += check_resident(installer, journeyman)
    if "gate" in record.parts:
        findings.append(_check_confirmations(installer, journeyman, record))
    if name == SERVICE:
        findings += _check_service(installer)
    elif task:
        run = run_host(installer, known_host(name), task)
        sessions += run.sessions
        findings += run.findings
    journeyman.host_sessions.erase(name, sessions)
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


def check_resident(installer: Installer, journeyman: Journeyman) -> Iterator[Finding]:
    """Yield whether the resident process answers."""
    try:
        status, ms = resident_status(installer.home)
    except Unanswered as error:
        what = "resident process"
        if hangs(error):
            process = FoundProcess(pid=listening_process(installer.home), answers=False)
            yield Finding(what, "problem", f"{process.problem} {error}.", process.advice)
        else:
            yield _missing_process(installer, journeyman, what, error)
        return
    found = f"Journeyman {status['version']} answers in {ms:.0f} ms, process {status['pid']}"
    if status["version"] != __version__:
        advice = f"End it, so that version {__version__} takes its place: kill {status['pid']}"
        yield Finding("resident process", "problem", f"{found}.", advice)
        return
    yield Finding("resident process", "ok", f"{found}.")


def _missing_process(
    installer: Installer, journeyman: Journeyman, what: str, error: Unanswered
) -> Finding:
    found = "No resident process is running"
    if not isinstance(error.__cause__, (FileNotFoundError, ConnectionRefusedError)):
        found += f" ({error})"
    is_never = journeyman.settings.hosts.start == "never"
    found += "; hosts.start is never, so hooks start none." if is_never else "."
    if read_record(installer.home, SERVICE) is not None:
        return Finding(what, "note", found, unit_of(installer.around, installer.manager).start)
    if not is_never:
        found += " The next hook starts it."
    return Finding(what, "note", found, "To have it always ready: journeyman hosts install service")


def _check_hooks(
    installer: Installer, journeyman: Journeyman, host: Host, sessions: Sequence[str]
) -> Iterator[Finding]:
    """Run the configured hooks as the host would, and yield what they answered."""
    content = read_file(installer.target(host).path) or b""
    if host == "claude-code":
        yield from _check_claude(installer, content)
    hooks = {hook.event: hook for hook in own_hooks(content.decode("utf-8-sig"))}
    earlier, session = sessions
    process = find_resident(installer.home)
    checked: list[tuple[str, Callable[[FiredHook, str], Finding]]] = [
        ("SessionStart", judge_context),
        ("UserPromptSubmit", judge_context),
        ("PreToolUse", judge_gate),
    ]
    present = [(event, judge) for event, judge in checked if event in hooks]
    if process is None and present and journeyman.settings.hosts.start != "never":
        first = fire(hooks[present[0][0]], earlier, installer.environ)
        is_started = wait_for_resident(installer.home)
        started = "and started the resident process" if is_started else "but started no process"
        advice = "" if is_started else f"See {installer.home / 'serve.log'}."
        found = f"It took {first.ms:.0f} ms, {started}."
        yield Finding("first hook", "ok" if is_started else "problem", found, advice)
    answered = answered_requests(installer.home)
    for event, judge in present:
        fired = fire(hooks[event], session, installer.environ)
        finding = judge(fired, host)
        is_hanging = process is not None and not process.answers
        advice = "See the resident process below." if is_hanging else finding.advice
        yield Finding(event, finding.status, finding.found, advice if finding.advice else "")
    if present and answered is not None:
        count = (answered_requests(installer.home) or 0) - answered
        if count < len(present):
            yield Finding(
                "answers",
                "problem",
                f"The resident process answered {max(count, 0)} of {len(present)} hooks.",
                "The hooks may belong to another home. journeyman hosts list",
            )


def _check_claude(installer: Installer, content: bytes) -> Iterator[Finding]:
    if skips_hooks(content):
        found = "The settings contain disableAllHooks, so no hook runs."
        yield Finding("settings", "problem", found, "Remove disableAllHooks from the settings.")
    release = installer.program("claude-code").release
    if release and release < FIRST_BLOCKING:
        found = "This version lets a call run if the gate's hook takes too long."
        yield Finding("gate", "note", found, "Update Claude Code to 2.1.295 or newer.")


def _check_trust(installer: Installer) -> Iterator[Finding]:
    program = installer.program("codex").path
    if not program:
        return
    if not has_run(installer.target("codex").path.parent):
        yield Finding("trust", "problem", "Codex has not been started yet.", HOW_TO_TRUST)
        return
    found = read_hooks(program, installer.environ, Path.cwd())
    if found is None:
        text = "Codex did not tell which hooks it trusts."
        yield Finding("trust", "note", text, "Look in codex: /hooks")
        return
    for warning in found.warnings:
        yield Finding("hooks of Codex", "problem", warning, "Correct the file that it names.")
    skipped = ", ".join(f"{hook.event} ({hook.status})" for hook in found.skipped)
    if not found.hooks:
        yield Finding("trust", "problem", NOT_SEEN, HOW_TO_SEE)
    elif skipped:
        yield Finding("trust", "problem", f"Codex skips: {skipped}.", HOW_TO_TRUST)
    else:
        yield Finding("trust", "ok", f"Codex trusts all {len(found.hooks)} hooks.")


def _check_hermes(installer: Installer) -> Iterator[Finding]:
    """Ask Hermes itself whether the plugin is enabled, and let the plugin answer."""
    steps = [*hermes_steps(installer)]
    for step in steps:
        yield Finding("plugin", "problem", step.text, step.advice)
    program = installer.program("hermes").path
    if not program or steps:
        return
    environ = {**installer.environ, "JOURNEYMAN_HOME": str(installer.home)}
    listed = run_quietly([program, "plugins", "list", "--json"], environ, timeout_s=60)
    status = "not known to Hermes"
    with suppress(ValueError, TypeError, AttributeError):
        plugins = json.loads((listed or "[]")[(listed or "[]").find("[") :])
        status = next((one["status"] for one in plugins if one.get("name") == PLUGIN), status)
    if status != "enabled":
        yield Finding(
            "plugin", "problem", f"The plugin is {status}.", f"hermes plugins enable {PLUGIN}"
        )
        return
    began = time.perf_counter()
    answer = run_quietly([program, PLUGIN, "status"], environ, timeout_s=60)
    seconds = time.perf_counter() - began
    lines = [line for line in (answer or "").splitlines() if "Journeyman" in line]
    if lines:
        yield Finding("plugin", "ok", f"enabled; in Hermes: {lines[0]} ({seconds:.1f} s)")
    else:
        text = "enabled; inside Hermes no resident process answered."
        yield Finding("plugin", "note", text, "The next session starts it, or: journeyman serve")


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
        needs_login = record.token and not installer.has_approver
        advice = (
            f"journeyman serve; before it, {ADD_APPROVER}" if needs_login else "journeyman serve"
        )
        return Finding(name, "note", f"{found} {installer.where_to_decide}", advice)
    found = "The service answers, and accepts the host's token."
    if not record.token or installer.has_approver:
        return Finding(name, "ok", f"{found} {installer.where_to_decide}")
    return Finding(name, "problem", f"{found} But no one may decide.", ADD_APPROVER)


def _check_service(installer: Installer) -> Iterator[Finding]:
    unit = unit_of(installer.around, installer.manager)
    if installer.manager != "systemd":
        return
    analyzer = shutil.which("systemd-analyze", path=installer.environ.get("PATH"))
    if analyzer and installer.environ.get("XDG_RUNTIME_DIR"):
        checked = run_quietly([analyzer, "--user", "verify", str(unit.path)], installer.environ)
        if checked is None:
            found = f"systemd does not accept {unit.path}."
            yield Finding("unit", "problem", found, f"systemd-analyze --user verify {unit.path}")
        else:
            yield Finding("unit", "ok", "systemd accepts it.")
    if not unit.enabled.is_symlink():
        yield Finding("unit", "note", "It is not enabled.", unit.start)


def _recent_failures(home: Path, name: str) -> Iterator[Finding]:
    since = time.time() - _RECENT_S
    recent = [one for one in read_failures(home) if one.host == name and one.at >= since]
    if recent:
        last = recent[-1]
        when = time.strftime("%H:%M", time.localtime(last.at))
        found = f"{len(recent)} within a day, the last at {when}: {last.event}: {last.reason}"
        yield Finding("failures", "note", found, "journeyman hosts report")
