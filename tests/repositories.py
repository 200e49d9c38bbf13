"""Git repositories for tests."""

import os
import subprocess
from pathlib import Path


def make_repository(root: Path, remote: str = "", *, first: str = "first") -> Path:
    """A repository with one commit: the same one for the same message."""
    git(root.parent, "init", "-q", root)
    git(root, "commit", "-q", "--allow-empty", "-m", first)
    if remote:
        git(root, "config", "remote.origin.url", remote)
    return root


def git(folder: Path, *words: str | Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    who = {"NAME": "Ada", "EMAIL": "ada@example.org", "DATE": "2026-01-01T00:00:00Z"}
    people = {f"GIT_{role}_{key}": who[key] for role in ("AUTHOR", "COMMITTER") for key in who}
    environ = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, **people}
    subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, env=environ)
