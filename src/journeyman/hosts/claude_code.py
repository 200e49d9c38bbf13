"""Claude Code as a host (seen with 2.1.197 and 2.1.326).

- `claude -p` works through one prompt and prints a line of JSON for each message, result and hook.
- The tools in a request are the same in every run, whatever the run may do: what it may not do is
  denied by a hook when it is tried. Rules that deny a whole tool would take its definition away,
  and with it the prefix that the provider has cached.
- Hooks of a run come on top of the person's own. Their rules that deny or ask still hold, also
  where a hook allows a call; of several hooks, one that denies wins.
- The modes that ask for nothing are refused to root, and the planning mode tells the model to plan.
- A fork copies the lines of the original into a log of its own. The newer version also takes over
  what the original has cost, and reports the sum.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from journeyman.hosts.host import (
    STATUS_BY_CODE,
    HostPage,
    Launch,
    Login,
    Plug,
    Reading,
    end_of,
    read_json,
    run_program,
)
from journeyman.hosts.run_hooks import add_decision, run_hooks
from journeyman.hosts.runner import (
    Access,
    RunBegan,
    RunRequest,
    RunResult,
    RunStatus,
    RunStep,
    RunText,
)
from journeyman.logs.claude_results import is_not_run, recorded_flags, refuser
from journeyman.logs.fields import as_json, as_text, json_value, only_object, only_text
from journeyman.models.context_windows import known_context_tokens
from journeyman.records import Call, Tokens

_ONE_SHOT = ("-p", "--output-format", "stream-json", "--verbose")
_ALSO_PRINTED = ("--include-hook-events", "--include-partial-messages")
"""Hooks tell what became of a call that they rewrote; partial messages how many tokens an answer
took, which its own lines do not tell.
"""

_ACCESS: Mapping[Access, tuple[str, ...]] = {
    "read": ("--permission-mode", "default"),
    "edit": ("--permission-mode", "acceptEdits", "--allowedTools", "Bash"),
    "all": ("--permission-mode", "default"),
}
_WRITING_TOOLS = "Edit|Write|NotebookEdit"
_ALIASES = ("", "default", "best", "opus", "sonnet", "haiku", "opusplan")
_WINDOW, _LONG_WINDOW = 200_000, 1_000_000
"""The smallest window of the models behind the aliases, and that of those with `[1m]`."""


_RESULT_TYPES: Mapping[str, RunStatus] = {
    "error_max_turns": "turns",
    "error_max_budget_usd": "cost",
}
_MODEL_ERRORS: Mapping[str, RunStatus] = {
    "authentication_failed": "not_logged_in",
    "oauth_org_not_allowed": "not_logged_in",
    "rate_limit": "rate_limited",
}
"""What the line of a failed answer names as its error; all others are errors of the model."""


class ClaudeCode(HostPage):
    """What we know of Claude Code."""

    name = "claude-code"
    title = "Claude Code"
    program = "claude"
    variable = "CLAUDE_CONFIG_DIR"
    folder = ".claude"
    file = "settings.json"
    # CLAUDE_CODE_CHILD_SESSION turns off the log; the socket is that of the outer session.
    nested = (
        "CLAUDECODE",
        "AI_AGENT",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_EXECPATH",
        "CLAUDE_CODE_MESSAGING_SOCKET",
        "CLAUDE_CODE_MESSAGING_TOKEN",
        "CLAUDE_CODE_SESSION_ATTENDED",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_EFFORT",
        "CLAUDE_PID",
        "CLAUDE_PROJECT_DIR",
    )
    fork_needs_model = True
    install = "npm install -g @anthropic-ai/claude-code"
    log_in = "claude auth login"

    def launch(self, request: RunRequest, plug: Plug, environ: Mapping[str, str]) -> Launch:
        del environ
        arguments = [*_ONE_SHOT, *_ALSO_PRINTED, *_ACCESS[request.access]]
        if request.model:
            arguments += ["--model", request.model]
        if request.resume or request.fork:
            arguments += ["--resume", request.resume or request.fork]
        if request.fork:
            arguments.append("--fork-session")
        if request.limits.turns is not None:
            arguments += ["--max-turns", str(request.limits.turns)]
        if request.limits.cost_usd is not None:
            arguments += ["--max-budget-usd", f"{request.limits.cost_usd:f}"]
        hooks = run_hooks(request, plug)
        if request.tools and request.access == "read":
            reason = "Blocked by Journeyman: this run may only read."
            add_decision(hooks, _WRITING_TOOLS, "deny", reason)
        elif request.tools and request.access == "all":
            add_decision(hooks, "*", "allow", "This run may do everything.")
        return Launch(
            arguments=(*arguments, "--settings", "{folder}/settings.json"),
            # A prompt that begins with a slash would be a command of Claude Code.
            stdin=f"\n{request.prompt}" if request.prompt.startswith("/") else request.prompt,
            files={"settings.json": json.dumps({"hooks": hooks})},
        )

    def reading(self, request: RunRequest, environ: Mapping[str, str]) -> Reading:
        earlier = self.find_log(request.resume or request.fork, environ)
        return ClaudeReading(request, spent_usd=_spent(earlier) if earlier else 0.0)

    def login(self, program: str, environ: Mapping[str, str]) -> Login:
        printed = run_program((program, "auth", "status", "--json"), environ)
        said = only_object(json_value(printed.stdout)) if printed else {}
        if said.get("loggedIn") is False:
            return "no"
        # A key or another provider may be wrong: only a request would tell.
        is_account = said.get("authMethod") not in (None, "none", "api_key", "third_party")
        return "yes" if said.get("loggedIn") is True and is_account else "unknown"

    def find_log(self, session: str, environ: Mapping[str, str]) -> Path | None:
        if not session.replace("-", "").isalnum():
            return None
        projects = self.settings_folder(environ) / "projects"
        return next(projects.glob(f"*/{session}.jsonl"), None)

    def window(self, request: RunRequest, environ: Mapping[str, str]) -> int | None:
        name = request.model or environ.get("ANTHROPIC_MODEL") or self._chosen(request, environ)
        name = environ.get(f"ANTHROPIC_DEFAULT_{name.upper()}_MODEL") or name
        if name.endswith("[1m]"):
            return _LONG_WINDOW
        return _WINDOW if name in _ALIASES else known_context_tokens(name)

    def _chosen(self, request: RunRequest, environ: Mapping[str, str]) -> str:
        """Return the model that the person has chosen in the settings, else an empty text."""
        project = request.folder / ".claude"
        files = ("settings.local.json", "settings.json")
        user = self.settings_folder(environ) / "settings.json"
        found = (read_json(path) for path in (*(project / name for name in files), user))
        return next(filter(None, (only_text(one.get("model")) for one in found)), "")


def _spent(log: Path) -> float:
    """Return what a session has cost, by its log."""
    spent = 0.0
    with log.open("rb") as lines:
        for line in lines:
            if line.startswith(b'{"type":"cost-state"'):
                spent = float(json.loads(line).get("totalCostUSD") or 0.0)
    return spent


class ClaudeReading(Reading):
    """Reads the lines that `claude -p` prints. Those of subagents are passed over, as they belong
    to sessions of their own: only the cost includes them.
    """

    def __init__(self, request: RunRequest, *, spent_usd: float = 0.0) -> None:
        super().__init__(request)
        self._spent_usd = spent_usd
        self._version = self._error = self._answer = ""
        self._usage: dict[str, Mapping[str, Any]] = {}
        self._open: dict[str, Call] = {}
        self._begun = 0
        self._last: Mapping[str, Any] = {}

    @property
    def exceeded(self) -> RunStatus | None:
        return None if self._last else super().exceeded

    def steps(self, line: str) -> Iterable[RunStep]:
        if '"type":"content_block_' in line[:80]:
            return
        entry = only_object(json_value(line))
        kind = entry.get("type")
        if kind == "result":
            self._last = entry
            self._count()
        elif kind == "system":
            yield from self._note(entry)
        elif entry.get("parent_tool_use_id"):
            return
        elif kind == "stream_event":
            self._note_usage(only_object(entry.get("event")))
        elif kind == "assistant":
            yield from self._read_answer(entry)
        elif kind == "user":
            yield from self._read_results(entry, line)

    def _note(self, entry: Mapping[str, Any]) -> Iterator[RunStep]:
        if entry.get("subtype") == "init" and not self.session:
            self.session, self.model = entry["session_id"], only_text(entry.get("model"))
            self._version = only_text(entry.get("claude_code_version"))
            yield RunBegan(session=self.session, model=self.model)
        elif entry.get("subtype") == "hook_response" and entry.get("hook_event") == "PreToolUse":
            said = only_object(only_object(json_value(entry["stdout"])).get("hookSpecificOutput"))
            changed = said.get("updatedInput")
            # The line does not name the call: calls that change something run one by one.
            tool = only_text(entry.get("hook_name")).partition(":")[2]
            call = next((call for call in self._open.values() if call.tool == tool), None)
            if call and isinstance(changed, dict) and said.get("permissionDecision") != "deny":
                rewritten = replace(call, arguments=as_json(changed), requested=call.arguments)
                self._open[call.id] = rewritten

    def _note_usage(self, event: Mapping[str, Any]) -> None:
        """Note the tokens of an answer: those of the prompt when it begins, all when it ends."""
        if event.get("type") == "message_start":
            message = only_object(event.get("message"))
            self._answer = only_text(message.get("id"))
            self._usage[self._answer] = only_object(message.get("usage"))
        elif event.get("type") == "message_delta" and self._answer:
            used = only_object(event.get("usage"))
            self._usage[self._answer] = {**self._usage[self._answer], **used}
        self._count()

    def _count(self) -> None:
        self.turns = len(self._usage)
        if not self._usage:
            return

        def total(name: str) -> int:
            return sum(usage.get(name) or 0 for usage in self._usage.values())

        cost = self._last.get("total_cost_usd")
        self.tokens = Tokens(
            input_tokens=total("input_tokens"),
            output_tokens=total("output_tokens"),
            cache_read_tokens=total("cache_read_input_tokens"),
            cache_write_tokens=total("cache_creation_input_tokens"),
            cost_usd=None if cost is None else round(max(0.0, cost - self._spent_usd), 9),
        )

    def _read_answer(self, entry: Mapping[str, Any]) -> Iterator[RunStep]:
        message = only_object(entry.get("message"))
        if message.get("model") == "<synthetic>":  # Claude Code's own words about an error
            self._error = only_text(entry.get("error")) or self._error
            return
        for block in message.get("content") or ():
            if block.get("type") == "text" and block.get("text"):
                yield RunText(text=block["text"])
            elif block.get("type") == "tool_use":
                arguments = as_json(block.get("input") or {})
                self._open[block["id"]] = Call(
                    id=block["id"], tool=block["name"], arguments=arguments, index=self._begun
                )
                self._begun += 1

    def _read_results(self, entry: Mapping[str, Any], line: str) -> Iterator[RunStep]:
        content = only_object(entry.get("message")).get("content")
        notes = {note.get("id"): note for note in entry.get("tool_result_meta") or ()}
        for block in content if isinstance(content, list) else ():
            call = self._open.pop(only_text(block.get("tool_use_id")), None)
            if call is not None:
                note = only_object(notes.get(call.id))
                yield self.ended(_with_result(call, block, line, note, self._version))

    def result(self, exit_code: int, errors: str) -> RunResult:
        status, reason = self._status(exit_code)
        if status == "done":
            return self.report(status, text=reason)
        return self.report(status, reason=reason or end_of(errors, exit_code))

    def _status(self, exit_code: int) -> tuple[RunStatus, str]:
        """Return how the run ended by its last line, and the answer or what Claude Code says."""
        last = self._last
        errors = "\n".join(filter(None, map(only_text, last.get("errors") or ())))
        reason = only_text(last.get("result")) or errors
        ended = only_text(last.get("terminal_reason"))
        if ended.startswith("aborted"):
            return "interrupted", reason
        if last.get("stop_reason") == "tool_deferred":
            return "interrupted", "A call waits for an approval. Resume the session afterwards."
        if ended == "prompt_too_long":
            return "context_full", reason
        if status := _RESULT_TYPES.get(only_text(last.get("subtype"))):
            return status, reason
        if last.get("subtype") == "success" and last.get("is_error"):
            by_code = STATUS_BY_CODE.get(last.get("api_error_status") or 0, "model_failed")
            return _MODEL_ERRORS.get(self._error, by_code), reason
        if last.get("subtype") == "success" and exit_code == 0:
            return ("done", reason) if reason.strip() else ("empty", "The last reply had no text.")
        return "failed", reason


class _Line(msgspec.Struct):
    tool_use_result: Raw = Raw()


def _with_result(
    call: Call, block: Mapping[str, Any], line: str, note: Mapping[str, Any], version: str
) -> Call:
    """Return a call with its result, and with the flags that the reader of logs gives it."""
    raw = msgspec.json.decode(line, type=_Line).tool_use_result
    text, is_error = as_text(block.get("content")), block.get("is_error")
    recorded = recorded_flags(raw, is_error=is_error)
    if recorded is not None and is_error:
        decision = only_object(note.get("permission_decision"))
        camel = {
            "reasonType": decision.get("reason_type"),
            "reasonCode": decision.get("reason_code"),
        }
        if refused_by := refuser({**decision, **camel}, note.get("non_execution_kind")):
            recorded = replace(recorded, refused_by=refused_by)
        elif is_not_run(call.tool, text, raw, version):
            recorded = replace(recorded, status="not_run")
    return replace(call, result=text, recorded=recorded)
