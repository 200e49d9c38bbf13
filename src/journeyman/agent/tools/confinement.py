"""What commands of the agent may touch: they write below the workspace and their own temporary
folder, and read programs and the system, but not the user's home. The kernel's Landlock holds them
to it where it is there (`available`), and a filter of system calls keeps them from sockets with a
path; `confined_run` applies both. Not covered: the network, and the mode, owner and times of files
that are out of reach.
"""

import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct

from journeyman.agent.tools.syscall_filter import filter_here

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc"),
    *("/sys", "/nix", "/snap", "/var/lib/dpkg", "/var/lib/ca-certificates"),
    *("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/run/current-system"),
)
"""What any program reads. Of /run only what names are looked up in: secrets are kept there too."""

DEVICES = (
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"),
    "/dev/shm",  # noqa: S108 - no file is made there
)
"""What any program also writes to. /dev/shm is where locks between processes are kept. Terminals
are not among them: what the user types would be read there."""


class Toolchain(Struct, frozen=True):
    """A program's own folder, the variable that says where it is, where it is in the home without
    one, and what of it the program needs. Other things in it may be nobody's business.
    """

    variable: str
    folder: str
    parts: tuple[str, ...]


TOOLCHAINS = (
    Toolchain(
        "PYENV_ROOT",
        ".pyenv",
        ("bin", "libexec", "shims", "versions", "version", "plugins", "pyenv.d", "completions"),
    ),
    Toolchain("NVM_DIR", ".nvm", ("versions", "alias", "nvm.sh", "nvm-exec", "bash_completion")),
    Toolchain("RUSTUP_HOME", ".rustup", ("toolchains", "settings.toml", "update-hashes")),
    Toolchain("VOLTA_HOME", ".volta", ("bin", "tools", "hooks.json")),
    Toolchain("SDKMAN_DIR", ".sdkman", ("bin", "candidates", "src", "libexec", "var", "etc")),
    Toolchain("GOROOT", "", ("bin", "lib", "pkg", "src", "misc", "VERSION", "go.env")),
    Toolchain("JAVA_HOME", "", ("bin", "lib", "conf", "jmods", "include", "legal", "release")),
)

_PROGRAM_FOLDERS = ("bin", "sbin", "shims")
_BESIDE_PROGRAMS = (
    *("lib", "lib64", "libexec", "include", "share", "pyvenv.cfg"),
    *("conda-meta", "condabin", "ssl/cert.pem"),
)
"""What programs bring along, in the folder that holds theirs."""
_KEEPING_SECRETS = (".local", ".cargo", ".docker", ".config")
_BESIDE_SECRETS = ("lib", "share/pipx", "share/uv")
"""What programs bring along in folders where `share` holds keys of other programs too."""


class Policy(Struct, frozen=True, kw_only=True):
    """Paths that a command may read below, and those it may also write below."""

    readable: tuple[str, ...]
    writable: tuple[str, ...]

    @property
    def options(self) -> list[str]:
        """The policy as `confined_run` reads it."""
        calls = filter_here()
        return [
            *([f"f:{calls.hex()}"] if calls else []),
            *(f"r:{path}" for path in self.readable),
            *(f"w:{path}" for path in self.writable),
        ]

    def opens(self, place: Path) -> str | None:
        """The folder that lets commands read a place, if there is one besides the system's."""
        place = place.expanduser().resolve()
        system = [Path(path).resolve() for path in SYSTEM]
        own = (path for path in self.readable if not _is_below(Path(path).resolve(), system))
        for path in (*self.writable, *own):
            if _is_below(place, [Path(path).resolve()]):
                return path
        return None


@cache
def available() -> bool:
    """Whether the kernel can confine a command."""
    from journeyman.agent.tools.confined_run import landlock_version  # noqa: PLC0415 - ctypes

    return landlock_version() > 0


def policy_for(writable: Iterable[Path], environment: Mapping[str, str], home: Path) -> Policy:
    """What a command may touch that has this environment."""
    readable = [
        *(Path(path) for path in SYSTEM),
        *(folder for prefix in (sys.prefix, sys.base_prefix) for folder in _own(prefix, home)),
        Path(__file__).parent,  # the programs that the tools themselves start
        *(folder / part for row, folder in _present(environment, home) for part in row.parts),
        *(
            folder
            for entry in environment.get("PATH", "").split(":")
            for folder in _beside(Path(entry), home)
        ),
    ]
    return Policy(
        readable=tuple(dict.fromkeys(map(str, readable))),
        writable=tuple(dict.fromkeys((*DEVICES, *map(str, writable)))),
    )


def toolchains(environment: Mapping[str, str], home: Path) -> list[tuple[str, Path]]:
    """The variables of programs with folders of their own, and the folders that are there."""
    return [(row.variable, folder) for row, folder in _present(environment, home)]


def _present(environment: Mapping[str, str], home: Path) -> list[tuple[Toolchain, Path]]:
    found = []
    for row in TOOLCHAINS:
        folder = Path(environment.get(row.variable) or home / row.folder)
        if folder.is_absolute() and folder.is_dir() and not _is_wide(folder, home):
            found.append((row, folder))
    return found


def _own(prefix: str, home: Path) -> list[Path]:
    """The folder of the interpreter that runs the agent, which runs the agent's code too."""
    folder = Path(prefix)
    return _beside(folder / "bin", home) if _is_wide(folder, home) else [folder]


def _beside(folder: Path, home: Path) -> list[Path]:
    """A folder on the search path, with what its programs bring along."""
    if not folder.is_absolute() or _is_wide(folder, home):
        return []
    prefix = folder.parent
    if folder.name not in _PROGRAM_FOLDERS or _is_wide(prefix, home):
        return [folder]
    parts = _BESIDE_SECRETS if prefix.name in _KEEPING_SECRETS else _BESIDE_PROGRAMS
    return [folder, *(prefix / part for part in parts if not _is_wide(prefix / part, home))]


def _is_wide(folder: Path, home: Path) -> bool:
    """Whether a folder holds the home, or is the root, links and dots followed."""
    folder = folder.resolve()
    return folder == Path(folder.anchor) or folder in (home, *home.parents)


def _is_below(place: Path, folders: Iterable[Path]) -> bool:
    return any(place.is_relative_to(folder) for folder in folders)
