"""The programs of hosts on this machine: where they are, which version, and where they keep what
Journeyman is installed into.
"""

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from journeyman.hosts.host import ANSWER_S, run_program
from journeyman.hosts.pages import PAGES
from journeyman.records.host import Host

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")


def host_file(host: Host, environ: Mapping[str, str]) -> Path:
    """Return the file that Journeyman changes for a host."""
    page = PAGES[host]
    return page.settings_folder(environ) / page.file


def user_home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or Path.home())


class FoundProgram(Struct, frozen=True, kw_only=True):
    """A host's program on the search path; both are empty if there is none."""

    path: str = ""
    version: str = ""


def find_program(host: Host, environ: Mapping[str, str]) -> FoundProgram:
    """Return a host's program and the version that it reports. Some programs fill their folders
    even then, so it is asked in a home of its own. Hermes would also look for updates, so its
    version is left to its interpreter.
    """
    path = shutil.which(PAGES[host].program, path=environ.get("PATH"))
    if path is None:
        return FoundProgram()
    if host == "hermes":
        return FoundProgram(path=path)
    with tempfile.TemporaryDirectory(prefix="journeyman-") as folder:
        surroundings = {"HOME": folder, "PATH": environ.get("PATH", ""), "TERM": "dumb"}
        answer = run_quietly([path, "--version"], surroundings)
    found = _VERSION.search(answer or "")
    return FoundProgram(path=path, version=found[0] if found else "")


def run_quietly(
    command: Sequence[str], environ: Mapping[str, str], *, timeout_s: float = ANSWER_S
) -> str | None:
    """Run a program and return its standard output; None if it fails or takes too long."""
    done = run_program(command, environ, timeout_s=timeout_s)
    return done.stdout if done and done.returncode == 0 else None
