"""Trajectories of mini-swe-agent (`*.traj.json`). In its text protocol a command is a fenced block
in the answer and its result is the next user message; both are made a call and its result here.
Later versions use real tool calls. A submitted patch is not a judged one, so no outcome is
given; runs through the Responses API are not understood and are reported message by message.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from journeyman.logs import documents
from journeyman.logs.chat import BadMessage, ChatReading, usage_of
from journeyman.logs.fragments import in_fragments
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
        facts = documents.fields(log, without=("messages",))
        info = only_object(facts.get("info"))
        session = _session(self.name, log, facts, info)
        reading = _Trajectory(session.model, session.end_reason)
        yield from in_fragments(session, reading.parts(documents.items(log, "messages.item")))
        yield Mark(state=documents.read_whole(log, self.name))


def _session(source: str, log: LogFile, facts: dict[str, Any], info: dict[str, Any]) -> Session:
    config = only_object(info.get("config"))
    stats = only_object(info.get("model_stats"))
    instance = only_text(facts.get("instance_id"))
    part = "" if instance in ("", log.stem()) else instance
    details = {
        "instance_id": instance,
        "instance_cost": stats.get("instance_cost"),
        "api_calls": stats.get("api_calls"),
        "mini_version": info.get("mini_version"),
        "trajectory_format": facts.get("trajectory_format"),
    }
    return Session(
        id=SessionId(path_id(log, part)),
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

    def parts(self, values: Iterable[Any]) -> Iterator[Message | Usage | Skip]:
        for index, (raw, following) in enumerate(_with_next(values)):
            if isinstance(raw, Skip):
                yield raw
                continue
            try:
                message = self._message(raw, following, index)
            except BadMessage as error:
                yield Skip(line=0, reason=f"message {index + 1}: {error}")
                continue
            if message is None:
                continue
            yield message
            if message.role == "assistant" and (usage := self._usage(raw, index, message)):
                yield usage

    def _message(self, raw: Any, following: Any, index: int) -> Message | None:
        last = following is None
        if isinstance(raw, dict) and raw.get("role") == "exit":
            raw = {**raw, "role": "user"}
        message = self._chat.read(raw, str(index), index)[-1]
        extra = only_object(raw.get("extra"))
        message = msgspec.structs.replace(
            message, position=index, at=seconds(extra.get("timestamp")) or message.at
        )
        if message.role == "assistant":
            return self._answer(raw, message, following, index)
        if message.role == "tool":
            self._open = [call for call in self._open if call.id != message.tool_call_id]
            return _result(message, message.tool_call_id, extra)
        if message.role == "user":
            return self._observation(message, extra, last=last)
        return message

    def _answer(self, raw: dict[str, Any], message: Message, following: Any, index: int) -> Message:
        calls = message.tool_calls
        if not calls and not _refused(following):
            calls = tuple(
                ToolCall(
                    id=f"call-{index}-{number}",
                    name="bash",
                    arguments=as_json({"command": command}),
                )
                for number, command in enumerate(_commands(raw, message.text, following))
            )
        self._open = list(calls)
        response = only_object(only_object(raw.get("extra")).get("response"))
        return msgspec.structs.replace(
            message,
            tool_calls=calls,
            reasoning=message.reasoning or _thoughts(response),
            model=only_text(response.get("model")) or self._model,
            at=message.at or seconds(response.get("created")),
        )

    def _observation(
        self, message: Message, extra: dict[str, Any], *, last: bool
    ) -> Message | None:
        if _is_refusal(message.text, extra):
            return msgspec.structs.replace(message, kind="harness")
        call = self._answered_call(message, extra, last=last)
        if call is not None:
            self._open.remove(call)
            return _result(message, call.id, extra)
        if last and self._end_reason:
            return msgspec.structs.replace(message, kind="harness") if message.text else None
        return message

    def _answered_call(
        self, message: Message, extra: dict[str, Any], *, last: bool
    ) -> ToolCall | None:
        """The call that a user message answers, if it answers one."""
        if not self._open:
            return None
        submitted = last and "Submitted" in (self._end_reason, extra.get("exit_status"))
        if submitted:
            for call in self._open:
                if any(word in call.arguments for word in _SUBMIT):
                    return call
            return self._open[-1]
        return self._open[0] if _is_observation(message.text, extra) else None

    def _usage(self, raw: dict[str, Any], index: int, message: Message) -> Usage | None:
        extra = only_object(raw.get("extra"))
        spent = only_object(only_object(extra.get("response")).get("usage"))
        cost = spent.get("cost")
        return usage_of(
            spent,
            f"usage-{index}",
            model=message.model,
            at=message.at,
            cost=extra.get("cost") if cost is None else cost,
        )


def _with_next(values: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    held: list[Any] = []
    for value in values:
        if held:
            yield held.pop(), value
        held.append(value)
    for value in held:
        yield value, None


def _commands(raw: dict[str, Any], text: str, following: Any) -> list[str]:
    """What the program took from an answer: as it recorded it, else the fenced block. With more
    than one block it takes none, unless a result shows that it did.
    """
    actions = only_object(raw.get("extra")).get("actions")
    if isinstance(actions, list):
        taken = (only_object(action).get("command") for action in actions)
        return [command for command in taken if isinstance(command, str)]
    blocks = [block.strip() for block in _COMMAND.findall(text)]
    extra = only_object(only_object(following).get("extra"))
    if len(blocks) == 1 or _is_observation(as_text(only_object(following).get("content")), extra):
        return blocks[:1]
    return []


def _refused(following: Any) -> bool:
    extra = only_object(only_object(following).get("extra"))
    return _is_refusal(as_text(only_object(following).get("content")), extra)


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
        body = found["body"]
        output = _OUTPUT.match(body)
        body = output[1] if output else body
        if found["exception"]:
            return (
                f"{found['exception']}\n{body}",
                int(found["code"]),
                {"exception": found["exception"]},
            )
        return body, int(found["code"]), {}
    if text.startswith("{"):
        try:
            value = msgspec.json.decode(text)
        except (ValueError, RecursionError):
            return text, None, {}
        if isinstance(value, dict) and "returncode" in value:
            output = value.get("output")
            return (
                output if isinstance(output, str) else text,
                whole_number(value["returncode"]),
                {},
            )
    return text, None, {}


def _thoughts(response: dict[str, Any]) -> str:
    choices = response.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    answer = only_object(only_object(first).get("message"))
    return only_text(answer.get("reasoning_content")) or only_text(answer.get("reasoning"))
