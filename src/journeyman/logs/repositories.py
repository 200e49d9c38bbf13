"""Finds the project of a folder from its git repository. A recorded folder may belong to anyone, so
nothing that its configuration names is run.
"""

import os
import re
import subprocess
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from journeyman.logs.log_file import open_regular
from journeyman.records import Session
from journeyman.records.project import (
    is_home_folder,
    project_name,
    remote_project,
    repository_folder,
)
from journeyman.text.atomic_write import replace_file
from journeyman.text.display import readable_line

_MAX_FILE_BYTES = 1_000_000
_GIT_S = 10.0
_SECTION = re.compile(r"\s*\[([^\]]*)\]")
_URL_LINE = re.compile(r"\s*url\s*=(.*)", re.IGNORECASE)


class Repositories:
    """The repositories on this machine. Each belongs to the project that its remote names if its
    history begins with the same commit as the first clone that was seen, because its configuration
    can name any remote; otherwise it is a project of its own. `file` stores those commits, `clones`
    are folders that belong to their remote in any case. `home` is the user's home folder.
    """

    def __init__(
        self, file: Path, *, clones: Collection[str] = (), home: Path | None = None
    ) -> None:
        self._file, self._clones = file, frozenset(clones)
        self._home = (home or Path.home()).resolve()
        self._first_commits: dict[Path, str] = {}

    def find_project(self, folder: Path | str) -> str:
        """Return the project of a folder: the remote of its repository as `host/owner/name`; if
        that is not its project the path of the repository, with `~` for the home; outside any
        repository the folder's name.
        """
        path = os.path.abspath(folder)  # noqa: PTH100 - symbolic links are followed below
        return readable_line(self.project_at(path) or project_name(path))

    def project_at(self, folder: str, recorded: str = "") -> str:
        """Return the project of an existing folder in a repository, otherwise an empty string. The
        `recorded` project takes the place of the remote.
        """
        try:
            path = Path(folder)
            if not path.is_absolute() or not path.is_dir():
                return ""
            if (repository := _find_repository(path.resolve())) is None:
                return ""
            root, git_dir = repository
            own = root.as_posix()
            if root.is_relative_to(self._home):
                own = (Path("~") / root.relative_to(self._home)).as_posix()
            remote = readable_line(recorded or remote_project(_origin_url(git_dir)))
            is_declared = bool({own, str(root)} & self._clones)
            return remote if remote and (is_declared or self._is_clone(git_dir, remote)) else own
        except (OSError, ValueError, RuntimeError):  # unreadable, not a path, a loop of links
            return ""

    def _is_clone(self, git_dir: Path, remote: str) -> bool:
        """Whether a repository has the first commit of a remote. The first clone defines it."""
        if not (commit := self._first_commits.get(git_dir) or _first_commit(git_dir)):
            return False
        self._first_commits[git_dir] = commit
        known: dict[str, str] = {}
        with suppress(FileNotFoundError, msgspec.MsgspecError):
            known = msgspec.json.decode(self._file.read_bytes(), type=dict[str, str])
        if remote.casefold() not in known:
            known[remote.casefold()] = commit
            with suppress(OSError):  # then the next clone defines it
                self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                replace_file(self._file, msgspec.json.encode(known))
        return known[remote.casefold()] == commit


class Projects:
    """The projects of the sessions in one import. Each folder is looked up once."""

    def __init__(self, repositories: Repositories) -> None:
        self._repositories = repositories
        self._by_folder: dict[tuple[str, str], str] = {}
        self._known_folders: dict[str, str] | None = None

    def project_of(self, session: Session, stored: Callable[[], Mapping[str, str]]) -> str:
        """Return the project that the log names, or that of the session's folder; empty if the log
        has neither. A folder that is not on this machine gets the project of the nearest folder,
        itself or above, in which a session recorded a git branch, or else its own name. `stored`
        returns such folders with their projects; it is called at most once.
        """
        root = session.details.get("git_repo_root")
        folder = root if isinstance(root, str) and root else session.cwd
        if not folder:
            return session.project
        key = (folder, session.project)
        if key not in self._by_folder:
            # A worktree is often deleted after its work, while the repository still exists.
            folders = dict.fromkeys((folder, repository_folder(folder)))
            projects = (self._repositories.project_at(path, session.project) for path in folders)
            self._by_folder[key] = next(filter(None, projects), session.project)
        if self._by_folder[key]:
            return self._by_folder[key]
        if self._known_folders is None:
            self._known_folders = dict(stored())
        repository = repository_folder(folder)
        project = _project_above(repository, self._known_folders) or project_name(folder)
        if session.git_branch:
            self._known_folders[repository] = project
        return project


def _project_above(folder: str, repositories: Mapping[str, str]) -> str:
    """Return the project of a folder, or of the nearest known folder above it. A home folder is
    skipped: it may be a repository, but other folders in it are not part of that project.
    """
    while folder:
        if folder in repositories and not is_home_folder(folder):
            return repositories[folder]
        folder = folder.rpartition("/")[0]
    return ""


def _first_commit(git_dir: Path) -> str:
    """Return the commit with which a history begins; empty if there is none, or only a part of the
    history, or no git.
    """
    if (git_dir / "shallow").exists():
        return ""
    words = ("rev-list", "--first-parent", "--max-parents=0", "HEAD", "--")
    # No protocol: a partial clone would fetch missing commits with a command it names itself.
    environ = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_REPLACE_OBJECTS": "1"}
    try:
        found = subprocess.check_output(  # noqa: S603
            ["git", f"--git-dir={git_dir}", *words],  # noqa: S607
            env={"PATH": os.environ.get("PATH", os.defpath), **environ},
            stderr=subprocess.DEVNULL,
            timeout=_GIT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.decode("ascii", "replace").strip()


def is_work_tree(folder: Path) -> bool:
    """Whether a folder is the top of a git work tree. An empty `.git` is none: sandboxes leave one
    where they protect a place.
    """
    git = folder / ".git"
    with suppress(OSError):
        return git.is_file() or any(git.iterdir())
    return False


def _find_repository(folder: Path) -> tuple[Path, Path] | None:
    """Return the folder of a repository's main checkout, and its git directory."""
    for parent in (folder, *folder.parents):
        git = parent / ".git"
        if git.is_dir() and (git / "HEAD").is_file():
            return parent, git
        if git.is_file():
            return _linked_repository(parent, _read(git))
    return None


def _linked_repository(folder: Path, content: str) -> tuple[Path, Path] | None:
    """Return the repository that the `.git` file of a worktree or submodule points to."""
    keyword, _, target = content.strip().partition(":")
    if keyword != "gitdir":
        return None
    git_dir = Path(os.path.normpath(folder / target.strip()))
    if common_dir := _read(git_dir / "commondir").strip():
        main = Path(os.path.normpath(git_dir / common_dir))
    elif git_dir.parent.name == "worktrees":
        main = git_dir.parent.parent  # of a repository that was moved or deleted
    else:
        return folder, git_dir
    is_bare = not main.name.startswith(".")
    return main.with_suffix("") if is_bare else main.parent, main


def _origin_url(git_dir: Path) -> str:
    """Return the URL of the remote `origin` in a repository's configuration."""
    is_origin = False
    for line in _read(git_dir / "config").splitlines():
        if section := _SECTION.match(line):
            is_origin = section[1].strip() == 'remote "origin"'
        elif is_origin and (url := _URL_LINE.match(line)):
            return url[1].strip().strip('"')
    return ""


def _read(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return file.read(_MAX_FILE_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
