"""The tools that search: search_files in the workspace, by a process of its own (`search_run`) that
can be ended, and session_search in what earlier sessions said.
"""

import json
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from journeyman.agent.tools.processes import Ended
from journeyman.agent.tools.tool import (
    Failed,
    Invocation,
    Result,
    Tool,
    ToolLimits,
    count,
    failed,
    interrupted,
    parameters,
    text,
    worked,
)
from journeyman.agent.tools.workspace import Workspace, answering
from journeyman.records import SearchHit
from journeyman.records.errors import JourneymanError

Search = Callable[[str, int, str | None], Sequence[SearchHit]]
"""A query, how many messages at most, and the source to stay with or None."""

_PROGRAM = Path(__file__).with_name("search_run.py")
_LONGEST_PATTERN = 10_000
_MOST_MATCHES = 500
_ANSWER_CHARACTERS = 4_000_000
_USUAL_HITS, _MOST_HITS = 10, 50


def search_files_tool(workspace: Workspace, limits: ToolLimits) -> Tool:
    def run(call: Invocation) -> Result:
        given, pattern = call.arguments.get("path", ""), call.arguments["pattern"]
        start = workspace.find_path(given)
        if not start.exists():
            raise Failed(f"Path not found: {given}")
        if not pattern or len(pattern) > _LONGEST_PATTERN:
            reason = "is empty" if not pattern else f"has over {_LONGEST_PATTERN:,} characters"
            raise Failed(f"The pattern {reason}.")
        asked = {
            "root": str(workspace.root),
            "start": str(start),
            "pattern": pattern,
            "target": call.arguments.get("target", "content"),
            "file_glob": call.arguments.get("file_glob") or "*",
            "limit": min(call.arguments.get("limit", limits.matches), _MOST_MATCHES),
        }
        ended = workspace.run(
            [sys.executable, "-I", "-S", "-X", "utf8", str(_PROGRAM), json.dumps(asked)],
            timeout_s=limits.search_s,
            characters=_ANSWER_CHARACTERS,
            cancelled=call.cancelled,
        )
        return _answer(ended, limits.search_s)

    return Tool(
        name="search_files",
        description=(
            "Search the workspace: lines that match a regular expression (target content), or "
            "files whose names match a glob such as *.py (target files)."
        ),
        parameters=parameters(
            "pattern",
            pattern=text("Regular expression, or glob."),
            path=text("Folder or file to search in."),
            target=text("What to search (default content).", "content", "files"),
            file_glob=text("Only in files whose names match this glob."),
            limit=count(f"Most matches to show (default {limits.matches})."),
        ),
        run=answering(run, total_count=0),
        reads_only=True,
    )


def _answer(ended: Ended, allowed_s: float) -> Result:
    if ended.ending == "cancelled":
        return interrupted(total_count=0, error="Interrupted")
    if ended.ending == "timeout":
        reason = f"Search timed out after {allowed_s:g}s. Use a simpler pattern or a smaller path."
        raise Failed(reason)
    try:
        found = msgspec.json.decode(ended.output, type=dict)
    except msgspec.DecodeError:
        last = (ended.output.strip() or f"exit code {ended.exit_code}").splitlines()[-1]
        raise Failed(f"The search failed: {last[:200]}") from None
    if "invalid" in found:
        reason = f"Invalid pattern: {found['invalid']}. It is a regular expression: put a "
        raise Failed(f"{reason}backslash before characters that are meant as they are.")
    return worked(**found)


def session_search_tool(search: Search) -> Tool:
    def run(call: Invocation) -> Result:
        query = call.arguments["query"]
        if not query.strip():
            return failed("The query is empty. Give one or more words.", success=False)
        limit = min(call.arguments.get("limit", _USUAL_HITS), _MOST_HITS)
        try:
            hits = search(query, limit, call.arguments.get("source"))
        except JourneymanError as error:
            return failed(str(error), success=False)
        results = [
            {
                "session": hit.session,
                "source": hit.source,
                "role": hit.role,
                **({"date": f"{datetime.fromtimestamp(hit.at, UTC):%Y-%m-%d}"} if hit.at else {}),
                "snippet": hit.snippet,
            }
            for hit in hits
        ]
        return worked(success=True, count=len(hits), results=results)

    return Tool(
        name="session_search",
        description=(
            "Search earlier sessions for words; all of them must be in one message. Put a phrase "
            "in double quotes."
        ),
        parameters=parameters(
            "query",
            query=text("Words to look for."),
            limit=count(f"Most messages to show (default {_USUAL_HITS})."),
            source=text("Only sessions of this program, such as hermes."),
        ),
        run=run,
        reads_only=True,
    )
