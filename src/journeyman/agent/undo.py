"""Undo: snapshots of the workspace before the first write of a turn and after its end, from which a
session's changes can be reverted. Changes by other people and programs are recognised.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from journeyman.agent.snapshots import Entry, Snapshot, Snapshots, is_history
from journeyman.agent.tools.tool import Invocation, Result, Tool
from journeyman.agent.tools.workspace import UNFINISHED, entered, put_file
from journeyman.records import Session
from journeyman.records.errors import OutsideProblem, WrongInput

_BEFORE, _AFTER = "-before", "-after"


class UndoChange(Struct, frozen=True, kw_only=True):
    """What undo does to one path: it restores a file that the session deleted, changes back one
    that it changed, and deletes one that it created. `changed_since` means that something else
    changed the path after the session; `failed` says why the change could not be made.
    """

    path: str
    action: Literal["restore", "change", "delete"]
    changed_since: bool = False
    failed: str = ""


class Undo(Struct, frozen=True, kw_only=True):
    """What undoing a session will change, or has changed if `done`."""

    session: str
    workspace: str
    changes: tuple[UndoChange, ...]
    done: bool = False

    @property
    def changed_since(self) -> tuple[str, ...]:
        """The paths that something else changed after the session."""
        return tuple(change.path for change in self.changes if change.changed_since)


class TurnSnapshots:
    """Takes the snapshots of an agent's turns. If that fails, the turn continues, and `notify`
    receives the reason once.
    """

    def __init__(self, snapshots: Snapshots, notify: Callable[[str], None]) -> None:
        self._snapshots, self._notify = snapshots, notify
        self._prefix, self._turn = "", ""
        self._before: Snapshot | None = None
        self._reported = ""

    def begin(self, session: Session) -> None:
        """Begin a turn; the snapshot is taken before its first write."""
        self._prefix, self._turn, self._before = _prefix(session), "", None

    def guarded(self, tool: Tool) -> Tool:
        """Wrap a tool that may write, so that its first call in a turn takes a snapshot."""
        if tool.reads_only:
            return tool

        def run(invocation: Invocation) -> Result:
            if not self._turn:
                number = len(self._snapshots.names(self._prefix))
                self._turn = f"{self._prefix}{number:06}"
                with self._reporting():
                    self._before = self._snapshots.take(self._turn + _BEFORE)
            return tool.run(invocation)

        return msgspec.structs.replace(tool, run=run)

    def end(self) -> bool:
        """End the turn; return whether it changed something that can be undone."""
        is_changed, before = False, self._before
        if before is not None:
            with self._reporting():
                after = self._snapshots.compare(before)
                self._snapshots.save(self._turn + _AFTER, after)
                is_changed = bool(plan([(before, after)], after)[0])
            self._snapshots.tidy()
        self._before = None
        return is_changed

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except OutsideProblem as error:
            if str(error) != self._reported:
                self._reported = str(error)
                self._notify(f"Undo is not available: {self._reported.rstrip('.')}.")


def undo(snapshots: Snapshots, session: Session, *, dry_run: bool = False) -> Undo:
    """Revert what a session changed. Raises WrongInput if there is nothing to revert, and
    OutsideProblem if the snapshots cannot be used.
    """
    names = snapshots.names(_prefix(session))
    if not names:
        raise WrongInput(
            f"There is no snapshot of the workspace before the session {session.id}: it wrote "
            "nothing, it ran without undo (agent.undo), or it is too old (agent.undo_days)."
        )
    if not snapshots.workspace.is_dir():
        raise WrongInput(
            f"The workspace {snapshots.workspace} no longer exists. Create the folder first."
        )
    turns: list[tuple[Snapshot, Snapshot | None]] = []
    for before in (name for name in names if name.endswith(_BEFORE)):
        after = before.removesuffix(_BEFORE) + _AFTER
        # A turn that was killed has no snapshot after it.
        turns.append((snapshots.get(before), snapshots.get(after) if after in names else None))
    present = snapshots.compare(turns[0][0])
    targets, since = plan(turns, present)
    targets |= dict.fromkeys(path for path in present.entries if path.endswith(UNFINISHED.encode()))
    failed = {} if dry_run else restore(snapshots, targets)
    there = present.entries
    return Undo(
        session=session.id,
        workspace=str(snapshots.workspace),
        changes=tuple(
            UndoChange(
                path=path.decode(errors="replace") + "/" * (target or there[path]).is_folder,
                action="delete" if target is None else "change" if path in there else "restore",
                changed_since=path in since,
                failed=failed.get(path, ""),
            )
            for path, target in sorted(targets.items())
        ),
        done=not dry_run,
    )


def plan(
    turns: Sequence[tuple[Snapshot, Snapshot | None]], present: Snapshot
) -> tuple[dict[bytes, Entry | None], set[bytes]]:
    """Return the target of each path, None if it must be removed, and the paths that something else
    changed after or between the turns. Each turn is the workspace before and after it, None if the
    turn was killed.
    """
    targets: dict[bytes, Entry | None] = {}
    left: dict[bytes, object] = {}
    since: set[bytes] = set()
    follows = [*(before for before, _ in turns[1:]), present]
    for (before, ended), following in zip(turns, follows, strict=True):
        after = ended or following
        for path in before.entries.keys() | after.entries.keys():
            was = before.state(path)
            if was == after.state(path):
                continue
            if was is None and (before.leaves_out(path) or is_history(path)):
                continue
            if path in left and left[path] != was:
                since.add(path)
            targets.setdefault(path, before.entries.get(path))
            left[path] = after.state(path)
    for path, target in list(targets.items()):
        now, goal = present.state(path), None if target is None else (target.mode, target.digest)
        if now == goal:
            del targets[path]
        elif now != left[path]:
            since.add(path)
    return targets, since & targets.keys()


def restore(snapshots: Snapshots, targets: Mapping[bytes, Entry | None]) -> dict[bytes, str]:
    """Restore these paths; return those that failed with the reason. Each file is replaced
    atomically, and no link on its path is followed.
    """
    failed: dict[bytes, str] = {}
    outer_first = sorted(targets)
    remaining = [path for path in outer_first if targets[path] is not None]
    for step, paths, is_clearing in (
        (_grant_access, outer_first, True),
        (_clear, outer_first[::-1], True),
        (_put, remaining, False),
        (_set_mode, remaining[::-1], False),
    ):
        for path in paths:
            place = snapshots.workspace / os.fsdecode(path)
            try:
                if path not in failed:
                    with entered(place.parent, create=not is_clearing) as folder:
                        step(folder, place.name, targets[path], snapshots.contents)
            except (FileNotFoundError, NotADirectoryError) as error:
                if not is_clearing:  # a missing path needs no clearing
                    failed[path] = str(error.strerror)
            except OSError as error:
                failed[path] = str(error.strerror)
    return failed


def _grant_access(folder: int, name: str, _entry: Entry | None, _contents: Path) -> None:
    """Give the owner access to a folder."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode):
        os.chmod(name, stat.S_IMODE(mode) | stat.S_IRWXU, dir_fd=folder)


def _clear(folder: int, name: str, entry: Entry | None, _contents: Path) -> None:
    """Remove a path that must go or is of another type."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if entry is not None and stat.S_IFMT(mode) == stat.S_IFMT(entry.mode):
        return
    if not stat.S_ISDIR(mode):
        os.unlink(name, dir_fd=folder)
        return
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError:
        if entry is not None:
            raise  # otherwise the folder stays for files that something else put there


def _put(folder: int, name: str, entry: Entry | None, contents: Path) -> None:
    assert entry is not None
    if entry.is_folder:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
        os.chmod(name, stat.S_IMODE(entry.mode) | stat.S_IRWXU, dir_fd=folder)
    elif not entry.digest:
        raise OSError(errno.EFBIG, "its content was not stored, or was too large")
    elif stat.S_ISLNK(entry.mode):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        target = (contents / entry.digest).read_bytes()
        os.symlink(target, os.fsencode(name), dir_fd=folder)
    else:
        with (contents / entry.digest).open("rb") as file:
            put_file(folder, name, file, mode=stat.S_IMODE(entry.mode))


def _set_mode(folder: int, name: str, entry: Entry | None, _contents: Path) -> None:
    """Set the mode of a folder, once its contents are complete."""
    if entry is not None and entry.is_folder:
        os.chmod(name, stat.S_IMODE(entry.mode), dir_fd=folder)


def _prefix(session: Session) -> str:
    """How the names of the snapshots of a session begin."""
    return f"{hashlib.sha256(session.id.encode()).hexdigest()[:24]}-"
