"""The project of a session, as far as text tells it: the address of a git remote, or the path of
the folder that the session worked in.
"""

import re
from typing import NamedTuple


class PathRule(NamedTuple):
    """A way to name folders. `pattern` captures what the rule keeps of a path or of a folder's
    name; the example is a path of the project `cli`.
    """

    id: str
    pattern: str
    example: str


_HOME = r"(?:/home/[^/]+|(?:[A-Za-z]:)?/Users/[^/]+|/root)"
_DAY = r"(?:19|20)\d\d-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])"


WORKTREES = (
    PathRule("codex", r"(.*/\.codex/worktrees/[^/]+/[^/]+)", "/x/.codex/worktrees/7f3a/cli/cmd"),
    PathRule("cursor", r"(.*/\.cursor/worktrees/[^/]+)/", "/home/ada/.cursor/worktrees/cli/qx1"),
    PathRule("conductor", r"(.*/conductor/workspaces/[^/]+)/", "/x/conductor/workspaces/cli/lima"),
    PathRule("home", rf"({_HOME}/\.?worktrees/[^/]+)", "/home/ada/worktrees/cli/fix-42"),
    PathRule("claude_code", r"(.+?)/\.claude/worktrees/", "/srv/cli/.claude/worktrees/fix-42"),
    PathRule("dot_worktrees", r"(.+?)/\.worktrees/", "/srv/cli/.worktrees/ada/fix-42"),
    PathRule("sibling", r"(.+?[^/])[._-]worktrees/", "/srv/cli.worktrees/fix-42"),
    PathRule("worktrees", r"(.*?/[^/.][^/]*)/worktrees/", "/srv/cli/worktrees/fix-42"),
)
"""Where worktrees of a repository are kept; the path of the repository is captured. The first rule
that matches applies."""

CHECKOUTS = (
    PathRule("day_before", rf"{_DAY}[-_.](.+)$", "/src/20260205-cli"),
    PathRule("day_after", rf"(.+)[-_.]{_DAY}$", "/src/cli-2026-02-05"),
    # A letter before the number: `lib-1.2` is a version and not the second checkout of `lib-1`.
    PathRule("number", r"(.*[^\W\d_])[-_.]\d{1,2}$", "/src/cli-2"),
)
"""How people name one of several checkouts of a repository; its own name is captured. Every rule
that matches applies, one after the other."""


def repository_folder(folder: str) -> str:
    """The path of the repository that a folder is a worktree of, or else the folder itself."""
    path = _plain(folder)
    for rule in WORKTREES:
        if found := re.match(rule.pattern, path):
            return found[1]
    return path


def project_name(folder: str) -> str:
    """The name of the repository by the path of a folder; empty if there is none. Checkouts of
    one repository in different places, on different machines, have the same name.
    """
    name = repository_folder(folder).rpartition("/")[2]
    for rule in CHECKOUTS:
        if found := re.match(rule.pattern, name):
            name = found[1]
    return name


def is_in_project(stored: str, name: str) -> bool:
    """Whether a session of the project `stored` belongs to the one named, whatever the case: it is
    the same, or ends in it (`cli` and `acme/cli` mean `github.com/acme/cli`), or is known only by
    its last part.
    """
    stored, name = stored.casefold(), name.casefold().rstrip("/")
    return stored in (name, name.rpartition("/")[2]) or stored.endswith(f"/{name}")


def is_home_folder(folder: str) -> bool:
    """Whether a path looks like somebody's home, which holds projects and is none."""
    return re.fullmatch(_HOME, _plain(folder)) is not None


# An address as a URL, or as ssh takes it: there a single letter is a drive of Windows.
_REMOTE = re.compile(
    r"(?:[A-Za-z][\w+.-]*://(?P<server>[^/:]*)(?::\d*)?/|(?P<host>[^/:]{2,}):(?!//))(?P<path>[^?#]*)"
)
_CREDENTIALS = re.compile(r"^([\w+.-]+://)?.*@")


def remote_project(url: str) -> str:
    """A git remote as `host/owner/name`, the same for its ssh and https addresses and without
    credentials. Empty for what names no host, such as a path.
    """
    found = _REMOTE.match(_CREDENTIALS.sub(r"\1", url.strip()))
    if found is None:
        return ""
    host = (found["server"] or found["host"] or "").lower()
    path = "/".join(filter(None, found["path"].split("/"))).removesuffix(".git")
    return f"{host}/{path}" if host and path else ""


def _plain(folder: str) -> str:
    if re.match(r"[A-Za-z]:\\|\\\\", folder):
        folder = folder.replace("\\", "/")
    return folder.rstrip("/")
