"""The tools that an agent has, in a fixed order, so that what the model is told of them is the same
bytes every time; and the arguments of their calls, read from what a model wrote and held against
the schema. What is wrong is answered in words that help the model to call again.
"""

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

import msgspec

from journeyman.agent.tools.files import patch_tool, read_file_tool, write_file_tool
from journeyman.agent.tools.search_tools import search_files_tool
from journeyman.agent.tools.terminal import execute_code_tool, terminal_tool
from journeyman.agent.tools.tool import Result, Tool, ToolLimits, failed
from journeyman.agent.tools.workspace import Workspace
from journeyman.records.errors import BadTools

_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15})?")
_FROM_TEXT: dict[str, Callable[[str], object]] = {
    "integer": lambda text: int(text) if _NUMBER.fullmatch(text) and "." not in text else text,
    "number": lambda text: float(text) if _NUMBER.fullmatch(text) else text,
    "boolean": lambda text: {"true": True, "false": False}.get(text.lower(), text),
}
"""Small models put numbers and truth in quotes; what they mean is plain."""

_PROBLEMS = {
    "required": "'{where}' is missing",
    "type": "'{where}' should be of type {wanted}",
    "enum": "'{where}' should be one of {wanted}",
    "minimum": "'{where}' should be at least {wanted}",
    "maximum": "'{where}' should be at most {wanted}",
    "exclusiveMinimum": "'{where}' should be more than {wanted}",
}
"""What is told of the problems by their keywords; the first of several is told."""


class Toolbox:
    """Tools by name. Raises BadTools when two have the same."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise BadTools(f"Two tools are named {tool.name!r}. Give each tool once.")
            self._tools[tool.name] = tool

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """What a chat completion request says of the tools, in the order they were given."""
        return [tool.definition for tool in self._tools.values()]

    def find(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def unknown(self, name: str) -> Result:
        """The answer to a call of a tool that is not here."""
        close = get_close_matches(name, self._tools, n=1)
        meant = f" Did you mean {close[0]}?" if close else ""
        return failed(
            f"Unknown tool '{name[:80]}'.{meant} Available tools: {', '.join(self.names)}"
        )


def workspace_tools(workspace: Workspace, limits: ToolLimits) -> tuple[Tool, ...]:
    """The tools that work on files and run programs in a workspace."""
    return (
        terminal_tool(workspace, limits),
        execute_code_tool(workspace, limits),
        read_file_tool(workspace, limits),
        write_file_tool(workspace),
        patch_tool(workspace),
        search_files_tool(workspace, limits),
    )


def read_arguments(tool: Tool, text: str) -> dict[str, Any] | Result:
    """The arguments that a text holds, or the answer that says why it holds none that fit."""
    try:
        given = msgspec.json.decode(text) if text.strip() else {}
        if isinstance(given, str):  # an object that was written down twice
            given = msgspec.json.decode(given)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        return failed(
            f"Invalid JSON in the arguments of {tool.name}: {error}. Send one JSON object."
        )
    if not isinstance(given, dict):
        return _invalid(tool, "they are not a JSON object")
    properties = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", ())
    arguments = {
        name: _plain(value, properties.get(name, {}).get("type"))
        for name, value in given.items()
        if value is not None or name in required
    }
    unknown = [f"'{name[:60]}'" for name in arguments if name not in properties]
    if unknown and not tool.parameters.get("additionalProperties"):
        verb = "is no parameter" if len(unknown) == 1 else "are no parameters"
        return _invalid(tool, f"{', '.join(unknown[:3])} {verb}")
    problem = _misfit(arguments, tool.parameters)
    return _invalid(tool, problem) if problem else arguments


def _plain(value: object, wanted: str | None) -> object:
    """A value as it was meant."""
    if isinstance(value, str) and wanted in _FROM_TEXT:
        return _FROM_TEXT[wanted](value.strip())
    if isinstance(value, float) and wanted == "integer" and value.is_integer():
        return int(value)
    return value


def _misfit(arguments: dict[str, Any], schema: dict[str, Any]) -> str:
    """What does not fit the schema, in words; nothing if all does."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # noqa: PLC0415

    errors = list(Draft202012Validator(schema).iter_errors(arguments))
    for keyword, problem in _PROBLEMS.items():
        for error in (one for one in errors if one.validator == keyword):
            wanted, where = error.validator_value, [*error.absolute_path]
            if keyword == "required":
                where.append(next(name for name in wanted if name not in error.instance))
            shown = ".".join(map(str, where))
            return problem.format(where=shown, wanted=str(wanted).strip("[]"))
    return f"they do not fit: {errors[0].message[:160]}" if errors else ""


def _invalid(tool: Tool, problem: str) -> Result:
    required = tool.parameters.get("required", ())
    properties = tool.parameters.get("properties", {})
    names = [name if name in required else f"{name} (optional)" for name in properties]
    takes = f"{tool.name} takes {', '.join(names) or 'nothing'}."
    return failed(f"Invalid arguments for {tool.name}: {problem}. {takes}")
