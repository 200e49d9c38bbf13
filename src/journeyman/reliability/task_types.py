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
        web_search web_extract web_crawl browser_* vision_analyze session_search
        WebFetch WebSearch ListMcpResourcesTool ReadMcpResourceTool
        list_mcp_resources list_mcp_resource_templates read_mcp_resource
        web_fetch
        mcp__playwright__* mcp_playwright_* mcp__puppeteer__* mcp_puppeteer_*
        mcp__chrome-devtools__* mcp_chrome_devtools_* mcp__context7__* mcp_context7_*
        mcp__fetch__* mcp_fetch_*
    """,
}
"""Names of tools, a line each for Hermes, Claude Code, Codex, what mini-swe-agent and the makers of
models define, and MCP servers (Hermes joins the parts of their names with one underscore, others
with two). A name that ends in a star is a family of names that begin so."""

_KINDS = {name: kind for kind, names in TABLE.items() for name in names.split()}
_FAMILIES = tuple((name[:-1], kind) for name, kind in _KINDS.items() if name.endswith("*"))


@lru_cache(maxsize=4096)
def tool_type(tool: str) -> ToolType:
    """The type of a tool: by its name, by its family, or, when the name is a server's and a tool's
    joined by two underscores, by the tool's.
    """
    names = (tool, tool.rpartition("__")[2]) if "__" in tool else (tool,)
    found = (
        _KINDS.get(name)
        or next((kind for start, kind in _FAMILIES if name.startswith(start)), None)
        for name in names
    )
    return next(filter(None, found), "other")


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
