"""The project of a session, derived from text alone: the address of a git remote, or the path of
the session's folder.
"""

import re

_HOME = r"(?:/home/[^/]+|(?:[A-Za-z]:)?/Users/[^/]+|/root)"
_DAY = r"(?:19|20)\d\d-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])"


WORKTREES = (
    r"(.*/\.codex/worktrees/[^/]+/[^/]+)",
    r"(.*/\.cursor/worktrees/[^/]+)/",
    r"(.*/conductor/workspaces/[^/]+)/",
    rf"({_HOME}/\.?worktrees/[^/]+)",
    r"(.+?)/\.(?:claude/)?worktrees/",
    r"(.+?[^/])[._-]worktrees/",
    r"(.*?/[^/.][^/]*)/worktrees/",
)
"""Where Codex, Cursor, Conductor, Claude Code and people keep worktrees of a repository; each
pattern captures the path of the repository. The first that matches applies."""

CHECKOUTS = (
    rf"{_DAY}[-_.](.+)$",
    rf"(.+)[-_.]{_DAY}$",
    # A letter before the number: `lib-1.2` is a version, not the second checkout of `lib-1`.
    r"(.*[^\W\d_])[-_.]\d{1,2}$",
)
"""How people name one of several checkouts of a repository; each pattern captures the repository's
name. All that match apply, one after the other."""


def repository_folder(folder: str) -> str:
    """Return the path of the repository that a folder is a worktree of, or else the folder."""
    path = _plain(folder)
    for pattern in WORKTREES:
        if match := re.match(pattern, path):
            return match[1]
    return path


def project_name(folder: str) -> str:
    """Return the name of the repository from the path of a folder, or "". Checkouts of one
    repository in different places, on different machines, have the same name.
    """
    name = repository_folder(folder).rpartition("/")[2]
    for pattern in CHECKOUTS:
        if match := re.match(pattern, name):
            name = match[1]
    return name


def is_in_project(stored: str, name: str) -> bool:
    """Return whether the stored project of a session matches `name`, ignoring case: it is equal, or
    is only the last part of the name, or ends with a name that is not whole (`cli` and `acme/cli`
    match `github.com/acme/cli`).
    """
    stored, name = stored.casefold(), name.casefold().rstrip("/")
    ends = not is_whole(name) and stored.endswith(f"/{name}")
    return ends or stored in (name, name.rpartition("/")[2])


def is_whole(name: str) -> bool:
    """Return whether the name of a project begins with a host or is a path. Otherwise a remote such
    as `example.org/github.com/acme/cli` would be taken for the project that it ends with.
    """
    return name.startswith(("~", "/")) or ("." in name.partition("/")[0] and "/" in name)


def is_home_folder(folder: str) -> bool:
    """Return whether a path looks like a home folder, which holds projects but is not one."""
    return re.fullmatch(_HOME, _plain(folder)) is not None


# An address as a URL or in ssh's short form, where a single letter would be a Windows drive.
_REMOTE = re.compile(
    r"(?:[A-Za-z][\w+.-]*://(?P<server>[^/:]*)(?::\d*)?/|(?P<host>[^/:]{2,}):(?!//))(?P<path>[^?#]*)"
)
_CREDENTIALS = re.compile(r"^([\w+.-]+://)?.*@")


def remote_project(url: str) -> str:
    """Return a git remote as `host/owner/name`, the same for its ssh and https addresses and
    without credentials. Return "" if it names no host, as a path does.
    """
    match = _REMOTE.match(_CREDENTIALS.sub(r"\1", url.strip()))
    if match is None:
        return ""
    host = (match["server"] or match["host"] or "").lower()
    path = "/".join(filter(None, match["path"].split("/"))).removesuffix(".git")
    return f"{host}/{path}" if host and path else ""


def _plain(folder: str) -> str:
    if re.match(r"[A-Za-z]:\\|\\\\", folder):
        folder = folder.replace("\\", "/")
    return folder.rstrip("/")
