"""Whether Codex trusts Journeyman's hooks. It skips hooks that a person has not trusted, without a
word; its settings have the hash of each that they have. The trust itself is for the person to give.
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from journeyman.hosts.codex import event_key, hook_hash
from journeyman.plugin.installation.hooks_file import is_own_command


def states(folder: Path) -> dict[str, str]:
    """Return the state of Journeyman's hooks by their events: untrusted, modified since a person
    trusted them, disabled, or empty if Codex runs them. Files that cannot be read have none.
    """
    hooks_file, settings_file = folder / "hooks.json", folder / "config.toml"
    try:
        settings = settings_file.read_text("utf-8") if settings_file.exists() else ""
        known = tomllib.loads(settings).get("hooks", {}).get("state", {})
        found = {}
        for event, groups in json.loads(hooks_file.read_bytes())["hooks"].items():
            for index, group in enumerate(groups):
                for number, hook in enumerate(group["hooks"]):
                    if is_own_command(hook.get("command")):
                        name = event_key(event)
                        place = f"{hooks_file}:{name}:{index}:{number}"
                        found[event] = _state(known.get(place), hook_hash(name, group, hook))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}
    return found


def _state(known: Mapping[str, Any] | None, expected: str) -> str:
    if known is None or "trusted_hash" not in known:
        return "untrusted"
    if known["trusted_hash"] != expected:
        return "modified"
    return "" if known.get("enabled", True) else "disabled"
