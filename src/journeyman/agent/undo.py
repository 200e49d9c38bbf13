"""Undo: the workspace is kept before the first write of a turn and after its end, and what a
session changed between the two can be put back. What other people and programs changed is told
apart from that.
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


class Change(Struct, frozen=True, kw_only=True):
    """What undoing does to one path: a file that the session deleted is restored, one that it
    changed is changed back, one that it made is deleted. `changed_since` says that somebody else
    changed it after the session; `failed` says why it was not done.
    """

    path: str
    action: Literal["restore", "change", "delete"]
    changed_since: bool = False
    failed: str = ""


class UndoneTurn(Struct, frozen=True, kw_only=True):
    """A turn that is undone. One without an end was killed: all that changed since is its work."""

    number: int
    at: float
    task: str
    ended: bool


class Undo(Struct, frozen=True, kw_only=True):
    """What undoing a session changes, or has changed when it is `done`. A redo has no turns."""

    session: str
    workspace: str
    turns: tuple[UndoneTurn, ...]
    changes: tuple[Change, ...]
    done: bool = False

    @property
    def changed_since(self) -> tuple[str, ...]:
        """What somebody else changed after the session."""
        return tuple(one.path for one in self.changes if one.changed_since)


class TurnSnapshots:
    """Takes the snapshots of an agent's turns. Where that is not possible the work goes on, and
    `tell` hears once why.
    """

    def __init__(self, snapshots: Snapshots, tell: Callable[[str], None]) -> None:
        self._snapshots, self._tell = snapshots, tell
        self._folder, self._task = "", ""
        self._turn: str | None = ""
        self._before = Snapshot()
        self._told = ""

    def begin(self, session: Session, task: str) -> None:
        """A turn begins: its first write is still to come."""
        self._folder, self._task, self._turn = _folder("turns", session), task, None

    def guarded(self, tool: Tool) -> Tool:
        """The tool with a snapshot before the first call in a turn, if it may write."""
        if tool.reads_only:
            return tool

        def run(invocation: Invocation) -> Result:
            if self._turn is None:
                self._turn = ""
                with self._telling():
                    turn = _next(self._snapshots, self._folder)
                    self._before = self._snapshots.take(f"{turn}/{_BEFORE}", self._task[:200])
                    self._turn = turn
            return tool.run(invocation)

        return msgspec.structs.replace(tool, run=run)

    def end(self) -> bool:
        """The turn is over; whether it changed something that can be undone."""
        is_changed = False
        if self._turn:
            with self._telling():
                after = self._snapshots.take(f"{self._turn}/{_AFTER}", whole=False)
                is_changed = bool(plan([(self._before, after)], after)[0])
            self._snapshots.tidy()
        self._turn = ""
        return is_changed

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except OutsideProblem as error:
            if str(error) != self._told:
                self._told = str(error)
                self._tell(f"Undo is not available: {self._told.rstrip('.')}.")


def undo(
    snapshots: Snapshots,
    session: Session,
    *,
    turn: int | None = None,
    redo: bool = False,
    dry_run: bool = False,
) -> Undo:
    """Put back what a session changed, from this turn on or all of it; with `redo`, what the last
    undo or redo changed. The workspace is kept before, so that nothing is lost. Raises WrongInput
    where there is nothing to go back to, OutsideProblem.
    """
    undos = _folder("undos", session)
    kept = _kept(snapshots, undos if redo else _folder("turns", session))
    chosen = {name: one for name, one in kept.items() if turn is None or one.number >= turn}
    if redo:
        chosen = dict(list(kept.items())[-1:])
    numbers = [one.number for one in kept.values()]
    if not chosen or (turn is not None and turn not in numbers):
        raise WrongInput(_nothing(session, turn, numbers, redo=redo))
    if not snapshots.workspace.is_dir():
        raise WrongInput(f"{snapshots.workspace} is not there any more. Make the folder first.")
    pairs = [
        (snapshots.get(f"{name}/{_BEFORE}") or Snapshot(), snapshots.get(f"{name}/{_AFTER}"))
        for name in chosen
    ]
    own = _next(snapshots, undos)
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
        turns=() if redo else tuple(chosen.values()),
        changes=tuple(
            Change(
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
    """What to put where, None for what is to go, and which of these paths somebody else changed
    after or between the turns. Each turn is the workspace before and after it, None where it was
    killed.
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
        now, wanted = present.state(path), None if target is None else (target.mode, target.oid)
        if now == wanted:
            del targets[path]
        elif now != left[path]:
            since.add(path)
    return targets, since & targets.keys()


def restore(snapshots: Snapshots, targets: Mapping[bytes, Entry | None]) -> dict[bytes, str]:
    """Put these paths as they were; what could not be done comes back with the reason. Each file
    is replaced as a whole, and no link is followed on the way to it.
    """
    failed: dict[bytes, str] = {}
    shallow = sorted(targets)
    there = [path for path in shallow if targets[path] is not None]
    oids = {entry.oid for entry in targets.values() if entry is not None and entry.oid}
    with snapshots.contents(oids) as contents:
        for step, paths, is_clearing in (
            (_open_up, shallow, True),
            (_clear, shallow[::-1], True),
            (_put, there, False),
            (_settle, there[::-1], False),
        ):
            for path in paths:
                place = snapshots.workspace / os.fsdecode(path)
                try:
                    if path not in failed:
                        with entered(place.parent, create=not is_clearing) as folder:
                            step(folder, place.name, targets[path], contents)
                except (FileNotFoundError, NotADirectoryError) as error:
                    if not is_clearing:  # otherwise there is nothing to clear
                        failed[path] = str(error.strerror)
                except OSError as error:
                    failed[path] = str(error.strerror)
    return failed


def _open_up(folder: int, name: str, _entry: Entry | None, _contents: Path) -> None:
    """Let the owner into a folder."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode):
        os.chmod(name, stat.S_IMODE(mode) | stat.S_IRWXU, dir_fd=folder)


def _clear(folder: int, name: str, entry: Entry | None, _contents: Path) -> None:
    """Remove what is there, if it is to go or is of another kind."""
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
            raise  # a folder that only has to go may stay for what somebody else put there


def _put(folder: int, name: str, entry: Entry | None, contents: Path) -> None:
    assert entry is not None
    if entry.is_folder:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
        os.chmod(name, stat.S_IMODE(entry.mode) | stat.S_IRWXU, dir_fd=folder)
    elif stat.S_ISFIFO(entry.mode):
        os.mkfifo(name, stat.S_IMODE(entry.mode), dir_fd=folder)
    elif not entry.oid:
        raise OSError(errno.EFBIG, "it could not be kept, or was too large")
    elif stat.S_ISLNK(entry.mode):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        target = (contents / entry.oid).read_bytes()
        os.symlink(target, os.fsencode(name), dir_fd=folder)
    else:
        with (contents / entry.oid).open("rb") as file:
            put_file(folder, name, file, mode=stat.S_IMODE(entry.mode), owner=entry.owner)


def _settle(folder: int, name: str, entry: Entry | None, _contents: Path) -> None:
    """Give a folder its mode and owner, now that all is in it."""
    if entry is not None and entry.is_folder:
        with suppress(OSError):
            os.chown(name, *entry.owner, dir_fd=folder, follow_symlinks=False)
        os.chmod(name, stat.S_IMODE(entry.mode), dir_fd=folder)


def _kept(snapshots: Snapshots, folder: str) -> dict[str, UndoneTurn]:
    """The turns or undos that can be taken back by name, the oldest first."""
    taken = {one.name: one for one in snapshots.taken(folder)}
    found = {}
    for name, one in taken.items():
        turn, _, part = name.rpartition("/")
        if part == _BEFORE:
            ended = f"{turn}/{_AFTER}" in taken
            found[turn] = UndoneTurn(number=int(turn[-6:]), at=one.at, task=one.about, ended=ended)
    return found


def _next(snapshots: Snapshots, folder: str) -> str:
    numbers = [one.number for one in _kept(snapshots, folder).values()]
    return f"{folder}/{max(numbers, default=0) + 1:06}"


def _folder(kind: Literal["turns", "undos"], session: Session) -> str:
    """Where the snapshots are of the session in which a conversation began, if it was compressed
    since.
    """
    first = str(session.details.get("first_session") or session.id)
    return f"{kind}/{hashlib.sha256(first.encode()).hexdigest()[:24]}"


def _nothing(session: Session, turn: int | None, numbers: Sequence[int], *, redo: bool) -> str:
    if redo:
        return f"Nothing of the session {session.id} was undone, so there is nothing to redo."
    if numbers:
        return f"The session {session.id} has no turn {turn} to undo. It has: {str(numbers)[1:-1]}."
    return (
        f"Nothing is kept of the workspace before the session {session.id}: it wrote nothing, it "
        "ran without undo (agent.undo), or it is too long ago (agent.undo_days)."
    )
