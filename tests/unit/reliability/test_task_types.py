"""The task types of tools and sessions."""

from tests.tables import table

from journeyman.records import JudgedCall, Verdict
from journeyman.reliability.task_types import ToolType, dominant_type, task_type, tool_type

EXPECTED: dict[str, ToolType] = {
    "terminal": "code",
    "Bash": "code",
    "exec_command": "code",
    "mcp__ide__getDiagnostics": "code",
    "read_file": "file",
    "Edit": "file",
    "apply_patch": "file",
    "mcp__filesystem__directory_tree": "file",
    "web_search": "research",
    "WebFetch": "research",
    "browser_navigate": "research",
    "mcp_playwright_browser_click": "research",
    "memory": "other",
    "TodoWrite": "other",
    "spawn_agent": "other",
    "cancel_reservation": "other",
    "READ_FILE": "other",
    "": "other",
}


def calls(**times: int) -> list[JudgedCall]:
    """Return the given number of calls per tool; their outcome does not matter."""
    verdict = Verdict(status="unknown", rule="test")
    return [
        JudgedCall(call_id=f"{tool}{at}", tool=tool, verdict=verdict)
        for tool, count in times.items()
        for at in range(count)
    ]


@table(("tool", "kind"), EXPECTED.items(), ids=EXPECTED)
def test_type_of_a_tool(tool: str, kind: ToolType) -> None:
    assert tool_type(tool) == kind


@table(
    ("tool", "kind"),
    [
        ("mcp__disk__read_file", "file"),
        ("disk__write_file", "file"),
        ("mcp__pages__browser_click", "research"),
        ("mcp__box__sub__execute_code", "code"),
        ("mcp__linear-server__create_issue", "other"),
        ("mcp__linear-server__", "other"),
    ],
)
def test_mcp_tool_is_classified_by_its_own_name(tool: str, kind: ToolType) -> None:
    assert tool_type(tool) == kind


def test_type_of_a_session() -> None:
    # More than 60 % decide.
    assert task_type(calls(Bash=61, Read=39)) == "code"
    assert task_type(calls(Read=4, Grep=3, Bash=3)) == "file"
    assert task_type(calls(WebSearch=2, Bash=1)) == "research"

    # Exactly 60 % do not.
    assert task_type(calls(Bash=60, Read=40)) == "mixed"
    assert task_type(calls(Bash=3, Read=2)) == "mixed"

    # Planning counts among the calls.
    assert task_type(calls(Bash=6, Read=3)) == "code"
    assert task_type(calls(Bash=6, Read=3, TodoWrite=1)) == "mixed"

    # Domain-specific tools count as mixed.
    assert task_type(calls(get_order=9, Bash=1)) == "mixed"

    # No type without calls.
    assert task_type([]) == "none"
    assert dominant_type({"code": 0}) == "none"
