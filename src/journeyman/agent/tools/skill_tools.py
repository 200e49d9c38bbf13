"""The tools `skills_list`, `skill_view` and `skill_manage`, with answers in the shapes of Hermes.
What may be written is for `knowledge`.
"""

from collections.abc import Callable
from typing import Any

from journeyman.agent.knowledge.screening import safe_to_show
from journeyman.agent.knowledge.skill_folders import MAIN
from journeyman.agent.knowledge.skills import Skills
from journeyman.agent.tools.journaled import Journaled
from journeyman.agent.tools.memory_tool import EVIDENCE
from journeyman.agent.tools.tool import Invocation, Result, Tool, failed, worked
from journeyman.records import Write
from journeyman.records.errors import JourneymanError, NotWritten

_ACTIONS = ("create", "edit", "patch", "delete", "write_file", "remove_file")

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

_NAME: dict[str, Any] = {"type": "string", "description": "the name of the skill"}
_FILE: dict[str, Any] = {
    "type": "string",
    "description": "a file of the skill: references/, templates/, scripts/ or assets/…",
}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


_MANAGE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": list(_ACTIONS)},
        "name": _NAME,
        "content": _text(
            "for create and edit: the whole SKILL.md, beginning with front matter of name and "
            "description between lines of ---"
        ),
        "category": _text("for create: a folder to put the skill into"),
        "old_string": _text("for patch: a piece of the file, exactly as it is"),
        "new_string": _text("for patch: what to put in its place"),
        "file_path": _FILE,
        "file_content": _text("for write_file"),
        "replace_all": {"type": "boolean", "description": "for patch: every place, not only one"},
        "evidence": EVIDENCE,
    },
    "required": ["action", "name"],
}


def skill_tools(journaled: Journaled, viewed: Callable[[str], None]) -> tuple[Tool, ...]:
    """The tools that list, show and change skills. `viewed` hears the path of each file that was
    shown.
    """
    skills = journaled.knowledge.skills
    return (
        Tool(
            name="skills_list",
            description="List the skills: what they are called and what they are for.",
            parameters={"type": "object", "properties": {}},
            run=lambda _invocation: _list(skills),
            reads_only=True,
        ),
        Tool(
            name="skill_view",
            description="Read a skill, or one of its files.",
            parameters={
                "type": "object",
                "properties": {"name": _NAME, "file_path": _FILE},
                "required": ["name"],
            },
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
    if file not in (None, MAIN):
        return worked(success=True, name=skill.name, file=file, path=path, content=content)
    return worked(
        success=True,
        name=skill.name,
        description=skill.description,
        path=path,
        content=content,
        linked_files=list(files),
    )


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
    file = arguments.get("file_path") or None
    if action == "create":
        return skills.create(name, arguments["content"], arguments.get("category"))
    if action == "edit":
        return skills.edit(name, arguments["content"])
    if action == "patch":
        return skills.patch(
            name,
            arguments["old_string"],
            arguments["new_string"],
            file,
            replace_all=bool(arguments.get("replace_all")),
        )
    if action == "delete":
        return skills.delete(name)
    if action == "write_file":
        return skills.write_file(name, arguments["file_path"], arguments["file_content"])
    return skills.remove_file(name, arguments["file_path"])
