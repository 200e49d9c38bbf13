"""Classifies tools and sessions by type of work, using a table of tool names. A tool that is not in
the table, such as a shop's own `cancel_order`, is of type `other`. Only names are considered: a
shell that reads a file counts as code.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Literal

from journeyman.records import JudgedCall

ToolType = Literal["code", "file", "research", "other"]
"""`code` runs commands and code. `file` reads, writes, edits and finds files. `research` searches
and reads the web, pages and past sessions. `other` is everything else: planning, memory, messages,
questions, other agents, and domain-specific tools."""

TaskType = Literal["code", "file", "research", "mixed", "none"]
"""The type of most calls; `mixed` if neither code nor file nor research dominates, `none` without
calls."""

DOMINANT_PERCENT = 60
"""A type dominates if it has more than this percentage of all calls."""

TABLE: dict[ToolType, str] = {
    "code": """
        terminal execute_code process process_manage
        Bash BashOutput KillShell KillBash PowerShell Monitor LSP
        shell shell_command local_shell container.exec exec_command unified_exec write_stdin js_repl
        bash python code_interpreter code_execution
        mcp__ide__*
    """,
    "file": """
        read_file write_file patch search_files
        Read Write Edit MultiEdit NotebookRead NotebookEdit Glob Grep LS
        apply_patch grep_files list_dir view_image
        str_replace_editor str_replace_based_edit_tool
        mcp__filesystem__* mcp_filesystem_*
    """,
    "research": """
        web_search web_extract web_crawl browser browser_* vision_analyze session_search
        WebFetch WebSearch ListMcpResourcesTool ReadMcpResourceTool
        list_mcp_resources list_mcp_resource_templates read_mcp_resource
        web_fetch browser.*
        mcp__browser* mcp_browser* mcp__playwright__* mcp_playwright_*
        mcp__puppeteer__* mcp_puppeteer_*
        mcp__chrome-devtools__* mcp_chrome_devtools_* mcp__context7__* mcp_context7_*
        mcp__fetch__* mcp_fetch_*
    """,
}
"""Names of tools, on separate lines for Hermes, Claude Code, Codex, mini-swe-agent together with
model providers, and MCP servers (Hermes joins the parts of their names with one underscore, others
with two). A name that ends in a star stands for all names with that prefix."""

_TYPES = {name: kind for kind, names in TABLE.items() for name in names.split()}
_PREFIXES = tuple((name[:-1], kind) for name, kind in _TYPES.items() if name.endswith("*"))


@lru_cache(maxsize=4096)
def tool_type(tool: str) -> ToolType:
    """Return the type of a tool: by its name, by its prefix, or, if the name joins a server's and a
    tool's name with two underscores, by the tool's.
    """
    names = (tool, tool.rpartition("__")[2]) if "__" in tool else (tool,)
    types = (
        _TYPES.get(name)
        or next((kind for prefix, kind in _PREFIXES if name.startswith(prefix)), None)
        for name in names
    )
    return next(filter(None, types), "other")


def task_type(calls: Iterable[JudgedCall]) -> TaskType:
    """Return the type with more than 60 % of all calls, whatever their outcome."""
    return dominant_type(Counter(tool_type(call.tool) for call in calls))


def dominant_type(calls_by_type: Mapping[ToolType, int]) -> TaskType:
    """Return the type with more than 60 % of the counted calls."""
    total = sum(calls_by_type.values())
    if total == 0:
        return "none"
    for kind in ("code", "file", "research"):
        if calls_by_type.get(kind, 0) * 100 > total * DOMINANT_PERCENT:
            return kind
    return "mixed"
