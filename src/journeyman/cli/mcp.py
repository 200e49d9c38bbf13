"""`journeyman mcp`: the MCP server on standard input and output."""

import gc
import signal

import click

from journeyman.cli import context


@click.command(
    epilog="""\b
Examples:
  journeyman mcp
  journeyman --home FOLDER mcp

\b
In Claude Code (.mcp.json), and without alwaysLoad in most other clients:
  {
    "mcpServers": {
      "journeyman": {"command": "journeyman", "args": ["mcp"], "alwaysLoad": true}
    }
  }"""
)
def mcp() -> None:
    """Serve MCP: tools that let a model use what Journeyman knows.

    An MCP client starts this command and communicates with it on standard input and output; you
    do not run it yourself. The tools are opening, profile, search_sessions, warm_session, and four
    that request confirmations, which the model cannot decide itself. It ends when its input ends.
    """
    # Imported here because the SDK is an optional extra and loads slowly; help does not need it.
    # What it loads lives as long as the process, so the garbage collector need not examine it.
    gc.disable()
    from journeyman.mcp.server import serve  # noqa: PLC0415

    gc.freeze()
    gc.enable()
    # Ctrl-C ends the process at once: the thread that waits for input cannot be woken otherwise,
    # and database writes are atomic.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    serve(context.open_journeyman())
