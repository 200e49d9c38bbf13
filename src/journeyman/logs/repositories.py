"""Finds the project of a folder from the files of its git repository. Git itself is not run,
because a recorded folder may belong to anyone.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from journeyman.logs.file_access import open_regular
from journeyman.records import Session
from journeyman.records.project import (
    is_home_folder,
    project_name,
    remote_project,
    repository_folder,
)

_MAX_FILE_BYTES = 1_000_000
_SECTION = re.compile(r"\s*\[([^\]]*)\]")
_URL_LINE = re.compile(r"\s*url\s*=(.*)", re.IGNORECASE)


def find_project(folder: Path | str, *, home: Path | None = None) -> str:
    """Return the project of a folder on this machine: the remote of its repository as
    `host/owner/name`; without a remote the path of the repository, with `~` for `home`; outside
    any repository the folder's name.
    """
    path = os.path.abspath(folder)  # noqa: PTH100 - symbolic links are followed below
    return _repository_project(path, home or Path.home()) or project_name(path)


class Projects:
    """The projects of the sessions in one import. Each folder is looked up once."""

    def __init__(self, *, home: Path | None = None) -> None:
        self._home = home or Path.home()
        self._by_folder: dict[str, str] = {}
        self._repositories: dict[str, str] | None = None

    def project_of(self, session: Session, stored: Callable[[], Mapping[str, str]]) -> str:
        """Return the project that the log names, or that of the session's folder; empty if the log
        has neither. A folder that is not on this machine gets the project of the nearest folder,
        itself or above, in which a session recorded a git branch, or else its own name. `stored`
        returns such folders with their projects; it is called at most once.
        """
        root = session.details.get("git_repo_root")
        folder = root if isinstance(root, str) and root else session.cwd
        if session.project or not folder:
            return session.project
        if folder not in self._by_folder:
            # A worktree is often deleted after its work, while the repository still exists.
            folders = dict.fromkeys((folder, repository_folder(folder)))
            projects = (_repository_project(path, self._home) for path in folders)
            self._by_folder[folder] = next(filter(None, projects), "")
        if self._by_folder[folder]:
            return self._by_folder[folder]
        if self._repositories is None:
            self._repositories = dict(stored())
        repository = repository_folder(folder)
        project = _project_above(repository, self._repositories) or project_name(folder)
        if session.git_branch:
            self._repositories[repository] = project
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


def _repository_project(folder: str, home: Path) -> str:
    """Return the project of an existing folder in a repository, otherwise an empty string."""
    try:
        path = Path(folder)
        if not path.is_absolute() or not path.is_dir():
            return ""
        if (repository := _find_repository(path.resolve())) is None:
            return ""
        root, git_dir = repository
        home = home.resolve()
        if not (project := remote_project(_origin_url(git_dir))) and root.is_relative_to(home):
            return (Path("~") / root.relative_to(home)).as_posix()
        return project or root.as_posix()
    except (OSError, ValueError, RuntimeError):  # unreadable, not a path, a loop of links
        return ""


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
