"""A workspace in a temporary folder, and a function that calls its tools."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from journeyman.agent.tools import confinement
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


@pytest.fixture(params=["bubblewrap", "namespaces"])
def confined(request: pytest.FixtureRequest, root: Path) -> Iterator[Workspace]:
    """A workspace whose commands are confined in this way."""
    bubblewrap = confinement.find_confinement()[0] if request.param == "bubblewrap" else ""
    if request.param == "bubblewrap" and not bubblewrap:
        pytest.skip("bubblewrap is not installed, or does not work here")
    if reason := confinement.why_failing(bubblewrap):
        pytest.skip(reason)
    with Workspace(root) as workspace:
        workspace.policy = msgspec.structs.replace(workspace.policy, bubblewrap=bubblewrap)
        yield workspace


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
