"""Skills: folders with a SKILL.md that say how something is done, and further files beside it. A
folder that a person made by hand is listed with what can be read of it. Changes are planned here
and touch nothing; `committing` writes.

The folders are those of Hermes: `skills/[category/]name/SKILL.md`.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from journeyman.agent.knowledge.files import read_exactly, read_to_show, shortened
from journeyman.agent.knowledge.screening import find_fault
from journeyman.agent.knowledge.skill_folders import (
    MAIN,
    ROOT,
    files_below,
    is_plain,
    read_head,
    skill_folders,
)
from journeyman.agent.knowledge.skill_form import (
    FOLDERS,
    MOST_BYTES,
    MOST_DESCRIPTION,
    find_name_fault,
    find_path_fault,
    find_size_fault,
    find_skill_fault,
    read_front,
)
from journeyman.records import FileChange, Write
from journeyman.records.errors import NotWritten, WrongInput

_NAMED = 30


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
        found = [self._skill(folder) for folder in skill_folders(self._folder / ROOT)]
        return sorted(found, key=lambda skill: (skill.category, skill.name))

    def find(self, name: str) -> Skill | None:
        """A skill by the name of its folder, with its category where that is needed, or by the
        name in its front matter. Raises WrongInput when more than one has the name.
        """
        skills = self.list()
        found = [one for one in skills if name in (one.name, one.full_name)]
        if not found:
            found = [one for one in skills if self._front_name(one) == name]
        if len(found) > 1:
            names = ", ".join(one.full_name for one in found)
            raise WrongInput(f"More than one skill is called {name!r}: {names}. Say which.")
        return found[0] if found else None

    def get(self, name: str) -> Skill:
        """The same; raises WrongInput when there is none."""
        skill = self.find(name)
        if skill is None:
            raise WrongInput(self._unknown(name))
        return skill

    def view(self, name: str, file: str | None = None) -> str:
        """The SKILL.md of a skill, or one of its further files. Raises WrongInput when there is
        none or it is not text.
        """
        skill = self.get(name)
        if file in (None, MAIN):
            return read_to_show(self._folder / skill.path / MAIN)
        if file not in self.files(name):
            there = ", ".join(self.files(name)) or "none"
            raise WrongInput(f"The skill {skill.name} has no file {file!r}. Its files: {there}.")
        text = read_to_show(self._folder / skill.path / file)
        if "\x00" in text:
            raise WrongInput(f"{file} of the skill {skill.name} is not text.")
        return text

    def files(self, name: str) -> tuple[str, ...]:
        """The further files of a skill; what a link leads away from it is not among them."""
        folder = self._folder / self.get(name).path
        found = []
        for room in FOLDERS:
            for path in files_below(folder / room):
                with suppress(OSError, RuntimeError):  # links may run in a circle
                    if path.resolve().is_relative_to(folder.resolve()) and path.is_file():
                        found.append(path.relative_to(folder).as_posix())
        return tuple(sorted(found))

    def create(self, name: str, content: str, category: str | None = None) -> Write:
        """Make a new skill. Raises NotWritten where that may not be."""
        _refuse(find_name_fault(name))
        if category:
            _refuse(find_name_fault(category, "category"))
            if (self._folder / ROOT / category / MAIN).exists():
                raise NotWritten(f"{category} is a skill, so it cannot be a category.")
        same = [one for one in self.list() if one.name == name]
        if same:
            raise NotWritten(
                f"There is a skill {same[0].full_name} already. Patch or edit it, or take another "
                "name."
            )
        _refuse(find_skill_fault(content, name) or find_fault(content))
        path = "/".join(part for part in (ROOT, category, name, MAIN) if part)
        return self._write("create", path, content, f"created {name}")

    def edit(self, name: str, content: str) -> Write:
        """Write the SKILL.md of a skill anew. Raises NotWritten."""
        skill = self._to_change(name)
        _refuse(find_skill_fault(content) or find_fault(content))
        return self._write("edit", f"{skill.path}/{MAIN}", content, f"rewrote {skill.name}")

    def patch(
        self, name: str, old: str, new: str, file: str | None = None, *, replace_all: bool = False
    ) -> Write:
        """Replace a piece of SKILL.md or of another file: the one place where it stands, or all.
        Raises NotWritten.
        """
        skill = self._to_change(name)
        file = file or MAIN
        path = self._path(skill, file)
        before = read_exactly(self._folder / path)
        if before is None:
            raise NotWritten(f"The skill {skill.name} has no file {file}. View the skill first.")
        times = before.count(old) if old else 0
        if times == 0:
            raise NotWritten(
                f"“{shortened(old)}” does not stand in {file} of {skill.name}. View the file and "
                "copy the piece as it is."
            )
        if times > 1 and not replace_all:
            raise NotWritten(
                f"“{shortened(old)}” stands {times} times in {file} of {skill.name}. Give more of "
                "what is around it, or set replace_all."
            )
        after = before.replace(old, new)
        _refuse(find_skill_fault(after) if file == MAIN else find_size_fault(path, after))
        # What a person has put there may stay; what is new may not make it worse.
        _refuse(find_fault(new) or (None if find_fault(before) else find_fault(after)))
        where = skill.name if file == MAIN else f"{skill.name}/{file}"
        return self._write("patch", path, after, f"patched {where}")

    def delete(self, name: str) -> Write:
        """Delete a skill with all its files. Raises NotWritten where one of them could not be put
        back.
        """
        skill = self._to_change(name)
        others = []
        for path in files_below(self._folder / skill.path):
            if not is_plain(path, MOST_BYTES):
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
        path = self._path(skill, file, may_be_main=False)
        _refuse(find_size_fault(path, content) or find_fault(content))
        return self._write("write_file", path, content, f"wrote {skill.name}/{file}")

    def remove_file(self, name: str, file: str) -> Write:
        """Remove a further file of a skill. Raises NotWritten."""
        skill = self._to_change(name)
        path = self._path(skill, file, may_be_main=False)
        if not (self._folder / path).exists():
            there = ", ".join(self.files(name)) or "none"
            raise NotWritten(f"The skill {skill.name} has no file {file}. Its files: {there}.")
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

    def _to_change(self, name: str) -> Skill:
        try:
            skill = self.get(name)
        except WrongInput as error:
            raise NotWritten(str(error)) from error
        real = (self._folder / skill.path).resolve()
        if not real.is_relative_to((self._folder / ROOT).resolve()):
            raise NotWritten(
                f"The skill {skill.name} is a link to {real}, so it is not changed here. Change "
                "it there."
            )
        return skill

    def _path(self, skill: Skill, file: str, *, may_be_main: bool = True) -> str:
        if not (may_be_main and file == MAIN):
            _refuse(find_path_fault(file))
        return f"{skill.path}/{file}"

    def _unknown(self, name: str) -> str:
        names = [one.full_name for one in self.list()]
        more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        there = ", ".join(names[:_NAMED]) + more
        return f"There is no skill {name!r}. " + (
            f"There is: {there}." if names else "None is kept."
        )

    def _skill(self, folder: Path) -> Skill:
        relative = folder.relative_to(self._folder / ROOT)
        description = read_front(read_head(folder / MAIN)).description
        return Skill(
            name=folder.name,
            description=shortened(description, MOST_DESCRIPTION),
            category=relative.parent.as_posix() if len(relative.parts) > 1 else "",
            path=f"{ROOT}/{relative.as_posix()}",
        )

    def _front_name(self, skill: Skill) -> str:
        return read_front(read_head(self._folder / skill.path / MAIN)).name


def _refuse(fault: str | None) -> None:
    if fault is not None:
        raise NotWritten(fault)
