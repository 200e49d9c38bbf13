"""Snapshots of a workspace, so that what an agent changes can be undone: a list of its files and a
copy of each distinct content. The project's own .git is stored like any other folder.
"""

import hashlib
import io
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from journeyman.agent.knowledge.files import held_lock
from journeyman.records.errors import NotWritten, OutsideProblem

MOST_FILES = 100_000
IGNORED_LIMITS = (1_000, 50 * 2**20)
HISTORY_LIMITS = (50_000, 500 * 2**20)
"""The files and bytes up to which a path that git ignores, and the objects of a git repository, are
stored. Larger ones are left out."""

_LOCK_S, _GIT_S = 60.0, 60.0
_FRESH_NS = 2 * 10**9
"""A file that changed this recently before it was read may change again with the same time."""
_CHUNK = 2**20
_STORED_TYPES = (stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK)
_HISTORY = re.compile(rb"(?:.*/)?\.git(?:/modules/.+)?(?:/lfs)?/objects(?=/|\Z)", re.DOTALL)


class Entry(Struct, frozen=True, array_like=True):
    """A file, a link or a folder. `digest` identifies the content; it is empty for folders and for
    content that cannot be read. `changed_ns` and `inode` show whether it must be read
    again.
    """

    mode: int
    digest: str
    size: int
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
        return None if entry is None else (entry.mode, entry.digest)

    def leaves_out(self, path: bytes) -> bool:
        """Whether the snapshot says nothing about this path."""
        ends = (*(slash.start() for slash in re.finditer(rb"/", path)), len(path))
        return any(path[:end] in self.left_out for end in ends)


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
        with self._locked():
            self.contents.mkdir(exist_ok=True)
            selected, left_out = self._select({})
            size = sum(status.st_size for status in selected.values())
            if len(selected) > MOST_FILES or size > self._most_bytes:
                has = f"{self.workspace} has {len(selected):,} files and {size / 2**20:,.0f} MB"
                most = f"{MOST_FILES:,} files and {self._most_bytes // 2**20:,} MB (agent.undo_mb)"
                raise OutsideProblem(f"{has}; the limits are {most}. Large ignored paths are free")
            names = sorted(self._folder.glob("*-*"), key=lambda file: file.stat().st_mtime)
            known = self.get(names[-1].name).entries if names else {}
            snapshot = self._read(selected, left_out, known, store=True)
            self._save(name, snapshot)
            return snapshot

    def compare(self, before: Snapshot) -> Snapshot:
        """The workspace as it is now. Contents are identified, but not stored."""
        selected, left_out = self._select(before.entries)
        return self._read(selected, left_out, before.entries, store=False)

    def save(self, name: str, snapshot: Snapshot) -> None:
        """Store a snapshot without its contents."""
        with self._locked():
            self._save(name, snapshot)

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
        """Delete old snapshots, of this workspace and of others, and the contents of none."""
        oldest = self._clock() - self._days * 86_400
        for folder in self._all.glob("*"):
            with suppress(OSError):
                snapshots = [*folder.glob("*-*")]
                old = [file for file in snapshots if file.stat().st_mtime < oldest]
                if snapshots and len(old) == len(snapshots):
                    shutil.rmtree(folder)
                elif folder == self._folder and old:
                    self._delete(old)

    def _delete(self, old: list[Path]) -> None:
        with suppress(OutsideProblem), self._locked():
            for file in old:
                file.unlink()
            kept = [self.get(name) for name in self.names("*-")]
            used = {entry.digest for snapshot in kept for entry in snapshot.entries.values()}
            for content in self.contents.iterdir():
                if content.name not in used:
                    content.unlink()

    def _save(self, name: str, snapshot: Snapshot) -> None:
        file, now = self._folder / name, self._clock()
        file.write_bytes(msgspec.msgpack.encode(snapshot))
        os.utime(file, (now, now))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            with held_lock(self._folder / "lock", _LOCK_S):
                yield
        except NotWritten as error:
            raise OutsideProblem(str(error)) from error
        except OSError as error:
            place = os.fsdecode(error.filename or self._folder)
            raise OutsideProblem(f"{place}: {error.strerror}") from error

    def _select(
        self, known: Mapping[bytes, Entry]
    ) -> tuple[dict[bytes, os.stat_result], set[bytes]]:
        """Select the paths to store and those to leave out. What is `known` is always selected,
        even if git ignores it now.
        """
        root, ignored = os.fsencode(self.workspace), self._ignored()
        selected: dict[bytes, os.stat_result] = {}
        left_out: set[bytes] = set()

        def is_separate(path: bytes) -> bool:
            return path in ignored or _HISTORY.fullmatch(path) is not None

        for path, status in _below(root, b"", is_separate, left_out):
            if not is_separate(path):
                selected[path] = status
                continue
            files, size = HISTORY_LIMITS if _HISTORY.fullmatch(path) else IGNORED_LIMITS
            below = _below(root, path, lambda _: False, left_out)
            inside = {path: status, **dict(islice(below, files + 1))}
            if len(inside) <= files and sum(item.st_size for item in inside.values()) <= size:
                selected |= inside
            else:
                left_out.add(path)
        for path in known.keys() - selected.keys():
            with suppress(OSError):
                selected[path] = os.lstat(root + b"/" + path)
        return selected, left_out

    def _ignored(self) -> set[bytes]:
        """The files and folders that the .gitignore files of the workspace exclude; without git,
        none. It runs in an empty repository: the configuration of the project has no effect.
        """
        above = (self.workspace, *self.workspace.parents)
        top = next(filter(_is_repository, above), self.workspace)
        inner = os.fsencode(self.workspace.relative_to(top))
        before = b"" if inner == b"." else inner + b"/"
        with tempfile.TemporaryDirectory() as folder:
            for part in ("objects", "refs"):
                Path(folder, part).mkdir()
            Path(folder, "HEAD").write_text("ref: refs/heads/main\n")
            words = ["git", f"--git-dir={folder}", f"--work-tree={top}", "ls-files", "--others"]
            words += ["--ignored", "--exclude-standard", "--directory", "-z", "--"]
            alone = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "HOME": folder}
            alone |= {"GIT_LITERAL_PATHSPECS": "1", "XDG_CONFIG_HOME": folder}
            try:
                answer = subprocess.run(  # noqa: S603
                    [*words, os.fsdecode(before or b".")],
                    env={"PATH": os.environ.get("PATH", os.defpath), **alone},
                    cwd=top,
                    capture_output=True,
                    timeout=_GIT_S,
                    check=False,
                ).stdout
            except (OSError, subprocess.TimeoutExpired):
                return set()
        return {path.rstrip(b"/").removeprefix(before) for path in answer.split(b"\0") if path}

    def _read(
        self,
        selected: Mapping[bytes, os.stat_result],
        left_out: set[bytes],
        known: Mapping[bytes, Entry],
        *,
        store: bool,
    ) -> Snapshot:
        entries = {}
        for path, status in selected.items():
            entry = known.get(path)
            with suppress(FileNotFoundError):  # deleted in the meantime
                if entry is None or not entry.is_still(status):
                    entry = self._entry(os.fsencode(self.workspace) + b"/" + path, status, store)
                entries[path] = entry
        return Snapshot(entries=entries, left_out=frozenset(left_out))

    def _entry(self, place: bytes, status: os.stat_result, store: bool) -> Entry:  # noqa: FBT001
        digest, is_sure = "", False
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(place)  # noqa: PTH115 - in bytes
            digest = self._content(io.BytesIO(target), store=store)
        elif stat.S_ISREG(status.st_mode) and status.st_size <= self._most_bytes:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with suppress(PermissionError), os.fdopen(os.open(place, flags), "rb") as file:
                status = os.fstat(file.fileno())
                digest = self._content(file, store=store)
                is_sure = status.st_ctime_ns < time.time_ns() - _FRESH_NS
        return Entry(
            mode=status.st_mode,
            digest=digest,
            size=0 if stat.S_ISDIR(status.st_mode) else status.st_size,
            changed_ns=status.st_ctime_ns if is_sure else 0,
            inode=status.st_ino if is_sure else 0,
        )

    def _content(self, source: IO[bytes], *, store: bool) -> str:
        """Return the digest of a content, and store it unless it is there already."""
        digest = hashlib.sha256()
        if not store:
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
            return digest.hexdigest()
        with tempfile.NamedTemporaryFile(dir=self.contents, delete=False) as copy:
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                copy.write(chunk)
        Path(copy.name).replace(self.contents / digest.hexdigest())
        return digest.hexdigest()


def is_history(path: bytes) -> bool:
    """Whether this is an object of a git repository. Undo never removes those, because later
    commits may need them.
    """
    return _HISTORY.match(path) is not None


def _below(
    root: bytes, folder: bytes, is_separate: Callable[[bytes], bool], unread: set[bytes]
) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield files, links and folders below a folder. Separate folders are not entered."""
    cut = len(root) + 1
    for place, inner, names in os.walk(
        root + b"/" + folder, onerror=lambda error: unread.add(error.filename[cut:].rstrip(b"/"))
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
