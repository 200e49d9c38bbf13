"""The gate before Hermes' tools. About a call that a rule names, Hermes asks the person in front of
it; where nobody is, the call waits for a decision. Whatever prevents an answer blocks it.

Hermes passes a call through `tool_request`, which may change its arguments, and then through
`pre_tool_call`, which may block it. The first asks and applies what a person changed; the second
blocks, and asks again if the arguments are no longer those that were decided on.
"""

import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple
from uuid import uuid4

from journeyman.plugin.client import Unanswered, unavailable
from journeyman.plugin.hermes_link import HOST, Link, Recent
from journeyman.plugin.hermes_openings import working_folder

RISKY_TOOLS = ("terminal", "execute_code", "write_file", "patch")
"""The tools that rules read. The setting hosts.gate_tools names further ones."""

_FIRST_WAIT_S, _WAIT_S = 1.0, 5.0
"""After this time the gate answers that it still waits, so that an interrupt is noticed."""

_ANSWER_S = 9.0
"""How long an answer may take beyond that. A process that hangs holds a call up for this long."""

_LONGEST_S = 3_700.0
UNAVAILABLE = unavailable(HOST)
_NO = "Do not try to achieve the same in another way."


class Ruling(NamedTuple):
    """What was decided on a call. `refusal` says why it is blocked, `question` what Hermes has to
    ask; `arguments` are those that may run, and `is_edited` says that a person changed them.
    """

    arguments: dict[str, Any]
    refusal: str = ""
    is_edited: bool = False
    question: str = ""

    @property
    def directive(self) -> dict[str, str] | None:
        """What Hermes is told before the call. Its "always" holds for the same call only."""
        if self.refusal:
            return {"action": "block", "message": self.refusal}
        if self.question:
            digest = hashlib.sha256(json.dumps(self.arguments, sort_keys=True).encode()).hexdigest()
            key = f"journeyman:{digest[:16]}"
            return {"action": "approve", "message": self.question, "rule_key": key}
        return None


class ToolGate:
    """Decides on the calls of Hermes' tools. `session_of` finds the session of a task, and
    `is_main` says whether a session is the one in the terminal.
    """

    def __init__(
        self, link: Link, session_of: Callable[[str], str], is_main: Callable[[str], bool]
    ) -> None:
        self._link = link
        self._session_of = session_of
        self._is_main = is_main
        self._guard = threading.Lock()
        self._rulings: Recent[tuple[str, str, str], Ruling] = Recent()
        self._patterns: tuple[str, ...] | None = None

    def is_gated(self, tool: str) -> bool:
        """Whether a tool's calls are sent to the gate."""
        return tool in RISKY_TOOLS or any(fnmatchcase(tool, one) for one in self._gate_tools())

    def request(
        self, tool: str, arguments: dict[str, Any], *, session: str, task: str, call: str
    ) -> dict[str, Any] | None:
        """Decide on a call before Hermes does. Return the arguments that a person put in place of
        the model's, if any.
        """
        ruling = self._decide(tool, arguments, session or self._session_of(task), call)
        with self._guard:
            self._rulings[_key(session, call, tool)] = ruling
        return ruling.arguments if ruling.is_edited and not ruling.refusal else None

    def check(
        self, tool: str, arguments: dict[str, Any], *, session: str, task: str, call: str
    ) -> dict[str, str] | None:
        """Return what Hermes is told before a call; None if it may run."""
        with self._guard:
            ruling = self._rulings.pop(_key(session, call, tool), None)
        if ruling is not None and (ruling.refusal or ruling.arguments == arguments):
            return ruling.directive
        # Nobody was asked yet, or another plugin has changed the call since.
        again = f"{call}+{uuid4().hex[:8]}" if ruling is not None else call
        ruling = self._decide(tool, arguments, session or self._session_of(task), again)
        if ruling.is_edited and not ruling.refusal:
            wanted = json.dumps(ruling.arguments, ensure_ascii=False)
            refusal = (
                "Blocked by Journeyman: a person changed the arguments, and this version of Hermes "
                f"cannot apply them. Call {tool} with exactly these: {wanted}"
            )
            ruling = ruling._replace(refusal=refusal)
        return ruling.directive

    def _decide(self, tool: str, arguments: dict[str, Any], session: str, call: str) -> Ruling:
        return self._asked(
            {
                "session": session,
                "tool": tool,
                "arguments": arguments,
                "call_id": call or uuid4().hex,
                "cwd": working_folder(),
                "attended": self._is_main(session) and _can_prompt(),
            }
        )

    def _asked(self, body: dict[str, Any]) -> Ruling:
        """Ask until there is a decision. The same id of the call is the same confirmation."""
        began = time.monotonic()
        activity = {"last_touch": began, "start": began}
        asked = {**body, "wait_s": _FIRST_WAIT_S}
        while True:
            try:
                answer = self._exchange(asked)
            except Unanswered as error:
                self._link.fail(body["session"], "gate", f"{body['tool']}: {error}")
                return Ruling(body["arguments"], UNAVAILABLE)
            if answer.get("decision") != "wait":
                return _ruling(answer, body["arguments"])
            asked["wait_s"] = _WAIT_S
            reason = ""
            if _is_interrupted():
                reason = "the user interrupted the session before anyone decided."
            elif time.monotonic() - began + _WAIT_S > _LONGEST_S:
                reason = "no one decided in time, which is not consent."
            if reason:  # the resident process cancels what nobody waits for
                self._link.hang_up("gate", asked)
                return Ruling(body["arguments"], f"Blocked by Journeyman: {reason} {_NO}")
            _show_activity(activity)

    def _exchange(self, body: dict[str, Any]) -> dict[str, Any]:
        timeout_s = body["wait_s"] + _ANSWER_S
        try:
            return self._link.ask("gate", body, timeout_s=timeout_s)
        except Unanswered as error:
            if not error.reached or isinstance(error.__cause__, TimeoutError):
                raise
        # It was perhaps ended while it waited.
        return self._link.ask("gate", body, timeout_s=timeout_s)

    def _gate_tools(self) -> tuple[str, ...]:
        """Return the patterns of further tools, from the settings once they could be read. Until
        then every tool is asked about, and the gate decides.
        """
        if self._patterns is None:
            try:
                self._patterns = self._link.settings().gate_tools
            except Exception as error:  # noqa: BLE001 - a plugin must not break its host
                self._link.fail("", "gate", f"hosts.gate_tools cannot be read: {error}")
                return ("*",)
        return self._patterns


def _key(session: str, call: str, tool: str) -> tuple[str, str, str]:
    """Name a call between its two callbacks, which run in one thread."""
    return session, call or f"thread {threading.get_ident()}", tool


def _ruling(answer: dict[str, Any], arguments: dict[str, Any]) -> Ruling:
    edited = answer.get("arguments")
    if answer.get("decision") == "allow" and edited is None:
        return Ruling(arguments)
    if answer.get("decision") == "allow" and isinstance(edited, dict):
        return Ruling(edited, is_edited=True)
    reason, decision = answer.get("reason"), answer.get("decision")
    has_reason = isinstance(reason, str) and bool(reason)
    if decision == "ask" and has_reason and _can_prompt():
        return Ruling(arguments, question=str(reason))
    refusal = str(reason) if decision == "deny" and has_reason else UNAVAILABLE
    return Ruling(arguments, refusal)


def _can_prompt() -> bool:
    """Whether Hermes can ask the person at its terminal. Older versions ignore such a request, and
    one whose prompts are switched off grants it.
    """
    approval = sys.modules.get("tools.approval")
    is_off = getattr(approval, "is_approval_bypass_active", None)
    if not hasattr(approval, "request_tool_approval") or is_off is None:
        return False
    if not os.environ.get("HERMES_INTERACTIVE") or sys.stdin is None or not sys.stdin.isatty():
        return False
    try:
        return not is_off()
    except Exception:  # noqa: BLE001 - another program's function
        return False


def _is_interrupted() -> bool:
    ask = getattr(sys.modules.get("tools.interrupt"), "is_interrupted", None)
    return ask is not None and ask() is True


def _show_activity(state: dict[str, float]) -> None:
    """Tell Hermes that the session is alive: it ends sessions that do nothing for long."""
    touch = getattr(sys.modules.get("tools.environments.base"), "touch_activity_if_due", None)
    if touch is not None:
        touch(state, "waiting for approval in Journeyman")
