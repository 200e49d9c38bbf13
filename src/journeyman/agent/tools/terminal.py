"""The terminal tool: one shell command, with a limit on its time and on what it prints."""

import shutil

from journeyman.agent.tools.limits import ToolLimits
from journeyman.agent.tools.processes import Ended
from journeyman.agent.tools.tool import Invocation, Result, Tool, failed
from journeyman.agent.tools.workspace import Workspace, inside_only
from journeyman.records import Recorded

_LONGEST_COMMAND = 100_000
"""In bytes. A kernel takes no argument that is much longer."""
_NOTES = {
    "timeout": "[Command timed out after {seconds:g}s]",
    "cancelled": "[Command interrupted]",
}


def terminal_tool(workspace: Workspace, limits: ToolLimits) -> Tool:
    def run(call: Invocation) -> Result:
        command = call.arguments["command"]
        if problem := _problem(command):
            return failed(f"Invalid arguments for terminal: {problem}")
        workdir = call.arguments.get("workdir", "")
        folder = workspace.find_path(workdir)
        if not folder.is_dir():
            return failed(f"The folder {workdir!r} does not exist.", output="", exit_code=-1)
        allowed_s = limits.allowed_s(call.arguments.get("timeout"))
        try:
            ended = workspace.run(
                [_shell(), "-c", command],
                folder=folder,
                timeout_s=allowed_s,
                characters=limits.output_characters,
                cancelled=call.cancelled,
            )
        except OSError as error:
            reason = f"The command could not be started: {error.strerror}."
            return failed(reason, output="", exit_code=-1)
        return _answer(ended, allowed_s)

    return Tool(
        name="terminal",
        description=(
            "Run a shell command in the workspace; returns its output and exit code. It gets no "
            "input, and background processes end with it."
        ),
        parameters={
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line."},
                "timeout": limits.timeout_parameter,
                "workdir": {"type": "string", "description": "Folder to run in."},
            },
            "required": ["command"],
            "additionalProperties": False,
        },
        run=inside_only(run, output="", exit_code=-1),
    )


def _problem(command: str) -> str:
    if not command.strip():
        return "the command is empty."
    if "\0" in command:
        return "the command has a NUL character in it. Leave it out."
    if len(command.encode(errors="replace")) > _LONGEST_COMMAND:
        return (
            f"the command is longer than {_LONGEST_COMMAND:,} bytes. Write long text to a file "
            "with write_file first."
        )
    return ""


def _shell() -> str:
    return shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin") or "/bin/sh"


def _answer(ended: Ended, allowed_s: float) -> Result:
    note = _NOTES.get(ended.ending, "").format(seconds=allowed_s)
    output = f"{ended.output.rstrip()}\n{note}".lstrip("\n") if note else ended.output
    return Result(
        content={"output": output, "exit_code": ended.exit_code, "error": None},
        # What an exit code means depends on the command: the judge reads both from the content.
        recorded=Recorded(interrupted=True) if ended.ending == "cancelled" else Recorded(),
    )
