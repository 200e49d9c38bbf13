"""Snapshots of a workspace in a private git repository, so that what an agent did there can be
undone. The project's own .git is kept as ordinary files; no git command ever runs on it.
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
"""What git ignores is kept when it is small: a file up to this size, a folder up to these."""

KEPT_DAYS = 14
MOST_SNAPSHOTS = 400

_CHUNK = 2**20
_PATIENCE_S, _GIT_S = 60.0, 300.0
_FRESH_NS = 2 * 10**9
"""A file that changed this shortly before it was read may change again under the same time."""

_KEPT_KINDS = (stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK, stat.S_IFIFO)
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
    """A file, a link, a folder or a pipe. `oid` names the content; it is empty for folders, pipes
    and what was too large to keep. `changed_ns` and `inode` tell whether it must be read again.
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
        """Whether the file is unchanged, by all that the file system says."""
        seen = (status.st_ctime_ns, status.st_ino, status.st_size, status.st_mode)
        return seen == (self.changed_ns, self.inode, self.size, self.mode)


class Snapshot(Struct, frozen=True, kw_only=True):
    """A workspace by path, and the paths of which nothing was kept."""

    entries: dict[bytes, Entry] = {}
    left_out: frozenset[bytes] = frozenset()

    def state(self, path: bytes) -> tuple[int, str] | None:
        """Mode and content, by which snapshots are compared; None where nothing is."""
        entry = self.entries.get(path)
        return None if entry is None else (entry.mode, entry.oid)

    def leaves_out(self, path: bytes) -> bool:
        """Whether it is not known what was at this path."""
        ends = (*(slash.start() for slash in re.finditer(rb"/", path)), len(path))
        return any(path[:end] in self.left_out for end in ends)


class Taken(NamedTuple):
    """A snapshot that is kept: its name, when it was taken, and a line about it."""

    name: str
    at: float
    about: str


class Snapshots:
    """The snapshots of one workspace, in a repository below `folder`. A workspace with more than
    `most_bytes` has none; snapshots older than `days` go.
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
        """Keep the workspace as it is now, under a name. Where it is too large, one that must be
        `whole` is not taken, and another does without the contents beyond the limit. Raises
        OutsideProblem, saying why there is none.
        """
        with self._locked():
            known = (self.get(_LATEST) or Snapshot()).entries
            found, left_out = self._select(known, whole=whole)
            made = Snapshot(entries={}, left_out=frozenset(left_out))

            def stream() -> Iterator[bytes]:
                room, sure_ns = self._most_bytes, time.time_ns() - _FRESH_NS
                for path, status in found.items():
                    room -= status.st_size
                    entry = known.get(path)
                    with suppress(FileNotFoundError):  # gone meanwhile
                        if entry is None or not entry.is_still(status):
                            place = os.fsencode(self.workspace) + b"/" + path
                            entry = yield from _read(place, status, sure_ns, fits=room >= 0)
                        made.entries[path] = entry
                yield _commit(name, about, made, int(self._clock()))

            self._git("fast-import", "--quiet", "--force", "--depth=0", given=stream())
            return made

    def get(self, name: str) -> Snapshot | None:
        """The snapshot of this name; None where there is none."""
        if not self._repository.is_dir():
            return None
        answer = self._git("cat-file", "--batch", given=[f"refs/{name}:manifest\n".encode()])
        head, _, body = answer.partition(b"\n")
        if head.endswith(b" missing"):
            return None
        try:
            return msgspec.msgpack.decode(body[:-1], type=Snapshot)
        except msgspec.MsgspecError as error:
            raise OutsideProblem(f"{self._repository} is damaged: delete it") from error

    def taken(self, below: str = "") -> list[Taken]:
        """The snapshots whose names are below this one, in the order of their names."""
        if not self._repository.is_dir():
            return []
        form = "--format=%(refname:lstrip=1) %(committerdate:unix) %(contents:subject)"
        lines = self._git("for-each-ref", form, f"refs/{below}").decode(errors="replace")
        parts = [line.split(" ", 2) for line in lines.splitlines()]
        return [Taken(name, float(at), about) for name, at, about in parts]

    def drop(self, names: Iterable[str]) -> None:
        """Forget snapshots."""
        lines = (f"delete refs/{name}\n".encode() for name in names)
        self._git("update-ref", "--stdin", given=lines)

    def tidy(self) -> None:
        """Drop what is old, of this workspace and of others, and pack what is left."""
        oldest = self._clock() - self._days * 86_400
        with suppress(OSError, OutsideProblem), self._locked():
            named = [one for one in self.taken() if one.name != _LATEST]
            named.sort(key=lambda one: one.at, reverse=True)
            old = [
                one.name for n, one in enumerate(named) if n >= MOST_SNAPSHOTS or one.at < oldest
            ]
            self.drop(old)
            self._git("gc", "--quiet", *(() if old else ("--auto",)))
        for lock in self._folder.glob("*.git/lock"):
            with suppress(OSError):
                if lock.parent != self._repository and lock.stat().st_mtime < oldest:
                    shutil.rmtree(lock.parent)

    @contextmanager
    def contents(self, oids: Iterable[str]) -> Iterator[Path]:
        """A folder with these contents for a while, each in a file that has its id for a name."""
        with self._locked():
            folder = self._repository / "contents"
            shutil.rmtree(folder, ignore_errors=True)  # somebody may have been killed
            folder.mkdir()
            places = {"GIT_WORK_TREE": str(folder), "GIT_INDEX_FILE": str(folder / "index")}
            rows = (f"100644 {oid}\t{oid}\n".encode() for oid in oids)
            try:
                self._git("update-index", "--index-info", given=rows, variables=places)
                self._git("checkout-index", "--all", variables=places)
                yield folder
            finally:
                shutil.rmtree(folder)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """The repository, made if need be, while nobody else writes to it."""
        try:
            lock = self._repository / "lock"
            with held_lock(lock, _PATIENCE_S):
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
        self, known: Collection[bytes], *, whole: bool
    ) -> tuple[dict[bytes, os.stat_result], list[bytes]]:
        """What is to be kept of the workspace, and what is left out: all that git does not ignore,
        what it ignores if that is small, and the history of repositories as far as there is room.
        What was kept before is kept again, whatever git ignores by now.
        """
        root, ignored = os.fsencode(self.workspace), self._ignored()
        found: dict[bytes, os.stat_result] = {}
        left_out: list[bytes] = []
        histories: dict[bytes, os.stat_result] = {}

        def is_apart(path: bytes) -> bool:
            return path in ignored or _OBJECTS.fullmatch(path) is not None

        for path, status in _below(root, b"", is_apart, left_out):
            if _OBJECTS.fullmatch(path):
                histories[path] = status
            elif path not in ignored:
                found[path] = status
            elif not stat.S_ISDIR(status.st_mode):
                if status.st_size <= LARGEST_IGNORED or path in known:
                    found[path] = status
                else:
                    left_out.append(path)
            elif small := _if_small(root, path, status, IGNORED_FILES, IGNORED_BYTES):
                found |= small
            else:
                left_out.append(path)
                for one in known:
                    if one.startswith(path + b"/"):
                        with suppress(OSError):
                            found[one] = os.lstat(root + b"/" + one)
            if whole and len(found) > MOST_FILES:
                raise OutsideProblem(f"{self.workspace} has more than {MOST_FILES:,} files")
        size = sum(status.st_size for status in found.values())
        if whole and size > self._most_bytes:
            has = f"{self.workspace} has {size / 2**20:,.0f} MB, and the limit (agent.undo_mb) is"
            most = f"{self._most_bytes // 2**20:,}"
            raise OutsideProblem(f"{has} {most}. What .gitignore lists and is large does not count")
        for path, status in histories.items():
            room = self._most_bytes - sum(one.st_size for one in found.values())
            small = _if_small(root, path, status, max(MOST_FILES - len(found), 0), room)
            found |= small
            left_out += [] if small else [path]
        return found, left_out

    def _ignored(self) -> set[bytes]:
        """The files and folders that the .gitignore files of the workspace name."""
        above = (self.workspace, *self.workspace.parents)
        top = next((one for one in above if (one / ".git").exists()), self.workspace)
        inner = os.fsencode(self.workspace.relative_to(top))
        before = b"" if inner == b"." else inner + b"/"
        asked = ("--others", "--ignored", "--exclude-standard", "--directory", "-z", "--")
        answer = self._git(f"--work-tree={top}", "ls-files", *asked, os.fsdecode(before or b"."))
        return {path.rstrip(b"/").removeprefix(before) for path in answer.split(b"\0") if path}

    def _git(
        self, *words: str, given: Iterable[bytes] = (), variables: Mapping[str, str] = {}
    ) -> bytes:
        """Run git in the private repository; what it prints. Nothing of the user's configuration
        counts, and nothing of the project's.
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
                with suppress(BrokenPipeError):  # git says below why it ended
                    process.stdin.writelines(given)
                output, said = process.communicate(timeout=_GIT_S)
            except subprocess.TimeoutExpired as error:
                process.kill()
                raise OutsideProblem(f"git {words[0]} took over {_GIT_S:g} seconds") from error
        if process.returncode:
            lines = said.decode(errors="replace").strip().splitlines()
            raise OutsideProblem(f"git failed: {lines[-1][:200] if lines else words[0]}")
        return output


def is_history(path: bytes) -> bool:
    """Whether this is an object of a git repository: those are only ever added to, because what
    was committed later may need them.
    """
    return _OBJECTS.match(path) is not None


def _below(
    root: bytes, folder: bytes, is_apart: Callable[[bytes], bool], unread: list[bytes]
) -> Iterator[tuple[bytes, os.stat_result]]:
    """Files, links and folders below a folder. One that is apart is not entered."""
    cut = len(root) + 1
    for place, inner, names in os.walk(
        root + b"/" + folder, onerror=lambda error: unread.append(error.filename[cut:].rstrip(b"/"))
    ):
        before = place[cut:] + b"/" if place[cut:] else b""
        for name in sorted((*inner, *names)):
            with suppress(FileNotFoundError):
                status = os.lstat(root + b"/" + before + name)
                if stat.S_IFMT(status.st_mode) in _KEPT_KINDS:
                    yield before + name, status
        inner[:] = sorted(name for name in inner if not is_apart(before + name))


def _if_small(
    root: bytes, folder: bytes, status: os.stat_result, files: int, size: int
) -> dict[bytes, os.stat_result]:
    """A folder and all below it; nothing where that is more than so many files or bytes."""
    inside = {folder: status, **dict(islice(_below(root, folder, lambda _: False, []), files + 1))}
    is_small = len(inside) <= files and sum(one.st_size for one in inside.values()) <= size
    return inside if is_small else {}


def _read(
    place: bytes, status: os.stat_result, sure_ns: int, *, fits: bool
) -> Generator[bytes, None, Entry]:
    """Give the content of a file that fits, or of a link, as git imports it. Returns the entry,
    which is without content where that cannot be read.
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
    """Give a blob of exactly this size, though a file that is written to may have less; its id."""
    yield b"blob\ndata %d\n" % size
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    while size:
        part = file.read(min(size, _CHUNK)) or bytes(min(size, _CHUNK))
        digest.update(part)
        yield part
        size -= len(part)
    yield b"\n"
    return digest.hexdigest()


def _commit(name: str, about: str, made: Snapshot, at: int) -> bytes:
    """A commit that names the blobs of a snapshot, so that they are kept as long as it is."""
    line = " ".join(about.split()).encode(errors="replace")
    manifest = msgspec.msgpack.encode(made)
    kept = sorted({entry.oid for entry in made.entries.values() if entry.oid})
    head = f"commit refs/{name}\ncommitter journeyman <> {at} +0000\ndata {len(line)}\n".encode()
    rows = "\n".join(f"M 100644 {oid} {oid[:2]}/{oid[2:]}" for oid in kept).encode()
    tail = f"\nreset refs/{_LATEST}\nfrom refs/{name}\n".encode()
    inline = b"\nM 100644 inline manifest\ndata %d\n" % len(manifest)
    return head + line + inline + manifest + b"\n" + rows + tail
