"""The programs of hosts on this machine."""

import json
import os
import sys
from importlib.metadata import entry_points
from pathlib import Path

from tests.program import PYTHON_SCRIPT
from tests.tables import table

from journeyman.hosts.codex import hook_hash
from journeyman.hosts.programs import find_program, host_file
from journeyman.plugin.installation.codex_trust import states
from journeyman.plugin.installation.hermes_environment import (
    HermesEnvironment,
    find_environment,
    find_interpreter,
)
from journeyman.version import __version__


def write_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o700)
    return path


def test_the_version_is_asked_in_another_home(tmp_path: Path) -> None:
    write_program(tmp_path / "bin/claude", "#!/bin/sh\necho '2.1.326 (Claude Code)' >$HOME/x\n")
    write_program(tmp_path / "bin/codex", "#!/bin/sh\n>$HOME/touched; echo codex-cli 0.169.0\n")
    environ = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path)}
    found = find_program("codex", environ)
    assert found.path == str(tmp_path / "bin/codex")
    assert found.version == "0.169.0"
    assert not (tmp_path / "touched").exists()
    silent = find_program("claude-code", environ)
    assert silent.path
    assert silent.version == ""
    assert find_program("opencode", environ).path == ""


@table(
    ("host", "environ", "file"),
    [
        ("claude-code", {"HOME": "/u"}, "/u/.claude/settings.json"),
        ("claude-code", {"HOME": "/u", "CLAUDE_CONFIG_DIR": "/c"}, "/c/settings.json"),
        ("codex", {"HOME": "/u", "CODEX_HOME": "/x"}, "/x/hooks.json"),
        ("opencode", {"HOME": "/u"}, "/u/.config/opencode/plugin/journeyman.js"),
        ("opencode", {"XDG_CONFIG_HOME": "/x"}, "/x/opencode/plugin/journeyman.js"),
        ("hermes", {"HOME": "/u", "HERMES_HOME": ""}, "/u/.hermes/config.yaml"),
    ],
)
def test_the_file_of_a_host(host: str, environ: dict[str, str], file: str) -> None:
    assert host_file(host, environ) == Path(file)


class TestHermes:
    def test_the_interpreter_of_a_program(self, tmp_path: Path) -> None:
        environ = {"PATH": str(tmp_path)}
        python = write_program(tmp_path / "python3", "")
        program = write_program(
            tmp_path / "venv/bin/hermes", "#!/a/venv/bin/python3.11\nimport x\n"
        )
        long = write_program(
            tmp_path / "long", '#!/bin/sh\n\'\'\'exec\' "/a b/python3" "$0" "$@"\n'
        )
        (tmp_path / "link").symlink_to(program)
        texts = {
            program: "/a/venv/bin/python3.11",
            tmp_path / "link": "/a/venv/bin/python3.11",
            long: "/a b/python3",
            write_program(tmp_path / "env", "#!/usr/bin/env python3\n"): str(python),
            write_program(
                tmp_path / "wrapper", f'#!/bin/sh\nexport A=1\nexec "{program}" "$@"\n'
            ): "/a/venv/bin/python3.11",
            write_program(
                tmp_path / "module", "#!/bin/bash\nexec /b/python -m hermes\n"
            ): "/b/python",
            write_program(tmp_path / "binary", "\x7fELF"): "",
            write_program(tmp_path / "self", f'#!/bin/sh\nexec "{tmp_path / "self"}"\n'): "",
            tmp_path / "missing": "",
        }
        assert {path: find_interpreter(path, environ) for path in texts} == texts

    def test_what_its_environment_says(self, tmp_path: Path) -> None:
        program = write_program(tmp_path / "hermes", PYTHON_SCRIPT)
        found = find_environment(str(program), os.environ)
        assert found is not None
        assert found.python == sys.executable
        assert found.version == __version__
        points = entry_points(group="hermes_agent.plugins", name="journeyman")
        assert found.is_plugin == bool(points)
        assert find_environment(str(tmp_path / "missing"), os.environ) is None

    def test_what_to_run(self) -> None:
        with_pip = HermesEnvironment(python="/a b/python")
        assert with_pip.install_command.startswith("'/a b/python' -m pip install ")
        without = HermesEnvironment(python="/v/python", has_pip=False)
        assert without.install_command.startswith("uv pip install --python /v/python ")


def test_codex_runs_only_hooks_that_a_person_trusts(tmp_path: Path) -> None:
    command = "/p -I -S /x/journeyman/plugin/client.py /h codex Stop"
    own, other = ({"type": "command", "command": one} for one in (command, "other"))
    groups = [{"hooks": [other]}, {"hooks": [own]}]
    hooks = tmp_path / "hooks.json"
    hooks.write_text(json.dumps({"hooks": {"Stop": groups}}))
    assert states(tmp_path) == {"Stop": "untrusted"}

    digest = hook_hash("stop", groups[1], own)
    config = tmp_path / "config.toml"
    trusted = f'[hooks.state."{hooks}:stop:1:0"]\ntrusted_hash = "{digest}"\n'
    config.write_text(trusted)
    assert states(tmp_path) == {"Stop": ""}
    config.write_text(f"{trusted}enabled = false\n")
    assert states(tmp_path) == {"Stop": "disabled"}
    config.write_text(trusted.replace(digest, "sha256:0"))
    assert states(tmp_path) == {"Stop": "modified"}
    config.write_text("no settings")
    assert states(tmp_path) == {}
