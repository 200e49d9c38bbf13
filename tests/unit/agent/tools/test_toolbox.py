"""The toolbox: order and names of the tools, and their definitions."""

import json

import pytest
from jsonschema import Draft202012Validator
from tests.tables import table

from journeyman.agent.dispatch import request_confirmation_tool
from journeyman.agent.tools.search_tools import session_search_tool
from journeyman.agent.tools.tool import Invocation, ToolLimits
from journeyman.agent.tools.toolbox import Toolbox, workspace_tools
from journeyman.agent.tools.workspace import Workspace
from journeyman.records import SearchHit, SessionId
from journeyman.records.errors import BadTools


def toolbox(workspace):
    return Toolbox(
        (
            *workspace_tools(workspace, ToolLimits()),
            session_search_tool(lambda query, limit, source: ()),
            request_confirmation_tool(lambda _question: None),
        )
    )


def test_order_of_tools_is_fixed(workspace):
    names = toolbox(workspace).names
    expected = [
        *("terminal", "execute_code", "read_file", "write_file", "patch", "search_files"),
        *("session_search", "request_confirmation"),
    ]
    assert [name for name in names if name in expected] == expected


def test_definitions_do_not_depend_on_the_workspace(workspace, tmp_path):
    with Workspace(tmp_path) as other:
        first, second = (json.dumps(toolbox(one).definitions) for one in (workspace, other))
    assert first == second
    assert str(tmp_path) not in first


def test_definitions_are_short_and_valid(workspace):
    for definition in toolbox(workspace).definitions:
        function = definition["function"]
        Draft202012Validator.check_schema(function["parameters"])
        assert function["parameters"]["additionalProperties"] is False
        assert len(function["description"]) <= 160
        for parameter in function["parameters"]["properties"].values():
            assert 0 < len(parameter["description"]) <= 60


def test_only_read_only_tools_may_run_in_parallel(workspace):
    box = toolbox(workspace)
    reading = [name for name in box.names if (tool := box.find(name)) and tool.reads_only]
    expected = ["read_file", "search_files", "session_search"]
    others = {"terminal", "execute_code", "write_file", "patch", "request_confirmation"}
    assert [name for name in reading if name in {*expected, *others}] == expected


def test_tool_names_are_unique(workspace):
    tools = workspace_tools(workspace, ToolLimits())
    with pytest.raises(BadTools, match="Two tools are named 'terminal'"):
        Toolbox((*tools, tools[0]))


def test_unknown_tool_suggests_a_similar_name(workspace):
    box = toolbox(workspace)
    assert box.find("readfile") is None
    error = box.unknown("readfile").content["error"]
    assert error.startswith("Unknown tool 'readfile'. Did you mean read_file? Available tools: ")


def test_session_search_passes_its_arguments_on():
    asked = []

    def search(query, limit, source):
        asked.append((query, limit, source))
        return [
            SearchHit(
                session=SessionId("s1"),
                source="hermes",
                key="m1",
                message=1,
                role="user",
                at=86_400.0,
                snippet="the [word]",
            )
        ]

    tool = session_search_tool(search)
    result = tool.run(Invocation(call_id="c", arguments={"query": "word"}))
    tool.run(
        Invocation(call_id="c", arguments={"query": "word", "limit": 9_000, "source": "codex"})
    )
    assert asked == [("word", 10, None), ("word", 50, "codex")]
    assert result.content == {
        "success": True,
        "count": 1,
        "results": [
            {
                "session": "s1",
                "source": "hermes",
                "role": "user",
                "date": "1970-01-02",
                "snippet": "the [word]",
            }
        ],
    }


@table(("answer", "is_approved"), [(True, True), (False, False), (None, False)])
def test_only_an_explicit_approval_approves(answer, is_approved):
    asked = []
    tool = request_confirmation_tool(lambda question: asked.append(question) or answer)
    arguments = {"action": "deploy", "description": "Deploy to live.", "details": {"to": "live"}}
    result = tool.run(Invocation(call_id="c", arguments=arguments))
    shown = [(question.tool, question.reason, question.arguments) for question in asked]
    assert shown == [("deploy", "Deploy to live.", {"to": "live"})]
    assert result.content["approved"] is is_approved
    assert ("error" in result.content) is not is_approved
