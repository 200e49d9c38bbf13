"""The file tools: `read_file` shows numbered lines, `write_file` writes a whole file, `patch`
replaces text in a file. A failed call returns a hint.
"""

import io
import stat
from difflib import unified_diff
from pathlib import Path

from journeyman.agent.tools.tool import Invocation, Result, ToolError, ToolLimits, worked
from journeyman.agent.tools.workspace import Workspace, showable
from journeyman.text.atomic_write import entered, put_file

LARGEST_FILE = 50 * 2**20
"""In bytes. Larger files are not for a model to read."""
_BINARY_PROBE_BYTES = 8192
_LONGEST_DIFF = 8_000


def read_file(workspace: Workspace, limits: ToolLimits, call: Invocation) -> Result:
    data = _read_text(workspace, call.arguments["path"])
    most = call.arguments.get("limit", limits.read_lines)
    return _numbered_lines(data, call.arguments.get("offset", 1), most, limits.read_characters)


def _numbered_lines(data: bytes, first: int, most: int, characters: int) -> Result:
    # splitlines would also split at characters that no editor treats as the end of a line.
    lines = data.decode(errors="replace").removeprefix("\ufeff").split("\n")
    if not lines[-1]:
        lines.pop()
    if first > max(1, len(lines)):
        reason = f"Line {first} is past the end: the file has {len(lines)} lines."
        raise ToolError(reason, total_lines=len(lines))
    shown: list[str] = []
    left = characters
    for number, line in enumerate(lines[first - 1 : first - 1 + most], first):
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
        **hint,
    )


def _read_text(workspace: Workspace, path: str) -> bytes:
    """Return the contents of a text file."""
    place = workspace.find_path(path)
    if not place.exists():
        raise ToolError(f"File not found: {path}")
    if place.is_dir():
        hint = "List it with search_files, target 'files'."
        raise ToolError(f"{path!r} is a folder, not a file. {hint}")
    if not place.is_file():
        raise ToolError(f"{path!r} is not a plain file.")
    if (size := place.stat().st_size) > LARGEST_FILE:
        hint = "Look at a part of it with terminal: head, tail, sed or grep."
        raise ToolError(f"{path!r} is too large to read ({size:,} bytes). {hint}")
    data = place.read_bytes()
    if b"\0" in data[:_BINARY_PROBE_BYTES]:
        reason = f"The file {path!r} is not text. Look at it with terminal: file, xxd."
        raise ToolError(reason, file_size=len(data), is_binary=True)
    return data


def _replace_file(place: Path, data: bytes) -> None:
    """Write a file atomically. An existing one keeps its mode; missing folders are created."""
    mode = stat.S_IMODE(place.stat().st_mode) if place.is_file() else None
    with entered(place.parent, create=True) as folder:
        put_file(folder, place.name, io.BytesIO(data), mode=mode, sync=True)


def write_file(workspace: Workspace, _limits: ToolLimits, call: Invocation) -> Result:
    path = call.arguments["path"]
    place = workspace.find_path(path)
    data = call.arguments["content"].encode(errors="replace")
    is_new = not place.parent.exists()
    _replace_file(place, data)
    return worked(
        bytes_written=len(data),
        dirs_created=is_new,
        resolved_path=showable(str(place)),
        files_modified=[workspace.shown(place)],
    )


def patch(workspace: Workspace, _limits: ToolLimits, call: Invocation) -> Result:
    place = workspace.find_path(call.arguments["path"])
    # Bytes that are not valid UTF-8 pass through unchanged.
    before = _read_text(workspace, call.arguments["path"]).decode(errors="surrogateescape")
    old, new = (
        _with_line_ends_of(before, call.arguments[name]) for name in ("old_string", "new_string")
    )
    replace_all = call.arguments.get("replace_all", False)
    _check_matches(old, before.count(old), replace_all=replace_all)
    after = before.replace(old, new)
    _replace_file(place, after.encode(errors="surrogateescape"))
    path = workspace.shown(place)
    return worked(success=True, diff=_diff(path, before, after), files_modified=[path])


def _with_line_ends_of(file_text: str, text: str) -> str:
    """The text with the line ends of the file, which read_file does not show."""
    text = text.encode(errors="replace").decode()
    if "\r\n" in file_text and "\r\n" not in text:
        return text.replace("\n", "\r\n")
    return text


def _check_matches(old: str, matches: int, *, replace_all: bool) -> None:
    """Raise ToolError unless it is clear what is to be replaced."""
    if not old:
        raise ToolError("old_string is empty. To write a whole file use write_file.")
    if not matches:
        hint = "Read the file again and copy the text exactly."
        raise ToolError("Could not find old_string in the file.", _hint=hint)
    if matches > 1 and not replace_all:
        reason = f"Found {matches} matches for old_string. Add lines around it until only one fits"
        raise ToolError(f"{reason}, or set replace_all.")


def _diff(path: str, before: str, after: str) -> str:
    lines = unified_diff(
        before.splitlines(), after.splitlines(), f"a/{path}", f"b/{path}", lineterm=""
    )
    diff = showable("\n".join(lines))
    return diff if len(diff) <= _LONGEST_DIFF else f"{diff[:_LONGEST_DIFF]}\n[… diff cut …]"
