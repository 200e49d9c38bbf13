"""The tools of an agent, in a fixed order so that their definitions are the same bytes every time,
and the parsing and validation of a call's arguments. Invalid arguments produce a result that helps
the model to correct the call.
"""

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

import msgspec

from journeyman.agent.tools.files import patch, read_file, write_file
from journeyman.agent.tools.search_tools import search_files
from journeyman.agent.tools.terminal import execute_code, terminal
from journeyman.agent.tools.tool import (
    Invocation,
    Result,
    Tool,
    ToolLimits,
    described,
    failed,
    failure,
)
from journeyman.agent.tools.workspace import Workspace, bound
from journeyman.records.errors import WrongInput

_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15})?")
_FROM_TEXT: dict[str, Callable[[str], object]] = {
    "integer": lambda text: int(text) if _NUMBER.fullmatch(text) and "." not in text else text,
    "number": lambda text: float(text) if _NUMBER.fullmatch(text) else text,
    "boolean": lambda text: {"true": True, "false": False}.get(text.lower(), text),
}
"""Small models put numbers and booleans in quotes; the meaning is clear."""


class Toolbox:
    """Tools by name. Raises WrongInput if two have the same name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise WrongInput(f"Two tools are named {tool.name!r}. Pass each tool once.")
            self._tools[tool.name] = tool

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """The tool definitions of a chat completion request, in order."""
        return [tool.definition for tool in self._tools.values()]

    def find(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def unknown(self, name: str) -> Result:
        """Return the result of a call to a tool that does not exist."""
        close = get_close_matches(name, self._tools, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        return failed(f"Unknown tool '{name[:80]}'.{hint} Available tools: {', '.join(self.names)}")


_RUNS: dict[str, Callable[[Workspace, ToolLimits, Invocation], Result]] = {
    "terminal": terminal,
    "execute_code": execute_code,
    "read_file": read_file,
    "write_file": write_file,
    "patch": patch,
    "search_files": search_files,
}
_OFFLINE = " No network without approval."


def workspace_tools(workspace: Workspace | None, limits: ToolLimits) -> tuple[Tool, ...]:
    """Return the tools that work on files and run programs in a workspace. Without one, they are
    only descriptions: names, schemas and attributes.
    """
    has_network = workspace is not None and (workspace.unconfined or workspace.network == "on")
    notes = {} if has_network else {"terminal": _OFFLINE}

    def tool(name: str, run: Callable[[Workspace, ToolLimits, Invocation], Result]) -> Tool:
        function = bound(workspace, lambda place, call: run(place, limits, call), failure(name))
        return described(name, function, limits, notes.get(name, ""))

    return tuple(tool(name, run) for name, run in _RUNS.items())


def read_arguments(tool: Tool, text: str) -> dict[str, Any] | Result:
    """Parse and validate arguments; return them, or the result that says what is wrong."""
    try:
        decoded = msgspec.json.decode(text) if text.strip() else {}
        if isinstance(decoded, str):  # an object that was encoded twice
            decoded = msgspec.json.decode(decoded)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        return failed(
            f"Invalid JSON in the arguments of {tool.name}: {error}. Send one JSON object."
        )
    if not isinstance(decoded, dict):
        return _invalid(tool, "they are not a JSON object")
    properties = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", ())
    arguments = {
        name: _coerced(value, properties.get(name, {}).get("type"))
        for name, value in decoded.items()
        if value is not None or name in required
    }
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # noqa: PLC0415
    from jsonschema.exceptions import best_match  # type: ignore[import-untyped]  # noqa: PLC0415

    problem = best_match(Draft202012Validator(tool.parameters).iter_errors(arguments))
    if problem is None:
        return arguments
    where = ".".join(map(str, problem.absolute_path))
    return _invalid(tool, f"{where}{': ' if where else ''}{problem.message[:200]}")


def _coerced(value: object, expected: str | None) -> object:
    """The value as the type that the model intended."""
    if isinstance(value, str) and expected in _FROM_TEXT:
        return _FROM_TEXT[expected](value.strip())
    return value


def _invalid(tool: Tool, problem: str) -> Result:
    required = tool.parameters.get("required", ())
    properties = tool.parameters.get("properties", {})
    names = [name if name in required else f"{name} (optional)" for name in properties]
    takes = f"{tool.name} takes {', '.join(names) or 'nothing'}."
    return failed(f"Invalid arguments for {tool.name}: {problem}. {takes}")
