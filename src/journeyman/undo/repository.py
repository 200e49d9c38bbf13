"""What git says about the person's repositories, which are only read, and how git is called."""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from journeyman.records.errors import OutsideProblem

Refs = dict[str, str]
"""Where HEAD, the branches, the tags and the stash of a repository are, and a digest of its index;
empty without a repository.
"""

_NOTHING = "nothing"
_OPTIONS = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*"),
    *("-c", "core.protectNTFS=false", "-c", "core.protectHFS=false"),
)
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ALLOW_PROTOCOL": "none",
}


def run_git(folder: Path, *words: str, data: bytes = b"", **variables: str) -> bytes:
    """Return what git prints. Neither the person's configuration nor a repository's hooks have an
    effect. Raise OutsideProblem.
    """
    environment = {"PATH": os.environ.get("PATH", os.defpath), **_ENVIRONMENT, **variables}
    try:
        done = subprocess.run(  # noqa: S603
            ["git", *_OPTIONS, *words],  # noqa: S607
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


def _ask(folder: Path, *words: str) -> bytes:
    """Return what git says about a repository; nothing if there is none."""
    with suppress(OutsideProblem):
        return run_git(folder, *words)
    return b""


def ignored_folders(folder: Path) -> Iterator[bytes]:
    """Yield the folders that the repository ignores as a whole."""
    options = ("--others", "--ignored", "--exclude-standard", "--directory")
    listed = sorted(_ask(folder, "ls-files", "-z", *options).split(b"\0"))
    for path, following in pairwise([*listed, b""]):
        # A folder whose files are ignored one by one is listed as well, before its files.
        if path.endswith(b"/") and path != b"./" and not following.startswith(path):
            yield path[:-1]


def read_refs(folder: Path) -> Refs:
    symbolic = _ask(folder, "symbolic-ref", "-q", "HEAD")
    head = symbolic or _ask(folder, "rev-parse", "--short=10", "HEAD")
    if not head:
        return {}
    form = "--format=%(refname) %(objectname:short=10)"
    listed = _ask(folder, "for-each-ref", form, "refs/heads", "refs/tags", "refs/stash")
    refs = dict(line.split(" ", 1) for line in listed.decode(errors="replace").splitlines())
    index = hashlib.sha256(_ask(folder, "ls-files", "-s", "-z")).hexdigest()
    return {**refs, "HEAD": head.decode(errors="replace").strip(), "index": index}


def describe_changes(folder: Path, before: Refs, after: Refs, present: Refs) -> Iterator[str]:
    """Yield what a run did to a repository, as far as it is still so, and how to take it back."""
    if not (before and after):
        if before or after:
            yield f"the repository was {'deleted' if before else 'created'}"
        return
    moved = [ref for ref in sorted({**before, **after}) if before.get(ref) != after.get(ref)]
    if moved == ["index"] and present.get("index") == after["index"]:
        yield "what is staged for the next commit was changed"
    for ref in moved:
        old, new, now = (refs.get(ref, _NOTHING) for refs in (before, after, present))
        if ref == "index" or now == old:
            continue
        yield f"{ref} moved from {old} to {new}"
        if ref != "HEAD" and _NOTHING not in (old, new):
            commits = _ask(folder, "rev-list", "--oneline", f"{old}..{new}")
            yield from (f"  {line}" for line in commits.decode(errors="replace").splitlines())
        is_checked_out = ref == after["HEAD"] == present.get("HEAD")
        if is_checked_out and now == new and old != _NOTHING:
            yield f"  to take this back too: git reset {old}"
