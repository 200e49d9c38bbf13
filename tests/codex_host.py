"""The real Codex with Journeyman's hooks, for tests, and what its rollouts say."""

import json
from pathlib import Path
from typing import Any

from tests.clients import ClientHome, client_program, json_lines
from tests.hosts import HostHome

from journeyman.models.model import Reply
from journeyman.testing import ScriptedServer, calls

CONFIG = """
model = "any-name"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "{base_url}"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
supports_websockets = false
[analytics]
enabled = false
"""


def configure_codex(
    home: ClientHome, server: ScriptedServer, compact_after: int | None = None
) -> None:
    """Make a home's Codex use a scripted model, and compact its context after so many tokens."""
    limit = f"model_auto_compact_token_limit = {compact_after}\n" if compact_after else ""
    home.write(".codex/config.toml", limit + CONFIG.format(base_url=server.base_url))


def run_codex(home: ClientHome, *arguments: str, trusted: bool = True) -> list[dict[str, Any]]:
    """Run `codex exec` with all hooks trusted, or only those that a person trusted; return the
    events that it printed.
    """
    flags = ["--json", *(["--dangerously-bypass-hook-trust"] if trusted else [])]
    printed = home.run(
        client_program("codex"),
        *("exec", *arguments[:-1], *flags, arguments[-1]),
        SCRIPTED_KEY="none",
    )
    return [json.loads(line) for line in printed.splitlines()]


def payloads(folder: Path, session: str = "") -> list[dict[str, Any]]:
    """The lines of all rollouts in a home, or of one session's."""
    paths = (folder / ".codex/sessions").rglob(f"*{session}.jsonl")
    return [line["payload"] for line in json_lines(paths)]


def tokens(lines: list[dict[str, Any]]) -> dict[str, int]:
    """The tokens of all answers in the lines."""
    used = [payload["usage"] for payload in lines if "response_id" in payload]
    kinds = ("input_tokens", "output_tokens")
    return {kind: sum(usage[kind] for usage in used) for kind in kinds}


def shell(line: str) -> Reply:
    """A reply that runs a command."""
    return calls(("exec_command", {"cmd": line}))


class CodexHome(HostHome):
    """A home with Codex, Journeyman's hooks and experience of the work folder. `key` is that of a
    person who may decide.
    """

    def __init__(self, folder: Path, **hosts: object) -> None:
        super().__init__(folder)
        self.configure(**{"start": "never", **hosts})
        self.write_experience()
        self.key = self.install("codex")

    def ask(self, server: ScriptedServer, *arguments: str) -> str:
        """Have Codex work, and return the session's id."""
        configure_codex(self, server)
        thread: str = run_codex(self, *arguments)[0]["thread_id"]
        return thread

    def stored_whole(self, session: str) -> Any:
        """Wait until a session is stored with all calls and tokens of its rollout."""

        def is_whole(one: Any) -> bool:
            lines = payloads(self.folder, session)
            counted = {kind: one["tokens"][kind] for kind in ("input_tokens", "output_tokens")}
            made = [payload for payload in lines if payload.get("type") == "function_call"]
            return one["calls"] == len(made) and counted == tokens(lines)

        return self.stored(session, is_whole)
