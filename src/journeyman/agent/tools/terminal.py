"""The tools that run programs in the workspace: `terminal` runs a shell command, `execute_code` a
Python script. Time, output and resources of both are limited.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

from journeyman.agent.tools.process import ProcessResult
from journeyman.agent.tools.tool import (
    Invocation,
    Result,
    ToolError,
    ToolLimits,
    failed,
    interruption,
    worked,
)
from journeyman.agent.tools.workspace import Workspace
from journeyman.records import ResultFlags

_SCRIPT = "script.py"
_EXCEPTION = re.compile(r"[\w.]{1,100}(?:Error|Exception|Interrupt|Warning)(?:: |$)")
_LONGEST_LINE = 200


def terminal(workspace: Workspace, limits: ToolLimits, call: Invocation) -> Result:
    command = call.arguments["command"]
    if not command.strip() or "\0" in command:
        return failed("Invalid arguments for terminal: the command is empty or has a NUL.")
    workdir = call.arguments.get("workdir", "")
    folder = workspace.find_path(workdir)
    if not folder.is_dir():
        raise ToolError(f"The folder {workdir!r} does not exist.")
    allowed_s = limits.allowed_s(call.arguments.get("timeout"))
    shell = shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin") or "/bin/sh"
    ended = workspace.run(
        [shell, "-c", command],
        folder=folder,
        timeout_s=allowed_s,
        characters=limits.output_characters,
        network=call.network,
        cancelled=call.cancelled,
    )
    output = ended.output
    if note := _note("Command", ended, allowed_s):
        output = f"{output.rstrip()}\n[{note}]".lstrip("\n")
    # What an exit code means depends on the command: the judge reads both from the content.
    return Result(
        content={"output": output, "exit_code": ended.exit_code, "error": None},
        recorded=ResultFlags(interrupted=True if ended.ending == "cancelled" else None),
    )


def execute_code(workspace: Workspace, limits: ToolLimits, call: Invocation) -> Result:
    allowed_s = limits.allowed_s(call.arguments.get("timeout"))
    with tempfile.TemporaryDirectory(dir=workspace.private) as folder:
        script = Path(folder, _SCRIPT)
        script.write_bytes(call.arguments["code"].encode(errors="replace"))
        ended = workspace.run(
            # The interpreter that runs the agent. Modules of the workspace can be imported.
            [sys.executable, "-s", "-P", "-u", str(script)],
            timeout_s=allowed_s,
            characters=limits.output_characters,
            variables={"PYTHONPATH": str(workspace.root)},
            network=call.network,
            cancelled=call.cancelled,
        )
    # The script's path is of no use to the model, and differs each time.
    output = ended.output.replace(str(script), _SCRIPT)
    content = {"output": output, "duration_seconds": round(ended.seconds, 2)}
    if ended.ending == "cancelled":
        return interruption(status="interrupted", **content)
    if not ended.exit_code:
        return worked(status="success", exit_code=0, **content)
    last = output.rstrip().rpartition("\n")[2]
    exception = f": {last[:_LONGEST_LINE]}" if _EXCEPTION.match(last) else ""
    return failed(
        _note("Script", ended, allowed_s)
        or f"Script exited with code {ended.exit_code}{exception}",
        status="timeout" if ended.ending == "timeout" else "error",
        exit_code=ended.exit_code,
        **content,
    )


def _note(what: str, ended: ProcessResult, allowed_s: float) -> str:
    """How the process ended, if not by itself."""
    if ended.ending == "timeout":
        return f"{what} timed out after {allowed_s:g}s"
    return f"{what} interrupted" if ended.ending == "cancelled" else ""
