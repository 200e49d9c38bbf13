"""The execute_code tool: one Python script, run in the workspace by the interpreter that runs the
agent. Modules of the workspace can be imported.
"""

import re
import sys
import tempfile
from pathlib import Path

from journeyman.agent.tools.limits import ToolLimits
from journeyman.agent.tools.processes import Ended
from journeyman.agent.tools.tool import Invocation, Result, Tool, failed, worked
from journeyman.agent.tools.workspace import Workspace
from journeyman.records import Recorded

_NAME = "script.py"
_EXCEPTION = re.compile(r"[\w.]{1,100}(?:Error|Exception|Interrupt|Warning)(?:: |$)")
_LONGEST_LINE = 200


def execute_code_tool(workspace: Workspace, limits: ToolLimits) -> Tool:
    def run(call: Invocation) -> Result:
        allowed_s = limits.allowed_s(call.arguments.get("timeout"))
        try:
            with tempfile.TemporaryDirectory(dir=workspace.private) as folder:
                script = Path(folder, _NAME)
                script.write_bytes(call.arguments["code"].encode(errors="replace"))
                ended = workspace.run(
                    [sys.executable, "-s", "-P", "-u", str(script)],
                    timeout_s=allowed_s,
                    characters=limits.output_characters,
                    variables={"PYTHONPATH": str(workspace.root)},
                    cancelled=call.cancelled,
                )
        except OSError as error:
            return failed(f"The script could not be started: {error.strerror}.", status="error")
        # Where the script lay is no concern of the model, and another place each time.
        return _answer(ended, ended.output.replace(str(script), _NAME), allowed_s)

    return Tool(
        name="execute_code",
        description=(
            "Run a Python script in the workspace; returns what it prints. Print what you want "
            "to see."
        ),
        parameters={
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "The Python source."},
                "timeout": limits.timeout_parameter,
            },
            "required": ["code"],
            "additionalProperties": False,
        },
        run=run,
    )


def _raised(output: str) -> str:
    """What the script raised, where it ended so."""
    last = output.rstrip().rpartition("\n")[2]
    return f": {last[:_LONGEST_LINE]}" if _EXCEPTION.match(last) else ""


def _answer(ended: Ended, output: str, allowed_s: float) -> Result:
    seconds = round(ended.seconds, 2)
    if ended.ending == "cancelled":
        return Result(
            content={"status": "interrupted", "output": output, "duration_seconds": seconds},
            recorded=Recorded(interrupted=True),
        )
    if ended.ending == "timeout":
        return failed(
            f"Script timed out after {allowed_s:g}s",
            status="timeout",
            output=output,
            exit_code=ended.exit_code,
            duration_seconds=seconds,
        )
    if ended.exit_code:
        return failed(
            f"Script exited with code {ended.exit_code}{_raised(output)}",
            status="error",
            output=output,
            exit_code=ended.exit_code,
            duration_seconds=seconds,
        )
    return worked(status="success", output=output, exit_code=0, duration_seconds=seconds)
