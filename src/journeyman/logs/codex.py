"""Reader for Codex CLI rollouts, in the bare format of its first versions and the wrapped format of
later ones. Events that repeat messages for the screen, and history that a compaction carries over,
are skipped. Exit codes, and processes that outlive their calls, are read in `codex_output`.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from journeyman.logs.codex_output import (
    CALL_END_EVENTS,
    CallEnd,
    Processes,
    drop_oldest,
    merge_reports,
    parse_end_event,
    parse_tool_output,
)
from journeyman.logs.fields import (
    as_json,
    as_text,
    json_value,
    only_object,
    only_text,
    path_id,
    seconds,
    uncached,
    whole_number,
)
from journeyman.logs.fragments import FragmentBuilder
from journeyman.logs.line_reader import FRAGMENT_MESSAGES, BadLine, Line, Lines, read_lines
from journeyman.logs.log_file import LogFile
from journeyman.records import (
    Fragment,
    Lineage,
    LogEvent,
    LogState,
    Message,
    ResultFlags,
    Role,
    Session,
    SessionId,
    ToolCall,
    Usage,
)
from journeyman.records.project import remote_project

HARNESS_PREFIXES = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<permissions instructions>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<skill>",
)
"""Prefixes of user messages that Codex wrote, not the user."""

_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "developer": "system",
    "system": "system",
}
_WRAPPED_TYPES = frozenset(
    (
        *("session_meta", "response_item", "turn_context", "event_msg", "compacted"),
        *("world_state", "token_usage_record"),
    )
)
_TURN_STARTS = ("task_started", "turn_started")
_END_REASONS = {"task_complete": "completed", "turn_complete": "completed", "error": "error"}
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_MAX_TURNS = 200
_MAX_END_EVENTS = 64
_SHELL_FLAGS = ("-c", "-lc")


class CodexReader:
    """Reads Codex CLI rollouts."""

    name = "codex"
    about = "Codex CLI rollouts (~/.codex/sessions/**/rollout-*.jsonl)"

    def recognises(self, log: LogFile) -> bool:
        """Return whether one of the first two lines is a wrapped line or a session header."""
        if not log.is_object:
            return False
        return any(_is_wrapped(value) or _is_header(value) for value in log.first_lines[:2])

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        """Read the file's only session, from where the last read ended."""
        saved = msgspec.convert(since.memory, _RolloutState) if since else None
        lines = Lines(log, since)
        return read_lines(
            self.name, lines, Any, lambda: _Rollout(log, saved if lines.resumed else None)
        )


class _RolloutState(Struct):
    """State needed to resume reading. `turns` holds the positions of user messages; `end_events`
    what events reported about calls that have no result yet; `forked_at` when a subagent left its
    parent, whose lines older versions copy; `has_usage_records` whether tokens are recorded by
    response, which is more exact than the counts between them; `commands` the calls that a hook may
    turn out to have rewritten.
    """

    session: str = ""
    model: str = ""
    generation: int = 0
    totals: dict[str, Any] = {}
    turns: list[int] = []
    end_events: dict[str, ResultFlags] = {}
    forked_at: float | None = None
    has_usage_records: bool = False
    processes: Processes = msgspec.field(default_factory=Processes)
    commands: dict[str, Message] = {}


class _Rollout:
    """Turns the lines of one session into fragments."""

    def __init__(self, log: LogFile, saved: _RolloutState | None) -> None:
        self.ready: list[LogEvent] = []
        self._log = log
        self._pending = FragmentBuilder(replaces=saved is None)
        self._state = saved or _RolloutState()
        self._facts: dict[str, Any] = {}

    def memory(self) -> dict[str, Any]:
        memory: dict[str, Any] = msgspec.to_builtins(self._state)
        return memory

    def close(self, read_bytes: int) -> Iterator[Fragment]:
        """Yield what was read since the last fragment."""
        if self._state.session:
            id_, source, log = SessionId(self._state.session), CodexReader.name, self._log.name
            session = Session(id=id_, source=source, log=log, **self._facts)
            also_empty = bool(self._facts) or self._pending.replaces
            yield from self._pending.fragments(session, read_bytes, also_empty=also_empty)

    def handle(self, value: Any, line: Line) -> None:
        """Process one line. Raises BadLine."""
        if not isinstance(value, dict):
            raise BadLine(f"expected a JSON object, found {type(value).__name__}")
        if _is_wrapped(value):
            at = seconds(value.get("timestamp"))
            self._read_wrapped(value["type"], value["payload"], at, line)
        elif _is_header(value):
            self._name_session(value)
        elif only_text(value.get("type")) in _WRAPPED_TYPES:
            raise BadLine(f"the payload is {type(value.get('payload')).__name__}, not an object")
        elif "record_type" not in value and "payload" not in value:
            self._state.session = self._state.session or _session_id(self._log)
            self._read_item(value, None, line)
        pending = len(self._pending.messages) + len(self._pending.usage)
        if line.whole and pending >= FRAGMENT_MESSAGES:
            self.ready += self.close(line.offset)

    def _read_wrapped(
        self, kind: str, payload: dict[str, Any], at: float | None, line: Line
    ) -> None:
        if kind == "session_meta":
            self._name_session(payload)
        self._state.session = self._state.session or _session_id(self._log)
        if at is not None:
            self._facts["ended_at"] = at
        if kind == "response_item":
            self._read_item(payload, at, line)
        elif kind == "turn_context":
            self._state.model = only_text(payload.get("model")) or self._state.model
            self._facts["model"] = self._state.model
            self._facts.setdefault("cwd", only_text(payload.get("cwd")))
        elif kind == "event_msg":
            self._read_event(payload, at, line)
        elif kind == "token_usage_record":
            self._read_usage_record(payload, at)
        elif kind == "compacted":
            self._state.generation += 1
            if text := only_text(payload.get("message")):
                self._add(line, at, role="user", text=text, kind="summary")

    def _name_session(self, meta: dict[str, Any]) -> None:
        # A fork also contains its parents' headers, further down: only the first header counts.
        if not self._state.session:
            self._state.session = only_text(meta.get("id")) or _session_id(self._log)
            self._facts.update(_session_facts(meta))
            if "lineage" in self._facts and self._facts["lineage"].kind == "subagent":
                self._state.forked_at = self._facts.get("started_at")

    def _read_item(self, item: dict[str, Any], at: float | None, line: Line) -> None:
        kind = only_text(item.get("type"))
        if kind == "message":
            self._read_message(item, at, line)
        elif kind == "reasoning":
            parts = [as_text(item.get(field)) for field in ("summary", "content")]
            if text := "\n".join(filter(None, parts)):
                self._add(line, at, role="assistant", reasoning=text)
        elif kind.endswith("_output"):
            self._read_result(item, at, line)
        elif kind.endswith("_call"):
            call = _tool_call(item, kind, line)
            self._state.processes.note_call(call)
            self._add(line, at, role="assistant", tool_calls=(call,))
            if _command_arguments(call):
                self._state.commands[call.id] = self._pending.messages[-1]
                drop_oldest(self._state.commands, _MAX_END_EVENTS)

    def _read_message(self, item: dict[str, Any], at: float | None, line: Line) -> None:
        role = item.get("role")
        content = item.get("content")
        if not isinstance(role, str) or role not in _ROLES:
            raise BadLine(f"a message has the unknown role {str(role)[:40]!r}")
        if content is not None and not isinstance(content, str | list):
            raise BadLine(f"the content of a message is {type(content).__name__}")
        text = as_text(content)
        harness = _ROLES[role] == "system" or (
            role == "user" and text.lstrip().startswith(HARNESS_PREFIXES)
        )
        self._add(line, at, role=_ROLES[role], text=text, kind="harness" if harness else "plain")
        if role == "user" and not harness:
            self._state.turns = [*self._state.turns, line.offset][-_MAX_TURNS:]

    def _read_result(self, item: dict[str, Any], at: float | None, line: Line) -> None:
        call_id = only_text(item.get("call_id")) or only_text(item.get("id"))
        if not call_id:
            raise BadLine("a tool result has no call id")
        text, recorded = parse_tool_output(item.get("output", item.get("tools")))
        result = self._message(
            line,
            at,
            role="tool",
            text=text,
            tool_call_id=call_id,
            tool_name=only_text(item.get("name")),
            recorded=merge_reports(recorded, self._state.end_events.pop(call_id, None)),
        )
        result, completed = self._state.processes.note_result(result)
        self._pending.messages.append(result)
        for message in completed:
            self._pending.put(message)

    def _read_event(self, event: dict[str, Any], at: float | None, line: Line) -> None:
        kind = only_text(event.get("type"))
        if kind == "item_completed":
            self._note_what_ran(only_object(event.get("item")))
        if kind == "token_count":
            self._read_usage(event.get("info"), at, line)
        elif kind in CALL_END_EVENTS:
            self._read_call_end(parse_end_event(kind, event))
        elif kind == "thread_rolled_back":
            count = whole_number(event.get("num_turns")) or 0
            if undone := self._state.turns[-count:] if count > 0 else []:
                self._pending.undone.append((undone[0], line.offset))
                self._state.turns = self._state.turns[: -len(undone)]
                self._state.processes.forget_from(undone[0])
                self._state.commands = {
                    id_: asked
                    for id_, asked in self._state.commands.items()
                    if asked.position < undone[0]
                }
        elif kind in _TURN_STARTS:
            self._state.processes.is_turn_open = True
        elif kind == "turn_aborted":
            self._state.processes.is_turn_open = False
            self._facts["end_reason"] = only_text(event.get("reason")) or "aborted"
        elif kind in _END_REASONS:
            self._state.processes.is_turn_open = False
            self._facts["end_reason"] = _END_REASONS[kind]

    def _read_call_end(self, end: CallEnd | None) -> None:
        """Keep the end of a call for its result, or complete a result that is waiting for it."""
        if end is None:
            return
        completed = self._state.processes.finish(end)
        for message in completed:
            self._pending.put(message)
        if not completed:
            end_events = self._state.end_events
            end_events[end.call_id] = end.recorded
            drop_oldest(end_events, _MAX_END_EVENTS)

    def _read_usage_record(self, record: dict[str, Any], at: float | None) -> None:
        """Count the tokens of one response, unless it is one of another thread."""
        usage, response = record.get("usage"), only_text(record.get("response_id"))
        thread = only_text(record.get("thread_id"))
        if isinstance(usage, dict) and response and thread in ("", self._state.session):
            self._state.has_usage_records = True
            self._pending.usage.append(_usage(response, usage, self._state.model, at))

    def _note_what_ran(self, item: dict[str, Any]) -> None:
        """Correct a command that a hook rewrote: the line of the call keeps the model's version."""
        asked = self._state.commands.pop(only_text(item.get("id")), None)
        ran = item.get("command")
        if (
            asked is None
            or not isinstance(ran, list)
            or len(ran) != 3
            or ran[1] not in _SHELL_FLAGS
        ):
            return
        (call,) = asked.tool_calls
        arguments = _command_arguments(call)
        if arguments.get("cmd") == ran[2] or not isinstance(ran[2], str):
            return
        rewritten = as_json({**arguments, "cmd": ran[2]})
        call = msgspec.structs.replace(call, arguments=rewritten, requested=call.arguments)
        message = msgspec.structs.replace(asked, tool_calls=(call,))
        self._pending.put(message)

    def _read_usage(self, info: Any, at: float | None, line: Line) -> None:
        last = info.get("last_token_usage") if isinstance(info, dict) else None
        if not isinstance(last, dict) or self._state.has_usage_records:
            return
        if (at or 0) < (self._state.forked_at or 0):
            return  # the parent used these tokens, before the fork
        totals = info.get("total_token_usage")
        if isinstance(totals, dict):
            # The event is repeated, with unchanged totals, when only the rate limits changed.
            if totals == self._state.totals:
                return
            self._state.totals = totals
        self._pending.usage.append(_usage(f"@{line.offset}", last, self._state.model, at))

    def _add(self, line: Line, at: float | None, *, role: Role, **fields: Any) -> None:
        self._pending.messages.append(self._message(line, at, role=role, **fields))

    def _message(self, line: Line, at: float | None, *, role: Role, **fields: Any) -> Message:
        return Message(
            key=f"@{line.offset}",
            position=line.offset,
            role=role,
            at=at,
            model=self._state.model if role == "assistant" else "",
            generation=self._state.generation,
            **fields,
        )


def _usage(key: str, tokens: dict[str, Any], model: str, at: float | None) -> Usage:
    """Return the usage of one response. Codex counts tokens from and for the cache as input."""
    prompt = whole_number(tokens.get("input_tokens"))
    cached = whole_number(tokens.get("cached_input_tokens"))
    written = whole_number(tokens.get("cache_write_input_tokens"))
    return Usage(
        key=key,
        model=model,
        at=at,
        input_tokens=uncached(prompt, cached, written),
        cache_read_tokens=cached,
        cache_write_tokens=written,
        output_tokens=whole_number(tokens.get("output_tokens")),
        reasoning_tokens=whole_number(tokens.get("reasoning_output_tokens")),
    )


def _tool_call(item: dict[str, Any], kind: str, line: Line) -> ToolCall:
    call_id = only_text(item.get("call_id")) or only_text(item.get("id")) or f"call@{line.offset}"
    name = only_text(item.get("namespace")) + only_text(item.get("name"))
    arguments = item.get("arguments", item.get("action"))
    if "input" in item:
        arguments = {"input": item["input"]}
    return ToolCall(
        id=call_id,
        name=name or kind.removesuffix("_call"),
        arguments="{}" if arguments is None else as_json(arguments),
    )


def _command_arguments(call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call that runs a command; empty for any other call."""
    if call.name != "exec_command":
        return {}
    arguments = only_object(json_value(call.arguments))
    return arguments if isinstance(arguments.get("cmd"), str) else {}


def _session_facts(meta: dict[str, Any]) -> dict[str, Any]:
    git = only_object(meta.get("git"))
    fields = ("originator", "cli_version", "source", "model_provider")
    details = {key: meta[key] for key in fields if meta.get(key)}
    if commit := only_text(git.get("commit_hash")):
        details["commit"] = commit
    facts = {
        "cwd": only_text(meta.get("cwd")),
        "project": remote_project(only_text(git.get("repository_url"))),
        "git_branch": only_text(git.get("branch")),
        "platform": _platform(meta),
        "agent": only_text(meta.get("agent_role")) or only_text(meta.get("agent_nickname")),
        "started_at": seconds(meta.get("timestamp")),
        "lineage": _lineage(meta),
        "details": details,
    }
    return {key: value for key, value in facts.items() if value}


def _platform(meta: dict[str, Any]) -> str:
    """Return where the session was started: cli, exec, vscode, …; older versions name only the
    program.
    """
    if only_object(meta.get("source")).get("subagent") is not None:
        return "subagent"
    return only_text(meta.get("source")) or only_text(meta.get("originator"))


def _lineage(meta: dict[str, Any]) -> Lineage | None:
    subagent = only_object(meta.get("source")).get("subagent")
    spawn = only_object(only_object(subagent).get("thread_spawn"))
    holders = (only_object(subagent), spawn, meta)
    parents = (only_text(holder.get("parent_thread_id")) for holder in holders)
    if subagent is not None and (parent := next(filter(None, parents), "")):
        return Lineage(parent=SessionId(parent), kind="subagent")
    if forked_from := only_text(meta.get("forked_from_id")):
        return Lineage(parent=SessionId(forked_from), kind="branch")
    return None


def _is_wrapped(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and only_text(value.get("type")) in _WRAPPED_TYPES
        and isinstance(value.get("payload"), dict)
    )


def _is_header(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and {"id", "timestamp"} <= value.keys()
        and not value.keys().isdisjoint(("instructions", "git"))
        and value.keys().isdisjoint(("type", "messages", "conversations"))
    )


def _session_id(log: LogFile) -> str:
    uuid = _UUID.search(log.stem())
    return uuid[0] if uuid else path_id(log)
