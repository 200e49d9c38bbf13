"""`journeyman hosts` with the real programs: what they write themselves stays, and their files come
back after the removal.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.clients import client_program
from tests.codex_host import configure_codex, run_codex
from tests.hermes_host import hermes_program
from tests.host_service import TASK
from tests.hosts import HostHome, openings_in, serving

from journeyman.plugin.installation.codex_trust import states
from journeyman.plugin.installation.hooks_file import own_hooks, without_hooks
from journeyman.testing import ScriptedServer, calls, says

pytestmark = [pytest.mark.soak, pytest.mark.hosts]


class Home(HostHome):
    """A home with experience, and a host's program on the search path."""

    def __init__(self, folder: Path, program: Path) -> None:
        super().__init__(folder)
        self.program = program
        self.command.environ["PATH"] = f"{program.parent}:{os.environ['PATH']}"
        self.configure(start="never")
        self.write_experience()
        self.command("confirm", "approver", "add", "ann")

    def findings(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """What a check finds, in the work folder."""
        found = self.command.json("hosts", "check", *arguments, code=code)
        return {one["what"]: one for one in found}


def test_claude_code_writes_its_settings_itself(tmp_path: Path) -> None:
    """What Claude Code changes while Journeyman is installed stays, as it would be without."""
    home = Home(tmp_path, client_program("claude_code"))
    home.write(
        "market/.claude-plugin/marketplace.json",
        {
            "name": "market",
            "owner": {"name": "someone"},
            "plugins": [{"name": "one", "source": "./one", "description": "a plugin"}],
        },
    )
    home.write("market/one/.claude-plugin/plugin.json", {"name": "one", "version": "1.0.0"})
    hook = {"type": "command", "command": "true"}
    first = {"x": [1, 2], "hooks": {"Stop": [{"hooks": [hook]}]}, "empty": {}}
    settings = home.write(".claude/settings.json", json.dumps(first))
    home.command("hosts", "install", "claude-code", "--yes")

    market = str(tmp_path / "market")
    home.run(home.program, "plugin", "marketplace", "add", market, DISABLE_AUTOUPDATER="1")
    home.run(home.program, "plugin", "install", "one@market", DISABLE_AUTOUPDATER="1")
    rewritten = json.loads(settings.read_text())
    assert "one@market" in settings.read_text()
    assert len(own_hooks(rewritten)) == 6
    assert "Nothing to do" in home.command("hosts", "install", "claude-code", "--yes").stdout

    home.command("hosts", "remove", "claude-code", "--yes")
    left = json.loads(settings.read_bytes())
    assert left == without_hooks(rewritten)
    assert left["hooks"] == first["hooks"]
    assert settings.read_text() == json.dumps(left, indent=2) + "\n"


class TestCodex:
    @staticmethod
    def environ(home: Home) -> dict[str, str]:
        return {"HOME": str(home.folder), "PATH": os.environ["PATH"], "SCRIPTED_KEY": "none"}

    def test_hooks_run_only_when_they_are_trusted(self, tmp_path: Path) -> None:
        home = Home(tmp_path, client_program("codex"))
        foreign = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}
        hooks = home.write(".codex/hooks.json", json.dumps(foreign))
        before = hooks.read_bytes()
        script = {".": [calls(("exec_command", {"cmd": "echo hello"})), says("Complete.")] * 3}
        with serving(home), ScriptedServer(script) as server:

            def openings() -> list[bool]:
                known = len(server.requests)
                run_codex(home, TASK, trusted=False)
                bodies = [one.body for one in server.requests[known:] if one.body.get("tools")]
                return [bool(openings_in(body)) for body in bodies]

            configure_codex(home, server)
            done = home.command("hosts", "install", "codex", "--yes")
            assert "PreToolUse (untrusted)" in done.stdout
            found = home.findings("codex", code=1)
            assert "PreToolUse (untrusted)" in found["host: codex"]["found"]
            assert openings() == [False, False]

            self.give_trust(home)
            assert {*states(home.folder / ".codex").values()} == {""}
            assert home.findings("codex")["host: codex"]["status"] == "ok"
            assert openings() == [True, True]

            # A changed definition needs trust anew; the others keep theirs.
            home.command("config", "set", "hosts.gate_tools", "mcp__pay__*")
            home.command("hosts", "install", "codex", "--yes")
            found = states(home.folder / ".codex")
            assert found.pop("PreToolUse") == "modified"
            assert {*found.values()} == {""}
        assert home.failures == []
        home.command("hosts", "remove", "codex", "--yes")
        assert hooks.read_bytes() == before

    @staticmethod
    def give_trust(home: Home) -> None:
        """Trust all hooks, as Codex writes it when a person does."""
        process = subprocess.Popen(
            [str(home.program), "app-server"],
            env=TestCodex.environ(home),
            cwd=home.work,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        client = {"clientInfo": {"name": "test", "title": "test", "version": "1"}}
        for number, (method, params) in enumerate(
            [("initialize", client), ("hooks/list", {"cwds": [str(home.work)]})]
        ):
            process.stdin.write(json.dumps({"id": number, "method": method, "params": params}))
            process.stdin.write("\n")
            process.stdin.flush()
            while True:
                answer = json.loads(process.stdout.readline())
                if answer.get("id") == number:
                    break
        process.communicate()
        states = "".join(
            f'[hooks.state."{hook["key"]}"]\ntrusted_hash = "{hook["currentHash"]}"\n'
            for hook in answer["result"]["data"][0]["hooks"]
        )
        with (home.folder / ".codex/config.toml").open("a") as file:
            file.write(states)


class TestHermes:
    CONFIG = "# mine\nmodel:\n  default: x\n"

    def status(self, home: Home) -> str:
        found = home.run(
            home.program, "plugins", "list", "--json", HERMES_HOME=str(home.folder / ".hermes")
        )
        plugins = json.loads(found[found.index("[") :])
        return next(str(one["status"]) for one in plugins if one["name"] == "journeyman")

    def test_hermes_enables_the_plugin_and_its_file_comes_back(self, tmp_path: Path) -> None:
        home = Home(tmp_path, hermes_program())
        config = home.write(".hermes/config.yaml", self.CONFIG)
        printed = home.command("hosts", "install", "hermes", "--print").stdout
        assert "plugins enable journeyman" in printed
        assert self.status(home) == "not enabled"
        home.command("hosts", "install", "hermes", "--yes")
        assert self.status(home) == "enabled"
        assert home.findings("hermes")["host: hermes"]["status"] == "ok"
        assert "Nothing to do" in home.command("hosts", "install", "hermes", "--yes").stdout
        home.command("hosts", "remove", "hermes", "--yes")
        assert config.read_text() == self.CONFIG
        assert self.status(home) == "not enabled"

    def test_what_hermes_changed_since_stays(self, tmp_path: Path) -> None:
        home = Home(tmp_path, hermes_program())
        config = home.write(".hermes/config.yaml", self.CONFIG)
        home.command("hosts", "install", "hermes", "--yes")
        folder = {"HERMES_HOME": str(config.parent)}
        home.run(home.program, "config", "set", "display.compact", "true", **folder)
        assert "Nothing to do" in home.command("hosts", "install", "hermes", "--yes").stdout
        home.command("hosts", "remove", "hermes", "--yes")
        assert "compact: true" in config.read_text()
        assert self.status(home) == "disabled"

    def test_an_environment_without_journeyman(self, tmp_path: Path) -> None:
        home = Home(tmp_path, client_program("hermes"))
        config = home.write(".hermes/config.yaml", self.CONFIG)
        done = home.command("hosts", "install", "hermes", "--yes", code=1)
        assert f"{home.program.resolve().parent}/python" in done.stderr
        assert "-m pip install" in done.stderr
        assert config.read_text() == self.CONFIG
