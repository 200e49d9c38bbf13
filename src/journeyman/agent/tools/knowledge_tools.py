"""The memory and skill tools: `memory`, `skills_list`, `skill_view` and `skill_manage`. Their
results have the format of Hermes.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from journeyman.agent.knowledge.files import safe_to_show
from journeyman.agent.knowledge.knowledge import DONE, Knowledge
from journeyman.agent.knowledge.skills import SKILL_FILE, Skills
from journeyman.agent.review.rules import WriteForbidden
from journeyman.agent.tools.tool import (
    Invocation,
    Result,
    Tool,
    failed,
    parameters,
    refused,
    text,
    worked,
)
from journeyman.records import Write, WriteKind
from journeyman.records.errors import JourneymanError, NotWritten

_EVIDENCE = text("what shows this: the user's own words quoted, or the id of a call that worked")

_MEMORY = parameters(
    *("action", "target"),
    action={"type": "string", "enum": ["add", "replace", "remove"]},
    target=text(
        "memory: notes about the work; user: who the user is and prefers", "memory", "user"
    ),
    content=text("the entry, for add and replace"),
    old_text=text("a part of the entry to change, unique to it, for replace and remove"),
    evidence=_EVIDENCE,
)

_MEMORY_DESCRIPTION = (
    "Keep short facts for later sessions: what the user prefers, how this environment works. "
    "Not what was done today, no secrets, nothing that is quickly found again."
)

_REQUIRED = {"create": ("content",), "edit": ("content",), "patch": ("old_string", "new_string")}
"""The arguments that each action needs besides the name."""

_SKILL_MESSAGES = {"create": "created", "edit": "updated", "patch": "patched"}

_NAME = text("the name of the skill")

_MANAGE_DESCRIPTION = (
    "Keep how something is done that took several tries and will come again. Prefer to patch a "
    "skill that is there; read it first."
)

_MANAGE = parameters(
    *("action", "name"),
    action={"type": "string", "enum": list(_REQUIRED)},
    name=_NAME,
    content=text(
        "for create and edit: the whole SKILL.md, beginning with front matter of name and "
        "description between lines of ---"
    ),
    old_string=text("for patch: a part of SKILL.md, exactly as it is"),
    new_string=text("for patch: the replacement"),
    evidence=_EVIDENCE,
)


def knowledge_tools(
    knowledge: Knowledge,
    *,
    keep: Callable[[Write, Invocation], None],
    check: Callable[[Write, Invocation], None] = lambda _write, _invocation: None,
    viewed: Callable[[str], None] = lambda _path: None,
) -> tuple[Tool, ...]:
    """Return `memory`, `skills_list`, `skill_view` and `skill_manage`. A change is planned, `check`
    may forbid it, it is made, and `keep` adds it to the journal; if that fails, the change is
    undone. `viewed` receives the path of each skill file that was shown.
    """
    memory, skills = knowledge.memory, knowledge.skills

    def change(call: Invocation, kind: WriteKind, plan: Callable[[], Write]) -> Write | Result:
        """Return what was written, or the result of a call that wrote nothing."""
        try:
            write = knowledge.change(kind, plan, lambda write: check(write, call))
            try:
                keep(write, call)
            except BaseException:
                knowledge.undo(write)
                raise
        except WriteForbidden as error:
            return refused(str(error), success=False)
        except JourneymanError as error:
            return failed(str(error), success=False)
        return write

    def change_memory(call: Invocation) -> Result:
        arguments, target = call.arguments, call.arguments["target"]
        texts = {name: arguments.get(name, "") for name in ("content", "old_text")}
        write = change(call, target, lambda: memory.plan(target, arguments["action"], **texts))
        entries, usage = memory.entries(target), memory.usage(target)
        if isinstance(write, Result):
            shown = [safe_to_show(entry, "entry", target) for entry in entries]
            content = {**write.content, "current_entries": shown, "usage": usage}
            return msgspec.structs.replace(write, content=content)
        about = {"target": target, "usage": usage, "entry_count": len(entries)}
        return worked(success=True, done=True, **about, message=f"Entry {DONE[write.action]}.")

    def list_skills(_call: Invocation) -> Result:
        listed = skills.list()
        rows = [
            {
                "name": skill.name,
                "description": safe_to_show(skill.description, "description", skill.path),
                "category": skill.category,
            }
            for skill in listed
        ]
        categories = sorted({skill.category for skill in listed if skill.category})
        return worked(success=True, skills=rows, categories=categories, count=len(rows))

    def view_skill(call: Invocation) -> Result:
        name, file = call.arguments["name"], call.arguments.get("file_path") or SKILL_FILE
        try:
            skill, content, files = skills.get(name), skills.view(name, file), skills.files(name)
        except JourneymanError as error:
            return failed(str(error), success=False)
        path = f"{skill.path}/{file}"
        viewed(path)
        more = {"description": skill.description, "linked_files": list(files)}
        if file != SKILL_FILE:
            more = {"file": file}
        return worked(success=True, name=skill.name, path=path, content=content, **more)

    def manage_skill(call: Invocation) -> Result:
        write = change(call, "skill", lambda: _plan(skills, call.arguments))
        if isinstance(write, Result):
            return write
        message = f"Skill '{call.arguments['name']}' {_SKILL_MESSAGES[write.action]}."
        made = {"action": write.action, "summary": write.summary}
        return worked(success=True, message=message, path=write.path, _change=made)

    return (
        Tool(
            name="memory",
            description=_MEMORY_DESCRIPTION,
            parameters=_MEMORY,
            run=change_memory,
            risk="knowledge",
            teaches=False,
        ),
        Tool(
            name="skills_list",
            description="List the skills: what they are called and what they are for.",
            parameters=parameters(),
            run=list_skills,
            risk="recall",
            teaches=False,
        ),
        Tool(
            name="skill_view",
            description="Read a skill, or one of its files.",
            parameters=parameters(
                "name",
                name=_NAME,
                file_path=text("one of its files in references/, templates/, scripts/ or assets/"),
            ),
            run=view_skill,
            risk="recall",
            teaches=False,
        ),
        Tool(
            name="skill_manage",
            description=_MANAGE_DESCRIPTION,
            parameters=_MANAGE,
            run=manage_skill,
            risk="knowledge",
            teaches=False,
        ),
    )


def _plan(skills: Skills, arguments: dict[str, Any]) -> Write:
    action, name = arguments["action"], arguments["name"]
    missing = [field for field in _REQUIRED[action] if arguments.get(field) is None]
    if missing:
        raise NotWritten(f"{action} needs {' and '.join(missing)}.")
    plan: Callable[..., Write] = getattr(skills, action)
    return plan(name, *(arguments[field] for field in _REQUIRED[action]))
