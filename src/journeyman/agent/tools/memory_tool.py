"""The tool `memory`: entries about the work and about the user are added, replaced and removed,
with answers in the shapes of Hermes. What may be written is for `knowledge`.
"""

from typing import Any

import msgspec

from journeyman.agent.knowledge.memory import Operation, Target
from journeyman.agent.knowledge.screening import safe_to_show
from journeyman.agent.tools.journaled import Journaled
from journeyman.agent.tools.tool import Invocation, Result, Tool, failed, worked
from journeyman.records import Write

EVIDENCE: dict[str, Any] = {
    "type": "string",
    "description": "what shows this: the user's own words quoted, or the id of a call that worked",
}

_ACTION: dict[str, Any] = {"type": "string", "enum": ["add", "replace", "remove"]}
_CONTENT: dict[str, Any] = {"type": "string", "description": "the entry, for add and replace"}
_OLD_TEXT: dict[str, Any] = {
    "type": "string",
    "description": "a part of the one entry that is meant, for replace and remove",
}

_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": _ACTION,
        "target": {
            "type": "string",
            "enum": ["memory", "user"],
            "description": "memory: notes about the work; user: who the user is and prefers",
        },
        "content": _CONTENT,
        "old_text": _OLD_TEXT,
        "operations": {
            "type": "array",
            "description": "several changes of one target, all or none, instead of action",
            "items": {
                "type": "object",
                "properties": {"action": _ACTION, "content": _CONTENT, "old_text": _OLD_TEXT},
                "required": ["action"],
            },
        },
        "evidence": EVIDENCE,
    },
    "required": ["target"],
}

_DESCRIPTION = (
    "Keep short facts for later sessions: what the user prefers, how this environment works. "
    "Not what was done today, no secrets, nothing that is quickly found again."
)

_SAID = {
    "add": "Entry added.",
    "replace": "Entry replaced.",
    "remove": "Entry removed.",
    "batch": "All operations done.",
}


def memory_tool(journaled: Journaled) -> Tool:
    """The tool that changes memory."""

    def run(invocation: Invocation) -> Result:
        return _run(journaled, invocation)

    return Tool(name="memory", description=_DESCRIPTION, parameters=_PARAMETERS, run=run)


def _run(journaled: Journaled, invocation: Invocation) -> Result:
    arguments = invocation.arguments
    target: Target = arguments["target"]
    memory = journaled.knowledge.memory
    if arguments.get("operations"):
        operations = msgspec.convert(arguments["operations"], list[Operation])
    elif arguments.get("action"):
        operations = [_operation(arguments)]
    else:
        return failed("Say what to do in `action` or `operations`.", success=False)
    single = len(operations) == 1

    def plan() -> Write:
        if not single:
            return memory.batch(target, operations)
        one = operations[0]
        if one.action == "add":
            return memory.add(target, one.content)
        if one.action == "remove":
            return memory.remove(target, one.old_text)
        return memory.replace(target, one.old_text, one.content)

    made = journaled.change(invocation, target, plan)
    entries = memory.entries(target)
    usage = memory.usage(target)
    if isinstance(made, Result):
        shown = [safe_to_show(entry, "entry", target) for entry in entries]
        content = {**made.content, "current_entries": shown, "usage": usage}
        return msgspec.structs.replace(made, content=content)
    return worked(
        success=True,
        done=True,
        target=target,
        usage=usage,
        entry_count=len(entries),
        message=_SAID[made.action],
    )


def _operation(arguments: dict[str, Any]) -> Operation:
    return Operation(
        action=arguments["action"],
        content=arguments.get("content") or "",
        old_text=arguments.get("old_text") or "",
    )
