"""`journeyman hosts` with the real programs: each works with Journeyman installed, and after the
removal its files are byte for byte what they were, and it works as before.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.claude_code_host import bash, run_claude
from tests.clients import client_program
from tests.hermes_host import hermes_program
from tests.hosts import TASK, HostHome, openings_in, serving
from tests.opencode_host import OFFLINE

from journeyman.hosts.installation.codex_trust import CodexHooks, read_hooks
from journeyman.hosts.installation.hooks_file import own_hooks, without_groups
from journeyman.hosts.installation.trial_run import (
    _CODEX_SETTINGS,
    _HERMES_SETTINGS,
    _opencode_settings,
)
from journeyman.testing import ScriptedServer, calls, says

pytestmark = [pytest.mark.soak, pytest.mark.hosts]


class Home(HostHome):
    """A home with experience, and a host's program on the search path."""

    def __init__(self, folder: Path, program: Path) -> None:
        super().__init__(folder)
        self.program = program
        path = f"{program.parent}:{os.environ['PATH']}"
        self.command.environ["PATH"] = path
        self.configure(start="never")
        self.write_experience()
        self.command("confirm", "approver", "add", "ann")

    def findings(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """What a check finds, in the work folder."""
        found = self.command.json("hosts", "check", *arguments, code=code)
        return {one["what"]: one for one in found}


def turns(server: ScriptedServer) -> list[Any]:
    """The requests of the conversation, which are those with tools."""
    return [one.body for one in server.requests if one.body.get("tools")]


def tidy_up(home: Home, name: str, file: Path, before: bytes | None) -> None:
    """Remove Journeyman, and check that the file is what it was."""
    home.command("hosts", "remove", name, "--yes")
    assert (file.read_bytes() if file.exists() else None) == before


@pytest.mark.parametrize("name", ["claude_code", "older_claude_code"])
def test_claude_code(name: str, tmp_path: Path) -> None:
    home = Home(tmp_path, client_program(name))
    settings = home.write(".claude/settings.json", '{\n\t"cleanupPeriodDays": 30,\r\n\t"x": [1,2]}')
    before = settings.read_bytes()
    printed = home.command("hosts", "install", "claude-code", "--yes").stderr
    assert ("2.1.295" in printed) == (name == "older_claude_code")
    script = {TASK: [bash("echo hello"), says("Complete.")], ".": [says("Done.")]}
    with serving(home), ScriptedServer(script) as server:
        assert home.findings("claude-code", "--real")["real run"]["status"] == "ok"
        run_claude(home, name, server, TASK, "--allowedTools", "Bash")
        assert all(len(openings_in(body)) >= 1 for body in turns(server))
        assert len(turns(server)) == 2
    assert home.failures == []
    tidy_up(home, "claude-code", settings, before)
    with ScriptedServer(script) as server:
        run_claude(home, name, server, TASK, "--allowedTools", "Bash")
        assert [openings_in(body) for body in turns(server)] == [[], []]


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
    rewritten = settings.read_text()
    assert "one@market" in rewritten
    assert len(own_hooks(rewritten)) == 6
    assert '"onFailure": "block"' in rewritten
    assert "Nothing to do" in home.command("hosts", "install", "claude-code", "--yes").stdout

    home.command("hosts", "remove", "claude-code", "--yes")
    left = json.loads(settings.read_bytes())
    assert left == json.loads(without_groups(rewritten))
    assert left["hooks"] == first["hooks"]
    assert settings.read_text() == json.dumps(left, indent=2) + "\n"


class TestCodex:
    def trust(self, home: Home) -> CodexHooks:
        found = read_hooks(str(home.program), self.environ(home), home.work)
        assert found is not None
        return found

    @staticmethod
    def environ(home: Home) -> dict[str, str]:
        return {"HOME": str(home.folder), "PATH": os.environ["PATH"], "SCRIPTED_KEY": "none"}

    def ask(self, home: Home, server: ScriptedServer, *flags: str) -> None:
        config = home.folder / ".codex/config.toml"
        text = config.read_text()
        at = text.index("base_url")
        line = text[at : text.index("\n", at)]
        config.write_text(text.replace(line, f'base_url = "{server.base_url}"'))
        home.run(home.program, "exec", *flags, TASK, **self.environ(home))

    def test_hooks_run_only_when_they_are_trusted(self, tmp_path: Path) -> None:
        home = Home(tmp_path, client_program("codex"))
        config = home.write(".codex/config.toml", _CODEX_SETTINGS.format(url="http://127.0.0.1:9"))
        foreign = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}
        hooks = home.write(".codex/hooks.json", json.dumps(foreign))
        before = hooks.read_bytes()
        script = {TASK: [calls(("exec_command", {"cmd": "echo hello"})), says("Complete.")]}
        with serving(home):
            with ScriptedServer(script) as server:
                self.ask(home, server)
            done = home.command.json("hosts", "install", "codex", "--yes")
            assert "PreToolUse (untrusted)" in done["next"][0]
            assert "trust" not in config.read_text()  # nor does the installation write it
            found = home.findings("codex", "--real", code=1)
            assert "PreToolUse (untrusted)" in found["trust"]["found"]
            assert found["real run"]["status"] == "ok"
            with ScriptedServer(script) as server:
                self.ask(home, server)
                assert [openings_in(body) for body in turns(server)] == [[], []]

            self.give_trust(home, hooks)
            assert {hook.status for hook in self.trust(home).hooks} == {"trusted"}
            assert home.findings("codex")["trust"]["status"] == "ok"
            with ScriptedServer(script) as server:
                self.ask(home, server)
                assert all(openings_in(body) for body in turns(server))

            # A changed definition needs trust anew; the others keep theirs.
            home.command("config", "set", "hosts.gate_tools", "mcp__pay__*")
            home.command("hosts", "install", "codex", "--yes")
            skipped = {hook.event: hook.status for hook in self.trust(home).skipped}
            assert skipped == {"PreToolUse": "modified"}
        assert home.failures == []
        tidy_up(home, "codex", hooks, before)
        with ScriptedServer(script) as server:
            self.ask(home, server)
            assert [openings_in(body) for body in turns(server)] == [[], []]

    @staticmethod
    def give_trust(home: Home, hooks: Path) -> None:
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

    def test_a_codex_that_was_never_used_stays_so(self, tmp_path: Path) -> None:
        home = Home(tmp_path, client_program("codex"))
        home.command("hosts", "install", "codex", "--yes")
        found = home.findings("codex", code=1)
        assert "not been started" in found["trust"]["found"]
        home.command("hosts", "remove", "codex", "--yes")
        assert not (home.folder / ".codex").exists()


def test_opencode(tmp_path: Path) -> None:
    home = Home(tmp_path, client_program("opencode"))
    line = {"command": "echo hello", "description": "a command"}
    script = {TASK: [calls(("bash", line)), says("Complete.")]}
    with serving(home), ScriptedServer(script) as server:
        home.write(".config/opencode/opencode.json", _opencode_settings(server.url))
        home.command("hosts", "install", "opencode", "--yes")
        assert home.findings("opencode", "--real")["real run"]["status"] == "ok"
        home.run(home.program, "run", TASK, **OFFLINE)
        asked = turns(server)
        assert len(asked) == 2
        assert all("build-index" in json.dumps(body) for body in asked)
        plugin = home.folder / ".config/opencode/plugin"
        tidy_up(home, "opencode", plugin / "journeyman.js", None)
        assert not plugin.exists()
        home.run(home.program, "run", TASK, **OFFLINE)
        assert len(turns(server)) == 4
        assert all("build-index" not in json.dumps(body) for body in turns(server)[2:])
    assert home.failures == []


class TestHermes:
    CONFIG = "# my settings\n" + _HERMES_SETTINGS.partition("plugins:")[0] + "# the end\n"

    def environ(self, home: Home) -> dict[str, str]:
        return {"HERMES_HOME": str(home.folder / ".hermes")}

    def status(self, home: Home) -> str:
        listed = home.run(home.program, "plugins", "list", "--json", **self.environ(home))
        plugins = json.loads(listed[listed.index("[") :])
        found = [one["status"] for one in plugins if one["name"] == "journeyman"]
        return str(found[0]) if found else "unknown"

    def test_the_plugin_is_enabled_and_taken_out(self, tmp_path: Path) -> None:
        home = Home(tmp_path, hermes_program())
        script = {TASK: [calls(("terminal", {"command": "echo hello"})), says("Complete.")]}
        with serving(home), ScriptedServer(script) as server:
            config = home.write(".hermes/config.yaml", self.CONFIG.format(url=server.url))
            before = config.read_bytes()
            assert self.status(home) == "not enabled"
            home.command("hosts", "install", "hermes", "--yes")
            assert self.status(home) == "enabled"
            found = home.findings("hermes", "--real")
            assert "Journeyman" in found["plugin"]["found"]
            assert found["real run"]["status"] == "ok"
            home.run(home.program, "chat", "-Q", "-q", TASK, **self.environ(home))
            assert len(turns(server)) == 2
            assert all("build-index" in json.dumps(body) for body in turns(server))
            tidy_up(home, "hermes", config, before)
            assert self.status(home) == "not enabled"
            home.run(home.program, "chat", "-Q", "-q", TASK, **self.environ(home))
            assert all("build-index" not in json.dumps(body) for body in turns(server)[2:])
        assert home.failures == []

    def test_hermes_writes_its_settings_itself(self, tmp_path: Path) -> None:
        """What Hermes changes while Journeyman is installed stays."""
        home = Home(tmp_path, hermes_program())
        config = home.write(".hermes/config.yaml", "# mine\nmodel:\n  default: x\n")
        home.command("hosts", "install", "hermes", "--yes")
        home.run(home.program, "config", "set", "display.compact", "true", **self.environ(home))
        rewritten = config.read_text()
        assert "compact: true" in rewritten
        assert "Nothing to do" in home.command("hosts", "install", "hermes", "--yes").stdout
        home.command("hosts", "remove", "hermes", "--yes")
        assert config.read_text() == rewritten.replace(
            "plugins:\n  enabled:\n    - journeyman\n", ""
        )
        assert "journeyman" not in config.read_text()

    def test_an_environment_without_journeyman(self, tmp_path: Path) -> None:
        home = Home(tmp_path, client_program("hermes"))
        home.write(".hermes/config.yaml", "model:\n  default: x\n")
        done = home.command.json("hosts", "install", "hermes", "--yes")
        assert f"{home.program.parent}/python" in done["next"][0]
        assert "-m pip install" in done["next"][0]
        found = home.findings("hermes", code=1)
        assert "-m pip install" in found["plugin"]["advice"]
