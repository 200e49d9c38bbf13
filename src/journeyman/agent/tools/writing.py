"""The write_file tool: a whole file, written at once."""

from journeyman.agent.tools.contents import replace_file, showable
from journeyman.agent.tools.tool import Invocation, Result, Tool, failed, worked
from journeyman.agent.tools.workspace import Workspace, inside_only

_NOTHING_WRITTEN = {"bytes_written": 0, "dirs_created": False}


def write_file_tool(workspace: Workspace) -> Tool:
    def run(call: Invocation) -> Result:
        given = call.arguments["path"]
        place = workspace.find_path(given)
        if place.is_dir():
            return failed(
                f"{given!r} is a folder. Give the path of a file in it.", **_NOTHING_WRITTEN
            )
        data = call.arguments["content"].encode(errors="replace")
        is_new = not place.parent.exists()
        try:
            replace_file(place, data)
        except OSError as error:
            reason = f"Failed to write file {given!r}: {error.strerror}."
            return failed(reason, **_NOTHING_WRITTEN)
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
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the workspace."},
                "content": {"type": "string", "description": "All that the file is to hold."},
            },
            "required": ["path", "content"],
            "additionalProperties": False,
        },
        run=inside_only(run, **_NOTHING_WRITTEN),
    )
