"""The form of a skill: its name, the front matter of its SKILL.md, where its further files may be,
and how large they may get. What is said in them is for `screening`.
"""

import re
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct

FOLDERS = ("references", "templates", "scripts", "assets")
"""Where a skill keeps its further files."""

MOST_NAME = 64
MOST_DESCRIPTION = 1024
MOST_CHARACTERS = 100_000
MOST_BYTES = 1024 * 1024
_MOST_FRONT = 16_000

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


class Front(Struct, frozen=True, kw_only=True):
    """What the front matter of a SKILL.md says, as far as it can be read, and the text below."""

    name: str = ""
    description: str = ""
    body: str = ""
    fault: str = ""


def read_front(text: str) -> Front:
    """The front matter of a SKILL.md; what is wrong with it is in `fault`."""
    found = _FRONT.match(text)
    if found is None:
        return Front(body=text, fault="it does not begin with front matter between lines of ---")
    body = text[found.end() :]
    values = _yaml(found[1])
    if isinstance(values, str):
        return Front(body=body, fault=values)
    if not isinstance(values, dict):
        return Front(body=body, fault="its front matter is not a list of `key: value`")
    name, description = values.get("name"), values.get("description")
    return Front(
        name=name.strip() if isinstance(name, str) else "",
        description=description.strip() if isinstance(description, str) else "",
        body=body,
    )


def find_skill_fault(content: str, name: str | None = None) -> str | None:
    """What is wrong with the text of a SKILL.md, as a sentence; None when nothing is. Its front
    matter must have this `name`, where one is given.
    """
    front = read_front(content)
    if front.fault:
        return (
            f"As SKILL.md it cannot be used: {front.fault}. "
            "Begin with ---, name: …, description: …, and --- again."
        )
    if not front.name or not front.description:
        return "Its front matter needs a name and a description that are not empty."
    if name is not None and front.name != name:
        return f"Its front matter says name: {front.name}, but the skill is called {name}."
    if len(front.description) > MOST_DESCRIPTION:
        return (
            f"Its description has {len(front.description):,} characters; "
            f"at most {MOST_DESCRIPTION:,} are allowed."
        )
    if not front.body.strip():
        return "There is nothing below its front matter. Say there how it is done."
    if len(content) > MOST_CHARACTERS:
        return (
            f"It has {len(content):,} characters; a SKILL.md has at most {MOST_CHARACTERS:,}. "
            "Move parts of it to references/."
        )
    return None


def find_name_fault(name: str, what: str = "skill") -> str | None:
    """What is wrong with the name of a skill or a category; None when nothing is."""
    if _NAME.fullmatch(name) and len(name) <= MOST_NAME:
        return None
    return (
        f"{name!r} cannot be the name of a {what}: use small letters, digits, dots, _ and -, "
        f"beginning with a letter or digit, at most {MOST_NAME}."
    )


def find_path_fault(file: str) -> str | None:
    """What is wrong with the path of a further file of a skill; None when nothing is."""
    parts = PurePosixPath(file).parts
    allowed = len(parts) > 1 and parts[0] in FOLDERS
    odd = any(part.startswith(".") or not part.isprintable() for part in parts)
    if allowed and not odd and "\\" not in file and str(PurePosixPath(file)) == file:
        return None
    folders = ", ".join(f"{folder}/" for folder in FOLDERS)
    return f"{file!r} is no path for a file of a skill: it has to be below one of {folders}."


def find_size_fault(path: str, content: str) -> str | None:
    """Whether a further file of a skill is too large; None when it is not."""
    # A character has at most four bytes; half characters, which have none, are told of elsewhere.
    if len(content) <= MOST_BYTES // 4 or len(content.encode("utf-8", "replace")) <= MOST_BYTES:
        return None
    return f"{path} would have more than {MOST_BYTES:,} bytes. Make it shorter."


def _yaml(text: str) -> Any:
    """The value of a YAML text; a text that says why where there is none."""
    import yaml  # type: ignore[import-untyped] # noqa: PLC0415 - loaded when a skill is read

    if len(text) > _MOST_FRONT:
        return f"its front matter has more than {_MOST_FRONT:,} characters"
    # All values stay the text they are written as: nothing that a stranger's file asks for is made.
    # The parser in C takes a twentieth of the time, where it is there.
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        value = yaml.load(text, Loader=loader)  # noqa: S506
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        told = " ".join(str(getattr(error, "problem", None) or error).split())
        return f"its front matter is not YAML ({told[:120]})"
    return None if isinstance(value, str) else value
