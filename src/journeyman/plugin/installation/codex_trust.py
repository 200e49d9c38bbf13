"""Whether Codex trusts Journeyman's hooks. It skips hooks that a person has not trusted, without a
word; its app server tells which those are. The trust itself is for the person to give.
"""

import json
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from journeyman.plugin.installation.hooks_file import is_own_command
from journeyman.version import __version__

_ANSWER_S = 20.0
_TRUSTED = ("trusted", "managed")

_HOW_TO_TRUST = (
    "Start `codex` in a terminal: it says that hooks need review. Look at the commands, then "
    "choose to trust them; `/hooks` shows them later."
)


class Step(Struct, frozen=True, kw_only=True):
    """Something that is left for a person to do: why, in sentences, and the command, or how it is
    done without one.
    """

    text: str
    advice: str


def steps(program: str, folder: Path, environ: Mapping[str, str]) -> Iterator[Step]:
    """Return what makes Codex run Journeyman's hooks. One that has never used its folder is not
    asked: it would fill a folder that only has those hooks.
    """
    was_used = folder.is_dir() and any(path.name != "hooks.json" for path in folder.iterdir())
    if not program or not was_used:
        yield Step(text="Codex runs hooks only after you trust them.", advice=_HOW_TO_TRUST)
        return
    found = read_hooks(program, environ, Path.cwd())
    if found is None:
        return
    if not found:
        text = "Codex does not see Journeyman's hooks."
        yield Step(text=text, advice="`codex features list` shows whether hooks are on.")
    skipped = [f"{event} ({state})" for event, state in found.items() if state not in _TRUSTED]
    if skipped:
        text = f"Codex does not run these hooks before you trust them: {', '.join(skipped)}."
        yield Step(text=text, advice=_HOW_TO_TRUST)


def read_hooks(
    program: str, environ: Mapping[str, str], folder: Path, *, timeout_s: float = _ANSWER_S
) -> dict[str, str] | None:
    """Ask Codex about Journeyman's hooks in a folder. Return the state of each by its event:
    trusted, untrusted, modified or disabled; None if Codex does not answer.
    """
    client = {"name": "journeyman", "title": "Journeyman", "version": __version__}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": client}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(folder)]}},
    ]
    try:
        with subprocess.Popen(  # noqa: S603 - a program that the user has installed
            [program, "app-server"],
            env=dict(environ),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            timer = threading.Timer(timeout_s, process.kill)
            timer.daemon = True
            timer.start()
            process.stdin.writelines(json.dumps(one).encode() + b"\n" for one in messages)
            process.stdin.flush()
            answers = map(json.loads, process.stdout)
            result = next(one["result"] for one in answers if one.get("id") == 2)
        timer.cancel()
        return _read(result)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return None


def _read(result: Any) -> dict[str, str]:
    (found,) = result["data"]
    return {
        f"{hook['eventName'][:1].upper()}{hook['eventName'][1:]}": hook["trustStatus"]
        if hook.get("enabled", True)
        else "disabled"
        for hook in found["hooks"]
        if is_own_command(hook.get("command"))
    }
