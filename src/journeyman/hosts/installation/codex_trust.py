"""Whether Codex trusts Journeyman's hooks. It skips hooks that a person has not trusted, without a
word; its app server tells which those are. The trust itself is for the person to give.
"""

import json
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from journeyman.hosts.installation.hooks_file import is_own_command
from journeyman.version import __version__

ANSWER_S = 20.0
_TRUSTED = ("trusted", "managed")

HOW_TO_TRUST = (
    "Start `codex` in a terminal: it says that hooks need review. Look at the commands, then "
    "choose to trust them; `/hooks` shows them later."
)
NOT_SEEN = "Codex does not see Journeyman's hooks."
HOW_TO_SEE = "`codex features list` shows whether hooks are on."


class HookTrust(Struct, frozen=True, kw_only=True):
    """A hook of Journeyman as Codex sees it: `status` is trusted, untrusted or modified."""

    event: str
    command: str
    status: str
    is_enabled: bool = True

    @property
    def runs(self) -> bool:
        return self.status in _TRUSTED and self.is_enabled


class CodexHooks(Struct, frozen=True, kw_only=True):
    """What Codex says about its hooks: those of Journeyman, and what it could not read."""

    hooks: tuple[HookTrust, ...]
    warnings: tuple[str, ...] = ()

    @property
    def skipped(self) -> tuple[HookTrust, ...]:
        """The hooks that Codex does not run."""
        return tuple(hook for hook in self.hooks if not hook.runs)


def has_run(folder: Path) -> bool:
    """Return whether Codex has ever used its folder. Asking it would fill a folder that only has
    Journeyman's hooks.
    """
    return folder.is_dir() and any(path.name != "hooks.json" for path in folder.iterdir())


def read_hooks(
    program: str, environ: Mapping[str, str], folder: Path, *, timeout_s: float = ANSWER_S
) -> CodexHooks | None:
    """Ask Codex about the hooks that hold in a folder; None if it does not answer."""
    question = {"cwds": [str(folder)]}
    client = {"name": "journeyman", "title": "Journeyman", "version": __version__}
    try:
        with subprocess.Popen(  # noqa: S603 - a program that the user has installed
            [program, "app-server"],
            env=dict(environ),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            timer = threading.Timer(timeout_s, process.kill)
            timer.start()
            try:
                _ask(process, 1, "initialize", {"clientInfo": client})
                _send(process, {"method": "initialized"})
                return _read(_ask(process, 2, "hooks/list", question))
            finally:
                assert process.stdin is not None
                process.stdin.close()  # that ends it
                process.wait()
                timer.cancel()
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _send(process: "subprocess.Popen[bytes]", message: Mapping[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def _ask(
    process: "subprocess.Popen[bytes]", number: int, method: str, parameters: Mapping[str, Any]
) -> Any:
    """Return the result of a request; notifications in between are passed over."""
    _send(process, {"id": number, "method": method, "params": parameters})
    assert process.stdout is not None
    for line in process.stdout:
        answer = json.loads(line)
        if answer.get("id") == number:
            return answer["result"]
    raise ValueError("the app server ended")


def _read(result: Any) -> CodexHooks:
    (found,) = result["data"]
    own = [hook for hook in found["hooks"] if is_own_command(hook.get("command"))]
    return CodexHooks(
        hooks=tuple(
            HookTrust(
                event=hook["eventName"][:1].upper() + hook["eventName"][1:],
                command=hook["command"],
                status=hook["trustStatus"],
                is_enabled=hook.get("enabled", True),
            )
            for hook in own
        ),
        warnings=(*found.get("warnings", ()), *map(str, found.get("errors", ()))),
    )
