"""The toolbox: order and names of the tools, and their definitions."""

from jsonschema import Draft202012Validator
from tests.tables import table

from journeyman.agent.dispatch import request_confirmation_tool
from journeyman.agent.tools.search_tools import session_search_tool
from journeyman.agent.tools.tool import Invocation, ToolLimits
from journeyman.agent.tools.toolbox import Toolbox, workspace_tools


def toolbox(workspace):
    return Toolbox(
        (
            *workspace_tools(workspace, ToolLimits()),
            session_search_tool(lambda query, limit, source: ()),
            request_confirmation_tool(lambda _question: None),
        )
    )


def test_definitions_are_short_and_valid(workspace):
    for definition in toolbox(workspace).definitions:
        function = definition["function"]
        Draft202012Validator.check_schema(function["parameters"])
        assert function["parameters"]["additionalProperties"] is False
        assert len(function["description"]) <= 160
        for parameter in function["parameters"]["properties"].values():
            assert 0 < len(parameter["description"]) <= 60


def test_tools_are_described_without_a_workspace(workspace):
    described, working = (workspace_tools(place, ToolLimits()) for place in (None, workspace))
    if not workspace.unconfined:
        assert [tool.definition for tool in described] == [tool.definition for tool in working]
    attributes = [
        (tool.risk, tool.reads_only, tool.runs_commands, tool.teaches) for tool in working
    ]
    assert attributes == [
        (tool.risk, tool.reads_only, tool.runs_commands, tool.teaches) for tool in described
    ]
    arguments = {"command": "ls", "code": "1", "path": "a", "pattern": "a"}
    for tool in described:
        result = tool.run(Invocation(call_id="c", arguments=arguments))
        assert result.content["error"].startswith("This tool is only a description")


def test_unknown_tool_suggests_a_similar_name(workspace):
    box = toolbox(workspace)
    assert box.find("readfile") is None
    error = box.unknown("readfile").content["error"]
    assert error.startswith("Unknown tool 'readfile'. Did you mean read_file? Available tools: ")


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
