"""Patches in the form of Codex: a text from `*** Begin Patch` to `*** End Patch` that names the
files it adds, updates and deletes.
"""

import re
import shlex
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$", re.M)
_HEREDOC = re.compile(
    r"\A\s*(?:applypatch|apply_patch)\s+<<-?\s*(['\"]?)(\w+)\1\n(?P<patch>.*)\n\2\s*\Z", re.S
)


class FileChange(NamedTuple):
    """What a patch does to its only file: `write` it with the new text, or `edit` the old text
    into the new one.
    """

    operation: Literal["write", "edit"]
    path: str
    old: str
    new: str


def patch_in_command(command: str) -> str:
    """The patch of a command that does nothing but apply one; empty otherwise."""
    if found := _HEREDOC.match(command):
        return found["patch"].strip()
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    is_patch = len(words) == 2 and words[0] in ("apply_patch", "applypatch")
    return words[1].strip() if is_patch else ""


def patched_path(patch: str) -> str:
    """The first file that a patch names; empty where it names none."""
    found = _FILE.search(patch)
    return found[2] if found else ""


def find_only_change(patch: str) -> FileChange | None:
    """The change that a patch makes, if it writes one file or changes one place in one file."""
    first, *lines = patch.strip().split("\n")
    files = _FILE.findall(patch)
    if first.strip() != "*** Begin Patch" or lines[-1:] != ["*** End Patch"] or len(files) != 1:
        return None
    (kind, path), body = files[0], [line for line in lines[1:-1] if line != "*** End of File"]
    if any(line.startswith("*** ") for line in body):
        return None
    if kind == "Add" and all(line.startswith("+") for line in body):
        return FileChange("write", path, "", "".join(f"{line[1:]}\n" for line in body))
    places = [number for number, line in enumerate(body) if line.startswith("@@")]
    if kind != "Update" or places not in ([], [0]):
        return None
    hunk = body[len(places) :]
    old, new = _without(hunk, "+"), _without(hunk, "-")
    if not old:
        return None
    # Deleting lines deletes the end of the last one too.
    return FileChange("edit", path, old if new else f"{old}\n", new)


def find_patch(path: str, old: str, new: str) -> str:
    """An edit as a patch; empty where it seems to begin within a line, since a patch has whole
    lines. The old text has whole lines when it has several, or begins with an indent: so it was in
    all but 4 of 191 recorded edits whose surroundings are known.
    """
    before = old.removesuffix("\n").split("\n")
    after = new.removesuffix("\n").split("\n") if new else []
    if not old.strip() or (len(before) == 1 and old[0] not in " \t"):
        return ""
    lines = ["*** Begin Patch", f"*** Update File: {path}", "@@"]
    compared = SequenceMatcher(None, before, after, autojunk=False)
    for tag, start, end, new_start, new_end in compared.get_opcodes():
        if tag == "equal":
            lines += [f" {line}" for line in before[start:end]]
        else:
            lines += [f"-{line}" for line in before[start:end]]
            lines += [f"+{line}" for line in after[new_start:new_end]]
    return "\n".join((*lines, "*** End Patch"))


def _without(hunk: Sequence[str], sign: str) -> str:
    return "\n".join(line[1:] for line in hunk if not line.startswith(sign))
