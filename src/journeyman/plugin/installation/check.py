"""Checks an installation: fires test events through the host's own mechanism, and says what came
back, how fast, and what to do if something is wrong.
"""

import json
import secrets
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from journeyman.confirm.service_options import FOREIGN_SERVICE, home_id, probe
from journeyman.facade.finding import Finding
from journeyman.facade.journeyman import Journeyman
from journeyman.plugin.engines import engine_finding
from journeyman.plugin.installation.file_change import read_file
from journeyman.plugin.installation.hooks_file import OTHERWISE, own_hooks
from journeyman.plugin.installation.installer import ADD_APPROVER, Installer
from journeyman.plugin.installation.record import Record, read_record
from journeyman.plugin.installation.status import host_status, resident_finding
from journeyman.plugin.installation.targets import HooksTarget
from journeyman.records.errors import ConfirmationRefused, JourneymanError, OutsideProblem
from journeyman.records.host import Host

_UNKNOWN_ID = "0" * 32
_CHECKED = ("SessionStart", "UserPromptSubmit", "PreToolUse")
_EVENT_LIMIT_S = 30.0


def check(installer: Installer, journeyman: Journeyman, host: Host) -> list[Finding]:
    """Return what a check of a host has found. Raise OutsideProblem if nothing is installed."""
    status = host_status(installer, host)
    if status.state == "not installed":
        raise OutsideProblem(f"Journeyman is not installed in {status.file}. Run: {status.advice}")
    findings = [engine_finding(installer, host), status.finding]
    if status.state == "unreadable":
        return findings
    target = installer.target(host)
    if isinstance(target, HooksTarget):
        session = f"journeyman-check-{secrets.token_hex(6)}"
        findings += _fire_hooks(target, session, installer.environ)
        journeyman.host_sessions.erase(host, [session])
    findings.append(resident_finding(installer.home))
    record = read_record(installer.home, host)
    if record is not None and "gate" in record.parts:
        findings.append(_check_confirmations(installer, journeyman, record))
    return findings


def _fire_hooks(target: HooksTarget, session: str, environ: Mapping[str, str]) -> Iterator[Finding]:
    settings = target.settings(read_file(target.path))
    if settings.get("disableAllHooks"):
        yield Finding("settings", "problem", "disableAllHooks is set: no hook runs.")
    for event, hook in own_hooks(settings).items():
        if event in _CHECKED:
            yield _fire(target.name, event, hook, session, environ)


def _fire(
    host: str, event: str, hook: Mapping[str, Any], session: str, environ: Mapping[str, str]
) -> Finding:
    """Run a hook as its host does, by a shell and with JSON on standard input, and return what the
    host would make of its answer.
    """
    body = {
        "session_id": session,
        "transcript_path": "",
        "cwd": str(Path.cwd()),
        "hook_event_name": event,
        "permission_mode": "default",
        "source": "startup",
        "prompt": "Run the tests.",
        "tool_name": "Bash",
        "tool_input": {"command": "true"},
        "tool_use_id": f"toolu_{session}",
    }
    began = time.perf_counter()
    try:
        done = subprocess.run(  # noqa: S603 - what the host would run
            ["/bin/sh", "-c", hook["command"].partition(OTHERWISE)[0]],
            input=json.dumps(body).encode(),
            env=dict(environ),
            capture_output=True,
            timeout=_EVENT_LIMIT_S,
            check=False,
        )
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip()[-200:]
            raise OutsideProblem(f"The hook exited with {done.returncode}: {said}")
        answer = json.loads(done.stdout or b"{}").get("hookSpecificOutput", {})
    except (OSError, subprocess.SubprocessError, ValueError, JourneymanError) as error:
        advice = f"Install it again, then repeat the check: journeyman hosts install {host}"
        return Finding(event, "problem", str(error), advice)
    ms = (time.perf_counter() - began) * 1_000
    if answer.get("permissionDecision") == "deny":
        found = f"It blocks a harmless call: {answer.get('permissionDecisionReason')}"
        return Finding(event, "problem", found, "journeyman serve")
    found = f"adds {len(answer.get('additionalContext', '')):,} characters."
    if event == "PreToolUse":
        found = "lets a harmless call pass."
    return Finding(event, "ok", f"answered in {ms:.0f} ms, {found}")


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
