"""Trajectories of mini-swe-agent (`*.traj.json`). In its text protocol a command is a fenced block
in the answer and its result is the next user message; both are made a call and its result here. A
submitted patch is not a judged one, so no outcome is given.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import Any

import msgspec

from journeyman.logs.chat import ChatReading, read_each, usage_of
from journeyman.logs.fragments import document_fields, document_items, in_fragments
from journeyman.logs.logfile import LogFile
from journeyman.logs.values import (
    as_json,
    as_text,
    json_value,
    only_object,
    only_text,
    path_id,
    seconds,
    whole_number,
)
from journeyman.records import (
    LogEvent,
    LogState,
    Mark,
    Message,
    Recorded,
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
_SUBMIT = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")

_FORMAT_ERRORS = ("Please always provide EXACTLY ONE action", "Format error:", "Tool call error:")
"""How the program begins when it refuses an answer without running anything."""

_UNUSUAL_RESULTS = (
    ("The last command ", Recorded(status="timed_out")),
    ("Command not executed.", Recorded(status="not_executed")),
    ("Observation: ", None),
)
"""Results that carry no return code: how they begin, and what that says."""


class MiniSweAgentReader:
    """mini-swe-agent: {info, messages, trajectory_format, instance_id}."""

    name = "mini_swe_agent"
    about = "mini-swe-agent trajectories (*.traj.json)"

    def recognises(self, log: LogFile) -> bool:
        """The program's own facts come first; where they come last, the file's name decides."""
        keys = log.keys
        if "info.mini_version" in keys or {"info.exit_status", "info.model_stats"} <= keys:
            return "messages" in keys
        named = log.path.name.removesuffix(".gz").endswith(".traj.json")
        return named and "messages.item.role" in keys and "started_at" not in keys

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:  # noqa: ARG002
        """The one session of the file, which is written anew after every step."""
        session = _session(self.name, log)
        reading = _Trajectory(session.model, session.end_reason)
        values = _with_next(document_items(log, "messages.item"))
        yield from in_fragments(session, read_each(values, reading.take))
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
    """Reads the messages in order, each with the one after it in sight: only that one tells
    whether the program ran what the answer proposed.
    """

    def __init__(self, model: str, end_reason: str) -> None:
        self._model = model
        self._end_reason = end_reason
        self._chat = ChatReading()
        self._open: list[ToolCall] = []

    def take(self, pair: tuple[Any, Any], index: int, _: int) -> list[Message | Usage]:
        """A message, given with the one after it, and what it used."""
        raw, following = pair
        if isinstance(raw, dict) and raw.get("role") == "exit":
            raw = {**raw, "role": "user"}
        message = self._chat.read(raw, str(index), index)[-1]
        extra = only_object(raw.get("extra"))
        at = seconds(extra.get("timestamp")) or message.at
        message = msgspec.structs.replace(message, position=index, at=at)
        if message.role == "assistant":
            message = self._answer(message, extra, following, index)
            spent = only_object(only_object(extra.get("response")).get("usage"))
            cost = extra.get("cost") if spent.get("cost") is None else spent["cost"]
            model, at = message.model, message.at
            usage = usage_of(spent, f"usage-{index}", model=model, at=at, cost=cost)
            return [message, usage] if usage else [message]
        if message.role == "tool":
            self._open = [call for call in self._open if call.id != message.tool_call_id]
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
            commands = map(
                as_json, ({"command": one} for one in _commands(message, extra, ran=ran))
            )
            calls = tuple(
                ToolCall(id=f"call-{index}-{number}", name="bash", arguments=arguments)
                for number, arguments in enumerate(commands)
            )
        self._open = list(calls)
        response = only_object(extra.get("response"))
        choices = response.get("choices")
        first = only_object(choices[0] if isinstance(choices, list) and choices else None)
        said = only_object(first.get("message"))
        thoughts = only_text(said.get("reasoning_content")) or only_text(said.get("reasoning"))
        return msgspec.structs.replace(
            message,
            tool_calls=calls,
            reasoning=message.reasoning or thoughts,
            model=only_text(response.get("model")) or self._model,
            at=message.at or seconds(response.get("created")),
        )

    def _observation(
        self, message: Message, extra: dict[str, Any], *, last: bool
    ) -> list[Message | Usage]:
        """A user message: the result of a call, if it answers one that is open."""
        refused, call = _is_refusal(message.text, extra), None
        if self._open and not refused:
            if last and "Submitted" in (self._end_reason, extra.get("exit_status")):
                submits = (one for one in self._open if any(w in one.arguments for w in _SUBMIT))
                call = next(submits, self._open[-1])
            elif _is_observation(message.text, extra):
                call = self._open[0]
        if call is not None:
            self._open.remove(call)
            return [_result(message, call.id, extra)]
        if refused or (last and self._end_reason and message.text):
            return [msgspec.structs.replace(message, kind="harness")]
        return [] if last and self._end_reason else [message]


def _with_next(values: Iterable[Any]) -> Iterator[Any]:
    """Each value with the one after it; what was skipped stands for itself."""
    for one, following in pairwise(chain(values, [None])):
        yield one if isinstance(one, Skip) else (one, following)


def _commands(message: Message, extra: dict[str, Any], *, ran: bool) -> list[str]:
    """What the program took from an answer: as it recorded it, else the fenced block. With more
    than one block it takes none, unless a result shows that it `ran` one.
    """
    actions = extra.get("actions")
    if isinstance(actions, list):
        taken = (only_object(action).get("command") for action in actions)
        return [command for command in taken if isinstance(command, str)]
    blocks = [block.strip() for block in _COMMAND.findall(message.text)]
    return blocks[:1] if len(blocks) == 1 or ran else []


def _is_refusal(text: str, extra: dict[str, Any]) -> bool:
    return extra.get("interrupt_type") == "FormatError" or text.startswith(_FORMAT_ERRORS)


def _is_observation(text: str, extra: dict[str, Any]) -> bool:
    return (
        whole_number(extra.get("returncode")) is not None
        or _OBSERVATION.match(text) is not None
        or text.startswith(tuple(start for start, _ in _UNUSUAL_RESULTS))
    )


def _result(message: Message, call_id: str, extra: dict[str, Any]) -> Message:
    text, code, details = _peeled(message.text)
    exit_code = whole_number(extra.get("returncode"))
    recorded = Recorded(exit_code=code if exit_code is None else exit_code, details=details)
    if recorded.exit_code is None:
        unusual = (said for start, said in _UNUSUAL_RESULTS if text.startswith(start))
        recorded = next(unusual, None) or recorded
    return msgspec.structs.replace(
        message,
        role="tool",
        text=text,
        tool_call_id=call_id,
        tool_name=message.tool_name or "bash",
        recorded=None if recorded == Recorded() else recorded,
    )


def _peeled(text: str) -> tuple[str, int | None, dict[str, str | int | float | bool]]:
    """A result without its wrapping, its return code, and the exception it was reported with."""
    if found := _OBSERVATION.match(text):
        output = _OUTPUT.match(found["body"])
        body, code = output[1] if output else found["body"], int(found["code"])
        if raised := found["exception"]:
            return f"{raised}\n{body}", code, {"exception": raised}
        return body, code, {}
    value = json_value(text) if text.startswith("{") else None
    if isinstance(value, dict) and "returncode" in value:
        output = value.get("output")
        return output if isinstance(output, str) else text, whole_number(value["returncode"]), {}
    return text, None, {}
