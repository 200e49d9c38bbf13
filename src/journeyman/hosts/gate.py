"""The gate for the calls of hosts: rules decide which calls a person has to approve, and the
confirmation service asks. Whatever prevents an answer denies the call.
"""

import json
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from journeyman.facade.journeyman import Journeyman
from journeyman.gate.decision import ALLOW, Decision, Risk, rule
from journeyman.gate.gate import Gate
from journeyman.hosts.installation.record import read_record
from journeyman.records.errors import ConfirmationRefused, JourneymanError
from journeyman.records.host import source_of
from journeyman.templates.argument_fields import find_call

if TYPE_CHECKING:
    from journeyman.confirm.client import ConfirmClient
    from journeyman.confirm.schemas import Card

DecisionWord = Literal["allow", "deny", "wait"]

_POLL_S = 1.0
"""How often a waiting gate looks whether its caller has gone."""

_HOST_ASKS = "The agent's own settings require a person to permit this."
_NO = "Do not try to achieve the same in another way."
_RISKS: dict[str, Risk] = {
    "run": "command",
    "run_code": "code",
    "edit": "write",
    "write": "write",
    "patch": "write",
}
"""The operations that the gate reads, and how. Others are left to the host."""
_ACTIONS = {"command": "run_command", "code": "run_code", "write": "write_file"}
"""What the confirmation policy calls them; other tools go by their own name."""


class GateCall(Struct, frozen=True, kw_only=True):
    """A call that a host is about to make."""

    session: str
    tool: str
    arguments: dict[str, Any] = {}
    call_id: str = ""
    cwd: str = ""
    wait_s: float | None = None


class GateAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a call may be made; `wait` means that no one has decided within `wait_s`. Where a
    person changed the arguments, `arguments` are the ones to use.
    """

    decision: DecisionWord
    reason: str = ""
    arguments: dict[str, Any] | None = None
    asked: bool = False
    """Whether a person was asked."""


ALLOWED = GateAnswer(decision="allow")


class HostGate:
    """Decides on calls of hosts. `stopping` ends all waiting."""

    def __init__(self, journeyman: Journeyman, stopping: threading.Event) -> None:
        self._journeyman = journeyman
        self._stopping = stopping

    def decide(
        self,
        host: str,
        call: GateCall,
        cancelled: Callable[[], bool] = lambda: False,
        *,
        always_ask: bool = False,
    ) -> GateAnswer:
        """Decide on a call; where a person has to approve it, wait for the decision. With
        `always_ask`, the host's own rules want a person, whatever the rules here say.
        """
        decision, action = self.assess(host, call)
        if decision.answer == "allow" and always_ask:
            decision = Decision(answer="ask", rule="host.asks", reason=_HOST_ASKS)
        if decision.answer == "allow":
            return ALLOWED
        if decision.answer == "refuse":
            return _denied(f"the rule {decision.rule} forbids it. {decision.reason}")
        try:
            with self._client(host) as service:
                card = self._request(service, host, call, decision, action=action)
                return self._decided(service, card, call, cancelled)
        except ConfirmationRefused as error:
            return _denied(f"the confirmation service refused the request. {error}")
        except JourneymanError as error:
            return _denied(f"no confirmation could be requested. {error}")

    def assess(self, host: str, call: GateCall) -> tuple[Decision, str]:
        """Return the decision of the rules on a call, and the name of the action for the policy of
        confirmations.
        """
        arguments = json.dumps(call.arguments)
        found = find_call(call.tool, arguments, source_of(host))
        risk = _RISKS.get(found.operation) if found else None
        if found is None or risk is None:
            patterns = self._journeyman.settings.hosts.gate_tools
            is_listed = any(fnmatchcase(call.tool, pattern) for pattern in patterns)
            return (rule("tool.unknown").decision if is_listed else ALLOW), call.tool
        fields = _gate_arguments(found.fields, call.cwd)
        decision = Gate(_workspace(call.cwd), network="on").decide(risk, fields)
        if decision.rule == "file.write_outside" and _is_temporary(fields.get("path")):
            decision = ALLOW
        return decision, _ACTIONS[risk]

    def _client(self, host: str) -> "ConfirmClient":
        record = read_record(self._journeyman.settings.home, host)
        if record is not None and record.token:
            return self._journeyman.approver_client(record.token)
        return self._journeyman.confirm_client()

    def _request(
        self,
        service: "ConfirmClient",
        host: str,
        call: GateCall,
        decision: Decision,
        *,
        action: str,
    ) -> "Card":
        """Request a confirmation; a repeated request for the same call returns the same one."""
        details = {
            "tool": call.tool,
            "arguments": call.arguments,
            "folder": call.cwd,
            "rule": decision.rule,
        }
        return service.request(
            action,
            decision.reason,
            details,
            timeout_s=self._journeyman.settings.hosts.confirm_timeout_s,
            session_key=call.session[:200],
            idempotency_key=f"{host}:{call.session}:{call.call_id}"[:200] if call.call_id else "",
        )

    def _decided(
        self, service: "ConfirmClient", card: "Card", call: GateCall, cancelled: Callable[[], bool]
    ) -> GateAnswer:
        """Wait for the decision on a confirmation, and use an approval."""
        ends = None if call.wait_s is None else time.monotonic() + call.wait_s
        while card.status == "pending" and (ends is None or time.monotonic() < ends):
            if cancelled() or self._stopping.is_set():
                service.cancel(card.id, reason="the session that asked has ended")
                return _denied("no one decided before the session ended.")
            card = service.wait(card, timeout_s=_POLL_S)
        if card.status == "pending":
            return GateAnswer(decision="wait", reason=f"Waiting for {card.page_url}", asked=True)
        if not card.is_approved:
            return _denied(_outcome(card), asked=True)
        approved = card.approved_details
        service.redeem(card, approved)
        edited = approved["arguments"] if card.edited is not None else None
        return GateAnswer(decision="allow", arguments=edited, asked=True)


def _outcome(card: "Card") -> str:
    """Return in words of refusals how a confirmation ended."""
    if card.status == "denied":
        reason = f" The reason: {card.reason.rstrip(' .')}." if card.reason else ""
        return f"a person said no: denied by the user.{reason}"
    if card.status == "expired":
        return "no one decided in time, which is not consent."
    return card.outcome


def _denied(reason: str, *, asked: bool = False) -> GateAnswer:
    text = f"Blocked by Journeyman: {reason.strip()} {_NO}"
    return GateAnswer(decision="deny", reason=text, asked=asked)


def _workspace(cwd: str) -> Path:
    """Return the repository of a folder, or the folder itself."""
    folder = Path(cwd or ".")
    return next((one for one in (folder, *folder.parents) if (one / ".git").exists()), folder)


def _gate_arguments(fields: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    """Return the fields of a call by the gate's names, with its path from the folder that it is
    relative to.
    """
    values = {**fields, "workdir": fields.get("folder")}
    path = values.get("path")
    if isinstance(path, str) and cwd and not path.startswith(("/", "~")):
        values["path"] = str(Path(cwd) / path)
    return values


def _is_temporary(path: object) -> bool:
    """Whether a path is in the folder for temporary files, where agents keep drafts."""
    if not isinstance(path, str):
        return False
    folder = Path(tempfile.gettempdir()).resolve()
    return folder in Path(path).expanduser().resolve().parents
