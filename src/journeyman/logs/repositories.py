"""The project of a folder, looked up on this machine: its git repository, as far as the files of
git tell it. Git itself is not run, since a recorded folder may belong to anybody.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from journeyman.records import Session
from journeyman.records.project import (
    is_home_folder,
    project_name,
    remote_project,
    repository_folder,
)

_LONGEST_FILE = 1_000_000
_SECTION = re.compile(r"\s*\[\s*([^\]]*?)\s*\]")
_URL_LINE = re.compile(r"\s*url\s*=\s*(.*?)\s*$", re.IGNORECASE)


def find_project(folder: Path | str, *, home: Path | None = None) -> str:
    """The project of a folder on this machine: the remote of its repository as `host/owner/name`;
    without a remote the path of the repository, where `~` stands for `home`; outside of any
    repository the folder's name.
    """
    path = os.path.abspath(folder)  # noqa: PTH100 - symbolic links are followed below
    return _in_repository(path, home or Path.home()) or project_name(path)


class Projects:
    """The projects of the sessions of one import, which looks each folder up once."""

    def __init__(self, *, home: Path | None = None) -> None:
        self._home = home or Path.home()
        self._found: dict[str, str] = {}
        self._repositories: dict[str, str] | None = None

    def project_of(self, session: Session, stored: Callable[[], Mapping[str, str]]) -> str:
        """The project that the log names, or that of the session's folder; empty if the log tells
        neither. A folder that is not on this machine has the project of the nearest folder, it
        or one above it, in which a session recorded a git branch, or else its own name. `stored`
        gives such folders with their projects; it is called once, if at all.
        """
        root = session.details.get("git_repo_root")
        folder = root if isinstance(root, str) and root else session.cwd
        if session.project or not folder:
            return session.project
        if folder not in self._found:
            # A worktree is often deleted when its work is done; the repository is still there.
            places = dict.fromkeys((folder, repository_folder(folder)))
            found = (_in_repository(place, self._home) for place in places)
            self._found[folder] = next(filter(None, found), "")
        if self._found[folder]:
            return self._found[folder]
        if self._repositories is None:
            self._repositories = dict(stored())
        repository = repository_folder(folder)
        project = _project_above(repository, self._repositories) or project_name(folder)
        if session.git_branch:
            self._repositories[repository] = project
        return project


def _project_above(folder: str, repositories: Mapping[str, str]) -> str:
    """The project of a folder, or of the nearest above it, among known ones. What is above may be
    somebody's home with a repository of its own, which does not hold what is in other folders.
    """
    while folder:
        if folder in repositories and not is_home_folder(folder):
            return repositories[folder]
        folder = folder.rpartition("/")[0]
    return ""


def _in_repository(folder: str, home: Path) -> str:
    """The project of an existing folder inside a repository, or nothing."""
    try:
        path = Path(folder)
        if not path.is_absolute() or not path.is_dir():
            return ""
        if (found := _repository(path.resolve())) is None:
            return ""
        root, files = found
        home = home.resolve()
        if not (project := remote_project(_origin(files))) and root.is_relative_to(home):
            return (Path("~") / root.relative_to(home)).as_posix()
        return project or root.as_posix()
    except (OSError, ValueError, RuntimeError):  # not to be read, no path, a loop of links
        return ""


def _repository(folder: Path) -> tuple[Path, Path] | None:
    """The folder of a repository's main checkout, and where git keeps its files."""
    for place in (folder, *folder.parents):
        git = place / ".git"
        if git.is_dir() and (git / "HEAD").is_file():
            return place, git
        if git.is_file():
            return _linked(place, _read(git))
    return None


def _linked(place: Path, content: str) -> tuple[Path, Path] | None:
    """The repository that a `.git` file points to: that of a worktree or a submodule."""
    word, _, target = content.strip().partition(":")
    if word != "gitdir":
        return None
    files = Path(os.path.normpath(place / target.strip()))
    if shared := _read(files / "commondir").strip():
        main = Path(os.path.normpath(files / shared))
    elif files.parent.name == "worktrees":
        main = files.parent.parent  # of a repository that was moved or deleted
    else:
        return place, files
    is_bare = not main.name.startswith(".")
    return main.with_suffix("") if is_bare else main.parent, main


def _origin(files: Path) -> str:
    """The address of the remote `origin` in a repository's configuration."""
    is_origin = False
    for line in _read(files / "config").splitlines():
        if section := _SECTION.match(line):
            is_origin = section[1] == 'remote "origin"'
        elif is_origin and (url := _URL_LINE.match(line)):
            return url[1].strip('"')
    return ""


def _read(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(_LONGEST_FILE)
