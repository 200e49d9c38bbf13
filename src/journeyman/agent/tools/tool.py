"""A tool: what the model is told of it, what runs when it is called, and how much of the machine
tools may use.
"""

import os
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from journeyman.records import Provenance, Recorded

_MB = 2**20


class Invocation(Struct, frozen=True, kw_only=True):
    """One call as a tool gets it: arguments that fit its schema. `origin` says who makes it, so
    that what it writes can be traced. `cancelled` says whether the result is still wanted; what
    takes long asks it now and then. `network` says that a person allowed this call the network.
    """

    call_id: str
    arguments: dict[str, Any]
    origin: Provenance = Provenance()
    cancelled: Callable[[], bool] = lambda: False
    network: bool = False


class Result(Struct, frozen=True, kw_only=True):
    """What a tool answers: an object for the model, and what became of the call in the words that
    the judge reads first. `lacks_network` says that the call failed for want of the network, and
    that a person may allow it.
    """

    content: dict[str, Any]
    recorded: Recorded = Recorded()
    lacks_network: bool = False

    @property
    def text(self) -> str:
        """The content as the model gets it: one line of JSON."""
        return msgspec.json.encode(self.content).decode()


class Tool(Struct, frozen=True, kw_only=True):
    """A tool. `parameters` is the JSON schema of its arguments; `reads_only` says that calls of it
    change nothing and may run side by side.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[Invocation], Result]
    reads_only: bool = False

    @property
    def definition(self) -> dict[str, Any]:
        """The tool as a chat completion request carries it."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters,
            },
        }


def parameters(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of a call's arguments. No others may be given."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def text(description: str, *choices: str) -> dict[str, Any]:
    """The schema of a text, or of one of several."""
    enum = {"enum": list(choices)} if choices else {}
    return {"type": "string", **enum, "description": description}


def count(description: str) -> dict[str, Any]:
    """The schema of a number from 1 on."""
    return {"type": "integer", "minimum": 1, "description": description}


def worked(**content: Any) -> Result:
    """The answer of a call that did what it was asked for."""
    return Result(content=content, recorded=Recorded(is_error=False))


def failed(error: str, **content: Any) -> Result:
    """The answer of a call that did not, saying why and what to do instead."""
    return Result(content={**content, "error": error}, recorded=Recorded(is_error=True))


def refused(reason: str, **content: Any) -> Result:
    """The answer of a call that a person or a rule said no to: nothing happened."""
    return Result(
        content={**content, "error": f"BLOCKED: {reason}", "status": "blocked"},
        recorded=Recorded(is_error=True, status="blocked"),
    )


def interrupted(**content: Any) -> Result:
    """The answer of a call that was not run, or not known to have run to its end."""
    return Result(content=content, recorded=Recorded(interrupted=True))


class Failed(Exception):
    """Raised in a tool that cannot do what it was asked for: text and content are the answer."""

    def __init__(self, reason: str, **content: Any) -> None:
        super().__init__(reason)
        self.content = content


class ToolLimits(Struct, frozen=True, kw_only=True):
    """The limits of one agent's tools. `timeout_s` is what a command gets when it asks for no time
    of its own, `longest_s` the most it can ask for.
    """

    timeout_s: float = 60.0
    longest_s: float = 600.0
    search_s: float = 20.0
    output_characters: int = 20_000
    read_lines: int = 500
    read_characters: int = 50_000
    matches: int = 50

    @property
    def timeout_parameter(self) -> dict[str, object]:
        """The schema of the parameter with which a call asks for time."""
        about = f"Seconds it may take (default {self.timeout_s:g}, most {self.longest_s:g})."
        return {"type": "number", "exclusiveMinimum": 0, "description": about}

    def allowed_s(self, asked: float | None) -> float:
        """The time a command gets that asked for this much."""
        return self.timeout_s if asked is None else min(asked, self.longest_s)


class Resources(Struct, frozen=True, kw_only=True):
    """What one command and all the processes that it starts may use of the machine. Without
    `memory_mb` it is half of what the machine has.
    """

    memory_mb: int | None = None
    processes: int = 500
    file_mb: int = 1_024
    written_mb: int = 10_240
    cpu_s: int = 3_600

    @property
    def _memory_mb(self) -> int:
        if self.memory_mb is not None:
            return self.memory_mb
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2 // _MB

    @property
    def limits(self) -> dict[str, int]:
        """The limits in bytes and seconds, as an option of `confined_run`."""
        sizes = {"memory": self._memory_mb, "file": self.file_mb, "written": self.written_mb}
        sizes = {name: size * _MB for name, size in sizes.items()}
        return {**sizes, "processes": self.processes, "cpu": self.cpu_s}

    def sentence(self, passed: str) -> str:
        """What to say of a command that passed a limit, by the limit's word."""
        return {
            "memory": f"used more than {self._memory_mb:,} MB of memory (agent.memory_mb)",
            "processes": f"started more than {self.processes:,} processes (agent.processes)",
            "file": f"wrote a file of more than {self.file_mb:,} MB (agent.file_mb)",
            "written": f"wrote more than {self.written_mb:,} MB (agent.written_mb)",
            "cpu": f"used more than {self.cpu_s:,} s of processor time (agent.cpu_s)",
        }[passed]
