"""The hooks of one run of Claude Code or Codex, which take the same groups of commands by event and
understand the same answers.
"""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from journeyman.hosts.host import Plug
from journeyman.hosts.runner import RunRequest

HookGroups = dict[str, list[Mapping[str, Any]]]


def run_hooks(request: RunRequest, plug: Plug) -> HookGroups:
    """Return the groups that a run was given, and those that give its opening and deny its calls if
    it may use no tools.
    """
    groups: HookGroups = {event: [group] for event, group in plug.hooks.items()}
    if request.opening:
        _add(groups, "SessionStart", "*", {"additionalContext": request.opening})
    if not request.tools:
        reason = "Blocked by Journeyman: no tool may be used in this run. Answer with text."
        add_decision(groups, "*", "deny", reason)
    return groups


def add_decision(groups: HookGroups, matcher: str, decision: str, reason: str) -> None:
    """Add a hook that decides on every call of some tools in the same way."""
    said = {"permissionDecision": decision, "permissionDecisionReason": reason}
    _add(groups, "PreToolUse", matcher, said)


def _add(groups: HookGroups, event: str, matcher: str, said: Mapping[str, str]) -> None:
    output = json.dumps({"hookSpecificOutput": {"hookEventName": event, **said}})
    hook = {"type": "command", "command": shlex.join(("printf", "%s", output))}
    groups.setdefault(event, []).append({"matcher": matcher, "hooks": [hook]})
