"""A workspace in a temporary folder, and a function that calls its tools."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from journeyman.agent.tools.tool import Invocation, Result, ToolLimits
from journeyman.agent.tools.toolbox import Toolbox, workspace_tools
from journeyman.agent.tools.workspace import Workspace

Use = Callable[..., Result]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace(root) as opened:
        yield opened


@pytest.fixture
def use(workspace: Workspace) -> Use:
    """Return a function that calls a tool: `use("terminal", command="ls")`."""

    def call(
        name: str,
        *,
        cancelled: Callable[[], bool] = lambda: False,
        limits: ToolLimits = ToolLimits(),  # noqa: B008 - it is frozen
        **arguments: Any,
    ) -> Result:
        tool = Toolbox(workspace_tools(workspace, limits)).find(name)
        assert tool is not None
        return tool.run(Invocation(call_id="c1", arguments=arguments, cancelled=cancelled))

    return call
