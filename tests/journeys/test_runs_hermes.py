"""Runs of the real Hermes Agent: what it does is what the result says, limits hold, and a fork keeps
the cached prefix of its original.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import client_run_checks as checks
from tests.client_runs import TASK, Runs, Server, run
from tests.clients import ClientHome, client_program

from journeyman.hosts.hermes import Hermes
from journeyman.hosts.host import Plug
from journeyman.models.model import Reply
from journeyman.testing import ScriptedServer, calls, says

pytestmark = [pytest.mark.soak, pytest.mark.hosts, pytest.mark.timeout(300)]

_CONFIG = """
model: {{default: scripted-1, provider: {provider}, context_length: 64000}}
custom_providers:
- {{name: standin, base_url: "{url}", key_env: SCRIPTED_KEY, model: scripted-1}}
agent: {{api_max_retries: 1}}
approvals: {{mode: manual, timeout: 5}}
security: {{allow_lazy_installs: false, tirith_enabled: false}}
"""


class HermesRuns:
    """A home in which Hermes runs."""

    page = Hermes()
    requests_path = "/v1/chat/completions"
    key = "SCRIPTED_KEY"

    def __init__(self, folder: Path) -> None:
        self.home = ClientHome(folder)
        self.program = client_program("hermes")

    def environ(self, server: Server) -> dict[str, str]:
        config = _CONFIG.format(url=server.base_url, provider="custom:standin")
        self.home.write(".hermes/config.yaml", config)
        path = f"{self.program.parent}:{os.environ['PATH']}"
        return {"HOME": str(self.home.folder), "PATH": path, "SCRIPTED_KEY": "none"}

    def command(self, line: str) -> Reply:
        return calls(("terminal", {"command": line}))

    def edit(self) -> Reply:
        arguments = {"path": "notes.txt", "old_string": "one", "new_string": "1"}
        return calls(("patch", {"mode": "replace", **arguments}))

    def errands(self) -> list[Reply]:
        tools: list[tuple[str, dict[str, Any]]] = [
            ("terminal", {"command": "echo > new.txt"}),
            ("write_file", {"path": "new.txt", "content": "x"}),
            ("execute_code", {"code": "open('new.txt', 'w')"}),
            ("memory", {"action": "add", "target": "memory", "content": "x"}),
            ("todo", {"todos": [{"id": "1", "content": "x", "status": "pending"}]}),
        ]
        return [calls(tool) for tool in tools]

    def prefix(self, body: Any) -> list[Any]:
        return [*body["tools"], *body["messages"]]

    def add_own_hook(self, command: str) -> None:
        raise NotImplementedError


CHECKS = [check for check in checks.CHECKS if check is not checks.a_gate_decides]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_runs(check: Callable[[Runs], None], tmp_path: Path) -> None:
    check(HermesRuns(tmp_path))
