"""Classifies paths by what may be done with them: inside the workspace, never to be deleted,
devices, files that control programs, files that hold secrets. File contents are never read.
"""

import copy
import fnmatch
import os
import re
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from journeyman.gate.command import OUTPUT, UNKNOWN
from journeyman.gate.decision import rules_file

_SYSTEM_SECRETS = re.compile(
    r"/etc/(?:g?shadow|sudoers|ssl/private|ssh/.*key$|krb5\.keytab)|/proc/[^/]+/(?:environ|mem)"
)
_STORES_NOTHING = re.compile(
    r"/dev(?:/(?:null|std\w+|fd(?:/.*)?|zero|full|u?random|tty\w*|pts.*|tcp/.*|udp/.*|shm.*))?"
)
_SCRATCH = ("/tmp/", "/var/tmp/", "/private/tmp/", "/dev/shm/")  # noqa: S108
_UNKNOWN_FOLDER = Path("/unknown-folder/of/a/command")
_MATCH_ALL = frozenset({"*", ".*", "..*", "?*", "**", ".[!.]*"})


class Places:
    """Paths relative to a workspace and a home. Links are followed, except for paths of another
    machine (`foreign`), which are handled as text only. If it `follows` the folders that commands
    change to, relative paths begin there.
    """

    def __init__(
        self,
        workspace: Path,
        home: Path,
        *,
        folder: str = "",
        foreign: bool = False,
        follows: bool = False,
    ) -> None:
        self._follows = follows
        self._known: dict[tuple[str, ...], Places] = {}
        self._normalise = os.path.normpath if foreign else os.path.realpath
        self.workspace = Path(self._normalise(workspace))
        self.home = Path(self._normalise(home))
        own = () if foreign else (f"{os.path.realpath(tempfile.gettempdir())}/",)
        self._scratch = (*_SCRATCH, *own)
        self.folder = self.workspace
        self.folder = self.resolve(folder or ".")

    def resolve(self, text: str) -> Path:
        """Return the absolute path. Unknown parts are treated as plain names."""
        # No file has a name that cannot be encoded.
        text = text.removeprefix("file://").encode(errors="replace").decode()
        text = text.replace(UNKNOWN, "unknown").replace(OUTPUT, "unknown")
        if text == "~" or text.startswith("~/"):
            text = f"{self.home}{text[1:]}"
        if text.startswith("/"):
            return Path(self._normalise("/" + text.lstrip("/")))
        return Path(self._normalise(f"{self.folder}/{text}"))

    def within(self, folders: Iterable[Iterable[str]]) -> "list[Places]":
        """Return these places as they are seen from each of the folders, given as what `cd` was
        given one after the other. Files in a folder that is not known are outside.
        """
        if not self._follows:
            return [self]
        seen = {self.folder: self}
        for steps in folders:
            there = self._entered(tuple(steps))
            seen.setdefault(there.folder, there)
        return list(seen.values())

    def _entered(self, steps: tuple[str, ...]) -> "Places":
        if not steps:
            return self
        if steps not in self._known:
            there = copy.copy(self._entered(steps[:-1]))
            is_known = steps[-1][:1] not in (UNKNOWN, OUTPUT)
            there.folder = there.resolve(steps[-1]) if is_known else _UNKNOWN_FOLDER
            self._known[steps] = there
        return self._known[steps]

    def is_inside(self, path: Path) -> bool:
        return path.is_relative_to(self.workspace)

    def is_scratch(self, path: Path) -> bool:
        """Whether anyone may write here: temporary folders, but not a home in one of them, and
        devices that store nothing.
        """
        is_home = path.is_relative_to(self.home) and f"{self.home}/".startswith(self._scratch)
        is_temporary = f"{path}/".startswith(self._scratch) and not is_home
        return is_temporary or _STORES_NOTHING.fullmatch(str(path)) is not None

    def is_device(self, path: Path) -> bool:
        """Whether it is a disk, memory or another device that stores what is written to it."""
        return path.is_relative_to("/dev") and not _STORES_NOTHING.fullmatch(str(path))

    def is_vital(self, path: Path) -> bool:
        """Whether it is the root, a system folder, a home folder, or a folder that contains the
        workspace. A pattern for everything in such a folder counts as the folder itself.
        """
        if path.name in _MATCH_ALL:
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
        """Whether the file controls what programs do."""
        return _matches(self._relative(path), rules_file().steering)

    def is_secret(self, path: Path) -> bool:
        """Whether the file holds keys, passwords or a history of typed input."""
        return _SYSTEM_SECRETS.match(str(path)) is not None or _matches(
            self._relative(path), rules_file().secrets
        )

    def _relative(self, path: Path) -> str:
        bases = (self.workspace, self.home, Path("/"))
        base = next(base for base in bases if path.is_relative_to(base))
        return str(path.relative_to(base)).lower()


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns))


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether one of the patterns matches the path, starting at any of its folders."""
    parts = path.split("/")
    if _any_of(rules_file().harmless).match(parts[-1]):
        return False
    pattern = _any_of(patterns)
    tails = ["/".join(parts[at:]) for at in range(len(parts))]
    return any(pattern.match(tail) or pattern.match(f"{tail}/") for tail in tails)
