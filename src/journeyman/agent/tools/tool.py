"""What a tool is: its definition for the model, the function that runs its calls, and the limits
that apply to them.
"""

import os
import tomllib
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

from journeyman.gate.decision import Risk
from journeyman.records import Provenance, ResultFlags
from journeyman.reliability.task_types import ToolType
from journeyman.settings import AgentSettings

_MB = 2**20
_THREADS = 4
"""Threads per process, on average: the kernel counts threads."""
_DEFAULTS = AgentSettings()


class Invocation(Struct, frozen=True, kw_only=True):
    """One call of a tool, with arguments that fit its schema. `origin` identifies the caller, so
    that writes can be traced. Long-running tools poll `cancelled`, which returns True once the
    result is no longer needed. `network` means that a person granted this call the network.
    """

    call_id: str
    arguments: dict[str, Any]
    origin: Provenance = Provenance()
    cancelled: Callable[[], bool] = lambda: False
    network: bool = False


class Result(Struct, frozen=True, kw_only=True):
    """The result of a call: an object for the model, and the recorded outcome, which the judge
    reads first.
    """

    content: dict[str, Any]
    recorded: ResultFlags = ResultFlags()

    @property
    def text(self) -> str:
        """The content as the model receives it: one line of JSON."""
        return msgspec.json.encode(self.content).decode()


class Tool(Struct, frozen=True, kw_only=True):
    """A tool. `parameters` is the JSON schema of its arguments. `risk` says what its calls can do,
    `work` which type of work they count as, and `teaches` whether patterns are learned from them.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[Invocation], Result]
    risk: Risk = "unknown"
    work: ToolType = "other"
    teaches: bool = True

    @property
    def reads_only(self) -> bool:
        """Whether its calls change nothing, so that they may run in parallel."""
        return self.risk in ("read", "search", "recall")

    @property
    def runs_commands(self) -> bool:
        """Whether it needs a shell or an interpreter."""
        return self.risk in ("command", "code")

    @property
    def definition(self) -> dict[str, Any]:
        """The tool definition in a chat completion request."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters,
            },
        }


def parameters(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a call's arguments, which permits no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def text(description: str, *choices: str) -> dict[str, Any]:
    """Return the schema of a text, restricted to the choices if there are any."""
    enum = {"enum": list(choices)} if choices else {}
    return {"type": "string", **enum, "description": description}


def worked(**content: Any) -> Result:
    """Return the result of a call that succeeded."""
    return Result(content=content, recorded=ResultFlags(is_error=False))


def failed(error: str, **content: Any) -> Result:
    """Return the result of a call that failed; `error` says why and what to do instead."""
    return Result(content={**content, "error": error}, recorded=ResultFlags(is_error=True))


def refused(reason: str, **content: Any) -> Result:
    """Return the result of a call that a person or a rule denied: it did not run."""
    return Result(
        content={**content, "error": f"BLOCKED: {reason}", "status": "blocked"},
        recorded=ResultFlags(is_error=True, status="blocked"),
    )


def interruption(**content: Any) -> Result:
    """Return the result of a call that did not run, or may not have run to completion."""
    return Result(content=content, recorded=ResultFlags(interrupted=True))


class ToolError(Exception):
    """Raised inside a tool to fail the call: message and content become the result."""

    def __init__(self, reason: str, **content: Any) -> None:
        super().__init__(reason)
        self.content = content


class ToolLimits(Struct, frozen=True, kw_only=True):
    """The limits of one agent's tools. `timeout_s` is the time limit of a command that requests
    none, `longest_s` the longest that it can request.
    """

    timeout_s: float = 60.0
    longest_s: float = 600.0
    search_s: float = 20.0
    output_characters: int = 20_000
    read_lines: int = 500
    read_characters: int = 50_000
    matches: int = 50

    def allowed_s(self, requested: float | None) -> float:
        """Return the time limit of a command that requests this one."""
        return self.timeout_s if requested is None else min(requested, self.longest_s)


@cache
def _rows() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files(__package__).joinpath("tools.toml").read_text(encoding="utf-8"))


def described(
    name: str, run: Callable[[Invocation], Result], limits: ToolLimits, note: str = ""
) -> Tool:
    """Return a tool of `tools.toml` with its function, and a note at the end of its description."""
    row, values = _rows()[name], msgspec.structs.asdict(limits)
    properties = {
        parameter: {**schema, "description": schema["description"].format(**values)}
        for parameter, schema in row["properties"].items()
    }
    return Tool(
        name=name,
        description=row["description"] + note,
        parameters=parameters(*row["required"], **properties),
        run=run,
        risk=row["risk"],
        work=row["work"],
        teaches=row.get("teaches", True),
    )


def failure(name: str) -> dict[str, Any]:
    """Return what a failed call of a tool returns besides its error."""
    content: dict[str, Any] = _rows()[name].get("failure", {})
    return content


class Resources(Struct, frozen=True, kw_only=True):
    """The resources of a confined command: the memory, the largest file and the processor time of
    each process, and the number of processes. Without `memory_mb`, each may use half of the
    machine's memory.
    """

    memory_mb: int | None = _DEFAULTS.memory_mb
    processes: int = _DEFAULTS.processes
    file_mb: int = _DEFAULTS.file_mb
    cpu_s: int = _DEFAULTS.cpu_s

    @property
    def limits(self) -> dict[str, int]:
        """The limits by the kernel's names, in bytes and seconds."""
        memory_mb = self.memory_mb
        if memory_mb is None:
            memory_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2 // _MB
        return {
            "data": memory_mb * _MB,
            "nproc": self.processes * _THREADS,
            "fsize": self.file_mb * _MB,
            "cpu": self.cpu_s,
        }
