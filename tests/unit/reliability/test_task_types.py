"""The task types of tools and sessions; every row of the table of types is covered."""

from tests.tables import table

from journeyman.records import JudgedCall, Verdict
from journeyman.reliability.task_types import ToolType, dominant_type, task_type, tool_type

NAMES: dict[ToolType, str] = {
    "code": """
        terminal execute_code process process_manage
        Bash BashOutput KillShell KillBash PowerShell Monitor LSP
        shell shell_command local_shell container.exec exec_command unified_exec write_stdin js_repl
        bash python code_interpreter code_execution
    """,
    "file": """
        read_file write_file patch search_files
        Read Write Edit MultiEdit NotebookRead NotebookEdit Glob Grep LS
        apply_patch grep_files list_dir view_image
        str_replace_editor str_replace_based_edit_tool
    """,
    "research": """
        web_search web_extract web_crawl vision_analyze session_search
        WebFetch WebSearch ListMcpResourcesTool ReadMcpResourceTool
        list_mcp_resources list_mcp_resource_templates read_mcp_resource web_fetch browser
    """,
    "other": """
        memory skills_list todo todo_list delegate_task mixture_of_agents clarify cronjob
        cronjob_manage send_message image_generate text_to_speech
        Agent Task TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate TodoRead TodoWrite
        Skill SlashCommand ToolSearch AskUserQuestion EnterPlanMode ExitPlanMode
        update_plan request_user_input spawn_agent send_input resume_agent close_agent wait
    """,
}
EXPECTED = {name: kind for kind, names in NAMES.items() for name in names.split()}

FAMILIES: dict[str, tuple[str, ToolType]] = {
    "browser_*": ("browser_navigate", "research"),
    "browser.*": ("browser.open", "research"),
    "mcp__browser*": ("mcp__browsermcp__click", "research"),
    "mcp_browser*": ("mcp_browserbase_navigate", "research"),
    "skill_*": ("skill_manage", "other"),
    "ha_*": ("ha_call_service", "other"),
    "mcp__playwright__*": ("mcp__playwright__anything", "research"),
    "mcp_playwright_*": ("mcp_playwright_browser_click", "research"),
    "mcp__puppeteer__*": ("mcp__puppeteer__puppeteer_navigate", "research"),
    "mcp_puppeteer_*": ("mcp_puppeteer_puppeteer_navigate", "research"),
    "mcp__chrome-devtools__*": ("mcp__chrome-devtools__take_snapshot", "research"),
    "mcp_chrome_devtools_*": ("mcp_chrome_devtools_take_snapshot", "research"),
    "mcp__context7__*": ("mcp__context7__resolve-library-id", "research"),
    "mcp_context7_*": ("mcp_context7_query_docs", "research"),
    "mcp__fetch__*": ("mcp__fetch__fetch", "research"),
    "mcp_fetch_*": ("mcp_fetch_fetch", "research"),
    "mcp__filesystem__*": ("mcp__filesystem__directory_tree", "file"),
    "mcp_filesystem_*": ("mcp_filesystem_directory_tree", "file"),
    "mcp__ide__*": ("mcp__ide__getDiagnostics", "code"),
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


@table("family", FAMILIES)
def test_type_of_a_tool_family(family: str) -> None:
    member, kind = FAMILIES[family]
    assert tool_type(member) == kind


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


@table("tool", ["cancel_reservation", "READ_FILE", "browse", "", "__"])
def test_unknown_tool_has_type_other(tool: str) -> None:
    assert tool_type(tool) == "other"


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
