"""Reader for trajectories in ATIF, the Agent Trajectory Interchange Format that Harbor writes: one
trajectory in a document, or one per line. Embedded subagents become sessions of their own.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from journeyman.logs.fields import (
    as_json,
    as_text,
    generation_number,
    has_valid_numbers,
    only_object,
    only_text,
    path_id,
    seconds,
    session_id,
    uncached,
    whole_number,
)
from journeyman.logs.fragments import Part, document_items, in_fragments
from journeyman.logs.line_reader import Line, Lines, read_lines
from journeyman.logs.log_file import LogFile
from journeyman.records import (
    Lineage,
    LogEvent,
    LogState,
    Mark,
    Message,
    MessageKind,
    ResultFlags,
    Role,
    Session,
    SessionId,
    Skip,
    ToolCall,
    Usage,
)
from journeyman.records.atif import OWN_FIELDS

_SCHEMA = re.compile(rb'"schema_version"\s*:\s*"ATIF-v1\.')
_ROLES: dict[str, Role] = {"system": "system", "user": "user", "agent": "assistant"}
_KINDS: dict[str, MessageKind] = {"summary": "summary", "harness": "harness"}
_CONTINUATION = re.compile(r"(.+)-cont-(\d{1,4})\Z")
_MAX_DEPTH = 8


class AtifReader:
    """Reads ATIF trajectories."""

    name = "atif"
    about = "ATIF 1.x trajectories, as Harbor writes them (JSON or JSONL)"

    def recognises(self, log: LogFile) -> bool:
        return log.is_object and bool(_SCHEMA.search(log.head)) and "schema_version" in log.keys

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        """Read every trajectory of the log, a log of lines from where the last read ended."""
        if log.is_jsonl:
            state = since if since is not None and since.reader == self.name else None
            lines = Lines(log, state)

            def make_handler() -> _Trajectories:
                names = state.memory.get("names", []) if state and lines.resumed else []
                return _Trajectories(log, names)

            yield from read_lines(self.name, lines, Any, make_handler)
            return
        for value in document_items(log, ""):
            yield from [value] if isinstance(value, Skip) else _sessions(log, value)
        yield Mark(state=log.state(self.name))


class _Trajectories:
    """Handles lines that each hold one trajectory. Segments of one run may have the same id: a
    later one gets the number of its line, so that both are kept.
    """

    def __init__(self, log: LogFile, names: Iterable[str]) -> None:
        self.ready: list[LogEvent] = []
        self._log = log
        self._names = set(names)

    def handle(self, value: Any, line: Line) -> None:
        name = _recorded_id(only_object(value))
        suffix = f"#{line.number}" if name in self._names else ""
        self._names.add(name)
        for event in _sessions(self._log, value, suffix=suffix):
            if isinstance(event, Skip):
                self.ready.append(Skip(line=line.number, reason=event.reason))
            else:
                self.ready.append(event)

    def memory(self) -> dict[str, Any]:
        return {"names": sorted(self._names)}

    def close(self, read_bytes: int) -> Iterable[LogEvent]:  # noqa: ARG002
        return ()


def _sessions(
    log: LogFile,
    trajectory: Any,
    parent: SessionId | None = None,
    *,
    depth: int = 0,
    suffix: str = "",
) -> Iterator[LogEvent]:
    """Yield the session of a trajectory and those of its embedded subagents."""
    if not isinstance(trajectory, dict) or not isinstance(trajectory.get("steps"), list):
        yield Skip(line=0, reason="a trajectory has no list of steps")
        return
    if depth > _MAX_DEPTH:
        yield Skip(line=0, reason=f"subagents are nested more than {_MAX_DEPTH} deep")
        return
    session = _session(log, trajectory, parent, suffix)
    yield from in_fragments(session, _parts(trajectory))
    embedded = trajectory.get("subagent_trajectories")
    names = set()
    for number, child in enumerate(embedded if isinstance(embedded, list) else [], 1):
        name = _embedded_name(only_object(child))
        suffix = f"#{number}" if name in names else ""
        names.add(name)
        yield from _sessions(log, child, session.id, depth=depth + 1, suffix=suffix)


def _recorded_id(trajectory: dict[str, Any]) -> str:
    return only_text(trajectory.get("trajectory_id")) or only_text(trajectory.get("session_id"))


def _embedded_name(trajectory: dict[str, Any]) -> str:
    agent = only_object(trajectory.get("agent"))
    return _recorded_id(trajectory) or only_text(agent.get("name"))


def _session(
    log: LogFile, trajectory: dict[str, Any], parent: SessionId | None, suffix: str
) -> Session:
    agent = only_object(trajectory.get("agent"))
    own = _own_fields(trajectory)
    recorded = _recorded_id(trajectory)
    if parent is not None:
        id_ = f"{parent}/{_embedded_name(trajectory)}"
    elif own:
        # An export of ours must not take the place of the session it was made from.
        id_ = path_id(log, recorded)
    else:
        id_ = session_id(log, recorded)
    lineage = None if parent is None else Lineage(parent=parent, kind="subagent")
    if parent is None and (found := _CONTINUATION.match(id_)):
        before = int(found[2]) - 1
        previous = f"{found[1]}-cont-{before}" if before > 0 else found[1]
        lineage = Lineage(parent=SessionId(previous), kind="compression")
    times = [seconds(only_object(step).get("timestamp")) for step in trajectory["steps"]]
    known = [at for at in times if at is not None]
    details = {
        "schema_version": only_text(trajectory.get("schema_version")),
        "agent_version": only_text(agent.get("version")),
        "recorded_id": recorded,
    }
    return Session(
        id=SessionId(id_ + suffix),
        source=AtifReader.name,
        title=only_text(own.get("title")),
        cwd=only_text(own.get("cwd")),
        agent=only_text(agent.get("name")),
        model=only_text(agent.get("model_name")),
        started_at=min(known, default=None),
        ended_at=max(known, default=None),
        outcome=_outcome(own.get("outcome")),
        outcome_origin=only_text(own.get("outcome_origin")),
        lineage=lineage,
        log=log.name,
        details={name: value for name, value in details.items() if value},
    )


def _outcome(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= 1 else None


def _own_fields(trajectory: dict[str, Any]) -> dict[str, Any]:
    """Return what our export adds to a trajectory; empty for a trajectory of another program."""
    return only_object(only_object(trajectory.get("extra")).get(OWN_FIELDS))


def _parts(trajectory: dict[str, Any]) -> Iterator[Part]:
    steps = _Steps(is_ours=bool(_own_fields(trajectory)))
    for number, step in enumerate(trajectory["steps"], 1):
        role = _ROLES.get(only_text(only_object(step).get("source")))
        if role is None:
            yield Skip(line=0, reason=f"step {number} has no known source")
            continue
        yield from steps.read(step, number, role)
    total = trajectory.get("final_metrics")
    if not steps.has_usage and isinstance(total, dict):
        fields = {name.removeprefix("total_"): value for name, value in total.items()}
        calls = max(1, steps.agent_steps)
        if any(whole_number(fields.get(name)) for name in ("prompt_tokens", "completion_tokens")):
            model = only_text(only_object(trajectory.get("agent")).get("model_name"))
            yield _usage(fields, "total", None, model, api_calls=calls)


class _Steps:
    """Turns steps into messages and usage, in order. `is_ours` if Journeyman exported them."""

    def __init__(self, *, is_ours: bool) -> None:
        self._is_ours = is_ours
        self.has_usage = False
        self.agent_steps = 0
        self._position = 0

    def read(self, step: dict[str, Any], number: int, role: Role) -> Iterator[Part]:
        at, key = seconds(step.get("timestamp")), f"step-{number}"
        model, extra = only_text(step.get("model_name")), only_object(step.get("extra"))
        requests = step.get("tool_calls") or extra.get("tool_calls")
        calls = [_tool_call(c, key) for c in requests] if isinstance(requests, list) else []
        results = only_object(step.get("observation")).get("results")
        shared = {
            "at": at,
            "copied": step.get("is_copied_context") is True,
            "generation": generation_number(extra.get("generation")) or 0,
        }
        text = as_text(step.get("message"))
        reasoning = as_text(step.get("reasoning_content"))
        self.agent_steps += role == "assistant"
        if text or reasoning or calls:
            yield self._message(
                key=key,
                role=role,
                text=text,
                kind=_KINDS.get(only_text(extra.get("kind")), "plain"),
                reasoning=reasoning,
                tool_calls=tuple(calls),
                model=model,
                **shared,
            )
        for index, result in enumerate(results if isinstance(results, list) else []):
            yield self._result(only_object(result), f"{key}.{index}", calls, extra, shared)
        metrics = step.get("metrics")
        if isinstance(metrics, dict) and not shared["copied"]:
            self.has_usage = True
            count = whole_number(step.get("llm_call_count")) or 1
            yield _usage(metrics, key, at, model, api_calls=count)

    def _result(
        self,
        result: dict[str, Any],
        key: str,
        calls: list[ToolCall],
        step_extra: dict[str, Any],
        shared: dict[str, Any],
    ) -> Message:
        call_id = only_text(result.get("source_call_id"))
        if not call_id and len(calls) == 1:
            call_id = calls[0].id
        text = as_text(result.get("content"))
        if not call_id:
            # What an agent without structured calls was shown.
            return self._message(key=key, role="user", text=text, kind="harness", **shared)
        extra = only_object(result.get("extra")) or (step_extra if len(calls) == 1 else {})
        recorded = _own_flags(extra) if self._is_ours else _flags(extra)
        return self._message(
            key=key, role="tool", text=text, tool_call_id=call_id, recorded=recorded, **shared
        )

    def _message(self, **fields: Any) -> Message:
        self._position += 1
        return Message(position=self._position, **fields)


def _tool_call(value: Any, key: str) -> ToolCall:
    call = only_object(value)
    raw = only_text(only_object(call.get("extra")).get("raw_arguments"))
    return ToolCall(
        id=only_text(call.get("tool_call_id")) or f"{key}.call",
        name=only_text(call.get("function_name")),
        arguments=raw or as_json(only_object(call.get("arguments"))),
    )


def _own_flags(extra: dict[str, Any]) -> ResultFlags | None:
    """Return the flags of a result as our export writes them."""
    try:
        flags = msgspec.convert(extra, ResultFlags)
    except msgspec.ValidationError:
        return _flags(extra)
    if not has_valid_numbers(flags):
        return _flags(extra)
    return None if flags == ResultFlags() else flags


def _flags(extra: dict[str, Any]) -> ResultFlags | None:
    """Return the flags of a result under the names of Harbor's converters, or of an edited export
    of ours.
    """
    is_error = extra.get("is_error", extra.get("tool_result_is_error"))
    interrupted = extra.get("interrupted")
    flags = ResultFlags(
        is_error=is_error if isinstance(is_error, bool) else None,
        exit_code=whole_number(extra.get("exit_code")),
        status=only_text(extra.get("status")) or None,
        interrupted=interrupted if isinstance(interrupted, bool) else None,
    )
    return None if flags == ResultFlags() else flags


def _usage(
    metrics: dict[str, Any], key: str, at: float | None, model: str, *, api_calls: int
) -> Usage:
    prompt, cached = (whole_number(metrics.get(n)) for n in ("prompt_tokens", "cached_tokens"))
    extra = only_object(metrics.get("extra"))
    written = whole_number(extra.get("cache_write_tokens"))
    cost = metrics.get("cost_usd")
    return Usage(
        key=key,
        model=model,
        at=at,
        api_calls=api_calls,
        input_tokens=uncached(prompt, cached, written),
        output_tokens=whole_number(metrics.get("completion_tokens")),
        cache_read_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=whole_number(extra.get("reasoning_tokens")),
        cost_usd=cost,
        cost_origin="" if cost is None else "recorded",
    )
