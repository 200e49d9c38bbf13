"""Memory: two small files of entries, one about the work and one about the user, that go into the
system prompt of each session. Changes are planned here and touch nothing; `committing` writes.

The files are those of Hermes: entries with a line of one § between them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from journeyman.agent.knowledge.files import read_exactly, read_to_show, shortened
from journeyman.agent.knowledge.screening import find_fault, plain, safe_to_show
from journeyman.records import EntryChange, Write
from journeyman.records.errors import NotWritten

Target = Literal["memory", "user"]
Action = Literal["add", "replace", "remove"]

MARK = "§"
SEPARATOR = f"\n{MARK}\n"
FILES: Mapping[str, str] = MappingProxyType(
    {"memory": "memories/MEMORY.md", "user": "memories/USER.md"}
)
LIMITS: Mapping[str, int] = MappingProxyType({"memory": 2200, "user": 1375})
"""How many characters the entries of a file have together, with what stands between them."""

_SHOWN_ENTRIES = 20


class Operation(Struct, frozen=True, kw_only=True):
    """One change: `old_text` is a part of the one entry that is meant."""

    action: Action
    content: str = ""
    old_text: str = ""


class Memory:
    """The memory below a folder: `memories/MEMORY.md` and `memories/USER.md`."""

    def __init__(self, folder: Path, *, limits: Mapping[str, int] = LIMITS) -> None:
        self._folder = folder
        self._limits = limits

    def entries(self, target: Target) -> tuple[str, ...]:
        """The entries as they stand in the file."""
        return parse(read_to_show(self._folder / FILES[target]))

    def text(self, target: Target) -> str:
        """The entries as they go into a system prompt: those that try to instruct their reader
        are blocked. They stay in the file.
        """
        where = FILES[target].rpartition("/")[2]
        shown = (safe_to_show(entry, "entry", where) for entry in self.entries(target))
        return SEPARATOR.join(shown)

    def usage(self, target: Target) -> str:
        """How full a file is, for people and models."""
        return _usage(len(SEPARATOR.join(self.entries(target))), self._limits[target])

    def add(self, target: Target, content: str) -> Write:
        """Add an entry. Raises NotWritten where that may not be."""
        return self._plan(target, "add", [Operation(action="add", content=content)])

    def replace(self, target: Target, old_text: str, content: str) -> Write:
        """Replace the one entry that has `old_text` in it. Raises NotWritten."""
        operation = Operation(action="replace", old_text=old_text, content=content)
        return self._plan(target, "replace", [operation])

    def remove(self, target: Target, old_text: str) -> Write:
        """Remove the one entry that has `old_text` in it. Raises NotWritten."""
        return self._plan(target, "remove", [Operation(action="remove", old_text=old_text)])

    def batch(self, target: Target, operations: Sequence[Operation]) -> Write:
        """Several changes as one: all or none, and only the end has to be within the limit."""
        if not operations:
            raise NotWritten("There is no operation in the list. Give at least one.")
        return self._plan(target, "batch", operations)

    def _plan(self, target: Target, action: str, operations: Sequence[Operation]) -> Write:
        path = FILES[target]
        before = read_exactly(self._folder / path)
        entries = list(parse(before or ""))
        old_size = len(SEPARATOR.join(entries))
        changes = []
        for number, operation in enumerate(operations, 1):
            try:
                changes.append(_applied(target, entries, operation))
            except NotWritten as error:
                if len(operations) == 1:
                    raise
                raise NotWritten(f"Operation {number}: {error} None was done.") from error
        after = SEPARATOR.join(entries)
        check_size(target, len(after), old_size, self._limits[target])
        summary = f"{target}: " + ", ".join(_told(change) for change in changes)
        return Write(
            kind=target,
            action=action,
            path=path,
            before=before,
            after=after,
            summary=summary,
            entries=tuple(changes),
        )


def parse(text: str) -> tuple[str, ...]:
    """The entries of a file: what stands between lines that are nothing but a §."""
    entries: list[list[str]] = [[]]
    for line in text.removeprefix("\ufeff").split("\n"):
        if line.strip() == MARK:
            entries.append([])
        else:
            entries[-1].append(line)
    found = ("\n".join(lines).strip() for lines in entries)
    return tuple(entry for entry in found if entry)


def check_size(target: str, size: int, old_size: int, limit: int) -> None:
    """Raise NotWritten where a file would be too large; one that a person has made too large may
    still shrink.
    """
    if size > limit and size > old_size:
        raise NotWritten(
            f"With this, {target} would have {size:,} of at most {limit:,} characters "
            f"(now {_usage(old_size, limit)}). Replace or remove entries first, or say it shorter."
        )


def _applied(target: str, entries: list[str], operation: Operation) -> EntryChange:
    """Do one operation to a list of entries; what it changed."""
    if operation.action == "add":
        content = _checked(target, operation.content, entries)
        entries.append(content)
        return EntryChange(index=len(entries) - 1, after=content)
    index = _find(target, entries, operation.old_text)
    before = entries[index]
    if operation.action == "remove":
        del entries[index]
        return EntryChange(index=index, before=before)
    content = _checked(target, operation.content, entries)
    entries[index] = content
    return EntryChange(index=index, before=before, after=content)


def _checked(target: str, content: str, entries: Sequence[str]) -> str:
    entry = plain(content)
    if not entry:
        raise NotWritten(f"The entry for {target} is empty. Say in `content` what to keep.")
    fault = find_fault(entry)
    if fault is not None:
        raise NotWritten(f"This is not kept in {target}. {fault}")
    if parse(entry) != (entry,):
        raise NotWritten(
            f"The entry for {target} has a line that is only {MARK}, which stands between entries. "
            "Leave it out, or add several entries."
        )
    if entry in entries:
        raise NotWritten(f"{target} has exactly this entry already: “{shortened(entry)}”.")
    return entry


def _find(target: str, entries: Sequence[str], old_text: str) -> int:
    """The place of the one entry that is meant."""
    part = plain(old_text)
    if not part:
        raise NotWritten("`old_text` is empty. Give a part of the entry that is meant.")
    found = [index for index, entry in enumerate(entries) if part in entry]
    whole = [index for index in found if entries[index] == part]
    if whole or len({entries[index] for index in found}) == 1:
        return (whole or found)[0]
    shown = found or range(len(entries))
    there = " | ".join(f"“{shortened(entries[index])}”" for index in shown[:_SHOWN_ENTRIES])
    if found:
        raise NotWritten(
            f"“{shortened(part)}” is in {len(found)} entries of {target}: {there}. "
            "Give a part that only one of them has."
        )
    raise NotWritten(
        f"“{shortened(part)}” is in no entry of {target}. "
        + (f"There is: {there}." if there else "It has no entries.")
    )


def _told(change: EntryChange) -> str:
    if change.before is None:
        return f"added “{shortened(change.after or '')}”"
    if change.after is None:
        return f"removed “{shortened(change.before)}”"
    return f"replaced “{shortened(change.before)}” by “{shortened(change.after)}”"


def _usage(size: int, limit: int) -> str:
    percent = size * 100 // limit if limit else 100
    return f"{percent}% — {size:,}/{limit:,} chars"
