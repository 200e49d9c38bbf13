"""The tools that an agent has, in a fixed order, so that what the model is told of them is the same
bytes every time.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from journeyman.agent.tools.code import execute_code_tool
from journeyman.agent.tools.limits import ToolLimits
from journeyman.agent.tools.patching import patch_tool
from journeyman.agent.tools.reading import read_file_tool
from journeyman.agent.tools.searching import search_files_tool
from journeyman.agent.tools.terminal import terminal_tool
from journeyman.agent.tools.tool import Result, Tool, failed
from journeyman.agent.tools.workspace import Workspace
from journeyman.agent.tools.writing import write_file_tool
from journeyman.records.errors import BadTools


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
