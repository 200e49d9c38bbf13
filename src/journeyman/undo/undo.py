"""Undo: reverts the files that a session changed, from the states of its work tree.

A change is the session's if the file was last changed while a call of it ran that may write, and if
the file is still as the run left it. What anything else changed, during the run or since, is named
and left alone. So are commits, branches and the index: nothing in `.git` is ever written.
"""

import errno
import io
import os
import secrets
import shlex
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

from msgspec import Struct

from journeyman.learning.agent_tools import operation_of
from journeyman.records import Call, Session
from journeyman.records.errors import WrongInput
from journeyman.text.atomic_write import UNFINISHED, entered, put_file
from journeyman.undo.history import Entry, Run, State, Times, WorkTreeHistory, folders_above
from journeyman.undo.repository import describe_changes

_READING = frozenset(("read", "search_text", "find_files", "list_files", "fetch", "search_web"))
CLOCK_SLACK_S = 0.5
"""How far the recorded time of a call and the time of a file that it wrote may be apart."""

Action = Literal["restore", "change", "delete"]


class UndoChange(Struct, frozen=True, kw_only=True):
    """What undo does to one path: it restores a file that the session deleted, changes back one
    that it changed, and deletes one that it created. `failed` says why that was not possible.
    """

    path: str
    action: Action
    failed: str = ""


class Undo(Struct, frozen=True, kw_only=True):
    """What undoing a session will change, or has changed if `done`. The paths in `changed_during`
    and `changed_since` stay as they are, because something else changed them during the run or
    after it; and so does what `repository` says of commits, branches and the index. `diff` is a
    command that shows what became of the files from the session's beginning to its end.
    """

    session: str
    workspace: str
    changes: tuple[UndoChange, ...]
    changed_during: tuple[str, ...] = ()
    changed_since: tuple[str, ...] = ()
    repository: tuple[str, ...] = ()
    diff: str = ""
    done: bool = False


Targets = Mapping[bytes, Entry | None]
"""The state that each path must get; None if it must go."""


class Plan(NamedTuple):
    """What must change, and the paths to leave alone."""

    targets: Targets
    during: set[bytes]
    since: set[bytes]


def undo(
    history: WorkTreeHistory, session: Session, calls: Iterable[Call], *, dry_run: bool = False
) -> Undo:
    """Revert what a session changed with its calls. Raises WrongInput if there is nothing to
    revert, and OutsideProblem if the states cannot be used.
    """
    if not history.workspace.is_dir():
        raise WrongInput(
            f"The workspace {history.workspace} no longer exists. Create the folder first."
        )
    runs = history.runs(session.id, writing_times(calls))
    if not runs:
        raise WrongInput(
            f"There is no snapshot of the workspace before the session {session.id}: it wrote "
            "nothing, it ran without undo (agent.undo) or outside of Journeyman, or it is too old "
            "(agent.undo_days)."
        )
    first, last = runs[0].before, runs[-1].after
    present = history.present(first)
    plan = plan_undo(runs, present)
    unfinished = [path for path in present.entries if path.endswith(UNFINISHED.encode())]
    targets = {**plan.targets, **dict.fromkeys(unfinished)}
    failed = {} if dry_run else _restore(history, targets)
    return Undo(
        session=session.id,
        workspace=str(history.workspace),
        changes=tuple(
            UndoChange(
                path=_shown(path),
                action=_action(target, present.entries.get(path)),
                failed=failed.get(path, ""),
            )
            for path, target in sorted(targets.items())
        ),
        changed_during=tuple(map(_shown, sorted(plan.during))),
        changed_since=tuple(map(_shown, sorted(plan.since))),
        repository=tuple(_repository_changes(history, runs, present)),
        diff=f"git --git-dir={shlex.quote(str(history.git_dir))} diff "
        f"{first.files[:12]} {last.files[:12]} --",
        done=not dry_run,
    )


def _shown(path: bytes) -> str:
    return path.decode(errors="replace")


def _action(target: Entry | None, present: Entry | None) -> Action:
    if target is None:
        return "delete"
    return "restore" if present is None else "change"


def writing_times(calls: Iterable[Call]) -> Times | None:
    """When calls ran that may write; None if that is not known of all."""
    times = []
    for call in calls:
        if operation_of(call.tool, call.arguments) not in _READING:
            if call.asked_at is None:
                return None
            ended = float("inf") if call.answered_at is None else call.answered_at
            times.append((call.asked_at - CLOCK_SLACK_S, ended + CLOCK_SLACK_S))
    return times


def plan_undo(runs: Sequence[Run], present: State) -> Plan:
    """Plan to take back what these runs changed."""
    targets: dict[bytes, Entry | None] = {}
    left: dict[bytes, Entry | None] = {}
    """Each changed path as the last run left it."""
    during, since = set[bytes](), set[bytes]()
    for before, after in runs:
        for path in before.entries.keys() | after.entries.keys():
            was, became = before.entries.get(path), after.entries.get(path)
            if was == became or before.says_nothing_about(path):
                continue
            target = targets.setdefault(path, was)
            if path in left and was not in (left[path], target):
                since.add(path)  # neither as the last run left it, nor as an earlier undo did
            if path in after.changed_by_others:
                during.add(path)
            left[path] = became
    for path, target in [*targets.items()]:
        now = present.entries.get(path)
        if now == target:
            del targets[path]
        elif now != left[path] and not _is_half_done(now, target, left[path]):
            since.add(path)
    during &= targets.keys()
    since &= targets.keys() - during
    for path in during | since:
        del targets[path]
    return Plan(_without_used_folders(targets, present), during, since)


def _is_half_done(now: Entry | None, target: Entry | None, left: Entry | None) -> bool:
    """Whether an undo that was killed has removed what is of another type, and put nothing there
    yet.
    """
    return now is None and target is not None and left is not None and target.kind != left.kind


def _without_used_folders(targets: Targets, present: State) -> Targets:
    """Leave out the folders that would be deleted, but in which something stays."""
    stays = {path for path in present.entries if path not in targets or targets[path]}
    stays |= present.left_out | {repository + b".git" for repository in present.repositories}
    used = {folder for path in stays for folder in folders_above(path)}
    return {path: target for path, target in targets.items() if target or path not in used}


def _restore(history: WorkTreeHistory, targets: Targets) -> dict[bytes, str]:
    """Restore these paths; return those that failed with the reason. Each file is replaced
    atomically, and no link on its path is followed.
    """
    failed: dict[bytes, str] = {}
    clear = [(_clear, path) for path in sorted(targets, reverse=True)]
    put = [(_put, path) for path in sorted(targets) if targets[path]]
    for step, path in clear + put:
        place = history.workspace / os.fsdecode(path)
        try:
            with entered(place.parent, create=step is _put) as folder:
                step(folder, place.name, targets[path], history)
        except OSError as error:
            is_gone = isinstance(error, FileNotFoundError | NotADirectoryError)
            if step is _put or not is_gone:
                failed[path] = str(error.strerror)
    return failed


def _clear(folder: int, name: str, target: Entry | None, _history: WorkTreeHistory) -> None:
    """Remove a path that must go or is of another type."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if target is None or stat.S_IFMT(mode) != target.kind:
        (os.rmdir if stat.S_ISDIR(mode) else os.unlink)(name, dir_fd=folder)


def _put(folder: int, name: str, target: Entry | None, history: WorkTreeHistory) -> None:
    assert target is not None
    if target.kind == stat.S_IFDIR:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
    elif target.stamp:
        raise OSError(errno.EFBIG, "it was too large to be kept")
    elif target.kind == stat.S_IFLNK:
        temporary = f".{secrets.token_hex(8)}{UNFINISHED}"
        os.symlink(history.content(target), os.fsencode(temporary), dir_fd=folder)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        content = io.BytesIO(history.content(target))
        put_file(folder, name, content, mode=stat.S_IMODE(target.mode))


def _repository_changes(
    history: WorkTreeHistory, runs: Sequence[Run], present: State
) -> Iterable[str]:
    """Yield what became of the commits, branches and the index of each repository during a run."""
    for before, after in runs:
        for name in sorted(before.repositories.keys() | after.repositories.keys()):
            states = (state.repositories.get(name, {}) for state in (before, after, present))
            for line in describe_changes(history.workspace / os.fsdecode(name), *states):
                yield f"{os.fsdecode(name)}: {line}" if name else line
