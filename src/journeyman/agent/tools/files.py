"""The tools for files: `read_file` shows numbered lines, `write_file` writes a whole file, `patch`
replaces one text in a file by another. What cannot be done is answered with a hint.
"""

import os
from difflib import get_close_matches, unified_diff
from heapq import nsmallest
from itertools import islice
from pathlib import Path

from journeyman.agent.tools.tool import (
    Failed,
    Invocation,
    Result,
    Tool,
    ToolLimits,
    count,
    parameters,
    text,
    worked,
)
from journeyman.agent.tools.workspace import (
    Workspace,
    answering,
    read_bytes,
    replace_file,
    showable,
)

_IMAGES = (b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\0", b"MM\0*")
_LOOKED_AT = 8192
_LOOKED_THROUGH = 500
_SIMILAR = 5
_LONGEST_DIFF = 8_000
_LINES_COMPARED = 400
_CHARACTERS_COMPARED = 150
_CLOSE_ENOUGH = 0.6
_TELLING = 5
"""A shorter text is in many files by chance."""
_PATH = text("The file, relative to the workspace.")


def read_file_tool(workspace: Workspace, limits: ToolLimits) -> Tool:
    def run(call: Invocation) -> Result:
        data = _read(workspace, call.arguments["path"])
        wanted = call.arguments.get("limit", limits.read_lines)
        return _numbered(data, call.arguments.get("offset", 1), wanted, limits.read_characters)

    return Tool(
        name="read_file",
        description="Read a text file; its lines come as NUMBER|TEXT.",
        parameters=parameters(
            "path",
            path=_PATH,
            offset=count("First line to read (default 1)."),
            limit=count(f"How many lines (default {limits.read_lines})."),
        ),
        run=answering(run),
        reads_only=True,
    )


def _numbered(data: bytes, first: int, wanted: int, characters: int) -> Result:
    # splitlines would also part lines at characters that no editor takes for an end of line.
    lines = data.decode(errors="replace").removeprefix("\ufeff").split("\n")
    if not lines[-1]:
        lines.pop()
    if first > max(1, len(lines)):
        reason = f"Line {first} is past the end: the file has {len(lines)} lines."
        raise Failed(reason, total_lines=len(lines))
    shown: list[str] = []
    left = characters
    for number, line in enumerate(lines[first - 1 : first - 1 + wanted], first):
        numbered = f"{number}|{line.removesuffix(chr(13))}"
        if shown and len(numbered) > left:
            break
        shown.append(numbered[:left])
        left -= len(numbered) + 1
    last = first - 1 + len(shown)
    hint = {"hint": f"Read on with offset {last + 1}."} if last < len(lines) else {}
    return worked(
        content="\n".join(shown),
        total_lines=len(lines),
        file_size=len(data),
        truncated=last < len(lines) or left < -1,
        is_binary=False,
        is_image=False,
        **hint,
    )


def _read(workspace: Workspace, given: str) -> bytes:
    """What a text file holds. Where none is, the answer has files that may have been meant: with
    that name elsewhere, or one like it.
    """
    try:
        data = read_bytes(workspace.find_path(given), given)
    except FileNotFoundError:
        found: dict[str, list[str]] = {}
        for folder, inner, names in islice(os.walk(workspace.root), _LOOKED_THROUGH):
            inner[:] = sorted(name for name in inner if not name.startswith("."))
            for name in sorted(names):
                found.setdefault(name, []).append(workspace.shown(Path(folder, name)))
        close = get_close_matches(Path(given).name, found, n=_SIMILAR, cutoff=_CLOSE_ENOUGH)
        similar = [path for name in close for path in found[name]][:_SIMILAR]
        raise Failed(f"File not found: {given}", similar_files=similar) from None
    if b"\0" in data[:_LOOKED_AT]:
        reason = f"The file {given!r} is not text. Look at it with terminal: file, xxd."
        is_image = data.startswith(_IMAGES) or data[8:12] == b"WEBP"
        raise Failed(reason, file_size=len(data), is_binary=True, is_image=is_image)
    return data


def write_file_tool(workspace: Workspace) -> Tool:
    def run(call: Invocation) -> Result:
        given = call.arguments["path"]
        place = workspace.find_path(given)
        if place.is_dir():
            raise Failed(f"{given!r} is a folder. Give the path of a file in it.")
        data = call.arguments["content"].encode(errors="replace")
        is_new = not place.parent.exists()
        replace_file(place, data)
        return worked(
            bytes_written=len(data),
            dirs_created=is_new,
            resolved_path=showable(str(place)),
            files_modified=[workspace.shown(place)],
        )

    return Tool(
        name="write_file",
        description=(
            "Write a whole file; what was in it is replaced, and missing folders are created. To "
            "change a part of a file use patch."
        ),
        parameters=parameters(
            "path", "content", path=_PATH, content=text("All that the file is to hold.")
        ),
        run=answering(run, bytes_written=0, dirs_created=False),
    )


def patch_tool(workspace: Workspace) -> Tool:
    def run(call: Invocation) -> Result:
        place = workspace.find_path(call.arguments["path"])
        # Bytes that are no UTF-8 come through as they are.
        before = _read(workspace, call.arguments["path"]).decode(errors="surrogateescape")
        old, new = (_as_in(before, call.arguments[name]) for name in ("old_string", "new_string"))
        times = before.count(old) if old else 0
        if not times or (times > 1 and not call.arguments.get("replace_all")):
            raise _not_replaced(before, old, new, times)
        if old == new:
            note = "old_string and new_string are the same: nothing was changed."
            return worked(success=True, no_change=True, note=note)
        after = before.replace(old, new)
        replace_file(place, after.encode(errors="surrogateescape"))
        path = workspace.shown(place)
        return worked(success=True, diff=_diff(path, before, after), files_modified=[path])

    return Tool(
        name="patch",
        description=(
            "Replace a text in a file. old_string must be in the file exactly once, unless "
            "replace_all is set."
        ),
        parameters=parameters(
            *("path", "old_string", "new_string"),
            path=_PATH,
            old_string=text("The text to replace, exactly as it is in the file."),
            new_string=text("The text to put in its place."),
            replace_all={
                "type": "boolean",
                "description": "Replace it wherever it is (default false).",
            },
            mode=text("Always replace.", "replace"),
        ),
        run=answering(run, success=False),
    )


def _as_in(text: str, given: str) -> str:
    """A text with the ends of lines that a file has; read_file does not show which."""
    given = given.encode(errors="replace").decode()
    if "\r\n" in text and "\r\n" not in given:
        return given.replace("\n", "\r\n")
    return given


def _not_replaced(text: str, old: str, new: str, times: int) -> Failed:
    if not old:
        return Failed("old_string is empty. To write a whole file use write_file.")
    if times:
        first, lines = old.partition("\n")[0], text.split("\n")
        numbers = [str(number) for number, line in enumerate(lines, 1) if first in line]
        return Failed(
            f"Found {times} matches for old_string. Add lines around it until only one fits, or "
            "set replace_all.",
            _hint=f"They are in lines {', '.join(numbers[:10])}.",
        )
    if len(new) >= _TELLING and new in text:
        hint = "new_string is already in the file."
    elif closest := _closest(text.split("\n"), max(old.splitlines(), key=len).strip()):
        hint = f"The closest line is {closest}"
    else:
        hint = "No line is like it. Read the file again and copy the text exactly."
    return Failed("Could not find old_string in the file.", _hint=hint)


def _closest(lines: list[str], wanted: str) -> str:
    """The line that is most like a text, with its number; nothing where none is. Comparing takes
    long, so only lines of about its length are looked at.
    """
    numbered = [(line.strip(), number) for number, line in enumerate(lines, 1)]
    near = nsmallest(_LINES_COMPARED, numbered, key=lambda one: abs(len(one[0]) - len(wanted)))
    texts = {line[:_CHARACTERS_COMPARED]: number for line, number in near}
    close = get_close_matches(wanted[:_CHARACTERS_COMPARED], texts, n=1, cutoff=_CLOSE_ENOUGH)
    return (
        f"{texts[close[0]]}: {showable(lines[texts[close[0]] - 1].strip())[:200]}" if close else ""
    )


def _diff(path: str, before: str, after: str) -> str:
    lines = unified_diff(
        before.splitlines(), after.splitlines(), f"a/{path}", f"b/{path}", lineterm=""
    )
    diff = showable("\n".join(lines))
    return diff if len(diff) <= _LONGEST_DIFF else f"{diff[:_LONGEST_DIFF]}\n[… diff cut …]"
