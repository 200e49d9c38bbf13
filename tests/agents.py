"""Agents for tests: real parts around a scripted model."""

from collections.abc import Callable, Iterable
from typing import Any

from journeyman.agent.agent import Agent
from journeyman.agent.tools.tool import Invocation, Result, Tool, worked
from journeyman.agent.tools.toolbox import Toolbox
from journeyman.gate.decision import ALLOW, Decision
from journeyman.store.store import Store
from journeyman.testing import ScriptedModel
from journeyman.testing.scripted_model import Line


def noting(name: str = "note", *, reads_only: bool = False, heard: list[Any] | None = None) -> Tool:
    """A tool that collects its arguments in `heard`."""

    def run(invocation: Invocation) -> Result:
        if heard is not None:
            heard.append(invocation.arguments)
        return worked(noted=invocation.arguments.get("text", ""))

    return tool(name, run, reads_only=reads_only)


def tool(name: str, run: Callable[[Invocation], Result], *, reads_only: bool = False) -> Tool:
    parameters = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "additionalProperties": False,
    }
    return Tool(
        name=name,
        description=f"{name}.",
        parameters=parameters,
        run=run,
        risk="recall" if reads_only else "unknown",
    )


def allow(_tool: Tool, _arguments: object) -> Decision:
    return ALLOW


def agent(store: Store, lines: Iterable[Line], *tools: Tool, **parts: Any) -> Agent:
    """An agent with these tools and a scripted model that replies with these lines. Other `parts`
    are fields of Agent.
    """
    model = parts.pop("model", None) or ScriptedModel(lines)
    return Agent(
        store=store,
        model=model,
        toolbox=Toolbox(tools or (noting(),)),
        **{"decide": allow, "system_prompt": lambda: "You are a test."} | parts,
    )
