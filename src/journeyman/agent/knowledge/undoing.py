"""Taking a change back, as a change of its own: files that are still as they were left go back to
what they were; of a memory file that has changed since, only the entries that are meant.
"""

from collections.abc import Mapping
from pathlib import Path

from journeyman.agent.knowledge.files import read_exactly, shortened
from journeyman.agent.knowledge.memory import LIMITS, SEPARATOR, check_size, parse
from journeyman.records import EntryChange, FileChange, Write
from journeyman.records.errors import NotWritten


def undo(folder: Path, write: Write, *, limits: Mapping[str, int] = LIMITS) -> Write:
    """Plan the opposite of a change that was done. Raises NotWritten when what it wrote has been
    changed again, so that there is nothing to go back to.
    """
    now = {file.path: read_exactly(folder / file.path) for file in write.files}
    changed = [file.path for file in write.files if now[file.path] != file.after]
    if not changed:
        return _opposite(write, write.after, write.before)
    if write.kind == "skill":
        raise NotWritten(
            f"{', '.join(changed)} changed after “{write.summary}”, so that cannot be undone. "
            "Undo the later change first, or edit the file by hand."
        )
    before = now[write.path]
    entries = list(parse(before or ""))
    old_size = len(SEPARATOR.join(entries))
    for change in reversed(write.entries):
        _take_back(write, entries, change)
    after = SEPARATOR.join(entries)
    check_size(write.kind, len(after), old_size, limits[write.kind])
    return _opposite(write, before, after)


def _take_back(write: Write, entries: list[str], change: EntryChange) -> None:
    """Undo one change in a list of entries, at its old place if that is still there."""
    index = len(entries)
    if change.after is not None:
        index = _place_of(write, entries, change)
        del entries[index]
    if change.before is not None:
        if change.before in entries:
            raise NotWritten(
                f"{write.kind} has the entry “{shortened(change.before)}” again, so “"
                f"{write.summary}” is not undone."
            )
        entries.insert(
            min(change.index, len(entries)) if change.after is None else index, change.before
        )


def _place_of(write: Write, entries: list[str], change: EntryChange) -> int:
    assert change.after is not None
    if entries[change.index : change.index + 1] == [change.after]:
        return change.index
    if change.after in entries:
        return entries.index(change.after)
    raise NotWritten(
        f"The entry “{shortened(change.after)}” is no longer in {write.kind}: it was changed or "
        f"removed after “{write.summary}”, so there is nothing to undo."
    )


def _opposite(write: Write, before: str | None, after: str | None) -> Write:
    told = write.summary.removeprefix(f"{write.kind}: ")
    return Write(
        kind=write.kind,
        action="undo",
        path=write.path,
        before=before,
        after=after,
        summary=f"{write.kind}: undid: {told}",
        entries=tuple(
            EntryChange(index=change.index, before=change.after, after=change.before)
            for change in reversed(write.entries)
        ),
        others=tuple(
            FileChange(path=file.path, before=file.after, after=file.before)
            for file in write.others
        ),
    )
