"""Reader for Gemini CLI's chats (`~/.gemini/tmp/<project>/chats`). A message is written again
whenever it gains tokens or tool calls, and a resumed or compressed chat repeats its messages, so
each message, call and result counts when first seen.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from journeyman.logs.fields import (
    as_json,
    as_text,
    only_object,
    only_text,
    path_id,
    seconds,
    tool_call,
    uncached,
    whole_number,
)
from journeyman.logs.fragments import EventLog, LineSession
from journeyman.logs.line_reader import BadLine, Line
from journeyman.logs.log_file import LogFile, open_regular
from journeyman.records import (
    Lineage,
    LogEvent,
    LogState,
    MessageKind,
    ResultFlags,
    SessionId,
    Usage,
)

_HARNESS_PREFIXES = ("<session_context>", "<hook_context>")
_SUMMARY_PREFIX = "<state_snapshot>"
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d{1,9})$", re.MULTILINE)
_EXIT_CODE_WITHIN = 400
_MAX_PATH_BYTES = 4096


class GeminiReader:
    """Reads the chats of Gemini CLI."""

    name = "gemini"
    about = "Gemini CLI chats (~/.gemini/tmp/*/chats/**/*.jsonl)"

    def recognises(self, log: LogFile) -> bool:
        return log.is_object and any(_is_header(value) for value in log.first_lines[:1])

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:  # noqa: ARG002
        return _Chat(log).events()


def _is_header(value: Any) -> bool:
    return isinstance(value, dict) and {"sessionId", "projectHash", "startTime"} <= value.keys()


class _Content(NamedTuple):
    """The parts of a message, sorted."""

    text: str
    reasoning: str
    calls: list[dict[str, Any]]
    responses: list[dict[str, Any]]


class _Chat(EventLog):
    """Turns the records of one chat into a session. `_seen` has the position of each message by its
    id, and marks for tokens, calls and results.
    """

    def __init__(self, log: LogFile) -> None:
        super().__init__(log, GeminiReader.name)
        self._seen: dict[str, int] = {}

    def read(self, value: dict[str, Any], line: Line) -> None:
        session = self.open_session(only_text(value.get("sessionId")) or path_id(self.log))
        if _is_header(value) or "$set" in value:
            changes = only_object(value.get("$set", value))
            self._read_facts(session, changes)
            messages = changes.get("messages")
            if isinstance(messages, list):
                self._read_history(session, [only_object(record) for record in messages], line)
        elif "$rewindTo" in value:
            # Undo a message and everything after it; an unknown message undoes everything.
            start = self._seen.get(only_text(value["$rewindTo"]), 0)
            session.undo(start, line.offset)
        else:
            self._read_record(session, value, line)

    def _read_facts(self, session: LineSession, fields: dict[str, Any]) -> None:
        if "startTime" in fields and "started" not in self._seen:
            self._seen["started"] = 1
            session.facts["started_at"] = seconds(fields["startTime"])
            session.facts["cwd"] = _project_root(self.log)
            if fields.get("kind") == "subagent":
                parent = SessionId(self.log.path.parent.name)
                session.facts["lineage"] = Lineage(parent=parent, kind="subagent")
        if title := only_text(fields.get("summary")):
            session.facts["title"] = title

    def _read_history(
        self, session: LineSession, records: list[dict[str, Any]], line: Line
    ) -> None:
        """Read the messages that a chat starts or goes on with. After a compression, those that
        were kept follow the summary under new ids.
        """
        is_compressed = any(_is_summary(record) for record in records)
        for record in records:
            if is_compressed and not _is_summary(record):
                id_ = only_text(record.get("id"))
                self._seen.setdefault(id_, session.next_position(line))
            else:
                self._read_record(session, record, line)

    def _read_record(self, session: LineSession, record: dict[str, Any], line: Line) -> None:
        kind, id_ = record.get("type"), only_text(record.get("id"))
        if kind not in ("user", "gemini"):
            return  # notices on the screen
        if not id_:
            raise BadLine("a message has no id")
        at = seconds(record.get("timestamp"))
        content = _sorted_content(record.get("content"))
        is_new = id_ not in self._seen
        if is_new:
            self._seen[id_] = session.next_position(line)
        if kind == "user":
            if is_new and content.text:
                self._add_prompt(session, content.text, at, line)
            for response in content.responses:
                self._add_result(session, {**response, "result": [response]}, at, line)
            return
        model = only_text(record.get("model"))
        if model:
            session.facts["model"] = model
        recorded = record.get("toolCalls")
        calls = [only_object(call) for call in recorded] if isinstance(recorded, list) else []
        requests = tuple(
            tool_call(call.get("id"), call.get("name"), only_object(call.get("args")))
            for call in calls or content.calls
            if self._is_first(f"call {only_text(call.get('id'))}")
        )
        thoughts = record.get("thoughts")
        reasoning = content.reasoning or _thoughts(thoughts if isinstance(thoughts, list) else [])
        text, reasoning = (content.text, reasoning) if is_new else ("", "")
        if text or reasoning or requests:
            session.add(
                line,
                at=at,
                role="assistant",
                text=text,
                reasoning=reasoning,
                tool_calls=requests,
                model=model,
            )
        for call in calls:
            self._add_result(session, call, seconds(call.get("timestamp")), line)
        tokens = record.get("tokens")
        if isinstance(tokens, dict) and self._is_first(f"tokens {id_}"):
            session.add_usage(_usage(tokens, id_, at, model))

    def _add_prompt(self, session: LineSession, text: str, at: float | None, line: Line) -> None:
        kind: MessageKind = "plain"
        if text.lstrip().startswith(_SUMMARY_PREFIX):
            kind = "summary"
            session.generation += 1
        elif text.lstrip().startswith(_HARNESS_PREFIXES):
            kind = "harness"
        session.add(line, at=at, role="user", text=text, kind=kind)

    def _add_result(
        self, session: LineSession, call: dict[str, Any], at: float | None, line: Line
    ) -> None:
        id_, result = only_text(call.get("id")), call.get("result")
        if result is None or not id_ or not self._is_first(f"result {id_}"):
            return
        text, is_error = _result_text(result, id_)
        name = only_text(call.get("name"))
        session.add(
            line,
            at=at,
            role="tool",
            text=text,
            tool_call_id=id_,
            tool_name=name,
            recorded=_flags(name, only_text(call.get("status")), text, is_error=is_error),
        )

    def _is_first(self, mark: str) -> bool:
        if mark in self._seen:
            return False
        self._seen[mark] = 1
        return True


def _is_summary(record: dict[str, Any]) -> bool:
    content = _sorted_content(record.get("content"))
    return record.get("type") == "user" and content.text.lstrip().startswith(_SUMMARY_PREFIX)


def _sorted_content(content: Any) -> _Content:
    texts, thoughts, calls, responses = [], [], [], []
    for part in content if isinstance(content, list) else [content]:
        fields = only_object(part)
        if "functionCall" in fields:
            calls.append(only_object(fields["functionCall"]))
        elif "functionResponse" in fields:
            responses.append({**only_object(fields["functionResponse"]), **fields})
        elif fields.get("thought") is True:
            thoughts.append(as_text(part))
        else:
            texts.append(as_text(part))
    return _Content(
        "\n".join(filter(None, texts)), "\n".join(filter(None, thoughts)), calls, responses
    )


def _thoughts(thoughts: list[Any]) -> str:
    lines = []
    for thought in map(only_object, thoughts):
        parts = (only_text(thought.get("subject")), only_text(thought.get("description")))
        lines.append(": ".join(filter(None, parts)))
    return "\n".join(filter(None, lines))


def _result_text(result: Any, call_id: str) -> tuple[str, bool]:
    """Return the text that the model received for a call, and whether it is an error. A result can
    hold the responses to all calls of a turn.
    """
    if isinstance(result, str):
        return result, False
    texts, is_error = [], False
    for part in result if isinstance(result, list) else [result]:
        response = only_object(only_object(part).get("functionResponse"))
        if not response:
            texts.append(as_text(part))
        elif only_text(response.get("id")) in ("", call_id):
            fields = only_object(response.get("response"))
            is_error = is_error or "error" in fields
            known = fields.get("error", fields.get("output"))
            texts.append(as_json(fields) if known is None else as_text(known))
    return "\n".join(filter(None, texts)), is_error


def _flags(tool: str, status: str, text: str, *, is_error: bool) -> ResultFlags | None:
    """Return what Gemini CLI recorded about a call. A command that fails is a success of the shell
    tool, with its exit code in the text.
    """
    if status == "cancelled":
        # The person declined the call, or stopped it; only the text tells them apart.
        return ResultFlags(status="denied" if "did not allow" in text else status)
    if status == "error" or is_error:
        return ResultFlags(is_error=True)
    # The command may have printed such a line itself: Gemini CLI's own is the last.
    if tool == "run_shell_command" and (codes := _EXIT_CODE.findall(text[-_EXIT_CODE_WITHIN:])):
        return ResultFlags(exit_code=int(codes[-1]))
    return ResultFlags(is_error=False) if status == "success" else None


def _usage(tokens: dict[str, Any], key: str, at: float | None, model: str) -> Usage:
    prompt, cached = whole_number(tokens.get("input")), whole_number(tokens.get("cached"))
    answer, thoughts = whole_number(tokens.get("output")), whole_number(tokens.get("thoughts"))
    shown = whole_number(tokens.get("tool")) or 0
    entered = uncached(prompt, cached)
    return Usage(
        key=key,
        model=model,
        at=at,
        input_tokens=None if entered is None else entered + shown,
        output_tokens=None if answer is None else answer + (thoughts or 0),
        cache_read_tokens=cached,
        reasoning_tokens=thoughts,
    )


def _project_root(log: LogFile) -> str:
    """Return the folder that a chat worked in: Gemini CLI keeps it in a file beside the chats."""
    for folder in list(log.path.parents)[:3]:
        if folder.name == "chats":
            with suppress(OSError), open_regular(folder.parent / ".project_root") as file:
                return file.read(_MAX_PATH_BYTES).decode("utf-8", "replace").strip()
    return ""
