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

_BEFORE, _AFTER = "before", "after"


class UndoChange(Struct, frozen=True, kw_only=True):
    """What undo does to one path: it restores a file that the session deleted, changes back one
    that it changed, and deletes one that it created. `changed_since` means that something else
    changed the path after the session; `failed` says why the change could not be made.
    """

    path: str
    action: Literal["restore", "change", "delete"]
    changed_since: bool = False
    failed: str = ""


class UndoneTurn(Struct, frozen=True, kw_only=True):
    """A turn that is undone. One that has not `ended` was killed: all changes since then count as
    its own.
    """

    number: int
    at: float
    task: str
    ended: bool


class Undo(Struct, frozen=True, kw_only=True):
    """What undoing a session will change, or has changed if `done`. A redo has no turns."""

    session: str
    workspace: str
    turns: tuple[UndoneTurn, ...]
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
        self._folder, self._task = "", ""
        self._turn: str | None = ""
        self._before = Snapshot()
        self._reported = ""

    def begin(self, session: Session, task: str) -> None:
        """Begin a turn; the snapshot is taken before its first write."""
        self._folder, self._task, self._turn = _folder("turns", session), task, None

    def guarded(self, tool: Tool) -> Tool:
        """Wrap a tool that may write, so that its first call in a turn takes a snapshot."""
        if tool.reads_only:
            return tool

        def run(invocation: Invocation) -> Result:
            if self._turn is None:
                self._turn = ""
                with self._reporting():
                    turn = _next_name(self._snapshots, self._folder)
                    self._before = self._snapshots.take(f"{turn}/{_BEFORE}", self._task[:200])
                    self._turn = turn
            return tool.run(invocation)

        return msgspec.structs.replace(tool, run=run)

    def end(self) -> bool:
        """End the turn; return whether it changed something that can be undone."""
        is_changed = False
        if self._turn:
            with self._reporting():
                after = self._snapshots.take(f"{self._turn}/{_AFTER}", whole=False)
                is_changed = bool(plan([(self._before, after)], after)[0])
            self._snapshots.tidy()
        self._turn = ""
        return is_changed

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except OutsideProblem as error:
            if str(error) != self._reported:
                self._reported = str(error)
                self._notify(f"Undo is not available: {self._reported.rstrip('.')}.")


def undo(
    snapshots: Snapshots,
    session: Session,
    *,
    turn: int | None = None,
    redo: bool = False,
    dry_run: bool = False,
) -> Undo:
    """Revert what a session changed, from this turn on or entirely; with `redo`, what the last undo
    or redo changed. A snapshot of the workspace is taken first, so nothing is lost. Raises
    WrongInput if there is nothing to revert, and OutsideProblem if the snapshots cannot be used.
    """
    undos = _folder("undos", session)
    turns = _stored_turns(snapshots, undos if redo else _folder("turns", session))
    selected = {
        name: stored for name, stored in turns.items() if turn is None or stored.number >= turn
    }
    if redo:
        selected = dict(list(turns.items())[-1:])
    numbers = [stored.number for stored in turns.values()]
    if not selected or (turn is not None and turn not in numbers):
        raise WrongInput(_nothing_to_undo(session, turn, numbers, redo=redo))
    if not snapshots.workspace.is_dir():
        raise WrongInput(
            f"The workspace {snapshots.workspace} no longer exists. Create the folder first."
        )
    pairs = [
        (snapshots.get(f"{name}/{_BEFORE}") or Snapshot(), snapshots.get(f"{name}/{_AFTER}"))
        for name in selected
    ]
    own = _next_name(snapshots, undos)
    present = snapshots.take("present" if dry_run else f"{own}/{_BEFORE}", whole=False)
    targets, since = plan(pairs, present)
    targets |= dict.fromkeys(path for path in present.entries if path.endswith(UNFINISHED.encode()))
    failed: Mapping[bytes, str] = {}
    if not dry_run:
        failed = restore(snapshots, targets)
        snapshots.take(f"{own}/{_AFTER}", whole=False)
    there = present.entries
    return Undo(
        session=session.id,
        workspace=str(snapshots.workspace),
        turns=() if redo else tuple(selected.values()),
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
        now, goal = present.state(path), None if target is None else (target.mode, target.oid)
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
    oids = {entry.oid for entry in targets.values() if entry is not None and entry.oid}
    with snapshots.contents(oids) as contents:
        for step, paths, is_clearing in (
            (_grant_access, outer_first, True),
            (_clear, outer_first[::-1], True),
            (_put, remaining, False),
            (_set_attributes, remaining[::-1], False),
        ):
            for path in paths:
                place = snapshots.workspace / os.fsdecode(path)
                try:
                    if path not in failed:
                        with entered(place.parent, create=not is_clearing) as folder:
                            step(folder, place.name, targets[path], contents)
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
    elif stat.S_ISFIFO(entry.mode):
        os.mkfifo(name, stat.S_IMODE(entry.mode), dir_fd=folder)
    elif not entry.oid:
        raise OSError(errno.EFBIG, "its content was not stored, or was too large")
    elif stat.S_ISLNK(entry.mode):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        target = (contents / entry.oid).read_bytes()
        os.symlink(target, os.fsencode(name), dir_fd=folder)
    else:
        with (contents / entry.oid).open("rb") as file:
            put_file(folder, name, file, mode=stat.S_IMODE(entry.mode), owner=entry.owner)


def _set_attributes(folder: int, name: str, entry: Entry | None, _contents: Path) -> None:
    """Set mode and owner of a folder, once its contents are complete."""
    if entry is not None and entry.is_folder:
        with suppress(OSError):
            os.chown(name, *entry.owner, dir_fd=folder, follow_symlinks=False)
        os.chmod(name, stat.S_IMODE(entry.mode), dir_fd=folder)


def _stored_turns(snapshots: Snapshots, folder: str) -> dict[str, UndoneTurn]:
    """The turns or undos that can be reverted, by name, oldest first."""
    taken = {snapshot.name: snapshot for snapshot in snapshots.taken(folder)}
    turns = {}
    for name, snapshot in taken.items():
        turn, _, part = name.rpartition("/")
        if part == _BEFORE:
            ended = f"{turn}/{_AFTER}" in taken
            turns[turn] = UndoneTurn(
                number=int(turn[-6:]), at=snapshot.at, task=snapshot.about, ended=ended
            )
    return turns


def _next_name(snapshots: Snapshots, folder: str) -> str:
    numbers = [turn.number for turn in _stored_turns(snapshots, folder).values()]
    return f"{folder}/{max(numbers, default=0) + 1:06}"


def _folder(kind: Literal["turns", "undos"], session: Session) -> str:
    """The name of the folder with the snapshots of a conversation: that of its first session, if it
    was compressed since.
    """
    first = str(session.details.get("first_session") or session.id)
    return f"{kind}/{hashlib.sha256(first.encode()).hexdigest()[:24]}"


def _nothing_to_undo(
    session: Session, turn: int | None, numbers: Sequence[int], *, redo: bool
) -> str:
    if redo:
        return f"No changes of the session {session.id} were undone, so there is nothing to redo."
    if numbers:
        valid = ", ".join(map(str, numbers))
        return f"The session {session.id} has no turn {turn} to undo. Its turns are: {valid}."
    return (
        f"There is no snapshot of the workspace before the session {session.id}: it wrote nothing, "
        "it ran without undo (agent.undo), or it is too old (agent.undo_days)."
    )
