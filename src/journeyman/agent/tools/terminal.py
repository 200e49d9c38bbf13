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
    Tool,
    ToolError,
    ToolLimits,
    failed,
    interruption,
    parameters,
    text,
    worked,
)
from journeyman.agent.tools.workspace import Workspace, answering
from journeyman.records import ResultFlags

_LONGEST_COMMAND = 100_000
"""In bytes. The kernel accepts no argument that is much longer."""
_SCRIPT = "script.py"
_EXCEPTION = re.compile(r"[\w.]{1,100}(?:Error|Exception|Interrupt|Warning)(?:: |$)")
_LONGEST_LINE = 200
_NO_NETWORK = (
    "[It tried to use the network, which is off for commands. The user can allow it: journeyman "
    "run --network, or agent.network in the settings.]"
)
_NETWORK_ERROR = re.compile(
    r"name resolution|resolv\w* (?:the )?(?:host|name|address|'|\")|getaddrinfo|EAI_AGAIN|ENOTFOUND"
    r"|unknown ?host|translate host|no such host|(?:socket|connect|dial)[^\n]{0,80}denied"
    r"|\[Errno 13\] Permission denied(?!:)"
    r"|(?:not|n't|failed to|unable to) (?:connect|establish|fetch|download|reach)"
    r"|(?:fetch|download|connection) failed|network (?:is |error)|No matching distribution",
    re.IGNORECASE,
)
"""The output of programs that fail because the network is off."""


def terminal_tool(workspace: Workspace, limits: ToolLimits) -> Tool:
    def run(call: Invocation) -> Result:
        command = call.arguments["command"]
        if problem := _command_problem(command):
            return failed(f"Invalid arguments for terminal: {problem}")
        workdir = call.arguments.get("workdir", "")
        folder = workspace.find_path(workdir)
        if not folder.is_dir():
            raise ToolError(f"The folder {workdir!r} does not exist.")
        allowed_s = limits.allowed_s(call.arguments.get("timeout"))
        ended = workspace.run(
            [shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin") or "/bin/sh", "-c", command],
            folder=folder,
            timeout_s=allowed_s,
            characters=limits.output_characters,
            network=call.network,
            cancelled=call.cancelled,
        )
        notes = _notes("Command", ended, workspace, allowed_s, network=call.network)
        output = _with_notes(ended.output, notes)
        return Result(
            content={"output": output, "exit_code": ended.exit_code, "error": None},
            # What an exit code means depends on the command: the judge reads both from the content.
            recorded=ResultFlags(interrupted=True)
            if ended.ending == "cancelled"
            else ResultFlags(),
        )

    return Tool(
        name="terminal",
        description=(
            "Run a shell command in the workspace; returns its output and exit code. It gets no "
            "input, and background processes end with it."
        ),
        parameters=parameters(
            "command",
            command=text("The command line."),
            timeout=limits.timeout_parameter,
            workdir=text("Folder to run in."),
        ),
        run=answering(run, output="", exit_code=-1),
        risk="command",
        work="code",
    )


def execute_code_tool(workspace: Workspace, limits: ToolLimits) -> Tool:
    def run(call: Invocation) -> Result:
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
        notes = _notes("Script", ended, workspace, allowed_s, network=call.network)
        # The script's path is of no use to the model, and differs each time.
        output = ended.output.replace(str(script), _SCRIPT)
        return _script_result(ended, output, notes)

    return Tool(
        name="execute_code",
        description=(
            "Run a Python script in the workspace; returns what it prints. Print what you want "
            "to see."
        ),
        parameters=parameters(
            "code", code=text("The Python source."), timeout=limits.timeout_parameter
        ),
        run=answering(run, status="error"),
        risk="code",
        work="code",
    )


def _command_problem(command: str) -> str:
    if not command.strip():
        return "the command is empty."
    if "\0" in command:
        return "the command has a NUL character in it. Leave it out."
    most = (
        f"the command is longer than {_LONGEST_COMMAND:,} bytes. Write long text to a file first."
    )
    return most if len(command.encode(errors="replace")) > _LONGEST_COMMAND else ""


def _notes(
    what: str, ended: ProcessResult, workspace: Workspace, allowed_s: float, *, network: bool
) -> list[str]:
    """Notes on how the process ended, to add to its output."""
    if ended.ending == "cancelled":
        return [f"[{what} interrupted]"]
    if ended.exceeded:
        return [f"[{what} ended: it {workspace.resources.explain(ended.exceeded)}]"]
    notes = [f"[{what} timed out after {allowed_s:g}s]"] if ended.ending == "timeout" else []
    is_offline = not (workspace.unconfined or network or workspace.network == "on")
    if ended.exit_code and is_offline and _NETWORK_ERROR.search(ended.output):
        notes.append(_NO_NETWORK)
    return notes


def _with_notes(output: str, notes: list[str]) -> str:
    return "\n".join((output.rstrip(), *notes)).lstrip("\n") if notes else output


def _script_result(ended: ProcessResult, output: str, notes: list[str]) -> Result:
    seconds = round(ended.seconds, 2)
    if ended.ending == "cancelled":
        return interruption(status="interrupted", output=output, duration_seconds=seconds)
    if not ended.exit_code:
        return worked(status="success", output=output, exit_code=0, duration_seconds=seconds)
    last = output.rstrip().rpartition("\n")[2]
    exception = f": {last[:_LONGEST_LINE]}" if _EXCEPTION.match(last) else ""
    error = f"Script exited with code {ended.exit_code}{exception}"
    if ended.ending in ("timeout", "limit"):
        error, notes = notes[0].strip("[]"), notes[1:]
    return failed(
        error,
        status="timeout" if ended.ending == "timeout" else "error",
        output=_with_notes(output, notes),
        exit_code=ended.exit_code,
        duration_seconds=seconds,
    )
