"""Reader for GitHub Copilot CLI's event logs (`session-state/<id>/events.jsonl`). The events of a
subagent stand in the log of its parent, under an agent id of their own; they become a session.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from journeyman.logs.fields import (
    as_text,
    only_object,
    only_text,
    path_id,
    seconds,
    tool_call,
    uncached,
    whole_number,
)
from journeyman.logs.fragments import RUNNING, EventLog, LineSession
from journeyman.logs.line_reader import BadLine, Line
from journeyman.logs.log_file import LogFile
from journeyman.records import (
    Lineage,
    LogEvent,
    LogState,
    MessageKind,
    ResultFlags,
    ToolCall,
    Usage,
)

_REFUSALS = frozenset({"denied", "rejected"})


class CopilotReader:
    """Reads the event logs of GitHub Copilot CLI."""

    name = "copilot"
    about = "GitHub Copilot CLI event logs (~/.copilot/session-state/*/events.jsonl)"

    def recognises(self, log: LogFile) -> bool:
        return log.is_object and any(_is_event(value) for value in log.first_lines[:2])

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:  # noqa: ARG002
        return _Events(log).events()


def _is_event(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and only_text(value.get("type")) == "session.start"
        and "sessionId" in only_object(value.get("data"))
        and "parentId" in value
    )


class _Event(NamedTuple):
    """An event of a session; `agent` is empty for the session of the log itself."""

    session: LineSession
    agent: str
    data: dict[str, Any]
    at: float | None
    line: Line

    @property
    def key(self) -> str:
        return f"@{self.line.offset}"


class _Events(EventLog):
    """Turns the events of one log into sessions: its own, and one for each subagent."""

    def __init__(self, log: LogFile) -> None:
        super().__init__(log, CopilotReader.name)
        self._id = self._model = self._cwd = ""
        self._handlers = {
            "session.start": self._start,
            "session.resume": self._start,
            "session.model_change": self._change_model,
            "session.usage_record": self._count_usage,
            "session.compaction_complete": self._compact,
            "session.error": self._end_in_error,
            "session.shutdown": self._shut_down,
            "subagent.started": self._start_subagent,
            "user.message": self._add_prompt,
            "system.message": self._add_instructions,
            "assistant.message": self._add_answer,
            "tool.execution_complete": self._add_result,
        }

    def read(self, value: dict[str, Any], line: Line) -> None:
        handler = self._handlers.get(only_text(value.get("type")))
        if handler is None:
            return  # progress of a turn, permission requests, notices
        if not isinstance(value.get("data"), dict):
            raise BadLine(f"the data of an event is {type(value.get('data')).__name__}")
        self._id = self._id or only_text(value["data"].get("sessionId")) or path_id(self.log)
        agent = only_text(value.get("agentId"))
        session = self._session(agent)
        handler(_Event(session, agent, value["data"], seconds(value.get("timestamp")), line))

    def _session(self, agent: str) -> LineSession:
        is_new = agent not in self.sessions
        # The id of a subagent may be that of a call, which is unique only in its session.
        session = self.open_session(f"agent-{agent}-{self._id}" if agent else self._id, agent)
        if agent and is_new:
            lineage = Lineage(parent=self._session("").id, kind="subagent")
            session.facts.update(lineage=lineage, cwd=self._cwd)
        return session

    def _start(self, event: _Event) -> None:
        context = only_object(event.data.get("context"))
        self._cwd = only_text(context.get("cwd")) or self._cwd
        self._model = only_text(event.data.get("selectedModel")) or self._model
        event.session.facts.update(
            cwd=self._cwd,
            git_branch=only_text(context.get("branch")),
            model=self._model,
        )
        if "startTime" in event.data:
            event.session.facts["started_at"] = seconds(event.data["startTime"]) or event.at

    def _change_model(self, event: _Event) -> None:
        event.session.facts["model"] = only_text(event.data.get("newModel"))
        if not event.agent:
            self._model = only_text(event.data.get("newModel")) or self._model

    def _start_subagent(self, event: _Event) -> None:
        if event.agent:
            event.session.facts.update(
                agent=only_text(event.data.get("agentName")),
                title=only_text(event.data.get("agentDescription")),
                model=only_text(event.data.get("model")),
                started_at=event.at,
            )

    def _end_in_error(self, event: _Event) -> None:
        event.session.facts["end_reason"] = "error"

    def _shut_down(self, event: _Event) -> None:
        event.session.facts["ended_at"] = event.at
        if event.session.facts.get("end_reason") != "error":
            event.session.facts["end_reason"] = only_text(event.data.get("shutdownType"))

    def _add_prompt(self, event: _Event) -> None:
        origin = only_text(event.data.get("source"))
        kind: MessageKind = "plain" if not origin or origin.startswith("agent-") else "harness"
        event.session.facts["end_reason"] = RUNNING
        self._add(event, role="user", text=as_text(event.data.get("content")), kind=kind)

    def _add_instructions(self, event: _Event) -> None:
        text = as_text(event.data.get("content"))
        self._add(event, role="system", text=text, kind="harness")

    def _add_answer(self, event: _Event) -> None:
        requests = event.data.get("toolRequests") or []
        if not isinstance(requests, list):
            raise BadLine("the tool requests of an answer are not a list")
        calls = tuple(_tool_call(request) for request in requests)
        text = as_text(event.data.get("content"))
        reasoning = as_text(event.data.get("reasoningText"))
        if text or reasoning or calls:
            self._add(
                event,
                role="assistant",
                text=text,
                reasoning=reasoning,
                tool_calls=calls,
                model=only_text(event.data.get("model")) or self._model,
            )

    def _add_result(self, event: _Event) -> None:
        call_id = only_text(event.data.get("toolCallId"))
        if not call_id:
            raise BadLine("a tool result has no call id")
        result = only_object(event.data.get("result"))
        error = only_object(event.data.get("error"))
        self._add(
            event,
            role="tool",
            text=as_text(error.get("message") if error else result.get("content")),
            tool_call_id=call_id,
            recorded=_flags(event.data, error),
        )

    def _compact(self, event: _Event) -> None:
        used = event.data.get("compactionTokensUsed")
        if isinstance(used, dict):
            event.session.add_usage(_usage(used, event.key, event.at, task="compression"))
        if event.data.get("success") is not True:
            return
        event.session.generation += 1
        if text := only_text(event.data.get("summaryContent")):
            self._add(event, role="user", text=text, kind="summary")

    def _count_usage(self, event: _Event) -> None:
        event.session.add_usage(_usage(only_object(event.data.get("usage")), event.key, event.at))

    def _add(self, event: _Event, **fields: Any) -> None:
        event.session.add(event.line, at=event.at, **fields)


def _tool_call(request: Any) -> ToolCall:
    fields = only_object(request)
    return tool_call(fields.get("toolCallId"), fields.get("name"), fields.get("arguments"))


def _flags(data: dict[str, Any], error: dict[str, Any]) -> ResultFlags:
    """Return what Copilot recorded about a call. A command that fails is a success of the shell
    tool, with its exit code beside it.
    """
    if data.get("success") is True:
        code = whole_number(only_object(data.get("shellExecution")).get("exitCode"))
        return ResultFlags(is_error=False) if code is None else ResultFlags(exit_code=code)
    if only_text(error.get("code")) in _REFUSALS:
        return ResultFlags(status="denied")
    return ResultFlags(is_error=data.get("success") is False or None)


def _usage(used: dict[str, Any], key: str, at: float | None, *, task: str = "") -> Usage:
    prompt = whole_number(used.get("inputTokens"))
    read = whole_number(used.get("cacheReadTokens"))
    written = whole_number(used.get("cacheWriteTokens"))
    return Usage(
        key=key,
        model=only_text(used.get("model")),
        task=task,
        at=at,
        input_tokens=uncached(prompt, read, written),
        output_tokens=whole_number(used.get("outputTokens")),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=whole_number(used.get("reasoningTokens")),
    )
