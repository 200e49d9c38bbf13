"""Skills: folders with a SKILL.md that say how something is done, as Hermes has them:
`skills/[category/]name/SKILL.md`. Changes are planned here and touch nothing; `Knowledge` writes
them.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from journeyman.agent.knowledge.files import (
    SKILLS,
    find_fault,
    read_exactly,
    read_to_show,
    shortened,
)
from journeyman.records import FileChange, Write
from journeyman.records.errors import NotWritten, OutsideProblem, WrongInput

MAIN = "SKILL.md"
FOLDERS = ("references", "templates", "scripts", "assets")
"""Where a skill keeps its further files."""

MOST_NAME = 64
MOST_DESCRIPTION = 1024
MOST_CHARACTERS = 100_000
MOST_BYTES = 1024 * 1024

_DEEPEST = 3
_MOST_FRONT = 16_000
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_NAMED = 30


class Front(Struct, frozen=True, kw_only=True):
    """What the front matter of a SKILL.md says, as far as it can be read, and the text below."""

    name: str = ""
    description: str = ""
    body: str = ""
    fault: str = ""


class Skill(Struct, frozen=True, kw_only=True):
    """A skill as it is listed. `path` is its folder, relative to the folder of knowledge."""

    name: str
    description: str
    category: str
    path: str

    @property
    def full_name(self) -> str:
        return f"{self.category}/{self.name}" if self.category else self.name


class Skills:
    """The skills below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list(self) -> Sequence[Skill]:
        """All skills by category and name."""
        found = [self._skill(folder) for folder in _skill_folders(self._folder / SKILLS)]
        return sorted(found, key=lambda skill: (skill.category, skill.name))

    def get(self, name: str) -> Skill:
        """A skill by the name of its folder or in its front matter. Raises WrongInput."""
        skills = self.list()
        found = [one for one in skills if name in (one.name, one.full_name)]
        if not found:
            found = [one for one in skills if self._front(self._folder / one.path).name == name]
        if len(found) > 1:
            names = ", ".join(one.full_name for one in found)
            raise WrongInput(f"More than one skill is called {name!r}: {names}. Say which.")
        if found:
            return found[0]
        there = ", ".join(one.full_name for one in skills[:_NAMED]) or "none"
        raise WrongInput(f"There is no skill {name!r}. There is: {there}.")

    def view(self, name: str, file: str | None = None) -> str:
        """The SKILL.md of a skill, or one of its further files. Raises WrongInput."""
        skill, file = self.get(name), file or MAIN
        if file not in (MAIN, *self.files(name)):
            raise WrongInput(self._no_file(skill, file))
        text = read_to_show(self._folder / skill.path / file)
        if "\x00" in text and file != MAIN:
            raise WrongInput(f"{file} of the skill {skill.name} is not text.")
        return text

    def files(self, name: str) -> tuple[str, ...]:
        """The further files of a skill; what a link leads away from it is not among them."""
        folder = self._folder / self.get(name).path
        found = []
        for room in FOLDERS:
            for path in _files_below(folder / room):
                with suppress(OSError, RuntimeError):  # links may run in a circle
                    if path.resolve().is_relative_to(folder.resolve()) and path.is_file():
                        found.append(path.relative_to(folder).as_posix())
        return tuple(sorted(found))

    def create(self, name: str, content: str, category: str | None = None) -> Write:
        """Make a new skill. Raises NotWritten where that may not be."""
        _refuse(_find_name_fault(name))
        if category:
            _refuse(_find_name_fault(category, "category"))
            if (self._folder / SKILLS / category / MAIN).exists():
                raise NotWritten(f"{category} is a skill, so it cannot be a category.")
        if same := [one.full_name for one in self.list() if one.name == name]:
            raise NotWritten(
                f"There is a skill {same[0]} already. Patch or edit it, or take another name."
            )
        _refuse(_find_skill_fault(content, name) or find_fault(content))
        path = "/".join(part for part in (SKILLS, category, name, MAIN) if part)
        return self._write("create", path, content, f"created {name}")

    def edit(self, name: str, content: str) -> Write:
        """Write the SKILL.md of a skill anew. Raises NotWritten."""
        skill = self._to_change(name)
        _refuse(_find_skill_fault(content) or find_fault(content))
        return self._write("edit", f"{skill.path}/{MAIN}", content, f"rewrote {skill.name}")

    def patch(
        self, name: str, old: str, new: str, file: str | None = None, *, replace_all: bool = False
    ) -> Write:
        """Replace a piece of a file: the one place where it stands, or all. Raises NotWritten."""
        skill = self._to_change(name)
        file = file or MAIN
        _refuse(None if file == MAIN else _find_path_fault(file))
        path = f"{skill.path}/{file}"
        before = read_exactly(self._folder / path)
        if before is None:
            raise NotWritten(self._no_file(skill, file))
        times = before.count(old) if old else 0
        if times != 1 and not (times and replace_all):
            raise NotWritten(
                f"“{shortened(old)}” stands {times} times in {file} of {skill.name}. View the file "
                "and copy the piece as it is, with what is around it, or set replace_all."
            )
        after = before.replace(old, new)
        _refuse(_find_skill_fault(after) if file == MAIN else _find_size_fault(path, after))
        # What a person has put there may stay; what is new may not make it worse.
        _refuse(find_fault(new) or (None if find_fault(before) else find_fault(after)))
        where = skill.name if file == MAIN else f"{skill.name}/{file}"
        return self._write("patch", path, after, f"patched {where}")

    def delete(self, name: str) -> Write:
        """Delete a skill. Raises NotWritten where one of its files could not be put back."""
        skill = self._to_change(name)
        others = []
        for path in _files_below(self._folder / skill.path):
            if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_BYTES:
                raise NotWritten(
                    f"{path} cannot be kept in the journal, so the skill {skill.name} is not "
                    "deleted: that could not be undone. Delete its folder by hand."
                )
            relative = path.relative_to(self._folder).as_posix()
            if relative != f"{skill.path}/{MAIN}":
                others.append(FileChange(path=relative, before=read_exactly(path)))
        told = f"deleted {skill.name}"
        return self._write("delete", f"{skill.path}/{MAIN}", None, told, tuple(others))

    def write_file(self, name: str, file: str, content: str) -> Write:
        """Write a further file of a skill. Raises NotWritten."""
        skill = self._to_change(name)
        _refuse(_find_path_fault(file))
        path = f"{skill.path}/{file}"
        _refuse(_find_size_fault(path, content) or find_fault(content))
        return self._write("write_file", path, content, f"wrote {skill.name}/{file}")

    def remove_file(self, name: str, file: str) -> Write:
        """Remove a further file of a skill. Raises NotWritten."""
        skill = self._to_change(name)
        _refuse(_find_path_fault(file))
        path = f"{skill.path}/{file}"
        if not (self._folder / path).exists():
            raise NotWritten(self._no_file(skill, file))
        return self._write("remove_file", path, None, f"removed {skill.name}/{file}")

    def _write(
        self,
        action: str,
        path: str,
        after: str | None,
        told: str,
        others: tuple[FileChange, ...] = (),
    ) -> Write:
        before = read_exactly(self._folder / path)
        if before == after:
            raise NotWritten(f"{path} says exactly this already, so there is nothing to write.")
        return Write(
            kind="skill",
            action=action,
            path=path,
            before=before,
            after=after,
            summary=f"skill: {told}",
            others=others,
        )

    def _no_file(self, skill: Skill, file: str) -> str:
        there = ", ".join(self.files(skill.full_name)) or "none"
        return f"The skill {skill.name} has no file {file!r}. Its files: {there}."

    def _to_change(self, name: str) -> Skill:
        try:
            skill = self.get(name)
        except WrongInput as error:
            raise NotWritten(str(error)) from error
        real = (self._folder / skill.path).resolve()
        if not real.is_relative_to((self._folder / SKILLS).resolve()):
            raise NotWritten(
                f"The skill {skill.name} is a link to {real}, so it is not changed here. Change "
                "it there."
            )
        return skill

    def _skill(self, folder: Path) -> Skill:
        relative = folder.relative_to(self._folder / SKILLS)
        front = self._front(folder)
        return Skill(
            name=folder.name,
            description=shortened(front.description, MOST_DESCRIPTION),
            category=relative.parent.as_posix() if len(relative.parts) > 1 else "",
            path=f"{SKILLS}/{relative.as_posix()}",
        )

    def _front(self, folder: Path) -> Front:
        try:
            return read_front(read_to_show(folder / MAIN))
        except OutsideProblem:  # what cannot be read is listed all the same
            return Front()


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


def _find_skill_fault(content: str, name: str | None = None) -> str | None:
    """What is wrong with a SKILL.md, whose name must be `name` where given; None if nothing."""
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
    if (length := len(front.description)) > MOST_DESCRIPTION:
        return f"Its description has {length:,} characters; at most {MOST_DESCRIPTION:,} may be."
    if not front.body.strip():
        return "There is nothing below its front matter. Say there how it is done."
    if len(content) > MOST_CHARACTERS:
        return (
            f"It has {len(content):,} characters; a SKILL.md has at most {MOST_CHARACTERS:,}. "
            "Move parts of it to references/."
        )
    return None


def _find_name_fault(name: str, what: str = "skill") -> str | None:
    """What is wrong with the name of a skill or a category; None when nothing is."""
    if _NAME.fullmatch(name) and len(name) <= MOST_NAME:
        return None
    return (
        f"{name!r} cannot be the name of a {what}: use small letters, digits, dots, _ and -, "
        f"beginning with a letter or digit, at most {MOST_NAME}."
    )


def _find_path_fault(file: str) -> str | None:
    """What is wrong with the path of a further file of a skill; None when nothing is."""
    parts = PurePosixPath(file).parts
    allowed = len(parts) > 1 and parts[0] in FOLDERS
    odd = any(part.startswith(".") or not part.isprintable() for part in parts)
    if allowed and not odd and "\\" not in file and str(PurePosixPath(file)) == file:
        return None
    folders = ", ".join(f"{folder}/" for folder in FOLDERS)
    return f"{file!r} is no path for a file of a skill: it has to be below one of {folders}."


def _find_size_fault(path: str, content: str) -> str | None:
    is_large = len(content.encode("utf-8", "replace")) > MOST_BYTES
    return f"{path} would have more than {MOST_BYTES:,} bytes. Shorten it." if is_large else None


def _skill_folders(root: Path) -> Iterator[Path]:
    """The folders with a SKILL.md, each once; a skill has no skills inside."""
    seen = set()
    for place, inner, files in os.walk(root, followlinks=True):
        folder = Path(place)
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        if folder != root and MAIN in files:
            inner.clear()
            if folder.resolve() not in seen and (folder / MAIN).is_file():
                seen.add(folder.resolve())
                yield folder
        elif len(folder.relative_to(root).parts) >= _DEEPEST:
            inner.clear()


def _files_below(folder: Path) -> list[Path]:
    """All that is below a folder and is no folder, without following links."""
    return [path for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir()]


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


def _refuse(fault: str | None) -> None:
    if fault is not None:
        raise NotWritten(fault)
