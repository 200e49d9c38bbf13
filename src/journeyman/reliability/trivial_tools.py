"""Leaves out housekeeping tools, such as memory and to-do lists. They hardly ever fail, so they
lower an agent's error rate without saying anything about its work.
"""

from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from journeyman.records import JudgedCall, JudgedSession


def calls_without_tools(
    calls: Iterable[JudgedCall], names: Collection[str]
) -> tuple[JudgedCall, ...]:
    """Return the calls of other tools. A tool of an MCP server also goes by the name that it has on
    the server: `think` covers `mcp__server__think`.
    """
    return tuple(
        call
        for call in calls
        if call.tool not in names and call.tool.rpartition("__")[2] not in names
    )


def without_tools(
    sessions: Sequence[JudgedSession], names: Iterable[str]
) -> Sequence[JudgedSession]:
    """Return the sessions without the calls of these tools."""
    left_out = frozenset(names)
    if not left_out:
        return sessions
    return [
        replace(session, calls=calls_without_tools(session.calls, left_out)) for session in sessions
    ]
