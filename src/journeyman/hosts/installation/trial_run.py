"""A trial run of a host's real program with Journeyman installed: against a scripted model server
on this machine, with a configuration and a project of its own. It shows what arrives at the model.
"""

import json
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from journeyman.facade.finding import Finding
from journeyman.hosts.installation.file_change import read_file
from journeyman.hosts.installation.hooks_file import own_hooks
from journeyman.hosts.installation.installer import Installer
from journeyman.hosts.installation.programs import KINDS
from journeyman.hosts.installation.record import CHECK_FOLDER
from journeyman.records.host import Host
from journeyman.records.opening_marks import BEGIN_MARK
from journeyman.templates.briefing import is_briefing
from journeyman.templates.opening_text import announced_examples
from journeyman.testing import ScriptedServer, calls, says

_LIMIT_S = 180.0
_HARMLESS = "echo journeyman-check"
_CALLS: Mapping[Host, tuple[str, dict[str, Any]]] = {
    "claude-code": ("Bash", {"command": _HARMLESS}),
    "codex": ("exec_command", {"cmd": _HARMLESS}),
    "opencode": ("bash", {"command": _HARMLESS, "description": "a check"}),
    "hermes": ("terminal", {"command": _HARMLESS}),
}
_SESSION = re.compile(
    r"\"(?:session_id|thread_id|sessionID)\":\s*\"([\w-]+)\"|^session_id: (\S+)", re.MULTILINE
)
_CODEX_SETTINGS = """\
model = "scripted"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
supports_websockets = false
[analytics]
enabled = false
"""
_HERMES_SETTINGS = """\
model:
  default: scripted
  provider: custom
  base_url: {url}/v1
  api_key: none
  context_length: 131072
approvals:
  mode: "off"
security:
  allow_lazy_installs: false
  tirith_enabled: false
plugins:
  enabled:
    - journeyman
"""


class TrialRun(Struct, frozen=True, kw_only=True):
    """What a run has shown, and the ids of its sessions."""

    findings: tuple[Finding, ...]
    sessions: tuple[str, ...] = ()


class _Command(Struct, frozen=True, kw_only=True):
    words: Sequence[str]
    environ: Mapping[str, str]


def run_host(installer: Installer, host: Host, task: str) -> TrialRun:
    """Run a host's program once with a task, and return what arrived at its model."""
    program = installer.program(host).path
    if not program:
        text = f"{KINDS[host].program} is not on the search path, so it cannot be run."
        return TrialRun(findings=(Finding("real run", "problem", text, "Install it."),))
    script = {".": [calls(_CALLS[host]), says("The check is done.")]}
    with (
        tempfile.TemporaryDirectory(prefix=CHECK_FOLDER, ignore_cleanup_errors=True) as name,
        ScriptedServer(script) as server,
    ):
        folder = Path(name).resolve()
        project = folder / "project"
        _write_project(project)
        command = _prepare(installer, host, folder, server.url, task)
        began = time.monotonic()
        try:
            done = subprocess.run(  # noqa: S603 - the program that is checked
                [program, *command.words],
                cwd=project,
                env=dict(command.environ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_LIMIT_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            found = Finding("real run", "problem", f"{program} did not run: {error}.")
            return TrialRun(findings=(found,))
        seconds = time.monotonic() - began
        bodies = [request.body for request in server.requests]
    output = f"{done.stdout}\n{done.stderr}"
    sessions = tuple(dict.fromkeys(first or second for first, second in _SESSION.findall(output)))
    findings = _judge(bodies, done.returncode, seconds, output)
    return TrialRun(findings=tuple(findings), sessions=sessions)


def _judge(bodies: Sequence[Any], code: int, seconds: float, output: str) -> Iterator[Finding]:
    last = (output.strip().splitlines() or [""])[-1][:200]
    if code or not bodies:
        found = f"It exited with {code} after {len(bodies)} requests: {last}"
        yield Finding("real run", "problem", found, "Run the program by hand to see why.")
        return
    found = f"It made {len(bodies)} requests in {seconds:.1f} s, and ended without an error."
    yield Finding("real run", "ok", found)
    # Programs also ask for titles and the like; what has tools is the conversation.
    turns = [body for body in bodies if body.get("tools")]
    openings = [[*filter(None, map(_opening_in, _texts(body)))] for body in turns]
    size = sum(map(len, openings[0])) if openings else 0
    if not any(openings):
        found = "Nothing of Journeyman arrived at the model: nothing learned fits here."
        yield Finding("opening", "note", found, "journeyman open shows why, for a task and folder.")
    elif all(one == openings[0] for one in openings):
        found = f"{size:,} characters arrived at the model, the same in all {len(turns)} requests."
        yield Finding("opening", "ok", found)
    else:
        found = "The opening is not the same in all requests of the session."
        yield Finding("opening", "problem", found, "journeyman hosts report")
    results = [text for body in turns[1:] for text in _texts(body) if "journeyman-check" in text]
    blocked = [text for text in results if "Blocked by Journeyman" in text]
    if blocked:
        yield Finding("gate", "problem", f"A harmless call was blocked: {blocked[0][:200]}")


def _opening_in(text: str) -> str:
    """Return the part of a text that is an opening: between its marks or, where a plugin added it
    to a system text, from its first words on.
    """
    mark = BEGIN_MARK.search(text)
    if mark is not None:
        end = mark[0].replace("begin here", "end here")
        return text[mark.start() : text.find(end) % (len(text) + 1)]
    if not (is_briefing(text) or announced_examples(text)):
        return ""
    return text[text.find("Journeyman") :]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _write_project(folder: Path) -> None:
    """Create a repository without files that counts as the current project, by its remote address
    and its first commit.
    """

    def git(*words: str) -> str:
        """Return what git prints; empty if it fails."""
        command = ["git", *words]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)  # noqa: S603
        return done.stdout.strip() if done.returncode == 0 else ""

    if address := git("remote", "get-url", "origin"):
        source = git("rev-parse", "--git-common-dir")
        git("clone", "-q", "--shared", "--no-checkout", source, str(folder))
        git("-C", str(folder), "remote", "set-url", "origin", address)
    git("init", "-q", str(folder))


def _prepare(installer: Installer, host: Host, folder: Path, url: str, task: str) -> _Command:
    """Write the configuration of a run below a folder, and return the command line."""
    kept = ("PATH", "LANG", "LC_ALL", "TMPDIR")
    environ = {name: installer.environ[name] for name in kept if name in installer.environ}
    environ |= {"HOME": str(folder), "TERM": "dumb", "JOURNEYMAN_HOME": str(installer.home)}
    if host == "claude-code":
        _write(folder / "claude/settings.json", json.dumps({"hooks": _own_groups(installer, host)}))
        environ |= {
            "CLAUDE_CONFIG_DIR": str(folder / "claude"),
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        words = ["-p", task, "--output-format", "json", "--allowedTools", "Bash"]
    elif host == "codex":
        _write(folder / "codex/hooks.json", json.dumps({"hooks": _own_groups(installer, host)}))
        _write(folder / "codex/config.toml", _CODEX_SETTINGS.format(url=url))
        environ |= {"CODEX_HOME": str(folder / "codex"), "SCRIPTED_KEY": "none"}
        words = ["exec", "--json", "--dangerously-bypass-hook-trust", task]
    elif host == "opencode":
        content = read_file(installer.target(host).path) or b""
        _write(folder / ".config/opencode/plugin/journeyman.js", content.decode())
        _write(folder / ".config/opencode/opencode.json", json.dumps(_opencode_settings(url)))
        names = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD")
        environ |= {f"OPENCODE_DISABLE_{name}": "1" for name in names}
        words = ["run", "--format", "json", task]
    else:
        _write(folder / "hermes/config.yaml", _HERMES_SETTINGS.format(url=url))
        environ |= {"HERMES_HOME": str(folder / "hermes")}
        words = ["chat", "-Q", "-q", task]
    return _Command(words=words, environ=environ)


def _own_groups(installer: Installer, host: Host) -> dict[str, Any]:
    """Return Journeyman's hooks in the host's file, without those of others."""
    text = (read_file(installer.target(host).path) or b"{}").decode("utf-8-sig")
    groups = json.loads(text).get("hooks", {})
    return {
        hook.event: [{**groups[hook.event][hook.group], "hooks": [hook.settings]}]
        for hook in own_hooks(text)
    }


def _opencode_settings(url: str) -> dict[str, Any]:
    limit = {"context": 128_000, "output": 8_192}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
        "models": {"m1": {"name": "m1", "tool_call": True, "limit": limit}},
    }
    return {
        "autoupdate": False,
        "share": "disabled",
        "model": "scripted/m1",
        "small_model": "scripted/m1",
        "enabled_providers": ["scripted"],
        "provider": {"scripted": provider},
    }


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
