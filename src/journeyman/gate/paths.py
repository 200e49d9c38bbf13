"""Classifies paths by what may be done with them: inside the workspace, never to be deleted,
devices, files that control programs, files that hold secrets. File contents are never read.
"""

import copy
import fnmatch
import os
import re
from collections.abc import Iterable
from functools import cache, lru_cache
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
_WILD = re.compile(r"[*?\[{\x00\x01]")
_PATH_PART = re.compile(r"(?:[\w.~@+*?\x00\x01-]|\[[!^]?[\w.-]+\]|\{[\w.*?]*,[\w.*?,]*\})+")
_MARK = re.compile(r"([*?{},\x00\x01]|\[!)")
_AS_REGEX = {
    **dict.fromkeys(("*", UNKNOWN, OUTPUT), ".*"),
    "?": ".",
    "{": "(?:",
    "}": ")",
    ",": "|",
    "[!": "[^",
}
_MATCH_ANY = frozenset({"*", "**", "?*", "*?"})
_MATCH_ALL = frozenset({"*", ".*", "..*", "?*", "**", ".[!.]*"})


class Places:
    """Paths relative to a workspace and a home. Links are followed, except for paths of another
    machine (`foreign`), which are handled as text only. Unless commands are `confined`, relative
    paths begin in the folders that they change to, and files that are reviewed with the project do
    not count as steering.
    """

    def __init__(
        self,
        workspace: Path,
        home: Path,
        *,
        folder: str = "",
        foreign: bool = False,
        confined: bool = True,
    ) -> None:
        self._confined = confined
        self._known: dict[tuple[str, ...], Places] = {}
        self._normalise = os.path.normpath if foreign else os.path.realpath
        self.workspace = Path(self._normalise(workspace))
        self.home = Path(self._normalise(home))
        # Not tempfile.gettempdir, which writes to a folder to find it and so fails on a full disk.
        own = () if foreign else (f"{os.path.realpath(os.environ.get('TMPDIR') or '/tmp')}/",)  # noqa: S108
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
        if self._confined:
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
        """Whether anyone may write here: temporary folders, and devices that store nothing."""
        is_owned = path.is_relative_to(self.home) or self.is_inside(path)
        is_temporary = str(path).startswith(self._scratch) and not is_owned
        return is_temporary or _STORES_NOTHING.fullmatch(str(path)) is not None

    def is_free(self, path: Path) -> bool:
        """Whether hosts may write outside the project here: scratch, and their own notes."""
        relative = str(path.relative_to(self.home)) if path.is_relative_to(self.home) else ""
        is_note = _any_of(rules_file().notes).match(relative.lower()) is not None
        return is_note or self.is_scratch(path)

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
        """Whether the file controls what programs do later, without anyone reviewing it first."""
        relative, table = self._relative(path), rules_file()
        if self._confined:
            return _matches(relative, table.steering + table.tracked)
        is_own = _any_of(table.notes).match(relative) or self.is_scratch(path)
        return not is_own and _matches(relative, table.steering)

    def is_secret(self, path: Path) -> bool:
        """Whether the file holds keys, passwords or a history of typed input."""
        return _SYSTEM_SECRETS.match(str(path)) is not None or _matches(
            self._relative(path), rules_file().secrets
        )

    def can_be_secret(self, text: str) -> bool:
        """Whether a path with wildcards, or with parts that only the running shell knows, can be
        that of a secret. A part that is not known at all does not count: it can be anything.
        """
        return any(
            _can_match_secret(part)
            for part in text.split("/")
            if part not in (UNKNOWN, OUTPUT) and _WILD.search(part)
        )

    def _relative(self, path: Path) -> str:
        bases = (self.workspace, self.home, Path("/"))
        base = next(base for base in bases if path.is_relative_to(base))
        return str(path.relative_to(base)).lower()


@cache
def _secret_names() -> tuple[str, ...]:
    """Names that the patterns for secrets stand for: hidden files and folders, and private keys."""
    names = (pattern.split("/")[0].replace("*", "local") for pattern in rules_file().secrets)
    return tuple(name for name in names if name.startswith((".", "id_")))


@lru_cache(maxsize=1_000)
def _can_match_secret(part: str) -> bool:
    """Whether a shell could expand a part of a path to the name of a secret. Wildcards at the start
    match no dot.
    """
    if part in _MATCH_ANY or not _PATH_PART.fullmatch(part):
        return False
    regex = "".join(
        _AS_REGEX.get(mark) or mark for mark in _MARK.split(re.sub(r"([.+])", r"\\\1", part))
    )
    hides_dots = part[0] in "*?["
    names = (name for name in _secret_names() if not (hides_dots and name[0] == "."))
    return any(re.fullmatch(regex, name) for name in names)


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
