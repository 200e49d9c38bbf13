"""What the agent's commands may access. They write below the workspace and their own temporary
folder, read programs and the system but not the user's home, and have no secrets in their
environment. Nothing else exists for them: bubblewrap, or namespaces and Landlock, give them a file
system of their own. `confinement.toml` lists what is in it; `confined_process` starts the command.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from msgspec import Struct

_PROGRAMS = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin"
"""Where bubblewrap may be: folders that commands cannot write to."""
_TEMPORARY = "/tmp"  # noqa: S108 - the default location; a command gets a private one

OFFLINE = {"npm_config_fetch_retries": "0", "PIP_RETRIES": "0", "CARGO_NET_RETRY": "0"}
"""Variables of commands without the network, where retries only take time."""


@cache
def _lists() -> dict[str, Any]:
    return tomllib.loads(_content("confinement.toml").decode())


@cache
def _content(name: str) -> bytes:
    # Read once, because a command may be able to change it later.
    return files(__package__).joinpath(name).read_bytes()


def _launch(command: Sequence[str], options: Mapping[str, Any]) -> tuple[list[str], bytes]:
    """Return the words that start `confined_process`, and what it reads from standard input."""
    call = f"\nmain({options!r})\n"
    # Not the link in a virtual environment, which may be in the workspace.
    python = os.path.realpath(sys.executable)
    return [python, "-I", "-S", "-", *command], _content("confined_process.py") + call.encode()


class ConfinementPolicy(Struct, frozen=True, kw_only=True):
    """The paths below which a command may read, those below which it may also write, and the folder
    that it sees as /tmp. Without the path of `bubblewrap`, namespaces and Landlock confine it.
    """

    readable: tuple[str, ...]
    writable: tuple[str, ...]
    temporary: str
    bubblewrap: str = ""

    def launch(
        self, command: Sequence[str], *, folder: str, network: bool, limits: dict[str, int]
    ) -> tuple[list[str], bytes]:
        """Return the words that start a command, and what they read from standard input."""
        mounts, links = self._file_system()
        if not self.bubblewrap:
            mounts = [*((path, path, True) for path in _lists()["devices"]), *mounts]
            links |= _lists()["device_links"]
            options = {"limits": limits, "folder": folder, "network": network}
            return _launch(command, {**options, "mounts": mounts, "links": links})
        words = [self.bubblewrap, *_lists()["bubblewrap_options"]]
        words += [] if network else ["--unshare-net"]
        for source, path, is_writable in mounts:
            words += ["--bind" if is_writable else "--ro-bind", source, path]
        for path, target in links.items():
            words += ["--symlink", target, path]
        inner, stdin = _launch(command, {"limits": limits})
        return [*words, "--remount-ro", "/", "--chdir", folder, "--", *inner], stdin

    def _file_system(self) -> tuple[list[tuple[str, str, bool]], dict[str, str]]:
        """What is mounted (source, path, whether writable), parents first, and the links."""
        mounts = {path: (path, path, True) for path in self.writable}
        links: dict[str, str] = {}
        for path in sorted(self.readable):
            target = os.path.realpath(path)
            if Path(target).exists() and not _is_below(target, mounts):
                mounts[target] = (target, target, False)
            if _is_below(target, mounts) and not _is_below(path, (*mounts, *links)):
                if _is_below(path, [_TEMPORARY]):  # a link would stay there for the next command
                    mounts[path] = (target, path, False)
                else:
                    links[path] = target
        mounts.setdefault(_TEMPORARY, (self.temporary, _TEMPORARY, True))
        return [mounts[path] for path in sorted(mounts)], links

    def exposing_folder(self, place: Path) -> str | None:
        """The folder that lets commands read a path, if there is one apart from the system's."""
        place = place.expanduser().resolve()
        own = (*self.writable, *(path for path in self.readable if path not in _system()))
        return next((path for path in own if place.is_relative_to(Path(path).resolve())), None)


def _system() -> list[str]:
    return [*_lists()["system"], *(f"/etc/{name}" for name in _lists()["etc"])]


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(f"{path}/".startswith(f"{folder}/") for folder in folders)


def why_unconfined() -> str:
    """Return why this machine cannot confine a command, or an empty text if it can."""
    return find_confinement()[1]


def find_confinement() -> tuple[str, str]:
    """Return the path of bubblewrap, if it confines commands, and why nothing does."""
    if not sys.platform.startswith("linux"):
        return "", "this system is not Linux"
    bubblewrap = shutil.which("bwrap", path=_PROGRAMS)
    if bubblewrap and not why_failing(bubblewrap):
        return bubblewrap, ""
    found = "does not work here" if bubblewrap else "is not installed"
    reason = why_failing("")
    return "", reason and f"bubblewrap {found}, and without it: {reason}"


@cache
def why_failing(bubblewrap: str) -> str:
    """Return why bubblewrap, or without it the kernel, cannot confine a command, by running one."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "tmp").mkdir()
        policy = policy_for(place, {}, Path.home(), place, bubblewrap)
        probe = ["/bin/sh", "-c", ":"]
        words, stdin = policy.launch(probe, folder="/", network=False, limits={"nproc": 1_000})
        ran = subprocess.run(words, input=stdin, capture_output=True, check=False)  # noqa: S603
    reason = ran.stderr.decode(errors="replace").strip() or f"exit code {ran.returncode}"
    reason = reason.removeprefix("The command was not run: ").rstrip(".")
    return reason if ran.returncode else ""


def command_environment(inherited: Mapping[str, str], home: Path, private: Path) -> dict[str, str]:
    """Return the environment of a command, derived from that of the agent. Folders below `private`
    replace the user's `home` and /tmp.
    """
    return {
        **_lists()["defaults"],
        **{name: inherited[name] for name in _lists()["passed"] if name in inherited},
        **{name: str(folder) for name, folder in toolchains(inherited, home).items()},
        **_lists()["variables"],
        "HOME": str(private / "home"),
        "TMPDIR": str(private / "tmp"),
    }


def policy_for(
    root: Path, environment: Mapping[str, str], home: Path, private: Path, bubblewrap: str = ""
) -> ConfinementPolicy:
    """Return what a command with this environment may access in the workspace `root`."""
    readable = _system()
    for variable, folder in toolchains(environment, home).items():
        readable += [f"{folder}/{part}" for part in _lists()["toolchains"][variable]["parts"]]
    # The interpreter of the agent also runs scripts.
    own = (f"{prefix}/bin" for prefix in (sys.prefix, sys.base_prefix))
    for entry in (*own, *environment.get("PATH", "").split(":")):
        readable += map(str, _program_folders(Path(entry), home))
    return ConfinementPolicy(
        readable=tuple(dict.fromkeys(readable)),
        writable=(str(root), str(private)),
        temporary=str(private / "tmp"),
        bubblewrap=bubblewrap,
    )


def toolchains(environment: Mapping[str, str], home: Path) -> dict[str, Path]:
    """The folders of toolchains that exist, by the variables that name them."""
    rows = _lists()["toolchains"].items()
    folders = {
        name: Path(environment.get(name) or home / row.get("home", "")) for name, row in rows
    }
    return {
        name: folder
        for name, folder in folders.items()
        if folder.is_absolute() and folder.is_dir() and not _contains_home(folder, home)
    }


def _program_folders(folder: Path, home: Path) -> list[Path]:
    """A folder on the search path, and what its programs need besides it."""
    if not folder.is_absolute() or _contains_home(folder, home):
        return []
    programs, prefix = _lists()["programs"], folder.parent
    if folder.name not in programs["folders"] or _contains_home(prefix, home):
        return [folder]
    has_secrets = prefix.name in programs["prefixes_with_secrets"]
    parts = programs["companions_without_secrets" if has_secrets else "companions"]
    return [folder, *(prefix / part for part in parts if not _contains_home(prefix / part, home))]


def _contains_home(folder: Path, home: Path) -> bool:
    """Whether a folder is the root or contains the home, once resolved."""
    folder = folder.resolve()
    return folder == Path(folder.anchor) or folder in (home, *home.parents)
