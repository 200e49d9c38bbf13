"""What kind of work a tool does, and what kind of work a session mostly is. The table below is all
there is to know; a tool that is not in it, such as a shop's own `cancel_order`, does other work.
Only names are looked at: a shell that reads a file counts as code.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Literal

from journeyman.records import JudgedCall

ToolType = Literal["code", "file", "research", "other"]
"""`code` runs commands and code. `file` reads, writes, edits and finds files. `research` searches
and reads the web, pages and past sessions. `other` is the rest: planning, memory, messages, asking,
other agents, and every tool made for one trade."""

TaskType = Literal["code", "file", "research", "mixed", "none"]
"""The type of most calls, `mixed` when neither code nor files nor research is, `none` when there
are no calls."""

MOST_PERCENT = 60
"""A type rules when it has more than so many percent of all calls."""

TYPES_VERSION = 1
"""Raise it with every change after which a session may have another type."""

TABLE: tuple[tuple[str, ToolType], ...] = (
    # Hermes
    ("terminal", "code"),
    ("execute_code", "code"),
    ("process", "code"),
    ("process_manage", "code"),
    ("read_file", "file"),
    ("write_file", "file"),
    ("patch", "file"),
    ("search_files", "file"),
    ("web_search", "research"),
    ("web_extract", "research"),
    ("web_crawl", "research"),
    ("browser_*", "research"),
    ("vision_analyze", "research"),
    ("session_search", "research"),
    ("memory", "other"),
    ("skill_*", "other"),
    ("skills_list", "other"),
    ("todo", "other"),
    ("todo_list", "other"),
    ("delegate_task", "other"),
    ("mixture_of_agents", "other"),
    ("clarify", "other"),
    ("cronjob", "other"),
    ("cronjob_manage", "other"),
    ("send_message", "other"),
    ("image_generate", "other"),
    ("text_to_speech", "other"),
    ("ha_*", "other"),
    # Claude Code
    ("Bash", "code"),
    ("BashOutput", "code"),
    ("KillShell", "code"),
    ("KillBash", "code"),
    ("PowerShell", "code"),
    ("Monitor", "code"),
    ("LSP", "code"),
    ("Read", "file"),
    ("Write", "file"),
    ("Edit", "file"),
    ("MultiEdit", "file"),
    ("NotebookRead", "file"),
    ("NotebookEdit", "file"),
    ("Glob", "file"),
    ("Grep", "file"),
    ("LS", "file"),
    ("WebFetch", "research"),
    ("WebSearch", "research"),
    ("ListMcpResourcesTool", "research"),
    ("ReadMcpResourceTool", "research"),
    ("Agent", "other"),
    ("Task", "other"),
    ("TaskCreate", "other"),
    ("TaskGet", "other"),
    ("TaskList", "other"),
    ("TaskOutput", "other"),
    ("TaskStop", "other"),
    ("TaskUpdate", "other"),
    ("TodoRead", "other"),
    ("TodoWrite", "other"),
    ("Skill", "other"),
    ("SlashCommand", "other"),
    ("ToolSearch", "other"),
    ("AskUserQuestion", "other"),
    ("EnterPlanMode", "other"),
    ("ExitPlanMode", "other"),
    # Codex
    ("shell", "code"),
    ("shell_command", "code"),
    ("local_shell", "code"),
    ("container.exec", "code"),
    ("exec_command", "code"),
    ("unified_exec", "code"),
    ("write_stdin", "code"),
    ("js_repl", "code"),
    ("apply_patch", "file"),
    ("grep_files", "file"),
    ("list_dir", "file"),
    ("view_image", "file"),
    ("list_mcp_resources", "research"),
    ("list_mcp_resource_templates", "research"),
    ("read_mcp_resource", "research"),
    ("update_plan", "other"),
    ("request_user_input", "other"),
    ("spawn_agent", "other"),
    ("send_input", "other"),
    ("resume_agent", "other"),
    ("close_agent", "other"),
    ("wait", "other"),
    # mini-swe-agent, and the tools that the makers of models define
    ("bash", "code"),
    ("python", "code"),
    ("code_interpreter", "code"),
    ("code_execution", "code"),
    ("str_replace_editor", "file"),
    ("str_replace_based_edit_tool", "file"),
    ("web_fetch", "research"),
    # MCP servers. Hermes joins the parts of such a name with one underscore, the others with two.
    ("mcp__playwright__*", "research"),
    ("mcp_playwright_*", "research"),
    ("mcp__puppeteer__*", "research"),
    ("mcp_puppeteer_*", "research"),
    ("mcp__chrome-devtools__*", "research"),
    ("mcp_chrome_devtools_*", "research"),
    ("mcp__context7__*", "research"),
    ("mcp_context7_*", "research"),
    ("mcp__fetch__*", "research"),
    ("mcp_fetch_*", "research"),
    ("mcp__filesystem__*", "file"),
    ("mcp_filesystem_*", "file"),
    ("mcp__ide__*", "code"),
)
"""Tool names and their types; a name that ends in a star is a family of names that begin so."""

_NAMES = {name: kind for name, kind in TABLE if not name.endswith("*")}
_FAMILIES = tuple((name[:-1], kind) for name, kind in TABLE if name.endswith("*"))


@lru_cache(maxsize=4096)
def tool_type(tool: str) -> ToolType:
    """The type of a tool: by its name, by its family, or, when the name is a server's and a tool's
    joined by two underscores, by the tool's.
    """
    found = _find(tool)
    if found is None and "__" in tool:
        found = _find(tool.rpartition("__")[2])
    return found or "other"


def _find(tool: str) -> ToolType | None:
    if tool in _NAMES:
        return _NAMES[tool]
    return next((kind for prefix, kind in _FAMILIES if tool.startswith(prefix)), None)


def task_type(calls: Iterable[JudgedCall]) -> TaskType:
    """The type with more than 60 % of all calls, whatever became of them."""
    return ruling(Counter(tool_type(call.tool) for call in calls))


def ruling(calls_by_type: Mapping[ToolType, int]) -> TaskType:
    """The same, when the calls are already counted."""
    total = sum(calls_by_type.values())
    if total == 0:
        return "none"
    for kind in ("code", "file", "research"):
        if calls_by_type.get(kind, 0) * 100 > total * MOST_PERCENT:
            return kind
    return "mixed"
