"""Runs of the real Codex: what it does is what the result says, limits hold, and a fork keeps the
cached prefix of its original.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.client_run_checks import CHECKS
from tests.client_runs import GATE, TASK, Runs, Server, run, shared_prefix
from tests.clients import ClientHome, client_program
from tests.codex_host import CONFIG, shell

from journeyman.hosts.codex import Codex, hook_hash
from journeyman.hosts.host import Plug
from journeyman.models.model import Reply
from journeyman.testing import ScriptedServer, calls, says

pytestmark = [pytest.mark.soak, pytest.mark.hosts, pytest.mark.timeout(300)]

_RETRIES = "request_max_retries = 1\nstream_max_retries = 1\nwire_api"
_PATCH = """apply_patch <<'END'
*** Begin Patch
*** Update File: notes.txt
@@
-one
+1
 two
*** End Patch
END"""


class CodexRuns:
    """A home in which Codex runs. Its sandbox wants the home outside the folder for temporary
    files.
    """

    page = Codex()
    requests_path = "/v1/responses"
    key = "SCRIPTED_KEY"

    def __init__(self, folder: Path) -> None:
        self.home = ClientHome(folder)
        self.program = client_program("codex")
        self.own_hooks = ""
        (folder / "temporary").mkdir()

    def environ(self, server: Server) -> dict[str, str]:
        config = CONFIG.format(base_url=server.base_url).replace("wire_api", _RETRIES)
        self.home.write(".codex/config.toml", config + self.own_hooks)
        path = f"{self.program.parent}:{os.environ['PATH']}"
        home = {"HOME": str(self.home.folder), "PATH": path, "SCRIPTED_KEY": "none"}
        return {**home, "TMPDIR": str(self.home.folder / "temporary")}

    def command(self, line: str) -> Reply:
        return shell(line)

    def edit(self) -> Reply:
        return shell(_PATCH)

    def errands(self) -> list[Reply]:
        tools: list[tuple[str, dict[str, Any]]] = [
            ("exec_command", {"cmd": "echo > new.txt"}),
            ("exec_command", {"cmd": _PATCH}),
            ("view_image", {"path": "notes.txt"}),
            ("create_goal", {"objective": "x"}),
            ("request_user_input", {"questions": []}),
        ]
        return [calls(tool) for tool in tools]

    def prefix(self, body: Any) -> list[Any]:
        passed = ("id", "internal_chat_message_metadata_passthrough")
        items = [
            {name: value for name, value in item.items() if name not in passed}
            for item in body["input"]
        ]
        return [body.get("instructions"), *body["tools"], *items]

    def add_own_hook(self, command: str) -> None:
        """Add a hook that the person trusts."""
        group = {"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}
        self.home.write(".codex/hooks.json", {"hooks": {"PreToolUse": [group]}})
        digest = hook_hash("pre_tool_use", group, group["hooks"][0])
        place = f"{self.home.folder}/.codex/hooks.json:pre_tool_use:0:0"
        self.own_hooks = f'[hooks.state."{place}"]\ntrusted_hash = "{digest}"\n'


@pytest.mark.parametrize("check", CHECKS, ids=lambda one: one.__name__)
def test_runs(check: Callable[[Runs], None], tmp_path: Path) -> None:
    check(CodexRuns(tmp_path))


def test_hooks_that_nobody_trusted_stay_silent(tmp_path: Path) -> None:
    runs = CodexRuns(tmp_path)
    runs.add_own_hook("echo own >> ~/own.txt")
    runs.own_hooks = ""
    with ScriptedServer({TASK: [shell("echo hi"), says("Done.")]}) as server:
        run(runs, server, plug=Plug(hooks=GATE))
    assert (tmp_path / "gate.txt").exists()
    assert not (tmp_path / "own.txt").exists()


def test_a_fork_of_a_session_with_full_access(tmp_path: Path) -> None:
    runs = CodexRuns(tmp_path)
    with ScriptedServer({TASK: [shell("echo hi"), says("Done.")]}) as server:
        original = run(runs, server, access="all").result
        run(runs, server, "Look back", fork=original.session, tools=False)
        *_, before, after = (one.body for one in server.requests)
    assert shared_prefix(runs, before, after) == 1.0


def test_logins(tmp_path: Path) -> None:
    runs = CodexRuns(tmp_path)
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    assert runs.page.login(str(runs.program), environ) == "no"
    assert runs.page.login(str(runs.program), {**environ, "CODEX_API_KEY": "none"}) == "unknown"
    assert runs.page.login("/no/such/program", environ) == "unknown"
    runs.home.write(
        ".codex/config.toml", 'model_provider = "own"\n[model_providers.own]\nname = "x"'
    )
    assert runs.page.login(str(runs.program), environ) == "unknown"
