"""The hooks of Claude Code and Codex: what each event asks, and the answer that the client reads.
Both send the same JSON; Codex understands less of the answer.
"""

import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from journeyman.experience.opening import sendable_text
from journeyman.logs import claude_chain, codex
from journeyman.logs.log_file import open_regular
from journeyman.plugin.gate import GateAnswer, GateCall
from journeyman.records import Call
from journeyman.records.message import ResultFlags

HookAnswer = dict[str, Any] | None
"""The JSON that a hook prints; None prints nothing."""

HEADLESS = ("sdk-cli",)
"""What CLAUDE_CODE_ENTRYPOINT says in `claude -p`, where a call can be put off. Other programs that
run Claude Code have names of their own, and may not know what to do with such a call.
"""

ATTENDED = ("cli", "claude-vscode", "claude-desktop")
"""What it says where a person sees Claude Code's own prompts."""

_NOTICES = (*claude_chain.HARNESS_PREFIXES, *codex.HARNESS_PREFIXES)
"""What the host itself sends as a prompt begins with one of these."""

_COMMAND = re.compile(r"/[\w:-]+(?:\s|$)")

_LONGEST_LINE = 1_000_000


class _Meta(Struct, frozen=True):
    forked_from_id: str | None = None


class _FirstLine(Struct, frozen=True):
    payload: _Meta = _Meta()


class HookInput(Struct, frozen=True, kw_only=True):
    """What a hook gets on standard input, as far as it is used."""

    session_id: str
    hook_event_name: str
    transcript_path: str | None = ""
    cwd: str = ""
    source: str = ""
    prompt: str = ""
    tool_name: str = ""
    tool_input: Any = None
    tool_use_id: str = ""
    tool_response: Any = None
    error: str = ""
    agent_id: str | None = ""
    journeyman_entrypoint: str = ""

    @property
    def arguments(self) -> dict[str, Any]:
        return self.tool_input if isinstance(self.tool_input, dict) else {}

    @property
    def is_headless(self) -> bool:
        return self.journeyman_entrypoint in HEADLESS

    @property
    def is_attended(self) -> bool:
        return self.journeyman_entrypoint in ATTENDED

    @property
    def is_request(self) -> bool:
        """Whether the prompt is a person's, not a command to the host or a notice of it."""
        text = self.prompt.lstrip()
        return bool(text) and not text.startswith(_NOTICES) and not _COMMAND.match(text)

    @property
    def parent(self) -> str:
        """The session that this one was forked from, where its log says so from the beginning, as
        Codex's does.
        """
        try:
            with open_regular(Path(self.transcript_path or "")) as log:
                first = msgspec.json.decode(log.readline(_LONGEST_LINE), type=_FirstLine)
        except (OSError, ValueError):  # no log yet, or another line
            return ""
        return first.payload.forked_from_id or ""

    @property
    def is_subagent(self) -> bool:
        return bool(self.agent_id)

    @property
    def call(self) -> Call:
        """The call that is about to run."""
        arguments = msgspec.json.encode(self.arguments).decode()
        return Call(id=self.tool_use_id, tool=self.tool_name, arguments=arguments)

    def failed_call(self, host: str) -> Call | None:
        """Return the call that has just failed, or may have; None if it certainly has not. Codex
        reports failed calls like others, as a text.
        """
        result: str = self.error
        flags: ResultFlags | None = ResultFlags(is_error=True)
        if self.hook_event_name != "PostToolUseFailure":
            if host != "codex" or not isinstance(self.tool_response, str):
                return None
            result, flags = self.tool_response, None
        return replace(self.call, result=result, recorded=flags)

    def gate_call(self, wait_s: float | None, *, attended: bool) -> GateCall:
        return GateCall(
            session=self.session_id,
            tool=self.tool_name,
            arguments=self.arguments,
            call_id=self.tool_use_id,
            cwd=self.cwd,
            wait_s=wait_s,
            attended=attended,
        )


def added_context(event: str, text: str) -> HookAnswer:
    """Return the answer that adds a text to the conversation."""
    if not text:
        return None
    output = {"hookEventName": event, "additionalContext": sendable_text(text)}
    return {"hookSpecificOutput": output}


def with_message(answer: HookAnswer, message: str) -> HookAnswer:
    """Return an answer with a line that the host shows to the person."""
    return {**(answer or {}), "systemMessage": message} if message else answer


def with_reason(printed: dict[str, Any], text: str) -> dict[str, Any]:
    """Return an answer before a call with a further text in its reason, if it has one."""
    output = printed["hookSpecificOutput"]
    reason = output.get("permissionDecisionReason")
    if not text or not reason:
        return printed
    return {
        **printed,
        "hookSpecificOutput": {**output, "permissionDecisionReason": f"{reason}\n{text}"},
    }


def permission(host: str, answer: GateAnswer) -> HookAnswer:
    """Return the answer of a hook before a call. To let a call pass, nothing is printed: then the
    host's own rules decide. Only what a person approved is allowed outright, where the host can.
    """
    decided: dict[str, Any]
    if answer.decision != "allow":
        # To Codex, anything but a denial is consent.
        words = {"ask": "ask", "wait": "defer"} if host == "claude-code" else {}
        word = words.get(answer.decision, "deny")
        decided = {"permissionDecision": word, "permissionDecisionReason": answer.reason}
    elif answer.arguments is not None:
        decided = {"permissionDecision": "allow", "updatedInput": answer.arguments}
    elif answer.asked and host == "claude-code":
        reason = "A person approved it in Journeyman."
        decided = {"permissionDecision": "allow", "permissionDecisionReason": reason}
    else:
        return None
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decided}}
