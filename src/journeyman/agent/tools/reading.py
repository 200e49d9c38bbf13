"""The read_file tool: the lines of a text file, with their numbers."""

import os
from difflib import get_close_matches
from pathlib import Path

from journeyman.agent.tools.contents import Unreadable, is_binary, is_image, read_bytes
from journeyman.agent.tools.limits import ToolLimits
from journeyman.agent.tools.tool import Invocation, Result, Tool, failed, worked
from journeyman.agent.tools.workspace import Workspace, inside_only

_LOOKED_THROUGH = 2_000
_SIMILAR = 5


def read_file_tool(workspace: Workspace, limits: ToolLimits) -> Tool:
    def run(call: Invocation) -> Result:
        given = call.arguments["path"]
        place = workspace.find_path(given)
        try:
            data = read_bytes(place, given)
        except FileNotFoundError:
            similar = similar_files(workspace, place)
            return failed(f"File not found: {given}", similar_files=similar)
        except Unreadable as error:
            return failed(str(error))
        if is_image(data):
            reason = f"The file {given!r} is an image, which cannot be shown as text."
            return failed(reason, file_size=len(data), is_binary=True, is_image=True)
        if is_binary(data):
            reason = f"The file {given!r} is not text. Look at it with terminal: file, xxd."
            return failed(reason, file_size=len(data), is_binary=True, is_image=False)
        wanted = call.arguments.get("limit", limits.read_lines)
        return _numbered(data, call.arguments.get("offset", 1), wanted, limits.read_characters)

    return Tool(
        name="read_file",
        description="Read a text file; its lines come as NUMBER|TEXT.",
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the workspace."},
                "offset": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "First line to read (default 1).",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "description": f"How many lines (default {limits.read_lines}).",
                },
            },
            "required": ["path"],
            "additionalProperties": False,
        },
        run=inside_only(run),
        reads_only=True,
    )


def _numbered(data: bytes, first: int, wanted: int, characters: int) -> Result:
    # splitlines would also part lines at characters that no editor takes for an end of line.
    lines = data.decode(errors="replace").removeprefix("\ufeff").split("\n")
    if not lines[-1]:
        lines.pop()
    if first > max(1, len(lines)):
        return failed(
            f"Line {first} is past the end: the file has {len(lines)} lines.",
            total_lines=len(lines),
        )
    shown: list[str] = []
    left = characters
    for number, line in enumerate(lines[first - 1 : first - 1 + wanted], first):
        text = f"{number}|{line.removesuffix(chr(13))}"
        if shown and len(text) > left:
            break
        shown.append(text[:left])
        left -= len(text) + 1
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


def similar_files(workspace: Workspace, missing: Path) -> list[str]:
    """Files that may have been meant: of the same name elsewhere, or with a name close to it."""
    found: dict[str, list[str]] = {}
    looked_at = 0
    for folder, inner, names in os.walk(workspace.root):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        for name in sorted(names):
            found.setdefault(name, []).append(workspace.shown(Path(folder, name)))
            looked_at += 1
        if looked_at > _LOOKED_THROUGH:
            break
    close = get_close_matches(missing.name, found, n=_SIMILAR, cutoff=0.6)
    return [path for name in close for path in found[name]][:_SIMILAR]
