"""The MCP server. It lists the tools, runs calls one after the other in a worker thread, except
those that wait for people, and returns errors as results that a model can act on.
"""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from journeyman.facade.journeyman import Journeyman
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
    "a task that needs tools. `warm_session` manages templates, `profile` reports error rates, "
    "`search_sessions` finds messages of earlier sessions. Before an action that cannot be undone, "
    "or that a person must confirm, call `request_confirmation`, wait with "
    "`get_confirmation`, and act only after `redeem_confirmation` grants it."
)

Context = ServerRequestContext[Any]


def serve(journeyman: Journeyman) -> None:
    """Serve MCP on standard input and output until the input ends."""

    async def run_server() -> None:
        server = make_server(journeyman, worker)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    # One thread: calls do not interleave, and the event loop stays responsive.
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="journeyman") as worker:
        try:
            anyio.run(run_server)
        except* BrokenPipeError:
            _logger.debug("the client has disconnected")


def make_server(journeyman: Journeyman, worker: ThreadPoolExecutor) -> Server[Any]:
    """Return a server that runs its calls in this worker, for any transport."""
    tools = {tool.name: tool for tool in TOOLS}
    listed = types.ListToolsResult(tools=[_definition(tool) for tool in tools.values()])

    async def list_tools(
        _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return listed

    async def call_tool(_: Context, call: types.CallToolRequestParams) -> types.CallToolResult:
        tool = tools.get(call.name)
        if tool is None:
            names = ", ".join(tools)
            message = f"There is no tool {call.name!r}. The tools are: {names}."
            raise MCPError(code=types.INVALID_PARAMS, message=message)
        loop = asyncio.get_running_loop()
        # Calls that wait for people run in other threads, so that they do not block the rest.
        executor = None if tool.waits else worker
        arguments = call.arguments or {}
        text, is_error = await loop.run_in_executor(executor, _answer, tool, journeyman, arguments)
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


def _answer(
    tool: OfferedTool, journeyman: Journeyman, arguments: dict[str, Any]
) -> tuple[str, bool]:
    """Run a call; return its result and whether that is an error."""
    try:
        return tool.run(journeyman, arguments), False
    except JourneymanError as error:
        return str(error), True
    except Exception as error:
        # A tool must not end the server: report the error and serve the next call.
        _logger.exception("the tool %s failed", tool.name)
        return f"{tool.name} failed unexpectedly: {type(error).__name__}: {error}.", True


def _definition(tool: OfferedTool) -> types.Tool:
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
