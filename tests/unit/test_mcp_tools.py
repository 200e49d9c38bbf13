"""What the tools of the MCP server say, without the protocol."""

from pathlib import Path

from tests.turns import agent, chat, user

from journeyman import Journeyman
from journeyman.mcp.tools import TOOLS


def test_excerpts_are_redacted_before_a_model_sees_them(tmp_path: Path):
    search = next(tool for tool in TOOLS if tool.name == "search_sessions")
    key = "ghp_" + "A1b2" * 9
    with Journeyman(home=tmp_path, environ={}) as jm:
        jm.record(chat(user(f"The deploy key is {key} for now"), agent("Noted.")))
        answer = search.run(jm, {"query": "deploy key"})
    assert not answer.is_error
    assert key not in answer.text
    assert "<github_token:1> for now" in answer.text
