"""The search_files tool: lines that match a regular expression, or files by their names. The search
itself is a process of its own (`search_run`), so that it can be ended.
"""

import json
import sys
from pathlib import Path

import msgspec

from journeyman.agent.tools.limits import ToolLimits
from journeyman.agent.tools.processes import Ended
from journeyman.agent.tools.tool import Invocation, Result, Tool, failed, worked
from journeyman.agent.tools.workspace import Workspace, inside_only
from journeyman.records import Recorded

_PROGRAM = Path(__file__).with_name("search_run.py")
_LONGEST_PATTERN = 10_000
_MOST_MATCHES = 500
_ANSWER_CHARACTERS = 4_000_000


def search_files_tool(workspace: Workspace, limits: ToolLimits) -> Tool:
    def run(call: Invocation) -> Result:
        given, pattern = call.arguments.get("path", ""), call.arguments["pattern"]
        start = workspace.find_path(given)
        if not start.exists():
            return failed(f"Path not found: {given}", total_count=0)
        if not pattern or len(pattern) > _LONGEST_PATTERN:
            reason = "is empty" if not pattern else f"has over {_LONGEST_PATTERN:,} characters"
            return failed(f"The pattern {reason}.", total_count=0)
        asked = {
            "root": str(workspace.root),
            "start": str(start),
            "pattern": pattern,
            "target": call.arguments.get("target", "content"),
            "file_glob": call.arguments.get("file_glob") or "*",
            "limit": min(call.arguments.get("limit", limits.matches), _MOST_MATCHES),
        }
        try:
            ended = workspace.run(
                [sys.executable, "-I", "-S", "-X", "utf8", str(_PROGRAM), json.dumps(asked)],
                timeout_s=limits.search_s,
                characters=_ANSWER_CHARACTERS,
                cancelled=call.cancelled,
            )
        except OSError as error:
            return failed(f"The search could not be started: {error.strerror}.", total_count=0)
        return _answer(ended, limits.search_s)

    return Tool(
        name="search_files",
        description=(
            "Search the workspace: lines that match a regular expression (target content), or "
            "files whose names match a glob such as *.py (target files)."
        ),
        parameters={
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "Regular expression, or glob."},
                "path": {"type": "string", "description": "Folder or file to search in."},
                "target": {
                    "type": "string",
                    "enum": ["content", "files"],
                    "description": "What to search (default content).",
                },
                "file_glob": {
                    "type": "string",
                    "description": "Only in files whose names match this glob.",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "description": f"Most matches to show (default {limits.matches}).",
                },
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
        run=inside_only(run, total_count=0),
        reads_only=True,
    )


def _answer(ended: Ended, allowed_s: float) -> Result:
    if ended.ending == "cancelled":
        return Result(
            content={"total_count": 0, "error": "Interrupted"},
            recorded=Recorded(interrupted=True),
        )
    if ended.ending == "timeout":
        return failed(
            f"Search timed out after {allowed_s:g}s. Use a simpler pattern or a smaller path.",
            total_count=0,
        )
    try:
        found = msgspec.json.decode(ended.output, type=dict)
    except msgspec.DecodeError:
        last = (ended.output.strip() or f"exit code {ended.exit_code}").splitlines()[-1]
        return failed(f"The search failed: {last[:200]}", total_count=0)
    if "invalid" in found:
        return failed(
            f"Invalid pattern: {found['invalid']}. It is a regular expression: put a backslash "
            "before characters that are meant as they are.",
            total_count=0,
        )
    return worked(**found)
