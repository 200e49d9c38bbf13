"""Reader for mini-swe-agent trajectories (`*.traj.json`). In its text protocol a command is a
fenced block in the answer and its result is the next user message; they become a tool call and its
result. A submitted patch has not been judged, so the session has no outcome.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import Any

import msgspec

from journeyman.logs.chat import ChatParser, parse_each, parse_usage
from journeyman.logs.fields import (
    as_json,
    as_text,
    json_value,
    only_object,
    only_text,
    path_id,
    seconds,
    whole_number,
)
from journeyman.logs.fragments import document_fields, document_items, in_fragments
from journeyman.logs.log_file import LogFile
from journeyman.records import (
    LogEvent,
    LogState,
    Mark,
    Message,
    ResultFlags,
    Session,
    SessionId,
    Skip,
    ToolCall,
    Usage,
)

_COMMAND = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n```", re.DOTALL)
_OBSERVATION = re.compile(
    r"\A(?:<exception>(?P<exception>.*?)</exception>\s*)?"
    r"<returncode>(?P<code>-?\d{1,10})</returncode>\s*?\n?(?P<body>.*)\Z",
    re.DOTALL,
)
_OUTPUT = re.compile(r"\A<output>\n?(.*?)\n?</output>\s*\Z", re.DOTALL)
_SUBMIT_WORDS = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")

_FORMAT_ERRORS = ("Please always provide EXACTLY ONE action", "Format error:", "Tool call error:")
"""Prefixes of messages with which the agent rejects an answer without running anything."""

_UNUSUAL_RESULTS = (
    ("The last command ", ResultFlags(status="timed_out")),
    ("Command not executed.", ResultFlags(status="not_executed")),
    ("Observation: ", None),
)
"""Prefixes of results without a return code, and what each of them means."""


class MiniSweAgentReader:
    """Reads mini-swe-agent's documents: {info, messages, trajectory_format, instance_id}."""

    name = "mini_swe_agent"
    about = "mini-swe-agent trajectories (*.traj.json)"

    def recognises(self, log: LogFile) -> bool:
        """Return whether the agent's own fields are in the head; if they come last in the file, its
        name decides.
        """
        keys = log.keys
        if "info.mini_version" in keys or {"info.exit_status", "info.model_stats"} <= keys:
            return "messages" in keys
        has_suffix = log.path.name.removesuffix(".gz").endswith(".traj.json")
        return has_suffix and "messages.item.role" in keys and "started_at" not in keys

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:  # noqa: ARG002
        """Read the file's only session. The agent rewrites the file after every step."""
        session = _session(self.name, log)
        trajectory = _Trajectory(session.model, session.end_reason)
        values = _with_next(document_items(log, "messages.item"))
        yield from in_fragments(session, parse_each(values, trajectory.parse))
        yield Mark(state=log.state(self.name))


def _session(source: str, log: LogFile) -> Session:
    facts = document_fields(log, without=("messages",))
    info, instance = only_object(facts.get("info")), only_text(facts.get("instance_id"))
    config, stats = only_object(info.get("config")), only_object(info.get("model_stats"))
    details = {
        "instance_id": instance,
        "instance_cost": stats.get("instance_cost"),
        "api_calls": stats.get("api_calls"),
        "mini_version": info.get("mini_version"),
        "trajectory_format": facts.get("trajectory_format"),
    }
    return Session(
        id=SessionId(path_id(log, "" if instance == log.stem() else instance)),
        source=source,
        title=instance,
        cwd=only_text(only_object(config.get("environment")).get("cwd")),
        agent=only_text(config.get("agent_type")).rpartition(".")[2],
        model=only_text(only_object(config.get("model")).get("model_name")),
        end_reason=only_text(info.get("exit_status")),
        log=log.name,
        details={key: value for key, value in details.items() if value not in (None, "")},
    )


class _Trajectory:
    """Parses the messages in order, each together with the next one, which alone shows whether the
    agent ran the command in an answer.
    """

    def __init__(self, model: str, end_reason: str) -> None:
        self._model = model
        self._end_reason = end_reason
        self._chat = ChatParser()
        self._open_calls: list[ToolCall] = []

    def parse(self, pair: tuple[Any, Any], index: int, _: int) -> list[Message | Usage]:
        """Return a message, and its usage, from a pair of it and the next one."""
        raw, following = pair
        if isinstance(raw, dict) and raw.get("role") == "exit":
            raw = {**raw, "role": "user"}
        message = self._chat.read(raw, str(index), index)[-1]
        extra = only_object(raw.get("extra"))
        at = seconds(extra.get("timestamp")) or message.at
        message = msgspec.structs.replace(message, position=index, at=at)
        if message.role == "assistant":
            message = self._answer(message, extra, following, index)
            recorded_usage = only_object(only_object(extra.get("response")).get("usage"))
            cost = (
                extra.get("cost") if recorded_usage.get("cost") is None else recorded_usage["cost"]
            )
            model, at = message.model, message.at
            usage = parse_usage(recorded_usage, f"usage-{index}", model=model, at=at, cost=cost)
            return [message, usage] if usage else [message]
        if message.role == "tool":
            self._open_calls = [
                call for call in self._open_calls if call.id != message.tool_call_id
            ]
            return [_result(message, message.tool_call_id, extra)]
        if message.role == "user":
            return self._observation(message, extra, last=following is None)
        return [message]

    def _answer(
        self, message: Message, extra: dict[str, Any], following: Any, index: int
    ) -> Message:
        calls = message.tool_calls
        next_text = as_text(only_object(following).get("content"))
        next_extra = only_object(only_object(following).get("extra"))
        if not calls and not _is_refusal(next_text, next_extra):
            ran = _is_observation(next_text, next_extra)
            commands = _commands(message, extra, ran=ran)
            arguments = [as_json({"command": command}) for command in commands]
            calls = tuple(
                ToolCall(id=f"call-{index}-{number}", name="bash", arguments=text)
                for number, text in enumerate(arguments)
            )
        self._open_calls = list(calls)
        response = only_object(extra.get("response"))
        choices = response.get("choices")
        first = only_object(choices[0] if isinstance(choices, list) and choices else None)
        answer = only_object(first.get("message"))
        reasoning = only_text(answer.get("reasoning_content")) or only_text(answer.get("reasoning"))
        return msgspec.structs.replace(
            message,
            tool_calls=calls,
            reasoning=message.reasoning or reasoning,
            model=only_text(response.get("model")) or self._model,
            at=message.at or seconds(response.get("created")),
        )

    def _observation(
        self, message: Message, extra: dict[str, Any], *, last: bool
    ) -> list[Message | Usage]:
        """Parse a user message, which is the result of a call if one is open."""
        is_refusal, call = _is_refusal(message.text, extra), None
        if self._open_calls and not is_refusal:
            if last and "Submitted" in (self._end_reason, extra.get("exit_status")):
                submits = (
                    c for c in self._open_calls if any(w in c.arguments for w in _SUBMIT_WORDS)
                )
                call = next(submits, self._open_calls[-1])
            elif _is_observation(message.text, extra):
                call = self._open_calls[0]
        if call is not None:
            self._open_calls.remove(call)
            return [_result(message, call.id, extra)]
        if is_refusal or (last and self._end_reason and message.text):
            return [msgspec.structs.replace(message, kind="harness")]
        return [] if last and self._end_reason else [message]


def _with_next(values: Iterable[Any]) -> Iterator[Any]:
    """Yield each value paired with the next one; skips are passed through unpaired."""
    for value, following in pairwise(chain(values, [None])):
        yield value if isinstance(value, Skip) else (value, following)


def _commands(message: Message, extra: dict[str, Any], *, ran: bool) -> list[str]:
    """Return the commands that the agent took from an answer: those it recorded, else the fenced
    block. With several blocks it takes none, unless a result shows that it `ran` one.
    """
    actions = extra.get("actions")
    if isinstance(actions, list):
        recorded = (only_object(action).get("command") for action in actions)
        return [command for command in recorded if isinstance(command, str)]
    blocks = [block.strip() for block in _COMMAND.findall(message.text)]
    return blocks[:1] if len(blocks) == 1 or ran else []


def _is_refusal(text: str, extra: dict[str, Any]) -> bool:
    return extra.get("interrupt_type") == "FormatError" or text.startswith(_FORMAT_ERRORS)


def _is_observation(text: str, extra: dict[str, Any]) -> bool:
    return (
        whole_number(extra.get("returncode")) is not None
        or _OBSERVATION.match(text) is not None
        or text.startswith(tuple(prefix for prefix, _ in _UNUSUAL_RESULTS))
    )


def _result(message: Message, call_id: str, extra: dict[str, Any]) -> Message:
    text, code, details = _parse_observation(message.text)
    exit_code = whole_number(extra.get("returncode"))
    recorded = ResultFlags(exit_code=code if exit_code is None else exit_code, details=details)
    if recorded.exit_code is None:
        unusual = (flags for prefix, flags in _UNUSUAL_RESULTS if text.startswith(prefix))
        recorded = next(unusual, None) or recorded
    return msgspec.structs.replace(
        message,
        role="tool",
        text=text,
        tool_call_id=call_id,
        tool_name=message.tool_name or "bash",
        recorded=None if recorded == ResultFlags() else recorded,
    )


def _parse_observation(text: str) -> tuple[str, int | None, dict[str, str | int | float | bool]]:
    """Return a result without its wrapper, its return code, and the exception it reports."""
    if match := _OBSERVATION.match(text):
        output = _OUTPUT.match(match["body"])
        body, code = output[1] if output else match["body"], int(match["code"])
        if exception := match["exception"]:
            return f"{exception}\n{body}", code, {"exception": exception}
        return body, code, {}
    value = json_value(text) if text.startswith("{") else None
    if isinstance(value, dict) and "returncode" in value:
        output = value.get("output")
        return output if isinstance(output, str) else text, whole_number(value["returncode"]), {}
    return text, None, {}
