"""Journeyman's entries among the hooks of Claude Code and Codex: both have a JSON file with an
object `hooks`, which has a list of groups for each event, which have a list of commands.
"""

import json
import shlex
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from journeyman.records.host import Host
from journeyman.settings import HostsSettings

_HOOKS = "hooks"
_CLIENT = "/journeyman/plugin/client.py"
OTHERWISE = " || "
"""What follows is run if the client cannot run: no hook of ours may fail, because the exit code 2,
which is Python's where its script is gone, drops the prompt. Both hosts run commands by a shell."""

_GATED_TOOLS: Mapping[Host, tuple[str, ...]] = {
    "claude-code": ("Bash", "Edit", "Write", "NotebookEdit"),
    "codex": ("Bash", "apply_patch", "Edit", "Write"),
}
"""The tools whose calls the gate looks at; a host says nothing about others."""

_FAILED_CALL: Mapping[Host, str] = {"claude-code": "PostToolUseFailure", "codex": "PostToolUse"}
"""The event after a failed call, which gets a hint. Codex reports all calls alike."""

_TIMEOUT_S = 5
"""More than the client takes with its fallback, so that the host never has to end it."""
_END_TIMEOUT_S = 3
"""At the end of a session; Codex does not allow more."""
_GRACE_S = 60
"""How much longer than a confirmation the host waits. The client gives up halfway, because its
denial has to arrive before: to most hosts, a hook that takes too long is consent."""

Groups = Mapping[str, dict[str, Any]]
"""A group of one command for each event."""


def wanted_groups(
    host: Host,
    parts: Collection[str],
    client: tuple[str, ...],
    settings: HostsSettings,
    file: str,
    *,
    page: str = "",
) -> Groups:
    """Return what to write to a file for some parts of Journeyman. `client` is the command line of
    the client up to the event, `page` where people decide.
    """
    events = {
        **dict.fromkeys(("SessionStart", "UserPromptSubmit"), "opening"),
        "PreToolUse": "gate",
        _FAILED_CALL[host]: "opening",
        **dict.fromkeys(("Stop", "SessionEnd"), "import"),
    }
    groups: dict[str, dict[str, Any]] = {}
    for event in (event for event, part in events.items() if part in parts):
        hook: dict[str, Any] = {"type": "command", "command": shlex.join((*client, event))}
        hook["timeout"] = _END_TIMEOUT_S if event == "SessionEnd" else _TIMEOUT_S
        groups[event] = {_HOOKS: [hook]}
        if event == "PostToolUse":
            groups[event] = {"matcher": "Bash", _HOOKS: [hook]}
        if event != "PreToolUse":
            hook["command"] += f"{OTHERWISE}true"
            continue
        deadline_s = settings.confirm_timeout_s + _GRACE_S // 2
        hook["command"] += f" {deadline_s}{OTHERWISE}{_denial(host, file)}"
        hook["timeout"] = settings.confirm_timeout_s + _GRACE_S
        hook["statusMessage"] = (
            f"Journeyman: if this waits, decide at {page} or with journeyman confirm list"
        )
        if host == "claude-code":
            hook["onFailure"] = "block"
        groups[event] = {"matcher": _gate_matcher(host, settings.gate_tools), _HOOKS: [hook]}
    return groups


def _denial(host: Host, file: str) -> str:
    """Return a command that denies a call, for when the client cannot run: to both hosts, most
    failures are consent. Journeyman may be gone by then, so the reason says what to do without it.
    """
    reason = (
        "Blocked by Journeyman: no confirmation could be requested, because its hook cannot run: "
        "Journeyman was moved or uninstalled. Do not try to achieve the same in another way. A "
        f"person can repair it with `journeyman hosts install {host}`, or remove it with "
        f"`journeyman hosts remove {host}` or, where that command is gone too, by deleting the "
        f'entries with {_CLIENT} below "{_HOOKS}" in {file}.'
    )
    decided = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    answer = {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decided}}
    return shlex.join(("printf", "%s", json.dumps(answer)))


def _gate_matcher(host: Host, gate_tools: Collection[str]) -> str:
    """Return which tools the gate is asked about. Names alone are compared whole; a pattern makes
    it a regular expression that is searched for, so it is anchored.
    """
    tools = _GATED_TOOLS[host]
    further = [tool for tool in gate_tools if tool not in tools]
    if not further:
        return "|".join(tools)
    return f"^(?:{'|'.join((*tools, *map(_pattern, further)))})$"


def _pattern(name: str) -> str:
    """Return the regular expression of a tool's name in which * and ? stand for others. Only what
    JavaScript and Rust read alike is used.
    """
    special = {"*": ".*", "?": "."}
    return "".join(
        special.get(one, one if one.isalnum() or one in "_-" else f"\\{one}") for one in name
    )


def is_own_command(command: object) -> bool:
    """Return whether a hook's command runs Journeyman's client, wherever it is installed."""
    if not isinstance(command, str):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return len(words) >= 7 and words[1:3] == ["-I", "-S"] and words[3].endswith(_CLIENT)


def own_hooks(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return Journeyman's commands in a host's settings, by their events."""
    return {
        event: hook
        for event, groups in _events(settings).items()
        for group in _items(groups)
        for hook in _items(_field(group, _HOOKS))
        if is_own_command(_field(hook, "command"))
    }


def with_hooks(settings: Mapping[str, Any], wanted: Groups) -> dict[str, Any]:
    """Return the settings with the wanted groups. Those of Journeyman that are there are replaced
    where they stand, because Codex knows trusted hooks by their position; others are appended.
    Raise ValueError if the settings have another shape.
    """
    events = settings.get(_HOOKS, {})
    if not isinstance(events, dict):
        raise ValueError('its "hooks" is not an object')  # noqa: TRY004 - as for other text
    updated: dict[str, Any] = {}
    for event, groups in events.items():
        if event in wanted and not isinstance(groups, list):
            raise ValueError(f'its "hooks" has no list for {event}')
        updated[event] = [*_updated(groups, wanted.get(event))]
        if not isinstance(groups, list):
            updated[event] = groups
        elif groups and not updated[event]:
            del updated[event]
    for event, group in wanted.items():
        groups = updated.setdefault(event, [])
        if group not in groups:
            groups.append(group)
    return {**settings, _HOOKS: updated}


def without_hooks(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without Journeyman's commands, and without what they leave empty."""
    if not own_hooks(settings):
        return {**settings}
    left = with_hooks(settings, {})
    return {name: value for name, value in left.items() if name != _HOOKS or value}


def _updated(groups: object, wanted: dict[str, Any] | None) -> Iterator[Any]:
    """Yield the groups of an event: the first of Journeyman is replaced, the others go."""
    for group in _items(groups):
        hooks = _items(_field(group, _HOOKS))
        others = [hook for hook in hooks if not is_own_command(_field(hook, "command"))]
        if len(others) == len(hooks):
            yield group
        elif others:
            yield {**group, _HOOKS: others}
        elif wanted is not None:
            yield wanted
            wanted = None


def _events(settings: Mapping[str, Any]) -> dict[str, Any]:
    events = settings.get(_HOOKS)
    return events if isinstance(events, dict) else {}


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _field(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None
