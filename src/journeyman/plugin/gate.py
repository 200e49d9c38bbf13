"""The gate for the calls of hosts: rules decide which calls a person has to approve, and the
confirmation service asks. Whatever prevents an answer denies the call.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from journeyman.facade.journeyman import Journeyman
from journeyman.gate.decision import ALLOW, ApprovalRequest, Decision, Risk, rule
from journeyman.gate.gate import Gate, patched_paths
from journeyman.gate.interactive import opens_terminal
from journeyman.learning.agent_tools import find_operation
from journeyman.logs.repositories import is_work_tree
from journeyman.plugin.installation.record import read_record
from journeyman.records.errors import ConfirmationRefused, JourneymanError, ServiceUnavailable
from journeyman.text.truncation import one_line

if TYPE_CHECKING:
    from journeyman.confirm.client import ConfirmClient
    from journeyman.confirm.schemas import Card

DecisionWord = Literal["allow", "ask", "deny", "wait"]

_POLL_S = 1.0
"""How often a waiting gate looks whether its caller has gone."""

_EXPIRY_GRACE_S = 5.0
"""How long after its deadline a confirmation is certainly expired."""

_INTERACTIVE = "It opens a shell or an interpreter, and Codex shows its later input to no hook."
_LISTED = "The setting hosts.gate_tools lists this tool."
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
_FILE_TOOLS = {"NotebookEdit": "notebook_path", "MultiEdit": "file_path"}
"""Further tools that change a file, and the argument with its path."""
_UNKNOWN_FOLDER = "/unknown-folder"
_LONGEST_KEY = 200
_LONGEST_SUBJECT = 160
_UNKNOWN_ID = "0" * 32
_STOPPING = (
    "Journeyman is stopping, so it no longer waits for the decision on this call. The confirmation "
    "stays open: ask again for the same call."
)
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
    always: bool = False
    """Whether the host's own rules want a person, whatever the rules here say."""
    attended: bool = False
    """Whether the host can ask a person who sits in front of it."""


class GateAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a call may be made; `ask` means that the host has to ask the person in front of it,
    `wait` that no one has decided within `wait_s`. Where a person changed the arguments,
    `arguments` are the ones to use.
    """

    decision: DecisionWord
    reason: str = ""
    arguments: dict[str, Any] | None = None
    asked: bool = False
    """Whether a person was asked."""


ALLOWED = GateAnswer(decision="allow")


Question = Callable[[ApprovalRequest], Future[bool | None]]
"""Puts a question to the person who started a run. None means that no one can answer."""


class HostGate:
    """Decides on calls of hosts. `stopping` ends all waiting. `service_url` is the address of the
    confirmation service in the same process; `unavailable` says why there is none. With `question`,
    the person who started the run decides, and no service.
    """

    def __init__(
        self,
        journeyman: Journeyman,
        stopping: threading.Event,
        question: Question | None = None,
    ) -> None:
        self._journeyman = journeyman
        self._question = question
        self._questions: dict[str, Future[bool | None]] = {}
        self._stopping = stopping
        self.service_url = ""
        self.unavailable = ""

    def decide(
        self,
        host: str,
        call: GateCall,
        cancelled: Callable[[], bool] = lambda: False,
        hold: Callable[[], None] = lambda: None,
    ) -> GateAnswer:
        """Decide on a call. Where a person has to approve it, have the host ask, or call `hold` and
        wait for the decision, as the setting `hosts.ask` says. Raise ServiceUnavailable if this
        process stops before it: the confirmation stays open, and another process can ask for the
        same call.
        """
        decision, action = self.assess(host, call)
        if decision.answer == "allow" and call.always:
            decision = Decision(answer="ask", rule="host.asks", reason=_HOST_ASKS)
        if decision.answer == "allow":
            return ALLOWED
        if decision.answer == "refuse":
            return _denied(f"the rule {decision.rule} forbids it. {decision.reason}")
        if self._question is not None:
            hold()
            return self._answered(self._question, host, call, decision)
        # Claude Code shows the call itself.
        why = _why(decision) if host == "claude-code" else _description(call, decision)
        question = GateAnswer(decision="ask", reason=f"Journeyman: {why}")
        asked_by = self._journeyman.settings.hosts.ask if call.attended else "service"
        if asked_by == "host":
            return question
        hold()
        try:
            with self._client(host) as service:
                self._check_home(service)
                card = self._request(service, host, call, decision, action=action)
                later = question if asked_by == "both" else None
                return self._decided(service, card, call, cancelled, later)
        except JourneymanError as error:
            if self._stopping.is_set():
                raise ServiceUnavailable(_STOPPING) from error
            if asked_by == "both":
                return question
            if isinstance(error, ConfirmationRefused):
                return _denied(f"the confirmation service refused the request. {error}")
            if self.unavailable:
                return _denied(f"confirmations are not served here: {error} {self.unavailable}")
            return _denied(f"no confirmation could be requested. {error}")

    def _answered(
        self, question: Question, host: str, call: GateCall, decision: Decision
    ) -> GateAnswer:
        """Have the person who started the run decide. A host that asks in slices asks again."""
        key = _key(host, call)
        if key not in self._questions:
            self._questions[key] = question(
                ApprovalRequest(
                    tool=call.tool,
                    arguments=call.arguments,
                    rule=decision.rule,
                    reason=decision.reason,
                    session=call.session,
                    cancelled=self._stopping.is_set,
                )
            )
        try:
            said = self._questions[key].result(call.wait_s)
        except TimeoutError:
            return GateAnswer(decision="wait", reason="Waiting for a person.", asked=True)
        if said:
            return GateAnswer(decision="allow", asked=True)
        if said is None:
            return _denied(f"no one is there to approve it. {_why(decision)}")
        return _denied("a person said no: denied by the user.", asked=True)

    def assess(self, host: str, call: GateCall) -> tuple[Decision, str]:
        """Return the decision of the rules on a call, and the name of the action for the policy of
        confirmations.
        """
        risk, fields = _understood(call)
        decision = _assessed(risk, fields, call.cwd) if risk else ALLOW
        if (
            decision.answer == "allow"
            and host == "codex"
            and opens_terminal(str(fields.get("command", "")))
        ):
            decision = Decision(answer="ask", rule="codex.interactive", reason=_INTERACTIVE)
        patterns = self._journeyman.settings.hosts.gate_tools
        if decision.answer == "allow" and any(fnmatchcase(call.tool, one) for one in patterns):
            decision = Decision(answer="ask", rule="hosts.gate_tools", reason=_LISTED)
        return decision, _ACTIONS[risk] if risk else call.tool

    def _client(self, host: str) -> "ConfirmClient":
        record = read_record(self._journeyman.settings.home, host)
        token = record.token if record is not None else ""
        return self._journeyman.confirm_client(token, url=self.service_url)

    def _check_home(self, service: "ConfirmClient") -> None:
        """Raise ServiceUnavailable if the service on the usual port does not know this home's
        token: it must not see what the agent wants to do.
        """
        if self.service_url or self._journeyman.settings.confirm.url:
            return
        try:
            service.get(_UNKNOWN_ID)
        except ConfirmationRefused as error:
            if error.code == "unauthenticated":
                raise ServiceUnavailable(
                    f"The service at {service.url} does not know this host's token: "
                    "another home's service answers there. Set confirm.port to a free port, or "
                    "confirm.url to the service to use."
                ) from error

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
            "reason": decision.reason,
        }
        _, fields = _understood(call)
        if "patch" in fields:
            details["files"] = _paths(fields)
        return service.request(
            action,
            _description(call, decision),
            details,
            timeout_s=self._journeyman.settings.hosts.confirm_timeout_s,
            session_key=call.session[:200],
            idempotency_key=_key(host, call) if call.call_id else "",
        )

    def _decided(
        self,
        service: "ConfirmClient",
        card: "Card",
        call: GateCall,
        cancelled: Callable[[], bool],
        question: GateAnswer | None,
    ) -> GateAnswer:
        """Wait for the decision on a confirmation, and use an approval. If there is none after
        `hosts.defer_after_s`, the answer is the `question` for the host, if given.
        """
        began = time.monotonic()
        expires = began + card.expires_in_s + _EXPIRY_GRACE_S
        ends = expires if call.wait_s is None else min(began + call.wait_s, expires)
        hosts = self._journeyman.settings.hosts
        host_asks = began + card.expires_in_s - hosts.confirm_timeout_s + hosts.defer_after_s
        if question is not None:
            ends = min(ends, host_asks)
        while card.status == "pending" and time.monotonic() < ends:
            if self._stopping.is_set():
                raise ServiceUnavailable(_STOPPING)
            if cancelled():
                service.cancel(card.id, reason="the session that asked has ended")
                return _denied("no one decided before the session ended.")
            card = service.wait(card, timeout_s=_POLL_S)
        if question is not None and card.status == "pending" and time.monotonic() >= host_asks:
            service.cancel(card.id, reason="no one decided, so the host asks")
            return question
        if question is not None and card.status == "expired":
            return question
        if card.status == "pending" and time.monotonic() >= expires:
            return _denied("no one decided in time: the confirmation service no longer answers.")
        if card.status == "pending":
            return GateAnswer(decision="wait", reason=f"Waiting for {card.page_url}", asked=True)
        if not card.is_approved:
            return _denied(_outcome(card), asked=True)
        approved = card.approved_details
        service.redeem(card, approved)
        edited = approved.get("arguments") if card.edited is not None else None
        if edited is not None and not isinstance(edited, dict):
            return _denied("a person changed the arguments to something that is not an object.")
        return GateAnswer(decision="allow", arguments=edited, asked=True)


def _outcome(card: "Card") -> str:
    """Return in words of refusals how a confirmation ended."""
    if card.status == "denied":
        reason = f" The reason: {card.reason.rstrip(' .')}." if card.reason else ""
        return f"a person said no: denied by the user.{reason}"
    if card.status == "expired":
        return "no one decided in time, which is not consent."
    if card.status == "cancelled":
        return "no one decided before the request was cancelled."
    return f"the rule of confirmations forbids it. {card.outcome}"


def _denied(reason: str, *, asked: bool = False) -> GateAnswer:
    text = f"Blocked by Journeyman: {reason.strip()} {_NO}"
    return GateAnswer(decision="deny", reason=text, asked=asked)


def _key(host: str, call: GateCall) -> str:
    """Name a call for the confirmation service: the same call is the same confirmation."""
    key = f"{host}:{call.session}:{call.call_id}"
    if len(key) > _LONGEST_KEY:
        key = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
    return key


def _understood(call: GateCall) -> tuple[Risk | None, Mapping[str, Any]]:
    """Return how the gate reads a call, if it does, and the call's fields."""
    if name := _FILE_TOOLS.get(call.tool):
        texts = (call.arguments.get("edits"), call.arguments.get("new_source"))
        return "write", {"path": call.arguments.get(name), "new": str(texts)}
    found = find_operation(call.tool, call.arguments)
    return (_RISKS.get(found.operation), found.fields) if found else (None, {})


def _description(call: GateCall, decision: Decision) -> str:
    """Return the command or the files that a call is about, why a person has to decide, and the
    rule that says so.
    """
    _, fields = _understood(call)
    texts = (fields.get("command"), fields.get("code"), ", ".join(_paths(fields)))
    text = next((one for one in texts if isinstance(one, str) and one.strip()), "")
    subject = one_line(text.strip().partition("\n")[0], _LONGEST_SUBJECT)
    return f"{subject} — {_why(decision)}" if subject else _why(decision)


def _why(decision: Decision) -> str:
    return f"{decision.reason} (rule {decision.rule})"


def _paths(fields: Mapping[str, Any]) -> list[str]:
    """Return the files that a call changes."""
    path, patch = fields.get("path"), fields.get("patch")
    paths = [path] if isinstance(path, str) else []
    return paths + (patched_paths(patch) if isinstance(patch, str) else [])


def _assessed(risk: Risk, fields: Mapping[str, Any], cwd: str) -> Decision:
    """Return the decision of the rules on a call in a folder, with the names of the gate."""
    folder = cwd if cwd.startswith("/") else _UNKNOWN_FOLDER
    try:
        gate = Gate(_workspace(folder), network="on", folder=folder, confined=False)
        return gate.decide(risk, {**fields, "workdir": fields.get("folder")})
    except (OSError, RuntimeError, ValueError):  # no file system has such a path
        return rule("tool.unreadable").decision


def _workspace(cwd: str) -> Path:
    """Return the repository of a folder, or the folder itself."""
    folder = Path(cwd)
    return next((one for one in (folder, *folder.parents) if is_work_tree(one)), folder)
