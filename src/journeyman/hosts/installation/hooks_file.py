"""Journeyman's entries among the hooks of Claude Code and Codex: both have a JSON file with an
object `hooks`, which has a list of groups for each event, which have a list of commands.
"""

import json
import shlex
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from journeyman.hosts.installation import json_text
from journeyman.hosts.installation.json_text import NotJson
from journeyman.records.host import Host
from journeyman.settings import HostsSettings

_HOOKS = "hooks"
_CLIENT = "/journeyman/hosts/client.py"
OTHERWISE = " || "
"""What follows is run if the client cannot run: no hook of ours may fail, because the exit code 2,
which is Python's where its script is gone, drops the prompt. Both hosts run commands by a shell."""

_GATED_TOOLS: Mapping[Host, tuple[str, ...]] = {
    "claude-code": ("Bash", "Edit", "Write", "NotebookEdit"),
    "codex": ("Bash", "apply_patch", "Edit", "Write"),
}
"""The tools whose calls the gate looks at; a host says nothing about others."""

_EVENTS: Mapping[Host, Mapping[str, tuple[str, ...]]] = {
    "claude-code": {
        "opening": ("SessionStart", "UserPromptSubmit", "PostToolUseFailure"),
        "gate": ("PreToolUse",),
        "import": ("Stop", "SessionEnd"),
    },
    "codex": {
        "opening": ("SessionStart", "UserPromptSubmit", "PostToolUse"),
        "gate": ("PreToolUse",),
        "import": ("Stop", "SessionEnd"),
    },
}
"""The events that each part of Journeyman needs. A hint after a failed call is part of openings:
Claude Code has an event for it, and Codex reports all calls alike."""

_ORDER = (
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"),
    *("Stop", "SessionEnd"),
)
_TIMEOUT_S = 5
"""More than the client takes with its fallback, so that the host never has to end it."""
_END_TIMEOUT_S = 3
"""At the end of a session; Codex does not allow more."""
_GRACE_S = 60
"""How much longer than a confirmation the host waits. The client gives up halfway, because its
denial has to arrive before: to most hosts, a hook that takes too long is consent."""

Groups = Mapping[str, dict[str, Any]]
"""A group of one command for each event."""


class OwnHook(NamedTuple):
    """A command of Journeyman in the file: its event, its group and its place in the group."""

    event: str
    group: int
    place: int
    settings: dict[str, Any]


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
    events = {event for part in parts for event in _EVENTS[host].get(part, ())}
    used = filter(events.__contains__, _ORDER)
    denial = _denial(host, file)
    return {
        event: _group(host, event, client, settings, denial=denial, page=page) for event in used
    }


def _group(
    host: Host,
    event: str,
    client: tuple[str, ...],
    settings: HostsSettings,
    *,
    denial: str,
    page: str,
) -> dict[str, Any]:
    hook: dict[str, Any] = {"type": "command", "command": shlex.join((*client, event))}
    hook["timeout"] = _END_TIMEOUT_S if event == "SessionEnd" else _TIMEOUT_S
    if event != "PreToolUse":
        hook["command"] += f"{OTHERWISE}true"
        return {**({"matcher": "Bash"} if event == "PostToolUse" else {}), _HOOKS: [hook]}
    deadline_s = settings.confirm_timeout_s + _GRACE_S // 2
    hook["command"] += f" {deadline_s}{OTHERWISE}{denial}"
    hook["timeout"] = settings.confirm_timeout_s + _GRACE_S
    hook["statusMessage"] = (
        f"Journeyman: if this waits, decide at {page} or with journeyman confirm list"
    )
    if host == "claude-code":
        hook["onFailure"] = "block"
    return {"matcher": _gate_matcher(host, settings.gate_tools), _HOOKS: [hook]}


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


def own_hooks(text: str) -> list[OwnHook]:
    """Return Journeyman's commands in a file. Raise NotJson."""
    return [*_own_hooks(_root(text))]


def _root(text: str) -> dict[str, Any]:
    root = json_text.parse(text)
    if not isinstance(root, dict):
        raise NotJson("it does not contain a JSON object")
    return root


def _own_hooks(root: Mapping[str, Any]) -> Iterator[OwnHook]:
    events = root.get(_HOOKS)
    for event, groups in events.items() if isinstance(events, dict) else ():
        for number, group in enumerate(groups if isinstance(groups, list) else ()):
            hooks = group.get(_HOOKS) if isinstance(group, dict) else None
            for place, hook in enumerate(hooks if isinstance(hooks, list) else ()):
                if isinstance(hook, dict) and is_own_command(hook.get("command")):
                    yield OwnHook(event, number, place, hook)


def present_containers(text: str) -> tuple[str, ...]:
    """Return which of the containers that Journeyman uses a file has: `hooks`, `hooks.EVENT`."""
    events = _root(text).get(_HOOKS)
    if not isinstance(events, dict):
        return ()
    return (_HOOKS, *(f"{_HOOKS}.{event}" for event in events if event in _ORDER))


def with_groups(text: str, wanted: Groups, present: Collection[str] = ()) -> str:
    """Return the text with the wanted groups: those of Journeyman that it has are replaced where
    they stand, because Codex knows trusted hooks by their position; new ones are appended, and
    others go as in `without_groups`. Raise NotJson.
    """
    root = _root(text)
    events = root.get(_HOOKS, {})
    if not isinstance(events, dict):
        raise NotJson('its "hooks" is not an object')
    for event in wanted:
        if not isinstance(events.get(event, []), list):
            raise NotJson(f'its "hooks" has no list for {event}')
    kept: set[str] = set()
    unwanted = []
    for hook in _own_hooks(root):
        group = root[_HOOKS][hook.event][hook.group]
        if hook.event not in wanted or hook.event in kept or len(group[_HOOKS]) > 1:
            unwanted.append(hook)
            continue
        kept.add(hook.event)
        if group != wanted[hook.event]:
            text = json_text.replace(text, (_HOOKS, hook.event, hook.group), wanted[hook.event])
    text = _without(text, unwanted, {*present, _HOOKS, *(f"{_HOOKS}.{event}" for event in wanted)})
    for event, group in wanted.items():
        if event in kept:
            continue
        root = _root(text)
        if _HOOKS not in root:
            text = json_text.append(text, (), _HOOKS, {event: [group]})
        elif event not in root[_HOOKS]:
            text = json_text.append(text, (_HOOKS,), event, [group])
        else:
            text = json_text.append(text, (_HOOKS, event), None, group)
    return text


def without_groups(text: str, present: Collection[str] = ()) -> str:
    """Return the text without Journeyman's commands, and without the containers that they leave
    empty, except those in `present`, which were there before. Raise NotJson.
    """
    return _without(text, own_hooks(text), present)


def _without(text: str, hooks: list[OwnHook], present: Collection[str]) -> str:
    for hook in reversed(hooks):
        group = (_HOOKS, hook.event, hook.group)
        commands = _root(text)[_HOOKS][hook.event][hook.group][_HOOKS]
        path = group if len(commands) == 1 else (*group, _HOOKS, hook.place)
        text = json_text.remove(text, path)
    for event in dict.fromkeys(hook.event for hook in hooks):
        if not _root(text)[_HOOKS][event] and f"{_HOOKS}.{event}" not in present:
            text = json_text.remove(text, (_HOOKS, event))
    if hooks and not _root(text)[_HOOKS] and _HOOKS not in present:
        text = json_text.remove(text, (_HOOKS,))
    return text
