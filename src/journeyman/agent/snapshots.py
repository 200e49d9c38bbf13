"""Snapshots of a workspace in a private git repository, so that an agent's changes can be undone.
The project's own .git is stored as ordinary files; no git command ever runs on it.
"""

import hashlib
import io
import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple

import msgspec
from msgspec import Struct

from journeyman.agent.knowledge.files import held_lock
from journeyman.records.errors import NotWritten, OutsideProblem

MOST_BYTES = 2**30
MOST_FILES = 100_000
LARGEST_IGNORED = 10 * 2**20
IGNORED_FILES, IGNORED_BYTES = 1_000, 50 * 2**20
"""Limits up to which a file, and the files and bytes of a folder, are stored although git ignores
them."""

KEPT_DAYS = 14
MOST_SNAPSHOTS = 400

_CHUNK = 2**20
_LOCK_S, _GIT_S = 60.0, 300.0
_FRESH_NS = 2 * 10**9
"""A file that changed this recently before it was read may change again with the same time."""

_STORED_TYPES = (stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK, stat.S_IFIFO)
_OBJECTS = re.compile(rb"(?:.*/)?\.git(?:/modules/.+)?(?:/lfs)?/objects(?=/|\Z)", re.DOTALL)
_LATEST = "latest"
_CONFIG = """[core]
\trepositoryformatversion = 0
\tbare = true
\tautocrlf = false
\thooksPath = /dev/null
\texcludesFile = /dev/null
\tattributesFile = /dev/null
\tcompression = 0
\tbigFileThreshold = 16m
[gc]
\tauto = 4000
\tautoPackLimit = 40
\tautoDetach = false
\tpruneExpire = now
[pack]
\tthreads = 1
\twindow = 2
"""
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_DEFAULT_HASH": "sha1",
    "GIT_LITERAL_PATHSPECS": "1",
    "LC_ALL": "C",
}


class Entry(Struct, frozen=True, array_like=True):
    """A file, a link, a folder or a pipe. `oid` identifies the content; it is empty for folders,
    pipes and content that was too large. `changed_ns` and `inode` show whether it must be read
    again.
    """

    mode: int
    oid: str
    size: int
    owner: tuple[int, int]
    changed_ns: int = 0
    inode: int = 0

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    def is_still(self, status: os.stat_result) -> bool:
        """Whether the file is unchanged, according to the file system."""
        current = (status.st_ctime_ns, status.st_ino, status.st_size, status.st_mode)
        return current == (self.changed_ns, self.inode, self.size, self.mode)


class Snapshot(Struct, frozen=True, kw_only=True):
    """The entries of a workspace by path, and the paths that were left out."""

    entries: dict[bytes, Entry] = {}
    left_out: frozenset[bytes] = frozenset()

    def state(self, path: bytes) -> tuple[int, str] | None:
        """Mode and content, by which snapshots are compared; None if there is nothing."""
        entry = self.entries.get(path)
        return None if entry is None else (entry.mode, entry.oid)

    def leaves_out(self, path: bytes) -> bool:
        """Whether the snapshot says nothing about this path."""
        ends = (*(slash.start() for slash in re.finditer(rb"/", path)), len(path))
        return any(path[:end] in self.left_out for end in ends)


class StoredSnapshot(NamedTuple):
    """The name of a snapshot, when it was taken, and a line about it."""

    name: str
    at: float
    about: str


class Snapshots:
    """The snapshots of one workspace, in a repository below `folder`. A workspace with more than
    `most_bytes` has none; snapshots older than `days` are deleted.
    """

    def __init__(
        self,
        folder: Path,
        workspace: Path,
        *,
        most_bytes: int = MOST_BYTES,
        days: int = KEPT_DAYS,
        clock: Callable[[], float] = time.time,
        git: str = "git",
    ) -> None:
        self.workspace = workspace
        key = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:24]
        self._folder, self._repository = folder, folder / f"{key}.git"
        self._most_bytes, self._days, self._clock, self._program = most_bytes, days, clock, git

    def take(self, name: str, about: str = "", *, whole: bool = True) -> Snapshot:
        """Store the workspace as it is now under a name. If it is too large, a snapshot that must
        be `whole` fails, and another leaves out the contents beyond the limit. Raises
        OutsideProblem with the reason.
        """
        with self._locked():
            previous = (self.get(_LATEST) or Snapshot()).entries
            selected, left_out = self._select(previous, whole=whole)
            snapshot = Snapshot(entries={}, left_out=frozenset(left_out))

            def stream() -> Iterator[bytes]:
                room, sure_ns = self._most_bytes, time.time_ns() - _FRESH_NS
                for path, status in selected.items():
                    room -= status.st_size
                    entry = previous.get(path)
                    with suppress(FileNotFoundError):  # deleted in the meantime
                        if entry is None or not entry.is_still(status):
                            place = os.fsencode(self.workspace) + b"/" + path
                            entry = yield from _read(place, status, sure_ns, fits=room >= 0)
                        snapshot.entries[path] = entry
                yield _commit(name, about, snapshot, int(self._clock()))

            self._git("fast-import", "--quiet", "--force", "--depth=0", stdin=stream())
            return snapshot

    def get(self, name: str) -> Snapshot | None:
        """Return the snapshot of this name, or None."""
        if not self._repository.is_dir():
            return None
        answer = self._git("cat-file", "--batch", stdin=[f"refs/{name}:manifest\n".encode()])
        head, _, body = answer.partition(b"\n")
        if head.endswith(b" missing"):
            return None
        try:
            return msgspec.msgpack.decode(body[:-1], type=Snapshot)
        except msgspec.MsgspecError as error:
            raise OutsideProblem(f"{self._repository} is damaged: delete it") from error

    def taken(self, below: str = "") -> list[StoredSnapshot]:
        """The snapshots with names below this one, ordered by name."""
        if not self._repository.is_dir():
            return []
        format_option = "--format=%(refname:lstrip=1) %(committerdate:unix) %(contents:subject)"
        lines = self._git("for-each-ref", format_option, f"refs/{below}").decode(errors="replace")
        parts = [line.split(" ", 2) for line in lines.splitlines()]
        return [StoredSnapshot(name, float(at), about) for name, at, about in parts]

    def drop(self, names: Iterable[str]) -> None:
        """Delete snapshots."""
        lines = (f"delete refs/{name}\n".encode() for name in names)
        self._git("update-ref", "--stdin", stdin=lines)

    def tidy(self) -> None:
        """Delete old snapshots, of this workspace and of others, and pack the rest."""
        oldest = self._clock() - self._days * 86_400
        with suppress(OSError, OutsideProblem), self._locked():
            stored = [snapshot for snapshot in self.taken() if snapshot.name != _LATEST]
            stored.sort(key=lambda snapshot: snapshot.at, reverse=True)
            old = [
                snapshot.name
                for position, snapshot in enumerate(stored)
                if position >= MOST_SNAPSHOTS or snapshot.at < oldest
            ]
            self.drop(old)
            self._git("gc", "--quiet", *(() if old else ("--auto",)))
        for lock in self._folder.glob("*.git/lock"):
            with suppress(OSError):
                if lock.parent != self._repository and lock.stat().st_mtime < oldest:
                    shutil.rmtree(lock.parent)

    @contextmanager
    def contents(self, oids: Iterable[str]) -> Iterator[Path]:
        """Provide a temporary folder with these contents, each in a file named by its id."""
        with self._locked():
            folder = self._repository / "contents"
            shutil.rmtree(folder, ignore_errors=True)  # left behind if a process was killed
            folder.mkdir()
            places = {"GIT_WORK_TREE": str(folder), "GIT_INDEX_FILE": str(folder / "index")}
            rows = (f"100644 {oid}\t{oid}\n".encode() for oid in oids)
            try:
                self._git("update-index", "--index-info", stdin=rows, variables=places)
                self._git("checkout-index", "--all", variables=places)
                yield folder
            finally:
                shutil.rmtree(folder)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the repository, which is created if it does not exist."""
        try:
            lock = self._repository / "lock"
            with held_lock(lock, _LOCK_S):
                os.utime(lock)
                if not (self._repository / "HEAD").exists():
                    self._git("init", "--quiet", "--bare", "--template=", str(self._repository))
                    (self._repository / "config").write_text(_CONFIG)
                yield
        except NotWritten as error:
            raise OutsideProblem(str(error)) from error
        except OSError as error:
            place = os.fsdecode(error.filename or self._repository)
            raise OutsideProblem(f"{place}: {error.strerror}") from error

    def _select(
        self, previous: Collection[bytes], *, whole: bool
    ) -> tuple[dict[bytes, os.stat_result], list[bytes]]:
        """Select the paths to store and those to leave out. Store all that git does not ignore,
        what it ignores if that is small, and the history of repositories if there is room. What was
        stored before is stored again, even if git ignores it now.
        """
        root, ignored = os.fsencode(self.workspace), self._ignored()
        selected: dict[bytes, os.stat_result] = {}
        left_out: list[bytes] = []
        histories: dict[bytes, os.stat_result] = {}

        def is_separate(path: bytes) -> bool:
            return path in ignored or _OBJECTS.fullmatch(path) is not None

        for path, status in _below(root, b"", is_separate, left_out):
            if _OBJECTS.fullmatch(path):
                histories[path] = status
            elif path not in ignored:
                selected[path] = status
            elif not stat.S_ISDIR(status.st_mode):
                if status.st_size <= LARGEST_IGNORED or path in previous:
                    selected[path] = status
                else:
                    left_out.append(path)
            elif small := _if_small(root, path, status, IGNORED_FILES, IGNORED_BYTES):
                selected |= small
            else:
                left_out.append(path)
                for inner in previous:
                    if inner.startswith(path + b"/"):
                        with suppress(OSError):
                            selected[inner] = os.lstat(root + b"/" + inner)
            if whole and len(selected) > MOST_FILES:
                raise OutsideProblem(f"{self.workspace} has more than {MOST_FILES:,} files")
        size = sum(status.st_size for status in selected.values())
        if whole and size > self._most_bytes:
            has = f"{self.workspace} has {size / 2**20:,.0f} MB, and the limit (agent.undo_mb) is"
            most = f"{self._most_bytes // 2**20:,}"
            raise OutsideProblem(f"{has} {most}. Large paths in .gitignore do not count")
        for path, status in histories.items():
            room = self._most_bytes - sum(stored.st_size for stored in selected.values())
            small = _if_small(root, path, status, max(MOST_FILES - len(selected), 0), room)
            selected |= small
            left_out += [] if small else [path]
        return selected, left_out

    def _ignored(self) -> set[bytes]:
        """The files and folders that the .gitignore files of the workspace exclude."""
        above = (self.workspace, *self.workspace.parents)
        top = next(filter(_is_repository, above), self.workspace)
        inner = os.fsencode(self.workspace.relative_to(top))
        before = b"" if inner == b"." else inner + b"/"
        options = ("--others", "--ignored", "--exclude-standard", "--directory", "-z", "--")
        answer = self._git(f"--work-tree={top}", "ls-files", *options, os.fsdecode(before or b"."))
        return {path.rstrip(b"/").removeprefix(before) for path in answer.split(b"\0") if path}

    def _git(
        self, *words: str, stdin: Iterable[bytes] = (), variables: Mapping[str, str] = {}
    ) -> bytes:
        """Run git in the private repository and return its output. The configurations of the user
        and of the project have no effect.
        """
        places = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "GIT_DIR"), str(self._repository))
        path, pipe = os.environ.get("PATH", os.defpath), subprocess.PIPE
        try:
            process = subprocess.Popen(  # noqa: S603
                [self._program, *words],
                env={"PATH": path, **places, **_ENVIRONMENT, **variables},
                cwd=self._repository,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
            )
        except OSError as error:
            raise OutsideProblem(f"git cannot be run: {error.strerror}") from error
        with process:
            assert process.stdin is not None
            try:
                with suppress(BrokenPipeError):  # git reports below why it ended
                    process.stdin.writelines(stdin)
                output, errors = process.communicate(timeout=_GIT_S)
            except subprocess.TimeoutExpired as error:
                process.kill()
                raise OutsideProblem(f"git {words[0]} took over {_GIT_S:g} seconds") from error
        if process.returncode:
            lines = errors.decode(errors="replace").strip().splitlines()
            raise OutsideProblem(f"git failed: {lines[-1][:200] if lines else words[0]}")
        return output


def is_history(path: bytes) -> bool:
    """Whether this is an object of a git repository. Undo never removes those, because later
    commits may need them.
    """
    return _OBJECTS.match(path) is not None


def _below(
    root: bytes, folder: bytes, is_separate: Callable[[bytes], bool], unread: list[bytes]
) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield files, links and folders below a folder. Separate folders are not entered."""
    cut = len(root) + 1
    for place, inner, names in os.walk(
        root + b"/" + folder, onerror=lambda error: unread.append(error.filename[cut:].rstrip(b"/"))
    ):
        before = place[cut:] + b"/" if place[cut:] else b""
        for name in sorted((*inner, *names)):
            with suppress(FileNotFoundError):
                status = os.lstat(root + b"/" + before + name)
                if stat.S_IFMT(status.st_mode) in _STORED_TYPES:
                    yield before + name, status
        inner[:] = sorted(name for name in inner if not is_separate(before + name))


def _is_repository(folder: Path) -> bool:
    """Whether a folder is the top of a repository or worktree. Sandboxes of other agents leave
    empty folders named .git behind.
    """
    git = folder / ".git"
    return git.is_file() or (git / "HEAD").exists()


def _if_small(
    root: bytes, folder: bytes, status: os.stat_result, files: int, size: int
) -> dict[bytes, os.stat_result]:
    """A folder and all below it, or nothing if that exceeds this number of files or bytes."""
    inside = {folder: status, **dict(islice(_below(root, folder, lambda _: False, []), files + 1))}
    is_small = len(inside) <= files and sum(entry.st_size for entry in inside.values()) <= size
    return inside if is_small else {}


def _read(
    place: bytes, status: os.stat_result, sure_ns: int, *, fits: bool
) -> Generator[bytes, None, Entry]:
    """Yield the content of a file that fits, or of a link, in git's import format. Return the
    entry, without content if that cannot be read.
    """
    oid, is_sure = "", False
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(place)  # noqa: PTH115 - in bytes
        oid = yield from _blob(io.BytesIO(target), len(target))
    elif stat.S_ISREG(status.st_mode) and fits:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with suppress(PermissionError), os.fdopen(os.open(place, flags), "rb", 0) as file:
            status = os.fstat(file.fileno())
            oid = yield from _blob(file, status.st_size)
            is_sure = status.st_ctime_ns < sure_ns
    return Entry(
        mode=status.st_mode,
        oid=oid,
        size=0 if stat.S_ISDIR(status.st_mode) else status.st_size,
        owner=(status.st_uid, status.st_gid),
        changed_ns=status.st_ctime_ns if is_sure else 0,
        inode=status.st_ino if is_sure else 0,
    )


def _blob(file: IO[bytes], size: int) -> Generator[bytes, None, str]:
    """Yield a blob of exactly this size, even if the file shrinks meanwhile, and return its id."""
    yield b"blob\ndata %d\n" % size
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    while size:
        part = file.read(min(size, _CHUNK)) or bytes(min(size, _CHUNK))
        digest.update(part)
        yield part
        size -= len(part)
    yield b"\n"
    return digest.hexdigest()


def _commit(name: str, about: str, snapshot: Snapshot, at: int) -> bytes:
    """A commit that refers to the blobs of a snapshot, so that git keeps them too."""
    line = " ".join(about.split()).encode(errors="replace")
    manifest = msgspec.msgpack.encode(snapshot)
    oids = sorted({entry.oid for entry in snapshot.entries.values() if entry.oid})
    head = f"commit refs/{name}\ncommitter journeyman <> {at} +0000\ndata {len(line)}\n".encode()
    rows = "\n".join(f"M 100644 {oid} {oid[:2]}/{oid[2:]}" for oid in oids).encode()
    tail = f"\nreset refs/{_LATEST}\nfrom refs/{name}\n".encode()
    inline = b"\nM 100644 inline manifest\ndata %d\n" % len(manifest)
    return head + line + inline + manifest + b"\n" + rows + tail
