"""Undo: lists of the workspace's files before the first write of a turn and after its end, and a
copy of each content, from which a session's changes are reverted. What something else changed since
is left alone.
"""

import errno
import hashlib
import io
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Literal

import msgspec
from msgspec import Struct

from journeyman.agent.tools.tool import Invocation, Result, Tool
from journeyman.agent.tools.workspace import UNFINISHED, entered, put_file
from journeyman.records import Session
from journeyman.records.errors import OutsideProblem, WrongInput

MOST_FILES = 100_000
LARGEST_FILE = 100 * 2**20
"""In bytes. The content of a larger file is not stored."""

GENERATED = frozenset((b"node_modules", b".venv", b"venv", b".tox", b"__pycache__"))
"""Folders that are neither restored nor removed."""

_FRESH_NS = 2 * 10**9
"""A file that changed this recently before it was read may change again with the same time."""
_CHUNK = 2**20
_OBJECTS = b".git/objects/"
"""Undo never removes objects of a git repository: later commits may need them."""
_BEFORE, _AFTER = "-before", "-after"


class UndoChange(Struct, frozen=True, kw_only=True):
    """What undo does to one path: it restores a file that the session deleted, changes back one
    that it changed, and deletes one that it created. `failed` says why that was not possible.
    """

    path: str
    action: Literal["restore", "change", "delete"]
    failed: str = ""


class Undo(Struct, frozen=True, kw_only=True):
    """What undoing a session will change, or has changed if `done`. The paths in `changed_since`
    stay as they are, because something else changed them after the session.
    """

    session: str
    workspace: str
    changes: tuple[UndoChange, ...]
    changed_since: tuple[str, ...] = ()
    done: bool = False


class Entry(Struct, frozen=True, array_like=True):
    """A file, a link or a folder. `digest` identifies the content, if that is known; `changed_ns`
    shows whether it must be read again.
    """

    mode: int
    digest: str = ""
    changed_ns: int = 0


class Snapshot(Struct, frozen=True, kw_only=True):
    """The entries of a workspace by path, and the folders that were left out."""

    entries: dict[bytes, Entry] = {}
    left_out: frozenset[bytes] = frozenset()

    def state(self, path: bytes) -> tuple[int, str] | None:
        return _state(self.entries.get(path))

    def says_nothing_about(self, path: bytes) -> bool:
        return any(path == folder or path.startswith(folder + b"/") for folder in self.left_out)


def _state(entry: Entry | None) -> tuple[int, str] | None:
    """Mode and content, by which snapshots are compared; None if there is nothing."""
    return None if entry is None else (entry.mode, entry.digest)


class Snapshots:
    """The snapshots of one workspace, below `folder`. A workspace with more than `most_bytes` has
    none; snapshots older than `days` are deleted.
    """

    def __init__(
        self,
        folder: Path,
        workspace: Path,
        *,
        most_bytes: int,
        days: int,
        clock: Callable[[], float],
    ) -> None:
        self.workspace = workspace
        key = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:24]
        self._all, self._folder = folder, folder / key
        self.contents = self._folder / "contents"
        self._most_bytes, self._days, self._clock = most_bytes, days, clock

    def take(self, name: str) -> Snapshot:
        """Store the workspace under a name. Raise OutsideProblem, also if it is too large."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.contents.mkdir(exist_ok=True)
        earlier = sorted(self._folder.glob("*-*"), key=lambda file: file.stat().st_mtime)
        known = self.get(earlier[-1].name) if earlier else Snapshot()
        snapshot = self._read(known, store=True)
        self.save(name, snapshot)
        return snapshot

    def compare(self, before: Snapshot) -> Snapshot:
        """The workspace as it is now. Contents are identified, but not stored."""
        return self._read(before, store=False)

    def save(self, name: str, snapshot: Snapshot) -> None:
        """Store a snapshot without its contents."""
        (self._folder / name).write_bytes(msgspec.msgpack.encode(snapshot))
        self._touch(self._folder / name)

    def get(self, name: str) -> Snapshot:
        """Return the snapshot of this name. Raise OutsideProblem."""
        try:
            return msgspec.msgpack.decode((self._folder / name).read_bytes(), type=Snapshot)
        except (OSError, msgspec.MsgspecError) as error:
            raise OutsideProblem(f"{self._folder / name} cannot be read: delete it") from error

    def names(self, prefix: str) -> list[str]:
        """The names of snapshots that begin like this, in order."""
        return sorted(file.name for file in self._folder.glob(f"{prefix}*"))

    def tidy(self) -> None:
        """Delete snapshots and contents that are too old, of this workspace and of others."""
        oldest = self._clock() - self._days * 86_400
        for file in self._all.rglob("*"):
            with suppress(OSError):
                if file.is_file() and file.stat().st_mtime < oldest:
                    file.unlink()

    def _touch(self, file: Path) -> None:
        now = self._clock()
        os.utime(file, (now, now))

    def _read(self, known: Snapshot, *, store: bool) -> Snapshot:
        root, left_out = os.fsencode(self.workspace) + b"/", set[bytes]()
        found = dict(_below(root, left_out))
        size = sum(one.st_size for one in found.values() if one.st_size <= LARGEST_FILE)
        if store and (len(found) > MOST_FILES or size > self._most_bytes):
            has = f"{self.workspace} has {len(found):,} files and {size / 2**20:,.0f} MB"
            most = f"{MOST_FILES:,} files and {self._most_bytes // 2**20:,} MB (agent.undo_mb)"
            raise OutsideProblem(f"{has}; the limits are {most}")
        entries = {}
        for path, status in found.items():
            with suppress(FileNotFoundError):  # deleted in the meantime
                entry = known.entries.get(path)
                if entry is None or entry.changed_ns != status.st_ctime_ns or not self._has(entry):
                    entry = self._entry(root + path, status, store=store)
                entries[path] = entry
        return Snapshot(entries=entries, left_out=frozenset(left_out))

    def _has(self, entry: Entry) -> bool:
        """Whether the content of an entry is stored; if so, it is kept for longer."""
        with suppress(FileNotFoundError):
            self._touch(self.contents / entry.digest)
            return True
        return False

    def _entry(self, place: bytes, status: os.stat_result, *, store: bool) -> Entry:
        mode, digest = status.st_mode, ""
        if stat.S_ISDIR(mode):
            return Entry(stat.S_IFDIR)
        if stat.S_ISLNK(mode):
            target = os.readlink(place)  # noqa: PTH115 - in bytes
            digest = self._content(io.BytesIO(target), store=store)
        elif status.st_size <= LARGEST_FILE:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with suppress(PermissionError), os.fdopen(os.open(place, flags), "rb") as file:
                digest = self._content(file, store=store)
        is_fresh = status.st_ctime_ns > time.time_ns() - _FRESH_NS
        return Entry(mode, digest, 0 if is_fresh else status.st_ctime_ns)

    def _content(self, source: IO[bytes], *, store: bool) -> str:
        """Return the digest of a content, and store it."""
        digest = hashlib.sha256()
        with tempfile.NamedTemporaryFile(dir=self.contents) as copy:
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                if store:
                    copy.write(chunk)
            if store:
                copy.flush()
                stored = self.contents / digest.hexdigest()
                with suppress(FileExistsError):
                    os.link(copy.name, stored)
                self._touch(stored)
        return digest.hexdigest()


def _below(root: bytes, left_out: set[bytes]) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield files, links and folders; note the folders that are not entered in `left_out`."""
    cut = len(root)
    for place, folders, names in os.walk(
        root, onerror=lambda error: left_out.add(error.filename[cut:])
    ):
        before = place[cut:] + b"/" if place[cut:] else b""
        left_out.update(before + name for name in GENERATED.intersection(folders))
        folders[:] = [name for name in folders if name not in GENERATED]
        for name in (*folders, *names):
            with suppress(FileNotFoundError):
                status = os.lstat(root + before + name)
                if stat.S_IFMT(status.st_mode) in (stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK):
                    yield before + name, status


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
                is_changed = bool(_plan([(before, after)], after)[0])
            self._snapshots.tidy()
        self._before = None
        return is_changed

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except (OutsideProblem, OSError) as error:
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
    targets, since = _plan(turns, present)
    targets |= dict.fromkeys(path for path in present.entries if path.endswith(UNFINISHED.encode()))
    failed = {} if dry_run else _restore(snapshots, targets)
    return Undo(
        session=session.id,
        workspace=str(snapshots.workspace),
        changes=tuple(
            UndoChange(
                path=path.decode(errors="replace"),
                action="delete" if not target else "change" if present.state(path) else "restore",
                failed=failed.get(path, ""),
            )
            for path, target in sorted(targets.items())
        ),
        changed_since=tuple(path.decode(errors="replace") for path in sorted(since)),
        done=not dry_run,
    )


def _plan(
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
            if was is None and (_OBJECTS in path or before.says_nothing_about(path)):
                continue
            target = targets.setdefault(path, before.entries.get(path))
            if path in left and was not in (left[path], _state(target)):
                since.add(path)  # neither as the last turn left it, nor as an earlier undo did
            left[path] = after.state(path)
    for path, target in list(targets.items()):
        now = present.state(path)
        if now == _state(target):
            del targets[path]
        elif now != left[path]:
            since.add(path)
    since &= targets.keys()
    return {path: target for path, target in targets.items() if path not in since}, since


def _restore(snapshots: Snapshots, targets: Mapping[bytes, Entry | None]) -> dict[bytes, str]:
    """Restore these paths; return those that failed with the reason. Each file is replaced
    atomically, and no link on its path is followed.
    """
    failed: dict[bytes, str] = {}
    steps = ((_clear, path) for path in sorted(targets, reverse=True))
    more = ((_put, path) for path in sorted(targets) if targets[path])
    for step, path in (*steps, *more):
        place = snapshots.workspace / os.fsdecode(path)
        try:
            with entered(place.parent, create=step is _put) as folder:
                step(folder, place.name, targets[path], snapshots.contents)
        except OSError as error:
            is_missing = isinstance(error, FileNotFoundError | NotADirectoryError)
            if step is _put or not is_missing:
                failed[path] = str(error.strerror)
    return failed


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
    if stat.S_ISDIR(entry.mode):
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
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


def _prefix(session: Session) -> str:
    """How the names of the snapshots of a session begin."""
    return f"{hashlib.sha256(session.id.encode()).hexdigest()[:24]}-"
