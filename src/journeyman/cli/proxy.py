"""`journeyman proxy`: a server between an agent and its model API that starts sessions warm."""

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from journeyman.cli import context
from journeyman.cli.context import WholeNumber, flag, option
from journeyman.records.errors import MissingPart

if TYPE_CHECKING:
    from journeyman.hosts.proxy.server import ProxyServer

_PARTS = ("httptools", "httpx2", "uvicorn")


@click.command(
    epilog="""\b
Examples:
  journeyman proxy --upstream https://api.openai.com/v1
  journeyman proxy --upstream https://api.anthropic.com --port 6091
  journeyman proxy --upstream http://127.0.0.1:8080 --project . --no-record"""
)
@option("--upstream URL", "Address of the model API that requests are forwarded to.", required=True)
@option(
    "--port",
    "Port to listen on; 0 for any that is free.",
    type=WholeNumber(0, 65_535),
    default=6090,
)
@option("--host ADDRESS", "Address to listen on: only this machine's own.", default="127.0.0.1")
@option(
    "--project DIR",
    "Folder that the agents work in (default: what their requests say, or else this folder).",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
)
@flag("--no-opening", "Add nothing to requests; only record sessions.")
@flag("--no-record", "Record no sessions; only add openings.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as JSON for programs.")
def proxy(
    *,
    upstream: str,
    port: int,
    host: str,
    project: str | None,
    no_opening: bool,
    no_record: bool,
    as_json: bool,
) -> None:
    """Forward requests to a model API, and start its agents' sessions warm.

    For any agent whose base URL can be set. Requests that have tools get the opening of their
    session, the same in each of them; everything else passes through as it is, token by token. API
    keys pass through and are never stored. Sessions of agents that keep no logs are recorded, and
    learned from. Press Ctrl-C to stop.
    """
    missing = [name for name in _PARTS if find_spec(name) is None]
    if missing:
        raise MissingPart(
            f'The proxy needs the extra "proxy", of which {", ".join(missing)} is not installed: '
            "pip install 'journeyman[proxy]'."
        )
    # Imported here because it loads slowly, and help does not need it.
    from journeyman.hosts.proxy.application import ProxyOptions  # noqa: PLC0415
    from journeyman.hosts.proxy.server import ProxyServer  # noqa: PLC0415

    _configure_logging()
    options = ProxyOptions(
        upstream=upstream,
        host=host,
        port=port,
        opens=not no_opening,
        records=not no_record,
        folder=project or "",
    )
    server = ProxyServer(context.open_journeyman(), options)
    server.bind()
    server.run(lambda ready: _show_started(ready, as_json=as_json))
    if not as_json:
        click.echo("Stopped.")


def _configure_logging() -> None:
    """Show what happens in lines on standard error. Libraries log addresses, which may have keys in
    them.
    """
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("journeyman.proxy").setLevel(logging.INFO)
    for name in ("uvicorn", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _show_started(server: "ProxyServer", *, as_json: bool) -> None:
    options = server.options
    if as_json:
        state = {"opens": options.opens, "records": options.records}
        context.print_json({"url": server.url, "upstream": server.upstream.url, **state})
        return
    added = "added to requests that have tools" if options.opens else "off"
    recorded = "recorded, except those that agents record themselves" if options.records else "off"
    lines = [
        f"Forwarding to {server.upstream.url}. Press Ctrl-C to stop.",
        f"  base URL   {server.url}/v1   for OpenAI's API",
        f"             {server.url}      for Anthropic's API",
        f"  openings   {added}",
        f"  sessions   {recorded}",
    ]
    click.echo("\n".join(lines))
