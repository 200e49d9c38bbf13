"""A tool: what the model is told of it, and what runs when it is called."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from journeyman.records import Provenance, Recorded


class Invocation(Struct, frozen=True, kw_only=True):
    """One call as a tool gets it: arguments that fit its schema. `origin` says who makes it, so
    that what it writes can be traced. `cancelled` says whether the result is still wanted; what
    takes long asks it now and then.
    """

    call_id: str
    arguments: dict[str, Any]
    origin: Provenance = Provenance()
    cancelled: Callable[[], bool] = lambda: False


class Result(Struct, frozen=True, kw_only=True):
    """What a tool answers: an object for the model, and what became of the call in the words that
    the judge reads first.
    """

    content: dict[str, Any]
    recorded: Recorded = Recorded()

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
