"""`journeyman mcp`: the MCP server on standard input and output."""

import signal

import click

from journeyman.cli import asked


@click.command(
    epilog="""\b
Examples:
  journeyman mcp
  journeyman --home FOLDER mcp

\b
In Claude Code:
  claude mcp add journeyman -- journeyman mcp

\b
In other clients:
  {
    "mcpServers": {
      "journeyman": {"command": "journeyman", "args": ["mcp"]}
    }
  }"""
)
def mcp() -> None:
    """Serve MCP: tools that let a model use what Journeyman knows.

    An MCP client starts this command and talks to it on standard input and output; you do not
    call it yourself. The tools are opening, profile, search_sessions, warm_session, and four that
    have people confirm something, which they cannot do themselves. It ends when its input ends.
    """
    # Loaded here because the SDK is an extra and slow to load, and help needs none of it.
    from journeyman.mcp.server import serve  # noqa: PLC0415

    # Ctrl-C ends the process at once: the thread that waits for input cannot be woken otherwise,
    # and what is written to the database is written whole or not at all.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    serve(asked.opened())
