"""Skills: folders with a SKILL.md that describe how something is done, in the layout of Hermes:
`skills/[category/]name/SKILL.md`. Changes are only planned here; `Knowledge` applies them.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from journeyman.agent.knowledge.files import SKILLS, find_fault, read_exactly, read_to_show
from journeyman.records import Write
from journeyman.records.errors import NotWritten, OutsideProblem, WrongInput
from journeyman.text.truncation import one_line

SKILL_FILE = "SKILL.md"
FOLDERS = ("references", "templates", "scripts", "assets")
"""The folders of a skill for additional files."""

_MAX_NAME = 64
_MAX_DESCRIPTION = 1024
_MAX_CHARACTERS = 100_000
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_FRONT_MATTER = re.compile(
    r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)


class FrontMatter(Struct, frozen=True, kw_only=True):
    """The front matter of a SKILL.md and what is below it; `fault` says why it cannot be used."""

    text: str = ""
    name: str = ""
    description: str = ""
    body: str = ""
    fault: str = ""


class Skill(Struct, frozen=True, kw_only=True):
    """A skill in the list of skills. `path` is its folder, relative to the knowledge folder."""

    name: str
    description: str
    category: str
    path: str

    @property
    def full_name(self) -> str:
        return f"{self.category}/{self.name}" if self.category else self.name


class Skills:
    """The skills in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list(self) -> Sequence[Skill]:
        """Return all skills, sorted by category and name."""
        skills = [self._skill(folder) for folder in _skill_folders(self._folder / SKILLS)]
        return sorted(skills, key=lambda skill: (skill.category, skill.name))

    def get(self, name: str) -> Skill:
        """Return a skill by the name of its folder. Raise WrongInput."""
        skills = self.list()
        matches = [skill for skill in skills if name in (skill.name, skill.full_name)]
        if len(matches) > 1:
            names = ", ".join(skill.full_name for skill in matches)
            raise WrongInput(
                f"More than one skill is called {name!r}: {names}. Use the full name of one."
            )
        if matches:
            return matches[0]
        names = ", ".join(skill.full_name for skill in skills) or "none"
        raise WrongInput(f"There is no skill {name!r}. Available skills: {names}.")

    def view(self, name: str, file: str | None = None) -> str:
        """Return the text of a skill, or of one of its additional files. Raise WrongInput."""
        skill, file = self.get(name), file or SKILL_FILE
        if file not in (SKILL_FILE, *self.files(name)):
            files = ", ".join(self.files(name)) or "none"
            raise WrongInput(f"The skill {skill.name} has no file {file!r}. Its files: {files}.")
        return read_to_show(self._folder / skill.path / file)

    def files(self, name: str) -> tuple[str, ...]:
        """Return the additional files of a skill, without links that lead out of its folder."""
        folder = (self._folder / self.get(name).path).resolve()
        paths = [path for subfolder in FOLDERS for path in (folder / subfolder).rglob("*")]
        inside = [
            path for path in paths if path.is_file() and path.resolve().is_relative_to(folder)
        ]
        return tuple(sorted(path.relative_to(folder).as_posix() for path in inside))

    def create(self, name: str, content: str) -> Write:
        """Plan a new skill. Raise NotWritten if it is not allowed."""
        if not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
            raise NotWritten(
                f"{name!r} cannot be the name of a skill: use up to {_MAX_NAME} lower-case "
                "letters, digits, dots, _ and -, beginning with a letter or digit."
            )
        if same := [skill.full_name for skill in self.list() if skill.name == name]:
            raise NotWritten(
                f"The skill {same[0]} already exists. Patch or edit it, or use another name."
            )
        _check(_find_skill_fault(content, name) or find_fault(content))
        return self._write("create", f"{SKILLS}/{name}/{SKILL_FILE}", content, f"created {name}")

    def edit(self, name: str, content: str) -> Write:
        """Plan a new SKILL.md for a skill. Raise NotWritten."""
        skill = self.get(name)
        _check(_find_skill_fault(content) or find_fault(content))
        return self._write("edit", f"{skill.path}/{SKILL_FILE}", content, f"rewrote {skill.name}")

    def patch(self, name: str, old: str, new: str) -> Write:
        """Plan to replace the only occurrence of a piece of a SKILL.md. Raise NotWritten."""
        skill = self.get(name)
        path = f"{skill.path}/{SKILL_FILE}"
        before = read_exactly(self._folder / path) or ""
        times = before.count(old) if old else 0
        if times != 1:
            raise NotWritten(
                f"“{one_line(old, 80)}” occurs {times} times in {SKILL_FILE} of {skill.name}. View "
                "the file and copy the piece exactly, with some surrounding text."
            )
        after = before.replace(old, new)
        # Faults that a person put there may stay; the new text must not add any.
        fault = find_fault(new) or (None if find_fault(before) else find_fault(after))
        _check(_find_skill_fault(after) or fault)
        return self._write("patch", path, after, f"patched {skill.name}")

    def _write(self, action: str, path: str, after: str, summary: str) -> Write:
        before = read_exactly(self._folder / path)
        if before == after:
            raise NotWritten(
                f"{path} already has exactly this content, so there is nothing to write."
            )
        return Write(
            kind="skill",
            action=action,
            path=path,
            before=before,
            after=after,
            summary=f"skill: {summary}",
        )

    def _skill(self, folder: Path) -> Skill:
        relative, front = folder.relative_to(self._folder / SKILLS), FrontMatter()
        with suppress(OutsideProblem):  # a skill that cannot be read is still listed
            front = parse_front_matter(read_to_show(folder / SKILL_FILE))
        return Skill(
            name=folder.name,
            description=one_line(front.description, _MAX_DESCRIPTION),
            category=relative.parent.as_posix() if len(relative.parts) > 1 else "",
            path=f"{SKILLS}/{relative.as_posix()}",
        )


def parse_front_matter(text: str) -> FrontMatter:
    """Parse the front matter of a SKILL.md; problems are reported in `fault`."""
    import yaml  # type: ignore[import-untyped] # noqa: PLC0415 - loaded when a skill is read

    match = _FRONT_MATTER.match(text)
    if match is None:
        fault = "it does not begin with front matter between lines of ---"
        return FrontMatter(body=text, fault=fault)
    front = FrontMatter(text=match[1], body=text[match.end() :])
    try:
        # The base loader keeps all values as text, so an untrusted file cannot construct objects.
        values = yaml.load(match[1], Loader=yaml.BaseLoader)  # noqa: S506
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        problem = one_line(str(getattr(error, "problem", None) or error), 120)
        return replace(front, fault=f"its front matter is not YAML ({problem})")
    if not isinstance(values, dict):
        return replace(front, fault="its front matter is not a list of `key: value`")
    name, description = (values.get(key) for key in ("name", "description"))
    return replace(
        front,
        name=name.strip() if isinstance(name, str) else "",
        description=description.strip() if isinstance(description, str) else "",
    )


def _find_skill_fault(content: str, name: str | None = None) -> str | None:
    """Return the fault of a SKILL.md, if any; its name must be `name`, unless that is None."""
    front = parse_front_matter(content)
    if front.fault:
        return (
            f"It cannot be used as SKILL.md: {front.fault}. "
            "Begin with ---, name: …, description: …, and --- again."
        )
    if not front.name or not front.description:
        return "Its front matter needs a name and a description. Add what is missing."
    if name is not None and front.name != name:
        return f"Its front matter says name: {front.name}, but the skill is called {name}."
    if len(content) > _MAX_CHARACTERS:
        return (
            f"It has {len(content):,} characters; the limit for a SKILL.md is {_MAX_CHARACTERS:,}. "
            "Move parts of it to references/."
        )
    return None


def _skill_folders(root: Path) -> list[Path]:
    """The folders with a SKILL.md, in categories of up to two levels; skills are not nested."""
    found: list[Path] = []
    for pattern in ("*", "*/*", "*/*/*"):
        for folder in root.glob(pattern):
            is_hidden = any(part.startswith(".") for part in folder.relative_to(root).parts)
            is_inner = any(parent in found for parent in folder.parents)
            if not is_hidden and not is_inner and (folder / SKILL_FILE).is_file():
                found.append(folder)
    return found


def _check(fault: str | None) -> None:
    if fault is not None:
        raise NotWritten(fault)
