"""`journeyman hosts`: installed into hosts, listed, checked and removed, in a home of its own."""

import json
import os
import pty
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.hosts import HostHome, serving
from tests.program import Command
from tests.tables import table
from tests.waiting import LONGEST_S

from journeyman import Journeyman
from journeyman.hosts.codex import event_key, hook_hash
from journeyman.plugin.installation.record import read_record

FILES = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "opencode": ".config/opencode/plugin/journeyman.js",
}
SETTINGS = '{\n    "model":  "opus",\r\n    "hooks": {"Stop": [{"hooks": []}]}\n}'


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, except those in Journeyman's home."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".journeyman" not in path.parts
    }


def own_commands(file: Path) -> list[list[str]]:
    hooks = json.loads(file.read_bytes())["hooks"]
    commands = [
        hook["command"] for groups in hooks.values() for group in groups for hook in group["hooks"]
    ]
    return [shlex.split(line) for line in commands if "journeyman/plugin/client.py" in line]


@pytest.fixture
def person(command: Command) -> Command:
    """A person with settings of Claude Code."""
    path = command.home / FILES["claude-code"]
    path.parent.mkdir(parents=True)
    path.write_bytes(SETTINGS.encode())
    return command


def on_terminal(program: Command, typed: str, *arguments: str) -> str:
    """The output for a person who types this."""
    ours, theirs = pty.openpty()
    os.write(ours, typed.encode())
    done = subprocess.run(
        [sys.executable, "-m", "journeyman", *arguments],
        env=program.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=program.home,
        stdin=theirs,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
    )
    for end in (ours, theirs):
        os.close(end)
    return done.stdout + done.stderr


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


CODEX = "#!/bin/sh\necho codex-cli 0.169.0\n"


class TestActivity:
    """Whether a host uses what is installed, as the host itself says."""

    @staticmethod
    def codex(person: Command) -> Any:
        findings = {
            one["what"]: one for one in json.loads(person("doctor", "--json", code=None).stdout)
        }
        listed = {one["name"]: one for one in person.json("hosts", "list")}
        return listed["codex"], findings["host: codex"]

    def test_codex_does_not_run_hooks_before_they_are_trusted(
        self, person: Command, tmp_path: Path
    ) -> None:
        program = tmp_path / "bin/codex"
        person.environ["PATH"] = f"{program.parent}:/usr/bin:/bin"
        write_program(program, CODEX)
        person("hosts", "install", "codex", "--yes")
        listed, finding = self.codex(person)
        assert listed["state"] == "not active"
        assert "PreToolUse (untrusted)" in listed["problem"]
        assert "Start `codex` in a terminal" in listed["advice"]
        assert (finding["status"], finding["found"]) == ("problem", listed["problem"])
        self.trust_all(person.home / ".codex")
        listed, finding = self.codex(person)
        assert (listed["state"], finding["status"]) == ("installed", "ok")

    @staticmethod
    def trust_all(folder: Path) -> None:
        """Trust all hooks, as Codex writes it."""
        lines = []
        for event, groups in json.loads((folder / "hooks.json").read_bytes())["hooks"].items():
            (group,) = groups
            key = event_key(event)
            digest = hook_hash(key, group, group["hooks"][0])
            place = f"{folder / 'hooks.json'}:{key}:0:0"
            lines.append(f'[hooks.state."{place}"]\ntrusted_hash = "{digest}"\n')
        (folder / "config.toml").write_text("".join(lines))


class TestInstallation:
    def test_everything_is_as_before_after_a_removal(self, person: Command) -> None:
        before = files_below(person.home)
        for name, file in FILES.items():
            shown = person("hosts", "install", name, "--print").stdout
            assert f"+++ {person.home / file}" in shown
            assert files_below(person.home) == before
        assert not (person.home / ".journeyman").exists()
        for name, file in FILES.items():
            assert "Written to" in person("hosts", "install", name, "--yes").stdout
            written = (person.home / file).read_bytes()
            again = person("hosts", "install", name, "--yes")
            assert "Nothing to do" in again.stdout
            assert (person.home / file).read_bytes() == written
        listed = {one["name"]: one for one in person.json("hosts", "list")}
        assert {listed[name]["state"] for name in FILES} == {"installed"}
        assert listed["codex"]["parts"] == ["opening", "gate", "import"]
        for name in reversed(FILES):
            assert "Removed" in person("hosts", "remove", name, "--yes").stdout
        assert files_below(person.home) == before
        assert not [*(person.home / ".journeyman/hosts").rglob("*.json")]
        assert {one["state"] for one in person.json("hosts", "list")} == {"not installed"}
        assert "Nothing to do" in person("hosts", "remove", "codex").stdout

    def test_a_person_is_asked(self, person: Command) -> None:
        before = files_below(person.home)
        said = on_terminal(person, "n\n", "hosts", "install", "claude-code")
        assert '+  "hooks"' in said or '"SessionStart"' in said
        assert "Not confirmed. Nothing was changed." in said
        assert files_below(person.home) == before
        said = on_terminal(person, "y\nn\n", "hosts", "install", "claude-code")
        assert "Written to" in said
        assert "500,000 tokens" in said
        assert "Removed from" in on_terminal(person, "y\n", "hosts", "remove", "claude-code")
        assert files_below(person.home) == before
        for typed, setting in (("y\ny\n", "propose"), ("y\n", "off")):
            more = () if setting == "propose" else ("--review", "off")
            on_terminal(person, typed, "hosts", "install", "claude-code", *more)
            assert person.json("config", "show", "hosts.review")[0]["value"] == setting
            person("hosts", "remove", "claude-code", "--yes")
        refused = person("hosts", "install", "claude-code", code=2)
        assert "--print to see what would change" in refused.stderr

    def test_parts_can_be_left_out(self, person: Command) -> None:
        settings = person.home / FILES["claude-code"]
        person("hosts", "install", "claude-code", "--no-gate", "--no-import", "--yes")
        events = {command[6] for command in own_commands(settings)}
        assert events == {"SessionStart", "UserPromptSubmit", "PostToolUseFailure"}
        person("hosts", "install", "claude-code", "--no-opening", "--yes")
        events = {command[6] for command in own_commands(settings)}
        assert events == {"PreToolUse", "Stop", "SessionEnd"}
        flags = ("--no-opening", "--no-gate", "--no-import")
        nothing = person("hosts", "install", "claude-code", *flags, code=1)
        assert "No part is left" in nothing.stderr
        person("hosts", "remove", "claude-code", "--yes")
        assert settings.read_bytes() == SETTINGS.encode()

    def test_other_settings_are_an_update(self, person: Command) -> None:
        person("hosts", "install", "claude-code", "--no-import", "--yes")
        person("config", "set", "hosts.gate_tools", "mcp__pay__*")
        person("config", "set", "hosts.confirm_timeout_s", "120")
        (listed,) = [one for one in person.json("hosts", "list") if one["name"] == "claude-code"]
        assert listed["state"] == "outdated"
        assert listed["advice"] == "journeyman hosts install claude-code --no-import"
        person(*listed["advice"].split()[1:], "--yes")
        text = (person.home / FILES["claude-code"]).read_text()
        assert "mcp__pay__.*" in text
        assert '"timeout": 180' in text
        assert " PreToolUse 150" in text
        record = read_record(person.home / ".journeyman", "claude-code")
        assert record is not None
        assert record.gate_tools == ("mcp__pay__*",)


class TestSafety:
    @table(
        ("name", "text", "clause"),
        [
            ("claude-code", '{"a": 1, // mine\n}', "it is not plain JSON"),
            ("claude-code", '{"hooks": 3}', '"hooks" is not an object'),
            ("codex", '{"hooks": {', "it is not plain JSON"),
        ],
    )
    def test_a_broken_file_is_left_alone(
        self, command: Command, name: str, text: str, clause: str
    ) -> None:
        path = command.home / FILES[name]
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        for arguments in (("install", name, "--yes"), ("install", name, "--print")):
            done = command("hosts", *arguments, code=1)
            assert clause in done.stderr
            assert "Nothing was changed" in done.stderr
        assert path.read_text() == text
        listed = {one["name"]: one for one in command.json("hosts", "list")}
        assert listed[name]["state"] == "unreadable"
        assert clause in listed[name]["problem"]
        table_, _, below = command("hosts", "list").stdout.partition(f"\n\n{name}: ")
        assert "Nothing was changed" not in table_
        assert clause in below
        path.unlink()

    def test_a_file_that_cannot_be_written(self, person: Command) -> None:
        if os.geteuid() == 0:
            folder = person.home / ".codex"
            folder.write_text("a file where a folder should be")
            done = person("hosts", "install", "codex", "--yes", code=1)
            assert "Nothing was changed" in done.stderr
            with Journeyman(home=person.home / ".journeyman") as journeyman:
                agents = journeyman.confirmations.credentials("agent")
                assert [agent.name for agent in agents if not agent.revoked_at] == []
            assert read_record(person.home / ".journeyman", "codex") is None

    def test_records_and_copies_are_private(self, person: Command) -> None:
        person("hosts", "install", "claude-code", "--yes")
        folder = person.home / ".journeyman/hosts"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        copies = [*(folder / "originals").iterdir()]
        assert [copy.read_bytes() for copy in copies] == [SETTINGS.encode()]
        for path in (folder / "claude-code.json", *copies):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_another_configuration_folder_is_not_mixed_up(
        self, person: Command, tmp_path: Path
    ) -> None:
        person("hosts", "install", "claude-code", "--yes")
        other = {"CLAUDE_CONFIG_DIR": str(tmp_path / "other")}
        done = person("hosts", "install", "claude-code", "--yes", code=1, **other)
        assert "hosts remove claude-code" in done.stderr
        person("hosts", "remove", "claude-code", "--yes", **other)
        assert (person.home / FILES["claude-code"]).read_bytes() == SETTINGS.encode()

    def test_entries_of_a_lost_home_can_be_taken_over_and_removed(
        self, person: Command, tmp_path: Path
    ) -> None:
        person("--home", tmp_path / "lost", "hosts", "install", "claude-code", "--yes")
        listed = {one["name"]: one for one in person.json("hosts", "list")}
        assert listed["claude-code"]["state"] == "outdated"
        person("hosts", "install", "claude-code", "--yes")
        commands = own_commands(person.home / FILES["claude-code"])
        assert {command[4] for command in commands} == {str(person.home / ".journeyman")}
        person("hosts", "remove", "claude-code", "--yes")
        left = json.loads((person.home / FILES["claude-code"]).read_bytes())
        assert left == json.loads(SETTINGS)


class TestTokens:
    @staticmethod
    def agents(person: Command) -> list[str]:
        with Journeyman(home=person.home / ".journeyman") as journeyman:
            known = journeyman.confirmations.credentials("agent")
            return sorted(agent.name for agent in known if not agent.revoked_at)

    def test_a_host_has_a_token_while_its_gate_is_installed(self, person: Command) -> None:
        home = person.home / ".journeyman"
        person("hosts", "install", "codex", "--yes")
        first = read_record(home, "codex")
        assert first is not None
        assert first.token.startswith("jma_")
        person("hosts", "install", "codex", "--no-import", "--yes")
        again = read_record(home, "codex")
        assert again is not None
        assert again.token == first.token
        person("hosts", "install", "codex", "--no-gate", "--yes")
        without = read_record(home, "codex")
        assert without is not None
        assert without.token == ""
        assert self.agents(person) == []
        person("hosts", "install", "codex", "--yes")
        assert self.agents(person) == ["codex"]
        person("hosts", "remove", "codex", "--yes")
        assert self.agents(person) == []


class TestCheck:
    @pytest.fixture
    def home(self, tmp_path: Path) -> HostHome:
        home = HostHome(tmp_path)
        home.configure(start="never")
        home.write_experience()
        home.command("hosts", "install", "claude-code", "--yes")
        home.command("confirm", "approver", "add", "ann")
        return home

    @staticmethod
    def findings(home: HostHome, *arguments: str, code: int = 0) -> dict[str, Any]:
        found = home.command.json("hosts", "check", *arguments, code=code)
        return {one["what"]: one for one in found}

    def test_hooks_are_answered_by_the_resident_process(self, home: HostHome) -> None:
        home.command.environ["PATH"] = "/usr/bin:/bin"
        with serving(home) as resident:
            found = self.findings(home, "claude-code")
            assert found["engine: claude-code"]["status"] == "note"
            for what in ("host: claude-code", "SessionStart", "UserPromptSubmit", "PreToolUse"):
                assert found[what]["status"] == "ok", found[what]
            assert "lets a harmless call pass" in found["PreToolUse"]["found"]
            assert f"process {resident.status['pid']}" in found["resident process"]["found"]
            assert found["confirmations"]["status"] == "ok"
            (reported,) = home.command.json("hosts", "report")
            assert reported["tokens_added"] == 0  # a check leaves nothing behind
            assert reported["warm"] == 0

            home.command("confirm", "token", "revoke", "claude-code")
            time.sleep(1.1)  # the service knows a token for a second
            found = self.findings(home, "claude-code", code=1)
            assert "hosts install claude-code" in found["confirmations"]["advice"]

    def test_a_service_of_another_home_is_recognised(self, home: HostHome) -> None:
        def confirmations(*arguments: str, code: int = 0) -> str:
            found = home.command.json(*arguments, code=code)
            return next(one["found"] for one in found if one["what"] == "confirmations")

        with serving(home):
            assert "served on ports" in confirmations("doctor")
            other = home.folder / "other home"
            other.mkdir()
            shutil.copy(home.folder / ".journeyman" / "config.toml", other)
            home.command.environ["JOURNEYMAN_HOME"] = str(other)
            home.command("hosts", "install", "claude-code", "--yes")
            assert "service of another Journeyman home" in confirmations("doctor")
            found = confirmations("hosts", "check", "claude-code", code=1)
            assert "service of another Journeyman home" in found

    @pytest.mark.soak
    def test_a_process_that_hangs(self, home: HostHome) -> None:
        with serving(home) as resident:
            pid = resident.status["pid"]
            os.kill(pid, signal.SIGSTOP)
            try:
                found = self.findings(home, "claude-code", code=1)
                assert found["resident process"]["status"] == "problem"
                assert f"process {pid}" in found["resident process"]["found"]
                assert found["resident process"]["advice"].endswith(f"kill -KILL {pid}")
            finally:
                os.kill(pid, signal.SIGCONT)

    def test_what_is_wrong_is_said(self, home: HostHome) -> None:
        missing = home.command("hosts", "check", "codex", code=1).stderr
        assert "Run: journeyman hosts install codex" in missing
        settings = home.folder / FILES["claude-code"]
        text = settings.read_text()
        settings.write_text(text.replace(sys.executable, "/nonexistent/python"))
        found = self.findings(home, "claude-code", code=1)
        assert found["host: claude-code"]["advice"] == "journeyman hosts install claude-code"
        for event in ("SessionStart", "PreToolUse"):
            assert "exited with 127" in found[event]["found"]
        value = {**json.loads(text), "disableAllHooks": True}
        settings.write_text(json.dumps(value))
        found = self.findings(home, "claude-code", code=1)
        assert "disableAllHooks" in found["settings"]["found"]
        settings.write_text("{,}")
        found = self.findings(home, "claude-code", code=1)
        assert found["host: claude-code"]["status"] == "problem"
