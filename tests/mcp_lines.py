"""An MCP client that writes the protocol's lines itself, so that it works with any version of the
SDK in the server.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_ABOUT = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class LineClient:
    """A connection to a server process, initialized."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process, self._sent = process, 0
        self.about = self.ask("initialize", **_ABOUT)
        self._send({"method": "notifications/initialized"})

    def ask(self, method: str, **params: Any) -> Any:
        self._sent += 1
        self._send({"id": self._sent, "method": method, "params": params})
        assert self._process.stdout
        answer = json.loads(self._process.stdout.readline())
        assert answer["id"] == self._sent
        return answer["result"]

    def call(self, tool: str, **arguments: Any) -> tuple[str, bool]:
        """The text of a call's result, and whether it is an error."""
        result = self.ask("tools/call", name=tool, arguments=arguments)
        (content,) = result["content"]
        return content["text"], result.get("isError", False)

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()


@contextmanager
def connected(
    program: Sequence[str], environ: Mapping[str, str], folder: Path, errors: Any = None
) -> Iterator[LineClient]:
    """Start a server, and end it by closing its input."""
    with subprocess.Popen(
        [*program, "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=dict(environ),
        cwd=folder,
        text=True,
    ) as process:
        assert process.stdin
        try:
            yield LineClient(process)
        finally:
            process.stdin.close()
