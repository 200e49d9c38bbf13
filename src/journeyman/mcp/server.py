"""The server itself: it lists the tools, runs the calls one after the other in a thread beside the
event loop, except those that wait for people, and tells errors as results that a model can act on.
"""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from journeyman.journeyman import Journeyman
from journeyman.mcp.tools import TOOLS, OfferedTool
from journeyman.records.errors import JourneymanError, MissingPart
from journeyman.version import __version__

try:
    import anyio
    from mcp import MCPError, types
    from mcp.server import Server, ServerRequestContext
    from mcp.server.stdio import stdio_server
except ImportError as missing:
    raise MissingPart(
        "Serving MCP needs the extra \"mcp\": pip install 'journeyman[mcp]'."
    ) from missing

_logger = logging.getLogger(__name__)

INSTRUCTIONS = (
    "Journeyman knows what worked in earlier sessions of tool-using agents: call `opening` before "
    "a task that needs tools. `warm_session` keeps templates, `profile` tells error rates, "
    "`search_sessions` finds what was said and done. Before an action that cannot be undone, or "
    "that you were told to have confirmed, call `request_confirmation`, wait with "
    "`get_confirmation`, and do it only after `redeem_confirmation` granted it."
)

Context = ServerRequestContext[Any]


def serve(journeyman: Journeyman) -> None:
    """Serve MCP on standard input and output, until the input ends."""

    async def serving() -> None:
        server = make_server(journeyman, worker)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    # One thread: calls do not interleave, and the loop can answer while one is running.
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="journeyman") as worker:
        try:
            anyio.run(serving)
        except* BrokenPipeError:
            _logger.debug("the client is gone")


def make_server(journeyman: Journeyman, worker: ThreadPoolExecutor) -> Server[Any]:
    """A server whose calls run in this worker, on any transport."""
    tools = {tool.name: tool for tool in TOOLS}
    listed = types.ListToolsResult(tools=[_described(tool) for tool in tools.values()])

    async def list_tools(
        _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return listed

    async def call_tool(_: Context, call: types.CallToolRequestParams) -> types.CallToolResult:
        tool = tools.get(call.name)
        if tool is None:
            known = ", ".join(tools)
            message = f"There is no tool {call.name!r}. The tools are: {known}."
            raise MCPError(code=types.INVALID_PARAMS, message=message)
        loop = asyncio.get_running_loop()
        # What waits for people has threads of its own, so that other calls are served meanwhile.
        place = None if tool.waits else worker
        given = (tool, journeyman, call.arguments or {})
        text, is_error = await loop.run_in_executor(place, _answered, *given)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)], is_error=is_error
        )

    return Server(
        "journeyman",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _answered(
    tool: OfferedTool, journeyman: Journeyman, arguments: dict[str, Any]
) -> tuple[str, bool]:
    """What a tool says, and whether that is an error."""
    try:
        return tool.run(journeyman, arguments), False
    except JourneymanError as error:
        return str(error), True
    except Exception as error:
        # Around a tool run: the client is told, and the next call is served.
        _logger.exception("the tool %s failed", tool.name)
        return f"{tool.name} failed unexpectedly: {type(error).__name__}: {error}.", True


def _described(tool: OfferedTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.schema,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads_only,
            destructive_hint=tool.deletes,
            open_world_hint=False,
        ),
    )
