"""The file tools: `read_file` shows numbered lines, `write_file` writes a whole file, `patch`
replaces text in a file. A failed call returns a hint.

Files are opened by paths with links already resolved. A folder on the path that has been replaced
by a link since then is not entered.
"""

import io
import os
import stat
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path

from journeyman.agent.tools.tool import (
    Invocation,
    Result,
    Tool,
    ToolError,
    ToolLimits,
    count,
    parameters,
    text,
    worked,
)
from journeyman.agent.tools.workspace import BadPath, Workspace, bound, showable
from journeyman.text.atomic_write import entered, put_file

LARGEST_FILE = 50 * 2**20
"""In bytes. Larger files are not for a model to read."""
_BINARY_PROBE_BYTES = 8192
_LONGEST_DIFF = 8_000
_PATH = text("The file, relative to the workspace.")


def read_file_tool(workspace: Workspace | None, limits: ToolLimits) -> Tool:
    def run(workspace: Workspace, call: Invocation) -> Result:
        data = _read_text(workspace, call.arguments["path"])
        most = call.arguments.get("limit", limits.read_lines)
        return _numbered_lines(data, call.arguments.get("offset", 1), most, limits.read_characters)

    return Tool(
        name="read_file",
        description="Read a text file; its lines come as NUMBER|TEXT.",
        parameters=parameters(
            "path",
            path=_PATH,
            offset=count("First line to read (default 1)."),
            limit=count(f"How many lines (default {limits.read_lines})."),
        ),
        run=bound(workspace, run),
        risk="read",
        work="file",
    )


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
    data = read_bytes(workspace.find_path(path), path)
    if b"\0" in data[:_BINARY_PROBE_BYTES]:
        reason = f"The file {path!r} is not text. Look at it with terminal: file, xxd."
        raise ToolError(reason, file_size=len(data), is_binary=True)
    return data


def read_bytes(place: Path, name: str) -> bytes:
    """Return the contents of a file. Raises BadPath."""
    # Do not follow a link that was just put there, or wait for a pipe.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with entered(place.parent) as folder:
            opened = os.open(place.name or ".", flags, dir_fd=folder)
        with os.fdopen(opened, "rb") as file:
            status = os.fstat(opened)
            if not stat.S_ISREG(status.st_mode):
                problem = "is not a plain file"
            elif status.st_size <= LARGEST_FILE:
                return file.read()
            else:
                problem = f"is too large to read ({status.st_size:,} bytes). Look at a part of it "
                problem += "with terminal: head, tail, sed or grep"
    except (FileNotFoundError, NotADirectoryError):
        raise BadPath(f"File not found: {name}") from None
    except IsADirectoryError:
        problem = "is a folder, not a file. List it with search_files, target 'files'"
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    raise BadPath(f"{name!r} {problem}.")


def replace_file(place: Path, data: bytes) -> None:
    """Write a file atomically: readers see either the old or the new content. An existing file
    keeps its mode, and missing folders are created. Raises OSError.
    """
    with entered(place.parent, create=True) as folder:
        mode = None
        with suppress(FileNotFoundError):
            status = os.stat(place.name, dir_fd=folder, follow_symlinks=False)
            mode = stat.S_IMODE(status.st_mode) if stat.S_ISREG(status.st_mode) else None
        put_file(folder, place.name, io.BytesIO(data), mode=mode, sync=True)


def write_file_tool(workspace: Workspace | None) -> Tool:
    def run(workspace: Workspace, call: Invocation) -> Result:
        path = call.arguments["path"]
        place = workspace.find_path(path)
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
            "path", "content", path=_PATH, content=text("The whole content of the file.")
        ),
        run=bound(workspace, run, bytes_written=0, dirs_created=False),
        risk="write",
        work="file",
    )


def patch_tool(workspace: Workspace | None) -> Tool:
    def run(workspace: Workspace, call: Invocation) -> Result:
        place = workspace.find_path(call.arguments["path"])
        # Bytes that are not valid UTF-8 pass through unchanged.
        before = _read_text(workspace, call.arguments["path"]).decode(errors="surrogateescape")
        old, new = (
            _with_line_ends_of(before, call.arguments[name])
            for name in ("old_string", "new_string")
        )
        replace_all = call.arguments.get("replace_all", False)
        _check_matches(old, before.count(old), replace_all=replace_all)
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
                "description": "Replace every occurrence (default false).",
            },
            mode=text("Always replace.", "replace"),
        ),
        run=bound(workspace, run, success=False),
        risk="write",
        work="file",
    )


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
