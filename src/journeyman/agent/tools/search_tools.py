"""The search tools: `search_files` searches the workspace in a separate process (`search_process`)
that can be ended, `session_search` the messages of earlier sessions.
"""

import json
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.resources import files

from journeyman.agent.tools.tool import (
    Invocation,
    Result,
    Tool,
    ToolError,
    ToolLimits,
    described,
    failed,
    interruption,
    worked,
)
from journeyman.agent.tools.workspace import Workspace
from journeyman.records import SearchHit
from journeyman.records.errors import JourneymanError

Search = Callable[[str, int], Sequence[SearchHit]]
"""Takes a query and the maximum number of messages."""

_MOST_MATCHES = 500
_ANSWER_CHARACTERS = 4_000_000
_DEFAULT_HITS, _MOST_HITS = 10, 50


def search_files(workspace: Workspace, limits: ToolLimits, call: Invocation) -> Result:
    path, pattern = call.arguments.get("path", ""), call.arguments["pattern"]
    start = workspace.find_path(path)
    if not start.exists():
        raise ToolError(f"Path not found: {path}")
    if not pattern:
        raise ToolError("The pattern is empty.")
    request = {
        "root": str(workspace.root),
        "start": str(start),
        "pattern": pattern,
        "target": call.arguments.get("target", "content"),
        "file_glob": call.arguments.get("file_glob") or "*",
        "limit": min(call.arguments.get("limit", limits.matches), _MOST_MATCHES),
    }
    program = files(__package__).joinpath("search_process.py").read_text(encoding="utf-8")
    ended = workspace.run(
        [sys.executable, "-I", "-S", "-X", "utf8", "-c", program, json.dumps(request)],
        timeout_s=limits.search_s,
        characters=_ANSWER_CHARACTERS,
        cancelled=call.cancelled,
    )
    if ended.ending == "cancelled":
        return interruption(total_count=0, error="Interrupted")
    if ended.ending == "timeout":
        reason = f"Search timed out after {limits.search_s:g}s."
        raise ToolError(f"{reason} Use a simpler pattern or a smaller path.")
    if ended.exit_code:
        raise ToolError(f"The search failed: {ended.output.strip()[-200:]}")
    answer = json.loads(ended.output)
    if "invalid" in answer:
        reason = f"Invalid pattern: {answer['invalid']}. It is a regular expression: put a "
        raise ToolError(f"{reason}backslash before characters that are meant literally.")
    return worked(**answer)


def session_search_tool(search: Search) -> Tool:
    def run(call: Invocation) -> Result:
        query = call.arguments["query"]
        if not query.strip():
            return failed("The query is empty. Give one or more words.", success=False)
        limit = min(call.arguments.get("limit", _DEFAULT_HITS), _MOST_HITS)
        try:
            hits = search(query, limit)
        except JourneymanError as error:
            return failed(str(error), success=False)
        return worked(success=True, count=len(hits), results=[_shown(hit) for hit in hits])

    return described("session_search", run, ToolLimits())


def _shown(hit: SearchHit) -> dict[str, str]:
    return {
        "session": hit.session,
        "source": hit.source,
        "role": hit.role,
        **({"tool": hit.tool} if hit.tool else {}),
        **({"date": f"{datetime.fromtimestamp(hit.at, UTC):%Y-%m-%d}"} if hit.at else {}),
        "snippet": hit.snippet,
    }
