"""The patch tool: one text in a file replaced by another. What cannot be found, or not only once,
is left as it is, with a hint.
"""

from difflib import SequenceMatcher, unified_diff
from functools import partial
from heapq import nlargest, nsmallest

from journeyman.agent.tools.contents import (
    Unreadable,
    is_binary,
    read_bytes,
    replace_file,
    showable,
)
from journeyman.agent.tools.reading import similar_files
from journeyman.agent.tools.tool import Invocation, Result, Tool, failed, worked
from journeyman.agent.tools.workspace import Workspace, inside_only

_LONGEST_DIFF = 8_000
_LINES_COMPARED = 400
_FULLY_COMPARED = 10
_CHARACTERS_COMPARED = 200
_CLOSE_ENOUGH = 0.6
_TELLING = 5
"""A shorter text is in many files by chance."""


def patch_tool(workspace: Workspace) -> Tool:
    def run(call: Invocation) -> Result:
        given = call.arguments["path"]
        place = workspace.find_path(given)
        try:
            data = read_bytes(place, given)
        except FileNotFoundError:
            similar = similar_files(workspace, place)
            return failed(f"File not found: {given}", success=False, similar_files=similar)
        except Unreadable as error:
            return failed(str(error), success=False)
        if is_binary(data):
            return failed(f"The file {given!r} is not text.", success=False)
        # Bytes that are no UTF-8 come through as they are.
        before = data.decode(errors="surrogateescape")
        old, new = (_as_in(before, call.arguments[name]) for name in ("old_string", "new_string"))
        everywhere = call.arguments.get("replace_all", False)
        if problem := _problem(before, old, new, everywhere=everywhere):
            return problem
        if old == new:
            note = "old_string and new_string are the same: nothing was changed."
            return worked(success=True, no_change=True, note=note)
        after = before.replace(old, new)
        try:
            replace_file(place, after.encode(errors="surrogateescape"))
        except OSError as error:
            return failed(f"Failed to write file {given!r}: {error.strerror}.", success=False)
        path = workspace.shown(place)
        return worked(success=True, diff=_diff(path, before, after), files_modified=[path])

    return Tool(
        name="patch",
        description=(
            "Replace a text in a file. old_string must be in the file exactly once, unless "
            "replace_all is set."
        ),
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the workspace."},
                "old_string": {
                    "type": "string",
                    "description": "The text to replace, exactly as it is in the file.",
                },
                "new_string": {"type": "string", "description": "The text to put in its place."},
                "replace_all": {
                    "type": "boolean",
                    "description": "Replace it wherever it is (default false).",
                },
                "mode": {"type": "string", "enum": ["replace"], "description": "Always replace."},
            },
            "required": ["path", "old_string", "new_string"],
            "additionalProperties": False,
        },
        run=inside_only(run, success=False),
    )


def _as_in(text: str, given: str) -> str:
    """A text with the ends of lines that a file has; read_file does not show which."""
    given = given.encode(errors="replace").decode()
    if "\r\n" in text and "\r\n" not in given:
        return given.replace("\n", "\r\n")
    return given


def _problem(text: str, old: str, new: str, *, everywhere: bool) -> Result | None:
    if not old:
        return failed("old_string is empty. To write a whole file use write_file.", success=False)
    times = text.count(old)
    if not times:
        return failed(
            "Could not find old_string in the file.", success=False, _hint=_hint(text, old, new)
        )
    if times > 1 and not everywhere:
        return failed(
            f"Found {times} matches for old_string. Add lines around it until only one fits, or "
            "set replace_all.",
            success=False,
            _hint=f"They are in lines {_places(text, old)}.",
        )
    return None


def _hint(text: str, old: str, new: str) -> str:
    if len(new) >= _TELLING and new in text:
        return "new_string is already in the file."
    wanted = max(old.splitlines(), key=len).strip()
    lines = text.split("\n")
    closest = _closest(lines, wanted)
    if not closest:
        return "No line is like it. Read the file again and copy the text exactly."
    shown = showable(lines[closest - 1].removesuffix("\r"))
    return f"The closest line is {closest}: {shown[:200]}"


def _closest(lines: list[str], wanted: str) -> int:
    """The number of the line that is most like a text; 0 where none is. Comparing takes long, so
    it is done in rounds: by length, then by the characters in it, and fully only for the few that
    are left.
    """

    def difference(number: int) -> int:
        return abs(len(lines[number - 1].strip()) - len(wanted))

    def likeness(number: int, *, fully: bool) -> float:
        compared.set_seq1(lines[number - 1].strip()[:_CHARACTERS_COMPARED])
        return compared.ratio() if fully else compared.quick_ratio()

    compared = SequenceMatcher(None, b=wanted[:_CHARACTERS_COMPARED], autojunk=False)
    near = nsmallest(_LINES_COMPARED, range(1, len(lines) + 1), key=difference)
    nearer = nlargest(_FULLY_COMPARED, near, key=partial(likeness, fully=False))
    closest = max(nearer, key=partial(likeness, fully=True))
    return closest if likeness(closest, fully=True) >= _CLOSE_ENOUGH else 0


def _places(text: str, old: str) -> str:
    lines: list[str] = []
    at = text.find(old)
    while at >= 0 and len(lines) < 10:
        lines.append(str(text.count("\n", 0, at) + 1))
        at = text.find(old, at + len(old))
    return ", ".join(lines) + (" and more" if at >= 0 else "")


def _diff(path: str, before: str, after: str) -> str:
    lines = unified_diff(
        before.splitlines(), after.splitlines(), f"a/{path}", f"b/{path}", lineterm=""
    )
    diff = showable("\n".join(lines))
    return diff if len(diff) <= _LONGEST_DIFF else f"{diff[:_LONGEST_DIFF]}\n[… diff cut …]"
