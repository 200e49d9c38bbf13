"""Attributes of the built-in tools, and the tables that repeat them for recorded logs."""

from pathlib import Path

import pytest

from journeyman import Journeyman
from journeyman.agent.review.reviewer import ALLOWED_TOOLS
from journeyman.agent.tools.knowledge_tools import knowledge_tools
from journeyman.agent.tools.tool import Tool
from journeyman.jobs.outcome import finish_tool
from journeyman.records.defaults import TRIVIAL_TOOLS

AGENT_GUIDE = Path(__file__).parents[4] / "docs" / "agent.md"


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, Tool]:
    """The tools of an agent, plus `finish`, which only jobs have."""
    with Journeyman(home=tmp_path, environ={}) as journeyman:
        builtin = journeyman._agents.builtin_tools()
    return {tool.name: tool for tool in (*builtin, finish_tool(lambda _finished: None))}


def test_risk_of_each_tool(tools: dict[str, Tool]) -> None:
    risks = {name: tool.risk for name, tool in tools.items()}
    assert "unknown" not in risks.values()
    assert (
        risks.items()
        >= {
            "terminal": "command",
            "execute_code": "code",
            "read_file": "read",
            "write_file": "write",
            "patch": "write",
            "search_files": "search",
            "session_search": "recall",
            "memory": "knowledge",
            "skills_list": "recall",
            "skill_view": "recall",
            "skill_manage": "knowledge",
            "warm_session": "templates",
            "request_confirmation": "report",
            "finish": "report",
        }.items()
    )


def test_recorded_calls_teach_only_if_their_tool_does(tools: dict[str, Tool]) -> None:
    assert {name: name not in TRIVIAL_TOOLS for name in tools} == {
        name: tool.teaches for name, tool in tools.items()
    }


def test_review_may_use_memory_and_skill_tools(tmp_path: Path) -> None:
    with Journeyman(home=tmp_path, environ={}) as journeyman:
        knowledge = journeyman._agents.knowledge
    bound = knowledge_tools(knowledge, keep=lambda _write, _invocation: None)
    assert tuple(tool.name for tool in bound) == ALLOWED_TOOLS


def test_agent_guide_documents_each_tool(tools: dict[str, Tool]) -> None:
    guide = AGENT_GUIDE.read_text()
    assert [name for name in tools if name != "finish" and f"`{name}`" not in guide] == []
