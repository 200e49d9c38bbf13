"""The session_search tool: what earlier sessions said. Who searches is handed in."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from journeyman.agent.tools.tool import Invocation, Result, Tool, failed, worked
from journeyman.records import SearchHit
from journeyman.records.errors import JourneymanError

Search = Callable[[str, int, str | None], Sequence[SearchHit]]
"""A query, how many messages at most, and the source to stay with or None."""

_USUAL, _MOST = 10, 50


def session_search_tool(search: Search) -> Tool:
    def run(call: Invocation) -> Result:
        query = call.arguments["query"]
        if not query.strip():
            return failed("The query is empty. Give one or more words.", success=False)
        limit = min(call.arguments.get("limit", _USUAL), _MOST)
        try:
            hits = search(query, limit, call.arguments.get("source"))
        except JourneymanError as error:
            return failed(str(error), success=False)
        return worked(success=True, count=len(hits), results=[_shown(hit) for hit in hits])

    return Tool(
        name="session_search",
        description=(
            "Search earlier sessions for words; all of them must be in one message. Put a phrase "
            "in double quotes."
        ),
        parameters={
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words to look for."},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "description": f"Most messages to show (default {_USUAL}).",
                },
                "source": {
                    "type": "string",
                    "description": "Only sessions of this program, such as hermes.",
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        },
        run=run,
        reads_only=True,
    )


def _shown(hit: SearchHit) -> dict[str, str]:
    day = {} if hit.at is None else {"date": f"{datetime.fromtimestamp(hit.at, UTC):%Y-%m-%d}"}
    return {
        "session": hit.session,
        "source": hit.source,
        "role": hit.role,
        **day,
        "snippet": hit.snippet,
    }
