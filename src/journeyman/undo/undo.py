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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct

from journeyman.learning.agent_tools import operation_of
from journeyman.records import Call, Session
from journeyman.records.errors import WrongInput
from journeyman.text.atomic_write import UNFINISHED, entered, put_file
from journeyman.undo.history import Entry, Refs, Run, State, Times, WorkTreeHistory, ask_git

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


class Plan(NamedTuple):
    """The state that each path must get, None if it must go, and the paths to leave alone."""

    targets: dict[bytes, Entry | None]
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
    runs = history.runs(session.id)
    if not runs:
        raise WrongInput(
            f"There is no snapshot of the workspace before the session {session.id}: it wrote "
            "nothing, it ran without undo (agent.undo) or outside of Journeyman, or it is too old "
            "(agent.undo_days)."
        )
    latest = [*runs][-1]
    if runs[latest][1] is None:  # it was killed: what is there now counts as its end
        runs[latest] = history.end(latest, session.id)
    states = [*runs.values()]
    present = history.present(states[0][0])
    targets, during, since = plan_undo(states, present, _writing_times(calls))
    targets |= dict.fromkeys(path for path in present.entries if path.endswith(UNFINISHED.encode()))
    failed = {} if dry_run else _restore(history, targets)
    return Undo(
        session=session.id,
        workspace=str(history.workspace),
        changes=tuple(
            UndoChange(
                path=path.decode(errors="replace"),
                action=_action(target, present.entries.get(path)),
                failed=failed.get(path, ""),
            )
            for path, target in sorted(targets.items())
        ),
        changed_during=tuple(path.decode(errors="replace") for path in sorted(during)),
        changed_since=tuple(path.decode(errors="replace") for path in sorted(since)),
        repository=tuple(_repository_changes(history.workspace, states, present)),
        diff=f"git --git-dir={shlex.quote(str(history.git_dir))} diff "
        f"{states[0][0].files[:12]} {(states[-1][1] or present).files[:12]} --",
        done=not dry_run,
    )


def _action(target: Entry | None, present: Entry | None) -> Action:
    if target is None:
        return "delete"
    return "restore" if present is None else "change"


def _writing_times(calls: Iterable[Call]) -> Times | None:
    """When calls ran that may write; None if that is not known of all."""
    times = []
    for call in calls:
        if operation_of(call.tool, call.arguments) not in _READING:
            if call.asked_at is None:
                return None
            ended = float("inf") if call.answered_at is None else call.answered_at
            times.append((call.asked_at - CLOCK_SLACK_S, ended + CLOCK_SLACK_S))
    return times


def _is_own(path: bytes, after: State, times: Times | None) -> bool:
    """Whether a change of a run was made by a call of the session, as far as that is known. When a
    path was deleted, or something put into a folder, is not known.
    """
    entry, at = after.entries.get(path), after.changed_ns.get(path)
    if times is None or entry is None or at is None or stat.S_ISDIR(entry.mode):
        return times is None or bool(times)
    return any(begun <= at / 1e9 <= ended for begun, ended in times)


def plan_undo(runs: Sequence[Run], present: State, times: Times | None = None) -> Plan:
    """Plan to take back what these runs changed while they worked, or in these times if that is not
    known of a run; None means all of it.
    """
    plan = Plan({}, set(), set())
    targets, during, since = plan
    left: dict[bytes, Entry | None] = {}
    follows = [*(before for before, _ in runs[1:]), present]
    for (before, ended), following in zip(runs, follows, strict=True):
        after = ended or following
        for path in before.entries.keys() | after.entries.keys():
            was, became = before.entries.get(path), after.entries.get(path)
            if was == became or before.says_nothing_about(path):
                continue
            target = targets.setdefault(path, was)
            if path in left and was not in (left[path], target):
                since.add(path)  # neither as the last run left it, nor as an earlier undo did
            if not _is_own(path, after, times if after.working is None else after.working):
                during.add(path)
            left[path] = became
    for path, target in list(targets.items()):
        now, became = present.entries.get(path), left[path]
        # An undo that was killed has removed what is of another type, and put nothing there yet.
        is_half_done = now is None and _type(target) != _type(became) and target and became
        if now == target:
            del targets[path]
        elif now != became and not is_half_done:
            since.add(path)
    since &= targets.keys() - during
    during &= targets.keys()
    for path in during | since:
        del targets[path]
    kept = {path for path in present.entries if targets.get(path, path)} | present.left_out
    kept |= {folder + b".git" for folder in present.repositories}
    above = {path[:at] for path in kept for at in range(len(path)) if path[at : at + 1] == b"/"}
    for path in above & targets.keys():
        if targets[path] is None:
            del targets[path]  # a folder in which something stays
    return plan


def _type(entry: Entry | None) -> int:
    return 0 if entry is None else stat.S_IFMT(entry.mode)


def _restore(history: WorkTreeHistory, targets: Mapping[bytes, Entry | None]) -> dict[bytes, str]:
    """Restore these paths; return those that failed with the reason. Each file is replaced
    atomically, and no link on its path is followed.
    """
    failed: dict[bytes, str] = {}
    steps = ((_clear, path) for path in sorted(targets, reverse=True))
    more = ((_put, path) for path in sorted(targets) if targets[path])
    for step, path in (*steps, *more):
        place = history.workspace / os.fsdecode(path)
        try:
            with entered(place.parent, create=step is _put) as folder:
                step(folder, place.name, targets[path], history)
        except OSError as error:
            is_missing = isinstance(error, FileNotFoundError | NotADirectoryError)
            if step is _put or not is_missing:
                failed[path] = str(error.strerror)
    return failed


def _clear(folder: int, name: str, entry: Entry | None, _history: WorkTreeHistory) -> None:
    """Remove a path that must go or is of another type."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_IFMT(mode) != _type(entry):
        (os.rmdir if stat.S_ISDIR(mode) else os.unlink)(name, dir_fd=folder)


def _put(folder: int, name: str, entry: Entry | None, history: WorkTreeHistory) -> None:
    assert entry is not None
    if stat.S_ISDIR(entry.mode):
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
    elif not entry.is_stored:
        raise OSError(errno.EFBIG, "it was too large to be kept")
    elif stat.S_ISLNK(entry.mode):
        temporary = f".{secrets.token_hex(8)}{UNFINISHED}"
        os.symlink(history.content(entry), os.fsencode(temporary), dir_fd=folder)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        content = io.BytesIO(history.content(entry))
        put_file(folder, name, content, mode=stat.S_IMODE(entry.mode))


def _repository_changes(workspace: Path, runs: Sequence[Run], present: State) -> Iterator[str]:
    """Yield what became of the commits, branches and the index of each repository during a run."""
    follows = [*(before for before, _ in runs[1:]), present]
    for (before, ended), following in zip(runs, follows, strict=True):
        after = ended or following
        for name in sorted(before.repositories.keys() | after.repositories.keys()):
            states = (each.repositories.get(name, {}) for each in (before, after, present))
            for line in _ref_changes(workspace / os.fsdecode(name), *states):
                yield f"{os.fsdecode(name)}: {line}" if name else line


def _ref_changes(folder: Path, was: Refs, became: Refs, now: Refs) -> Iterator[str]:
    if not (was and became):
        if was or became:
            yield f"the repository was {'deleted' if was else 'created'}"
        return
    moved = [ref for ref in sorted(was.keys() | became.keys()) if was.get(ref) != became.get(ref)]
    for ref in moved:
        old, new, present = (each.get(ref, "nothing") for each in (was, became, now))
        if ref == "index" and moved == ["index"] and present == new:
            yield "what is staged for the next commit was changed"
        if ref == "index" or present == old:
            continue
        yield f"{ref} moved from {old} to {new}"
        if "nothing" not in (old, new) and ref != "HEAD":
            made = ask_git(folder, "rev-list", "--oneline", f"{old}..{new}")
            yield from (f"  {commit}" for commit in made.splitlines())
        if ref == became["HEAD"] == now.get("HEAD") and present == new and old != "nothing":
            yield f"  to take this back too: git reset {old}"
