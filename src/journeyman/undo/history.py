"""The states of a work tree over time, in a git directory of our own."""

import fcntl
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from journeyman.records.errors import OutsideProblem
from journeyman.undo.repository import Refs, ignored_folders, read_refs, run_git

MOST_FILES = 100_000
LARGEST_FILE = 100 * 2**20
"""In bytes. The content of a larger file is not stored."""

GENERATED = frozenset((b"node_modules", b".venv", b"venv", b".tox", b"__pycache__"))
"""Folders that are left out, like those that the repository ignores."""

_KINDS = frozenset((stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK))
_ATTRIBUTES = "* -text -eol -ident -filter !working-tree-encoding\n"
"""Contents come back byte by byte, whatever `.gitattributes` says."""
_PACKED = ("-c", "core.bigFileThreshold=1", "-c", "core.compression=1")
"""Contents that are stored together go into one pack instead of a file each."""

Times = Sequence[tuple[float, float]]
Statuses = dict[bytes, os.stat_result]


class Entry(Struct, frozen=True, array_like=True):
    """A file, a link or a folder. `content` is the id of its content in git; if that is not stored,
    the file is recognised by `stamp`, its size and the time of its last change.
    """

    mode: int
    content: str = ""
    stamp: str = ""

    @property
    def kind(self) -> int:
        return stat.S_IFMT(self.mode)


class State(Struct, frozen=True, kw_only=True):
    """The work tree at one moment. The git directory keeps it as a tree `files`, and as `notes` the
    rest: entries that are not in `files` as they are here, what was left out, the repositories, and
    at the end of a run the paths that something else has changed during it.
    """

    entries: dict[bytes, Entry]
    left_out: frozenset[bytes] = frozenset()
    repositories: dict[bytes, Refs] = {}
    changed_by_others: frozenset[bytes] = frozenset()
    files: str = ""

    def says_nothing_about(self, path: bytes) -> bool:
        return path in self.left_out or any(map(self.left_out.__contains__, folders_above(path)))


class Run(NamedTuple):
    """The states before and after a run."""

    before: State
    after: State


class _Found(NamedTuple):
    """What is in a work tree: files, links and folders, what is left out, and repositories."""

    statuses: Statuses
    left_out: set[bytes]
    repositories: list[bytes]


class WorkTreeHistory:
    """The states of one workspace, below `folder`. A workspace with more than `most_bytes` has
    none; states older than `days` are deleted. Methods raise OutsideProblem.
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
        self.workspace, self._all = workspace, folder
        self.git_dir = folder / hashlib.sha256(os.fsencode(workspace)).hexdigest()[:24]
        self._most_bytes, self._days, self._clock = most_bytes, days, clock

    def begin(self, session: str = "") -> str:
        """Store the state before a run, and return the run's name. A session that is not known yet
        is passed to `end`.
        """
        self.git_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked():
            self._git("init", "--quiet", "--template=")
            (self.git_dir / "info").mkdir(exist_ok=True)
            (self.git_dir / "info" / "attributes").write_text(_ATTRIBUTES)
            run = f"{_runs_of(session)}/{int(self._clock() * 1e6):020}-{secrets.token_hex(4)}"
            self._save(f"{run}/before", self._take(None))
        return run

    def end(self, run: str, session: str, working: Times | None = None) -> Run:
        """Store the state after a run of this session. What it changed is what has changed in the
        times in which it may have written, if they are known.
        """
        with self._locked():
            before = self._load(f"{run}/before")
            named = f"{_runs_of(session)}/{run.rpartition('/')[2]}"
            if named != run:
                self._git("update-ref", f"{named}/before", f"{run}/before")
                self._git("update-ref", "-d", f"{run}/before")
            after = self._take(before, working)
            self._save(f"{named}/after", after)
            self._tidy()
        return Run(before, after)

    def runs(self, session: str, working: Times | None = None) -> list[Run]:
        """Return the runs of a session in order. One that was killed ends where the next one
        begins, and the last of them now.
        """
        if not (self.git_dir / "HEAD").exists():
            return []
        refs = self._refs(_runs_of(session))
        names = [ref.removesuffix("/before") for ref in refs if ref.endswith("/before")]
        if names and f"{names[-1]}/after" not in refs:
            self.end(names[-1], session, working)
        runs: list[Run] = []
        with self._locked():
            for name in reversed(names):
                has_end = not runs or f"{name}/after" in refs
                after = self._load(f"{name}/after") if has_end else runs[0].before
                runs.insert(0, Run(self._load(f"{name}/before"), after))
        return runs

    def present(self, before: State) -> State:
        """The state now. It includes everything that the state before includes."""
        with self._locked():
            return self._take(before)

    def has_changed_since(self, time: float) -> bool:
        """Whether a file was written after this time."""
        statuses = _find(self.workspace, None).statuses.values()
        return any(
            status.st_ctime > time for status in statuses if not stat.S_ISDIR(status.st_mode)
        )

    def content(self, entry: Entry) -> bytes:
        """The content of a stored entry."""
        return self._git("cat-file", "blob", entry.content)

    def _git(self, *words: str, data: bytes = b"") -> bytes:
        place = {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(self.workspace)}
        return run_git(self.workspace, *words, data=data, **place)

    def _refs(self, prefix: str) -> list[str]:
        return self._git("for-each-ref", "--format=%(refname)", prefix).decode().split()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes out. A lock of git's own is then one that a killed process left."""
        with (self.git_dir / "used").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.utime(lock.fileno(), (self._clock(), self._clock()))
            (self.git_dir / "index.lock").unlink(missing_ok=True)
            yield

    def _take(self, before: State | None, working: Times | None = None) -> State:
        """Store the contents of the files as they are now, and return the state."""
        found = _find(self.workspace, before)
        entries: dict[bytes, Entry] = {}
        stored: list[bytes] = []
        root = os.fsencode(self.workspace) + b"/"
        for path, status in found.statuses.items():
            if stat.S_ISDIR(status.st_mode):
                entries[path] = Entry(stat.S_IFDIR)
            elif status.st_size > LARGEST_FILE:
                stamp = f"{status.st_size} {status.st_ctime_ns}"
                entries[path] = Entry(status.st_mode, stamp=stamp)
            elif stat.S_ISLNK(status.st_mode) or os.access(root + path, os.R_OK):
                stored.append(path)
            else:
                found.left_out.add(path)
        size = sum(found.statuses[path].st_size for path in stored)
        if before is None and (len(found.statuses) > MOST_FILES or size > self._most_bytes):
            has = f"{self.workspace} has {len(found.statuses):,} files and {size / 2**20:,.0f} MB"
            most = f"{MOST_FILES:,} files and {self._most_bytes // 2**20:,} MB (agent.undo_mb)"
            raise OutsideProblem(f"{has}; the limits are {most}")
        files = self._store(stored)
        for path, entry in self._files(files).items():
            entries[path] = Entry(found.statuses[path].st_mode, entry.content)
        others: Iterable[bytes] = ()
        if before is not None and working is not None:
            others = _changed_by_others(before, entries, found.statuses, working)
        refs = {name: read_refs(self.workspace / os.fsdecode(name)) for name in found.repositories}
        return State(
            entries=entries,
            left_out=frozenset(found.left_out),
            repositories=refs,
            changed_by_others=frozenset(others),
            files=files,
        )

    def _store(self, paths: Sequence[bytes]) -> str:
        """Store the contents of these files and no others, and return the id of their tree."""
        indexed = set(self._git("ls-files", "-z").split(b"\0")[:-1])
        gone = b"\0".join(indexed.difference(paths))
        self._git("update-index", "--force-remove", "-z", "--stdin", data=gone)
        update = (*_PACKED, "update-index", "--add", "--remove", "-z", "--stdin")
        self._git(*update, data=b"\0".join(paths))
        return self._git("write-tree").decode().strip()

    def _files(self, tree: str) -> dict[bytes, Entry]:
        """The files in a tree, with the modes that git knows."""
        found = {}
        for line in self._git("ls-tree", "-r", "-z", tree).split(b"\0")[:-1]:
            about, _, path = line.partition(b"\t")
            mode, _, content = about.decode().split(" ")
            found[path] = Entry(int("120777" if mode == "120000" else mode, 8), content)
        return found

    def _save(self, ref: str, state: State) -> None:
        usual = self._files(state.files)
        unusual = {path: entry for path, entry in state.entries.items() if usual.get(path) != entry}
        notes = msgspec.msgpack.encode(replace(state, entries=unusual))
        blob = self._git("hash-object", "-w", "--stdin", data=notes).decode().strip()
        both = f"040000 tree {state.files}\tfiles\n100644 blob {blob}\tnotes\n".encode()
        self._git("update-ref", ref, self._git("mktree", data=both).decode().strip())

    def _load(self, ref: str) -> State:
        stored = self._git("cat-file", "blob", f"{ref}:notes")
        notes = msgspec.msgpack.decode(stored, type=State)
        return replace(notes, entries=self._files(notes.files) | notes.entries)

    def _tidy(self) -> None:
        """Delete states that are too old, of this workspace and of others, and pack the rest."""
        oldest = self._clock() - self._days * 86_400
        refs = self._refs("refs/run")
        old = [ref for ref in refs if int(ref.split("/")[3].partition("-")[0]) < oldest * 1e6]
        self._git("update-ref", "--stdin", data="".join(f"delete {ref}\n" for ref in old).encode())
        self._git("-c", "gc.autoDetach=false", "gc", "--quiet", "--prune=now" if old else "--auto")
        for used in self._all.glob("*/used"):
            with suppress(OSError):
                if used.stat().st_mtime < oldest:
                    shutil.rmtree(used.parent)


def folders_above(path: bytes) -> Iterator[bytes]:
    """Yield the folders in which a path is, the innermost first."""
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path


def _runs_of(session: str) -> str:
    """Where the refs of a session's runs are; those of runs whose session is not known yet."""
    return f"refs/run/{hashlib.sha256(session.encode()).hexdigest()[:24] if session else 'open'}"


def _changed_by_others(
    before: State, entries: dict[bytes, Entry], statuses: Statuses, working: Times
) -> Iterator[bytes]:
    """Yield the paths that have changed in none of these times. Of a folder, and of what is gone,
    that is only known if there are none.
    """
    for path in before.entries.keys() | entries.keys():
        entry = entries.get(path)
        if entry == before.entries.get(path):
            continue
        if entry is None or entry.kind == stat.S_IFDIR:
            is_own = bool(working)
        else:
            changed_at = statuses[path].st_ctime
            is_own = any(begun <= changed_at <= ended for begun, ended in working)
        if not is_own:
            yield path


def _find(workspace: Path, before: State | None) -> _Found:
    """Find what is in a workspace. What the state before has is not left out, and what it has left
    out is left out again.
    """
    known = before.entries.keys() if before else set[bytes]()
    found = _Found({}, set(before.left_out if before else ()), [])
    root = os.fsencode(workspace) + b"/"

    def leave_out(error: OSError) -> None:
        found.left_out.add(error.filename[len(root) :])

    for place, folders, names in os.walk(root, onerror=leave_out):
        above = place[len(root) :] + b"/" if place != root else b""
        if not above or b".git" in (*folders, *names):
            found.repositories.append(above)
            ignored = ignored_folders(workspace / os.fsdecode(above))
            found.left_out.update({above + name for name in ignored} - known)
        found.left_out.update(above + name for name in GENERATED.intersection(folders))
        # Git takes nothing of this name in any case.
        folders[:] = [name for name in folders if name.lower() != b".git"]
        folders[:] = [name for name in folders if above + name not in found.left_out]
        for name in (*folders, *names):
            with suppress(FileNotFoundError):
                status = os.lstat(root + above + name)
                if stat.S_IFMT(status.st_mode) in _KINDS and name.lower() != b".git":
                    found.statuses[above + name] = status
    return found
