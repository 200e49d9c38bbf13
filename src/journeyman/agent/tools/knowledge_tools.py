"""The tools of memory and skills: `memory`, `skills_list`, `skill_view` and `skill_manage`, with
answers in the shapes of Hermes.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from journeyman.agent.knowledge.files import safe_to_show
from journeyman.agent.knowledge.knowledge import Knowledge, Operation, Target
from journeyman.agent.knowledge.skills import MAIN, Skills
from journeyman.agent.review.journal import Check, Journaled, Keep
from journeyman.agent.tools.tool import Invocation, Result, Tool, failed, parameters, text, worked
from journeyman.records import Write
from journeyman.records.errors import JourneymanError, NotWritten

KNOWLEDGE_TOOLS = ("memory", "skill_manage")
"""Those of them that write: without one of them a review has nothing to write with."""

_EVIDENCE = text("what shows this: the user's own words quoted, or the id of a call that worked")

_ACTION = {"type": "string", "enum": ["add", "replace", "remove"]}
_CONTENT = text("the entry, for add and replace")
_OLD_TEXT = text("a part of the one entry that is meant, for replace and remove")

_MEMORY = parameters(
    "target",
    action=_ACTION,
    target=text(
        "memory: notes about the work; user: who the user is and prefers", "memory", "user"
    ),
    content=_CONTENT,
    old_text=_OLD_TEXT,
    operations={
        "type": "array",
        "description": "several changes of one target, all or none, instead of action",
        "items": {
            "type": "object",
            "properties": {"action": _ACTION, "content": _CONTENT, "old_text": _OLD_TEXT},
            "required": ["action"],
        },
    },
    evidence=_EVIDENCE,
)

_MEMORY_DESCRIPTION = (
    "Keep short facts for later sessions: what the user prefers, how this environment works. "
    "Not what was done today, no secrets, nothing that is quickly found again."
)

_MEMORY_SAID = {
    "add": "Entry added.",
    "replace": "Entry replaced.",
    "remove": "Entry removed.",
    "batch": "All operations done.",
}

_NEEDED = {
    "create": ("content",),
    "edit": ("content",),
    "patch": ("old_string", "new_string"),
    "delete": (),
    "write_file": ("file_path", "file_content"),
    "remove_file": ("file_path",),
}
"""What each action needs besides the name."""

_SAID = {
    "create": "Skill '{name}' created.",
    "edit": "Skill '{name}' updated.",
    "patch": "Skill '{name}' patched.",
    "delete": "Skill '{name}' deleted.",
    "write_file": "File '{file}' written to skill '{name}'.",
    "remove_file": "File '{file}' removed from skill '{name}'.",
}

_NAME = text("the name of the skill")
_FILE = text("a file of the skill: references/, templates/, scripts/ or assets/…")


_MANAGE = parameters(
    *("action", "name"),
    action={"type": "string", "enum": list(_NEEDED)},
    name=_NAME,
    content=text(
        "for create and edit: the whole SKILL.md, beginning with front matter of name and "
        "description between lines of ---"
    ),
    category=text("for create: a folder to put the skill into"),
    old_string=text("for patch: a piece of the file, exactly as it is"),
    new_string=text("for patch: what to put in its place"),
    file_path=_FILE,
    file_content=text("for write_file"),
    replace_all={"type": "boolean", "description": "for patch: every place, not only one"},
    evidence=_EVIDENCE,
)


def knowledge_tools(
    knowledge: Knowledge,
    *,
    keep: Keep,
    check: Check = lambda _write, _invocation: None,
    viewed: Callable[[str], None] = lambda _path: None,
) -> tuple[Tool, ...]:
    """`memory`, `skills_list`, `skill_view` and `skill_manage`. Each change is planned, then
    `check` may forbid it, then it is made, then `keep` puts it into the journal; where that fails
    the change is undone. `viewed` hears the path of each file of a skill that was shown.
    """
    journaled = Journaled(knowledge=knowledge, keep=keep, check=check)
    skills = knowledge.skills
    return (
        Tool(
            name="memory",
            description=_MEMORY_DESCRIPTION,
            parameters=_MEMORY,
            run=lambda invocation: _memory(journaled, invocation),
        ),
        Tool(
            name="skills_list",
            description="List the skills: what they are called and what they are for.",
            parameters=parameters(),
            run=lambda _invocation: _list(skills),
            reads_only=True,
        ),
        Tool(
            name="skill_view",
            description="Read a skill, or one of its files.",
            parameters=parameters("name", name=_NAME, file_path=_FILE),
            run=lambda invocation: _view(skills, viewed, invocation),
            reads_only=True,
        ),
        Tool(
            name="skill_manage",
            description=(
                "Keep how something is done that took several tries and will come again. Prefer "
                "to patch a skill that is there; read it first."
            ),
            parameters=_MANAGE,
            run=lambda invocation: _manage(journaled, invocation),
        ),
    )


def _memory(journaled: Journaled, invocation: Invocation) -> Result:
    arguments = invocation.arguments
    target: Target = arguments["target"]
    memory = journaled.knowledge.memory
    given = arguments.get("operations") or [
        {name: arguments[name] for name in ("action", "content", "old_text") if name in arguments}
    ]
    if not given[0].get("action"):
        return failed("Say what to do in `action` or `operations`.", success=False)
    operations = msgspec.convert(given, list[Operation])
    made = journaled.change(invocation, target, lambda: memory.plan(target, *operations))
    entries = memory.entries(target)
    usage = memory.usage(target)
    if isinstance(made, Result):
        shown = [safe_to_show(entry, "entry", target) for entry in entries]
        content = {**made.content, "current_entries": shown, "usage": usage}
        return msgspec.structs.replace(made, content=content)
    said, count = _MEMORY_SAID[made.action], len(entries)
    return worked(
        success=True, done=True, target=target, usage=usage, entry_count=count, message=said
    )


def _list(skills: Skills) -> Result:
    found = skills.list()
    return worked(
        success=True,
        skills=[
            {
                "name": one.name,
                "description": safe_to_show(one.description, "description", one.path),
                "category": one.category,
            }
            for one in found
        ],
        categories=sorted({one.category for one in found if one.category}),
        count=len(found),
    )


def _view(skills: Skills, viewed: Callable[[str], None], invocation: Invocation) -> Result:
    name, file = invocation.arguments["name"], invocation.arguments.get("file_path") or None
    try:
        skill = skills.get(name)
        content = skills.view(name, file)
        files = skills.files(name)
    except JourneymanError as error:
        return failed(str(error), success=False)
    path = f"{skill.path}/{file or MAIN}"
    viewed(path)
    more: dict[str, Any] = {"description": skill.description, "linked_files": list(files)}
    if file not in (None, MAIN):
        more = {"file": file}
    return worked(success=True, name=skill.name, path=path, content=content, **more)


def _manage(journaled: Journaled, invocation: Invocation) -> Result:
    arguments = invocation.arguments
    made = journaled.change(
        invocation, "skill", lambda: _plan(journaled.knowledge.skills, arguments)
    )
    if isinstance(made, Result):
        return made
    said = _SAID[made.action].format(name=arguments["name"], file=arguments.get("file_path"))
    return worked(
        success=True,
        message=said,
        path=made.path,
        _change={"action": made.action, "summary": made.summary},
    )


def _plan(skills: Skills, arguments: dict[str, Any]) -> Write:
    action, name = arguments["action"], arguments["name"]
    missing = [one for one in _NEEDED[action] if arguments.get(one) is None]
    if missing:
        raise NotWritten(f"{action} needs {' and '.join(missing)}.")
    others: dict[str, Any] = {}
    if action == "create":
        others = {"category": arguments.get("category")}
    elif action == "patch":
        everywhere = bool(arguments.get("replace_all"))
        others = {"file": arguments.get("file_path") or None, "replace_all": everywhere}
    plan: Callable[..., Write] = getattr(skills, action)
    return plan(name, *(arguments[one] for one in _NEEDED[action]), **others)
