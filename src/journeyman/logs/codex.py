"""Rollouts of the Codex CLI, in the bare form of its first versions and the wrapped form since.
What the program repeats for its own screen and what a compaction carries over are left out.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from journeyman.logs.codex_output import TELLING_EVENTS, merged, peeled, told_by
from journeyman.logs.fragments import Gathering
from journeyman.logs.lines import FRAGMENT_MESSAGES, BadLine, Line, Lines, take_lines
from journeyman.logs.logfile import LogFile
from journeyman.logs.values import (
    as_json,
    as_text,
    only_object,
    only_text,
    path_id,
    seconds,
    whole_number,
)
from journeyman.records import (
    Fragment,
    Lineage,
    LogEvent,
    LogState,
    Message,
    Recorded,
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
"""How texts begin that the program put in the user's mouth."""

_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "developer": "system",
    "system": "system",
}
_WRAPPED = frozenset({"session_meta", "response_item", "turn_context", "event_msg", "compacted"})
_ENDS = {"task_complete": "completed", "turn_complete": "completed", "error": "error"}
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_TURNS_KEPT = 200
_TOLD_KEPT = 64


class CodexReader:
    """Codex CLI rollouts."""

    name = "codex"
    about = "Codex CLI rollouts (~/.codex/sessions/**/rollout-*.jsonl)"

    def recognises(self, log: LogFile) -> bool:
        """The first line is a header in one of two forms; its lines are like no other's."""
        if not log.is_object:
            return False
        if any(_is_wrapped(value) or _is_header(value) for value in log.first_lines[:2]):
            return True
        # Instructions in the header can be longer than what is looked at.
        return not log.first_lines and {"payload.id", "payload.cli_version"} <= log.keys

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        """The one session of the file, from where the last reading ended."""
        known = None
        if since is not None and since.reader == self.name:
            with suppress(msgspec.ValidationError):
                known = msgspec.convert(since.memory, _Known)
        lines = Lines(log, since if known is not None else None)
        return take_lines(
            self.name, lines, Any, lambda: _Rollout(log, known if lines.resumed else None)
        )


class _Known(Struct):
    """What has to be remembered to read on: `turns` are the positions at which users spoke,
    `told` what events said about calls whose result is still to come, `forked_at` when the session
    left its parent, whose lines it copies.
    """

    session: str = ""
    model: str = ""
    generation: int = 0
    totals: dict[str, Any] = {}
    turns: list[int] = []
    told: dict[str, Recorded] = {}
    forked_at: float | None = None


class _Rollout:
    """One session on its way from lines to fragments."""

    def __init__(self, log: LogFile, known: _Known | None) -> None:
        self.ready: list[LogEvent] = []
        self._log = log
        self._gathered = Gathering(replaces=known is None)
        self.known = known or _Known()
        self._facts: dict[str, Any] = {}

    def memory(self) -> dict[str, Any]:
        built: dict[str, Any] = msgspec.to_builtins(self.known)
        return built

    def close(self, read_bytes: int) -> Iterator[Fragment]:
        """What was read since the last fragment."""
        if self.known.session:
            id_, source, log = SessionId(self.known.session), CodexReader.name, self._log.name
            session = Session(id=id_, source=source, log=log, **self._facts)
            also_empty = bool(self._facts) or self._gathered.replaces
            yield from self._gathered.fragments(session, read_bytes, also_empty=also_empty)

    def take(self, value: Any, line: Line) -> None:
        """One line. Raises BadLine."""
        if not isinstance(value, dict):
            raise BadLine(f"not a line of a rollout: {type(value).__name__}")
        if _is_wrapped(value):
            at = seconds(value.get("timestamp"))
            self._take_wrapped(value["type"], value["payload"], at, line)
        elif _is_header(value):
            self._name_session(value)
        elif only_text(value.get("type")) in _WRAPPED:
            found = type(value.get("payload")).__name__
            raise BadLine(f"the payload is {found}, not an object")
        elif "record_type" not in value and "payload" not in value:
            self.known.session = self.known.session or _id_of(self._log)
            self._take_item(value, None, line)
        gathered = len(self._gathered.messages) + len(self._gathered.usage)
        if line.whole and gathered >= FRAGMENT_MESSAGES:
            self.ready += self.close(line.offset)

    def _take_wrapped(
        self, kind: str, payload: dict[str, Any], at: float | None, line: Line
    ) -> None:
        if kind == "session_meta":
            self._name_session(payload)
        self.known.session = self.known.session or _id_of(self._log)
        if at is not None:
            self._facts["ended_at"] = at
        if kind == "response_item":
            self._take_item(payload, at, line)
        elif kind == "turn_context":
            self.known.model = only_text(payload.get("model")) or self.known.model
            self._facts["model"] = self.known.model
            self._facts.setdefault("cwd", only_text(payload.get("cwd")))
        elif kind == "event_msg":
            self._take_event(payload, at, line)
        elif kind == "compacted":
            self.known.generation += 1
            if text := only_text(payload.get("message")):
                self._add(line, at, role="user", text=text, kind="summary")

    def _name_session(self, meta: dict[str, Any]) -> None:
        # A fork carries the headers of its parents further down: only the first one counts.
        if not self.known.session:
            self.known.session = only_text(meta.get("id")) or _id_of(self._log)
            self._facts.update(_facts(meta))
            if "lineage" in self._facts:
                self.known.forked_at = self._facts.get("started_at")

    def _take_item(self, item: dict[str, Any], at: float | None, line: Line) -> None:
        kind = only_text(item.get("type"))
        if kind == "message":
            self._take_message(item, at, line)
        elif kind == "reasoning":
            parts = [as_text(item.get(field)) for field in ("summary", "content")]
            if text := "\n".join(filter(None, parts)):
                self._add(line, at, role="assistant", reasoning=text)
        elif kind.endswith("_output"):
            self._take_result(item, at, line)
        elif kind.endswith("_call"):
            self._add(line, at, role="assistant", tool_calls=(_call(item, kind, line),))

    def _take_message(self, item: dict[str, Any], at: float | None, line: Line) -> None:
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
            self.known.turns = [*self.known.turns, line.offset][-_TURNS_KEPT:]

    def _take_result(self, item: dict[str, Any], at: float | None, line: Line) -> None:
        call_id = only_text(item.get("call_id")) or only_text(item.get("id"))
        if not call_id:
            raise BadLine("a result does not say which call it belongs to")
        text, recorded = peeled(item.get("output", item.get("tools")))
        self._add(
            line,
            at,
            role="tool",
            text=text,
            tool_call_id=call_id,
            tool_name=only_text(item.get("name")),
            recorded=merged(recorded, self.known.told.pop(call_id, None)),
        )

    def _take_event(self, event: dict[str, Any], at: float | None, line: Line) -> None:
        kind = only_text(event.get("type"))
        if kind == "token_count":
            self._take_usage(event.get("info"), at, line)
        elif kind in TELLING_EVENTS:
            call_id, told = only_text(event.get("call_id")), told_by(kind, event)
            if call_id and told is not None:
                self.known.told[call_id] = told
                for oldest in list(self.known.told)[:-_TOLD_KEPT]:
                    del self.known.told[oldest]
        elif kind == "thread_rolled_back":
            turns = whole_number(event.get("num_turns")) or 0
            if taken_back := self.known.turns[-turns:] if turns > 0 else []:
                self._gathered.undone.append((taken_back[0], line.offset))
                self.known.turns = self.known.turns[: -len(taken_back)]
        elif kind == "turn_aborted":
            self._facts["end_reason"] = only_text(event.get("reason")) or "aborted"
        elif kind in _ENDS:
            self._facts["end_reason"] = _ENDS[kind]

    def _take_usage(self, info: Any, at: float | None, line: Line) -> None:
        last = info.get("last_token_usage") if isinstance(info, dict) else None
        if not isinstance(last, dict) or (at or 0) < (self.known.forked_at or 0):
            return  # before a fork, it is the parent that spent them
        totals = info.get("total_token_usage")
        if isinstance(totals, dict):
            # Sent again when only the rate limits changed: the sums then stand still.
            if totals == self.known.totals:
                return
            self.known.totals = totals
        prompt = whole_number(last.get("input_tokens"))
        cached = whole_number(last.get("cached_input_tokens"))
        self._gathered.usage.append(
            Usage(
                key=f"@{line.offset}",
                model=self.known.model,
                at=at,
                input_tokens=None if prompt is None else max(0, prompt - (cached or 0)),
                cache_read_tokens=cached,
                output_tokens=whole_number(last.get("output_tokens")),
                reasoning_tokens=whole_number(last.get("reasoning_output_tokens")),
            )
        )

    def _add(self, line: Line, at: float | None, *, role: Role, **fields: Any) -> None:
        self._gathered.messages.append(
            Message(
                key=f"@{line.offset}",
                position=line.offset,
                role=role,
                at=at,
                model=self.known.model if role == "assistant" else "",
                generation=self.known.generation,
                **fields,
            )
        )


def _call(item: dict[str, Any], kind: str, line: Line) -> ToolCall:
    given = only_text(item.get("call_id")) or only_text(item.get("id")) or f"call@{line.offset}"
    name = only_text(item.get("namespace")) + only_text(item.get("name"))
    arguments = item.get("arguments", item.get("action"))
    if "input" in item:
        arguments = {"input": item["input"]}
    return ToolCall(
        id=given,
        name=name or kind.removesuffix("_call"),
        arguments="{}" if arguments is None else as_json(arguments),
    )


def _facts(meta: dict[str, Any]) -> dict[str, Any]:
    git = only_object(meta.get("git"))
    named = ("originator", "cli_version", "source", "model_provider")
    details = {key: meta[key] for key in named if meta.get(key)}
    if commit := only_text(git.get("commit_hash")):
        details["commit"] = commit
    facts = {
        "cwd": only_text(meta.get("cwd")),
        "project": remote_project(only_text(git.get("repository_url"))),
        "git_branch": only_text(git.get("branch")),
        "agent": only_text(meta.get("agent_role")) or only_text(meta.get("agent_nickname")),
        "started_at": seconds(meta.get("timestamp")),
        "lineage": _lineage(meta),
        "details": details,
    }
    return {key: value for key, value in facts.items() if value}


def _lineage(meta: dict[str, Any]) -> Lineage | None:
    subagent = only_object(meta.get("source")).get("subagent")
    spawn = only_object(only_object(subagent).get("thread_spawn"))
    named = (only_text(one.get("parent_thread_id")) for one in (only_object(subagent), spawn, meta))
    if subagent is not None and (parent := next(filter(None, named), "")):
        return Lineage(parent=SessionId(parent), kind="subagent")
    if forked_from := only_text(meta.get("forked_from_id")):
        return Lineage(parent=SessionId(forked_from), kind="branch")
    return None


def _is_wrapped(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and only_text(value.get("type")) in _WRAPPED
        and isinstance(value.get("payload"), dict)
    )


def _is_header(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and {"id", "timestamp"} <= value.keys()
        and not value.keys().isdisjoint(("instructions", "git"))
        and value.keys().isdisjoint(("type", "messages", "conversations"))
    )


def _id_of(log: LogFile) -> str:
    found = _UUID.search(log.stem())
    return found[0] if found else path_id(log)
