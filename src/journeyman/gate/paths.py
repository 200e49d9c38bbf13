"""Places in the file system, by what may be done there: the workspace, what must never be deleted,
devices, files that steer programs, files that hold secrets. Contents are never looked at.
"""

import fnmatch
import os
import re
from functools import cache
from pathlib import Path

from journeyman.gate.decision import rules_file
from journeyman.gate.parser import OUTPUT, UNKNOWN

_SYSTEM_SECRETS = re.compile(
    r"/etc/(?:g?shadow|sudoers|ssl/private|ssh/.*key$|krb5\.keytab)|/proc/[^/]+/(?:environ|mem)"
)
_KEEPS_NOTHING = re.compile(
    r"/dev(?:/(?:null|std\w+|fd(?:/.*)?|zero|full|u?random|tty\w*|pts.*|tcp/.*|udp/.*|shm.*))?"
)
_SCRATCH = ("/tmp/", "/var/tmp/", "/private/tmp/", "/dev/shm/")  # noqa: S108
_ALL_IN = frozenset({"*", ".*", "..*", "?*", "**", ".[!.]*"})


class Places:
    """Paths as seen from a workspace and a home. Those of another machine (`foreign`) are looked
    at as text alone; here, links are followed.
    """

    def __init__(
        self, workspace: Path, home: Path, *, folder: str = "", foreign: bool = False
    ) -> None:
        self._real = os.path.normpath if foreign else os.path.realpath
        self.workspace = Path(self._real(workspace))
        self.home = Path(self._real(home))
        self._folder = self.workspace
        self._folder = self.resolve(folder or ".")

    def resolve(self, text: str) -> Path:
        """Where a path leads. What is not known of it is taken for a plain name."""
        # What a file system cannot name, no file is named.
        text = text.removeprefix("file://").encode(errors="replace").decode()
        text = text.replace(UNKNOWN, "unknown").replace(OUTPUT, "unknown")
        if text == "~" or text.startswith("~/"):
            text = f"{self.home}{text[1:]}"
        if text.startswith("/"):
            return Path(self._real("/" + text.lstrip("/")))
        return Path(self._real(f"{self._folder}/{text}"))

    def is_inside(self, path: Path) -> bool:
        return path.is_relative_to(self.workspace)

    def is_scratch(self, path: Path) -> bool:
        """Where anyone may leave things: temporary folders, and devices that keep nothing."""
        return f"{path}/".startswith(_SCRATCH) or _KEEPS_NOTHING.fullmatch(str(path)) is not None

    def is_device(self, path: Path) -> bool:
        """A disk, memory or any other device that keeps what is written."""
        return path.is_relative_to("/dev") and not _KEEPS_NOTHING.fullmatch(str(path))

    def is_vital(self, path: Path) -> bool:
        """The root, a folder of the system, somebody's home, or what holds the workspace. A pattern
        for all in such a folder counts as the folder.
        """
        if path.name in _ALL_IN:
            path = path.parent
        if path == self.workspace:
            return False
        return (
            self.workspace.is_relative_to(path)
            or self.home.is_relative_to(path)
            or path.parent in (Path("/home"), Path("/Users"))
            or (len(path.parts) <= 2 and not self.is_scratch(path))
        )

    def is_steering(self, path: Path) -> bool:
        """A file that tells programs what to do."""
        return _matches(self._below(path), rules_file().steering)

    def is_secret(self, path: Path) -> bool:
        """A file that holds keys, passwords or what somebody typed."""
        return _SYSTEM_SECRETS.match(str(path)) is not None or _matches(
            self._below(path), rules_file().secrets
        )

    def _below(self, path: Path) -> str:
        tops = (self.workspace, self.home, Path("/"))
        top = next(one for one in tops if path.is_relative_to(one))
        return str(path.relative_to(top)).lower()


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(one) for one in patterns))


def _matches(below: str, patterns: tuple[str, ...]) -> bool:
    """Whether a path is meant by one of the patterns, from any of its folders on."""
    parts = below.split("/")
    if _any_of(rules_file().harmless).match(parts[-1]):
        return False
    wanted = _any_of(patterns)
    tails = ["/".join(parts[at:]) for at in range(len(parts))]
    return any(wanted.match(one) or wanted.match(f"{one}/") for one in tails)
