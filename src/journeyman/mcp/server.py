"""The MCP server. It lists the tools, runs calls one after the other in a worker thread, except
those that wait for people, and returns errors as results that a model can act on. It runs on both
generations of the SDK, 1.26 and 2: what is sent is built from the protocol's own field names, which
both accept.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from journeyman.facade.journeyman import Journeyman
from journeyman.mcp.tools import TOOLS, OfferedTool
from journeyman.records.errors import JourneymanError, MissingPart
from journeyman.version import __version__

try:
    import anyio
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
except ImportError as missing:
    raise MissingPart(
        "Serving MCP needs the extra \"mcp\": pip install 'journeyman[mcp]'."
    ) from missing

_logger = logging.getLogger(__name__)

_Handler = Callable[..., Awaitable[Any]]

INSTRUCTIONS = (
    "Journeyman knows what worked in earlier sessions of tool-using agents: call `opening` before "
    "a task that needs tools. `warm_session` manages templates, `profile` reports error rates, "
    "`search_sessions` finds messages of earlier sessions. Before an action that cannot be undone, "
    "or that a person must confirm, call `request_confirmation`, wait with "
    "`get_confirmation`, and act only after `redeem_confirmation` grants it."
)


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

    async def list_tools(*_: object) -> types.ListToolsResult:
        return listed

    async def call_tool(_: object, call: types.CallToolRequestParams) -> types.CallToolResult:
        tool = tools.get(call.name)
        if tool is None:
            return _result(f"There is no tool {call.name!r}. The tools are: {', '.join(tools)}.")
        loop = asyncio.get_running_loop()
        # Calls that wait for people run in other threads, so that they do not block the rest.
        executor = None if tool.waits else worker
        arguments = call.arguments or {}
        text, is_error = await loop.run_in_executor(executor, _answer, tool, journeyman, arguments)
        return _result(text, is_error=is_error)

    about: dict[str, Any] = {"version": __version__, "instructions": INSTRUCTIONS}
    if hasattr(Server, "add_request_handler"):
        return Server("journeyman", **about, on_list_tools=list_tools, on_call_tool=call_tool)
    server: Server[Any] = Server("journeyman", **about)
    _first_generation(server, list_tools, call_tool)
    return server


def _first_generation(server: Any, list_tools: _Handler, call_tool: _Handler) -> None:
    """Register the handlers with a server of SDK 1, where each takes a whole request and returns
    its result in an envelope.
    """
    envelope: Any = types.ServerResult

    async def listed(_: object) -> object:
        return envelope(await list_tools())

    async def called(request: Any) -> object:
        return envelope(await call_tool(None, request.params))

    server.request_handlers |= {types.ListToolsRequest: listed, types.CallToolRequest: called}


def _result(text: str, *, is_error: bool = True) -> types.CallToolResult:
    content = [{"type": "text", "text": text}]
    return types.CallToolResult.model_validate({"content": content, "isError": is_error})


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
    return types.Tool.model_validate(
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.schema,
            "annotations": {
                "title": tool.title,
                "readOnlyHint": tool.reads_only,
                "destructiveHint": tool.deletes,
                "openWorldHint": False,
            },
        }
    )
