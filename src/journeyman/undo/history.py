"""The states of a work tree over time, in a git directory of our own. The person's repositories in
the work tree are only read.
"""

import fcntl
import hashlib
import os
import secrets
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path

import msgspec
from msgspec import Struct

from journeyman.records.errors import OutsideProblem

MOST_FILES = 100_000
LARGEST_FILE = 100 * 2**20
"""In bytes. The content of a larger file is not stored."""
_LARGEST_NEW_FILE = 2**20
"""The same for a file that a run created: undo deletes it, and only has to recognise it."""

GENERATED = frozenset((b"node_modules", b".venv", b"venv", b".tox", b"__pycache__"))
"""Folders that are left out, like those that the repository ignores."""

_KINDS = frozenset((stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK))
_ATTRIBUTES = "* -text -eol -ident -filter !working-tree-encoding\n"
"""Contents come back byte by byte, whatever `.gitattributes` says."""

_SAFE = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*"),
    *("-c", "core.protectNTFS=false", "-c", "core.protectHFS=false"),
)
_PACKED = ("-c", "core.bigFileThreshold=1", "-c", "core.compression=1")
"""Contents that are stored together go into one pack instead of a file each."""
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ALLOW_PROTOCOL": "none",
}

Times = Sequence[tuple[float, float]]
Refs = dict[str, str]
"""Where HEAD, the branches, the tags and the stash of a repository are, and a digest of its index.
"""


class Entry(Struct, frozen=True, array_like=True):
    """A file, a link or a folder. `content` is the id of the content in git; if it is not stored,
    the size and the time of the last change, by which the file is recognised.
    """

    mode: int
    content: str = ""

    @property
    def is_stored(self) -> bool:
        return self.content.isalnum()


class State(Struct, frozen=True, kw_only=True):
    """The work tree at one moment. The git directory keeps it as a tree `files`, and `notes` with
    the rest: entries that are not in `files` as they are here, what was left out, the repositories;
    and of the end of a run when the paths that differ were last changed, and when the run may have
    written, None if that is not known.
    """

    entries: dict[bytes, Entry]
    left_out: frozenset[bytes] = frozenset()
    repositories: dict[bytes, Refs] = {}
    changed_ns: dict[bytes, int] = {}
    working: Times | None = None
    files: str = ""

    def says_nothing_about(self, path: bytes) -> bool:
        above = accumulate(path.split(b"/"), lambda folder, name: folder + b"/" + name)
        return not self.left_out.isdisjoint(above)


Run = tuple[State, State | None]
"""The states before and after a run. There is none after a run that was killed."""


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

    def end(self, run: str, session: str, working: Times | None = None) -> tuple[State, State]:
        """Store the state after a run of this session, with the times in which the run may have
        written, if they are known; return both states.
        """
        with self._locked():
            before = self._load(f"{run}/before")
            named = f"{_runs_of(session)}/{run.rpartition('/')[2]}"
            if named != run:
                self._git("update-ref", f"{named}/before", f"{run}/before")
                self._git("update-ref", "-d", f"{run}/before")
            after = msgspec.structs.replace(self._take(before), working=working)
            self._save(f"{named}/after", after)
            self._tidy()
        return before, after

    def runs(self, session: str) -> dict[str, Run]:
        """The runs of a session by name, in order."""
        if not (self.git_dir / "HEAD").exists():
            return {}
        with self._locked():
            refs = self._refs(_runs_of(session))
            return {
                run: (
                    self._load(ref),
                    self._load(f"{run}/after") if f"{run}/after" in refs else None,
                )
                for ref in refs
                if (run := ref.removesuffix("/before")) != ref
            }

    def present(self, before: State) -> State:
        """The state now. It includes everything that the state before includes."""
        with self._locked():
            return self._take(before)

    def has_changed_since(self, time: float) -> bool:
        """Whether a file was written after this time."""
        found = self._below(set(), set(), {})
        return any(
            status.st_ctime > time for _, status in found if not stat.S_ISDIR(status.st_mode)
        )

    def content(self, entry: Entry) -> bytes:
        """The content of a stored entry."""
        return self._git("cat-file", "blob", entry.content)

    def _git(self, *words: str, data: bytes = b"") -> bytes:
        place = {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(self.workspace)}
        return _git(self.workspace, *words, data=data, place=place)

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

    def _take(self, before: State | None) -> State:
        """Store the contents of the files as they are now, and return the state."""
        left_out = set(before.left_out if before else ())
        repositories = set[bytes]()
        known = before.entries if before else {}
        found = dict(self._below(left_out, repositories, known))
        indexed = set(self._git("ls-files", "-z").split(b"\0")[:-1])
        entries, stored, size = dict[bytes, Entry](), list[bytes](), 0
        root = os.fsencode(self.workspace) + b"/"
        for path, status in found.items():
            mode = status.st_mode
            is_new = before is not None and path not in known
            if stat.S_ISDIR(mode):
                entries[path] = Entry(stat.S_IFDIR)
            elif status.st_size > (_LARGEST_NEW_FILE if is_new else LARGEST_FILE):
                entries[path] = Entry(mode, f"{status.st_size} {status.st_ctime_ns}")
            elif stat.S_ISLNK(mode) or os.access(root + path, os.R_OK):
                stored.append(path)
                size += status.st_size
            else:
                left_out.add(path)
        if before is None and (len(found) > MOST_FILES or size > self._most_bytes):
            has = f"{self.workspace} has {len(found):,} files and {size / 2**20:,.0f} MB"
            most = f"{MOST_FILES:,} files and {self._most_bytes // 2**20:,} MB (agent.undo_mb)"
            raise OutsideProblem(f"{has}; the limits are {most}")
        update = ("update-index", "-z", "--stdin")
        gone = indexed.difference(stored)
        self._git(*update[:1], "--force-remove", *update[1:], data=b"\0".join(gone))
        self._git(*_PACKED, *update[:1], "--add", "--remove", *update[1:], data=b"\0".join(stored))
        files = self._git("write-tree").decode().strip()
        for path, entry in self._files(files).items():
            entries[path] = Entry(found[path].st_mode, entry.content)
        return State(
            entries=entries,
            left_out=frozenset(left_out),
            repositories={path: self._refs_of(path) for path in sorted(repositories)},
            changed_ns={
                path: status.st_ctime_ns
                for path, status in found.items()
                if before and entries.get(path) != known.get(path)
            },
            files=files,
        )

    def _below(
        self, left_out: set[bytes], repositories: set[bytes], known: dict[bytes, Entry]
    ) -> Iterator[tuple[bytes, os.stat_result]]:
        """Yield files, links and folders, and add what is left out, and the repositories."""
        root = os.fsencode(self.workspace) + b"/"
        for place, folders, names in os.walk(
            root, onerror=lambda error: left_out.add(error.filename[len(root) :])
        ):
            above = place[len(root) :] + b"/" if place[len(root) :] else b""
            if not above or b".git" in (*folders, *names):
                repositories.add(above)
                ignored = _ignored_folders(self.workspace / os.fsdecode(above))
                left_out.update(above + name for name in ignored if above + name not in known)
            left_out.update(above + name for name in GENERATED.intersection(folders))
            # Git takes no such name in any case.
            folders[:] = [name for name in folders if name.lower() != b".git"]
            folders[:] = [name for name in folders if above + name not in left_out]
            for name in (*folders, *names):
                with suppress(FileNotFoundError):
                    status = os.lstat(root + above + name)
                    if stat.S_IFMT(status.st_mode) in _KINDS and name.lower() != b".git":
                        yield above + name, status

    def _files(self, tree: str) -> dict[bytes, Entry]:
        """The files in a tree, with the modes that git knows."""
        found = {}
        for line in self._git("ls-tree", "-r", "-z", tree).split(b"\0")[:-1]:
            about, _, path = line.partition(b"\t")
            mode, _, content = about.decode().split(" ")
            mode = "120777" if mode == "120000" else mode
            found[path] = Entry(int(mode, 8), content)
        return found

    def _save(self, ref: str, state: State) -> None:
        usual = self._files(state.files)
        unusual = {path: one for path, one in state.entries.items() if usual.get(path) != one}
        notes = msgspec.msgpack.encode(msgspec.structs.replace(state, entries=unusual))
        blob = self._git("hash-object", "-w", "--stdin", data=notes).decode().strip()
        both = f"040000 tree {state.files}\tfiles\n100644 blob {blob}\tnotes\n".encode()
        self._git("update-ref", ref, self._git("mktree", data=both).decode().strip())

    def _load(self, ref: str) -> State:
        stored = self._git("cat-file", "blob", f"{ref}:notes")
        notes = msgspec.msgpack.decode(stored, type=State)
        entries = self._files(notes.files) | notes.entries
        return msgspec.structs.replace(notes, entries=entries)

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

    def _refs_of(self, repository: bytes) -> Refs:
        """The refs of the person's repository in a folder of the workspace; empty without one."""
        folder = self.workspace / os.fsdecode(repository)
        symbolic = ask_git(folder, "symbolic-ref", "-q", "HEAD")
        head = symbolic or ask_git(folder, "rev-parse", "--short=10", "HEAD")
        if not head:
            return {}
        asked = ("for-each-ref", "--format=%(refname) %(objectname:short=10)")
        listed = ask_git(folder, *asked, "refs/heads", "refs/tags", "refs/stash")
        refs = dict(line.split(" ", 1) for line in listed.splitlines())
        index = ask_git(folder, "ls-files", "-s", "-z").encode()
        return {**refs, "HEAD": head.strip(), "index": hashlib.sha256(index).hexdigest()}


def _runs_of(session: str) -> str:
    """Where the refs of a session's runs are; those of runs whose session is not known yet."""
    return f"refs/run/{hashlib.sha256(session.encode()).hexdigest()[:24] if session else 'open'}"


def _ignored_folders(folder: Path) -> Iterator[bytes]:
    """Yield the folders that the repository ignores as a whole."""
    asked = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    found = sorted(_asked(folder, *asked).split(b"\0"))
    for path, following in zip(found, [*found[1:], b""], strict=True):
        # A folder whose files are ignored one by one is listed, and they are too.
        if path.endswith(b"/") and path != b"./" and not following.startswith(path):
            yield path[:-1]


def ask_git(folder: Path, *words: str) -> str:
    """Return what git says about the person's repository; empty if there is none."""
    return _asked(folder, *words).decode(errors="replace")


def _asked(folder: Path, *words: str) -> bytes:
    with suppress(OutsideProblem):
        return _git(folder, *words)
    return b""


def _git(
    folder: Path, *words: str, data: bytes = b"", place: dict[str, str] | None = None
) -> bytes:
    environment = {"PATH": os.environ.get("PATH", os.defpath), **_ENVIRONMENT, **(place or {})}
    try:
        done = subprocess.run(  # noqa: S603
            ["git", *_SAFE, *words],  # noqa: S607
            cwd=folder,
            env=environment,
            input=data,
            capture_output=True,
            check=True,
        )
    except FileNotFoundError as error:
        raise OutsideProblem("git is not installed. Install git") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").strip()
        raise OutsideProblem(f"git failed: {said}") from error
    return done.stdout
