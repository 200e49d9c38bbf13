"""Scripts that supply input to a job's prompt, run from one folder under a time limit."""

import os
import re
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Final

from msgspec import Struct

from journeyman.agent.tools.process import ProcessResult, run_process
from journeyman.records.errors import WrongInput
from journeyman.records.job import RunStatus
from journeyman.text.display import readable

MAX_OUTPUT: Final = 32_000
_MAX_REASON: Final = 300
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_NOTHING_TO_DO: Final = re.compile(r'\s*\{([^{}]*,)?\s*"wakeAgent"\s*:\s*false\s*(,[^{}]*)?\}\s*')
"""The whole output, not its last line, which may belong to a fetched page."""
_INTERPRETERS: Final = {".py": sys.executable, ".sh": "/bin/sh"}


class ScriptRun(Struct, frozen=True, kw_only=True):
    """The result of a script, as the status of its run; `silent` means there is nothing to do."""

    output: str
    status: RunStatus
    reason: str = ""


def run_script(
    folder: Path,
    name: str,
    *,
    workdir: Path,
    job: str,
    timeout_s: float,
    environment: Mapping[str, str],
    cancelled: Callable[[], bool],
) -> ScriptRun:
    """Run a script from the folder until it ends or times out. Its environment lacks this program's
    secrets.
    """
    inherited = {
        variable: value
        for variable, value in environment.items()
        if not variable.startswith("JOURNEYMAN_") and variable != "OPENAI_API_KEY"
    }
    try:
        # Checked again, because a link can have changed since the job was prepared.
        ended = run_process(
            _command(resolve_script(folder, name)),
            folder=workdir,
            # Unbuffered, so that output printed before a timeout is not lost.
            environment={"PYTHONUNBUFFERED": "1", **inherited, "JOURNEYMAN_JOB": readable(job)},
            policy=None,
            timeout_s=timeout_s,
            characters=MAX_OUTPUT,
            cancelled=cancelled,
        )
    except WrongInput as error:
        return ScriptRun(output="", status="failed", reason=f"failed: {error}")
    except OSError as error:
        reason = f"failed: it could not be started in {workdir}: {error.strerror or error}"
        return ScriptRun(output="", status="failed", reason=reason)
    return _to_script_run(ended, timeout_s)


def check_script_name(folder: Path, name: str) -> None:
    """Raise WrongInput for a name that can never belong to a script in the folder."""
    path = PurePath(name)
    if not name.strip() or "\0" in name or path.is_absolute() or ".." in path.parts:
        raise WrongInput(
            f"The script {readable(name)!r} cannot be used: name a file in {folder}, without a "
            "path to other folders."
        )


def resolve_script(folder: Path, name: str) -> Path:
    """Return the resolved path of a script. Raise WrongInput if it must not be run."""
    check_script_name(folder, name)
    shown = readable(name)
    try:
        root, script = folder.resolve(strict=True), (folder / name).resolve(strict=True)
        is_file = script.is_file()
    except (OSError, RuntimeError):  # RuntimeError: a loop of links
        is_file = False
    if not is_file:
        raise WrongInput(f"The script {shown!r} is not in {folder}: put a file there.")
    if not script.is_relative_to(root):
        raise WrongInput(
            f"The script {shown!r} is a link that leads out of {folder}. Put the file itself there."
        )
    if not os.access(script, os.R_OK):
        raise WrongInput(f"The script {script} cannot be read by this user: chmod u+r {script}")
    for path in {path for end in (script, root / name) for path in (end, *end.parents)}:
        if path.is_relative_to(root) and path.stat().st_mode & _WRITABLE_BY_OTHERS:
            raise WrongInput(
                f"The script {shown!r} is not used: other users can write to {path}, and so "
                f"change the agent's prompt. Revoke that permission: chmod go-w {path}"
            )
    _command(script)
    return script


def _command(script: Path) -> tuple[str, ...]:
    """Return the command that runs a script. Raise WrongInput if there is none."""
    interpreter = _INTERPRETERS.get(script.suffix.lower())
    if os.access(script, os.X_OK):
        # Some file systems mark every file as executable: then the suffix decides.
        with script.open("rb") as file:
            if interpreter is None or file.read(2) == b"#!":
                return (str(script),)
    if interpreter is None:
        raise WrongInput(
            f"The script {script} has no known interpreter: name it .py or .sh, or begin it with "
            f"a line such as #!/bin/sh and make it executable: chmod u+x {script}"
        )
    return (interpreter, str(script))


def _to_script_run(ended: ProcessResult, timeout_s: float) -> ScriptRun:
    output = readable(ended.output)
    status: RunStatus = "ok"
    reason = ""
    if ended.ending == "timeout":
        status, reason = "timed_out", f"failed: it ran longer than its limit of {timeout_s:g} s"
    elif ended.ending == "cancelled":
        status, reason = "interrupted", "was stopped"
    elif ended.exit_code:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        tail = " / ".join(lines[-3:])[-_MAX_REASON:] or "it printed nothing"
        status, reason = "failed", f"failed: exit code {ended.exit_code}: {tail}"
    elif _NOTHING_TO_DO.fullmatch(output):
        status, reason = "silent", "reported that there is nothing to do"
    return ScriptRun(output=output, status=status, reason=reason)
