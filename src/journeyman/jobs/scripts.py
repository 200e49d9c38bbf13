"""Scripts whose output goes into a job's prompt: found in one folder, run under a time limit."""

import os
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Final

import msgspec
from msgspec import Struct

from journeyman.agent.tools.processes import Ended, run_process
from journeyman.jobs.output import readable
from journeyman.records.errors import WrongInput
from journeyman.records.job import RunStatus

LONGEST_OUTPUT: Final = 32_000
_LONGEST_REASON: Final = 300
_LONGEST_WORD: Final = 200
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_UNDECODABLE: Final = "\N{REPLACEMENT CHARACTER}"
_RUN_BY: Final = {".py": sys.executable, ".sh": "/bin/sh"}


class ScriptRun(Struct, frozen=True, kw_only=True):
    """What became of a script, as a status of its run; `silent`: there is nothing to do."""

    output: str
    status: RunStatus
    reason: str = ""
    remarks: tuple[str, ...] = ()


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
    """Run a script of the folder to its end or its time limit, without this program's secrets."""
    passed = {
        variable: value
        for variable, value in environment.items()
        if not variable.startswith("JOURNEYMAN_") and variable != "OPENAI_API_KEY"
    }
    try:
        # Looked at again, because a link can have been changed since the job was prepared.
        ended = run_process(
            _command(find_script(folder, name)),
            folder=workdir,
            # What was printed before a time limit is worth having.
            environment={"PYTHONUNBUFFERED": "1", **passed, "JOURNEYMAN_JOB": readable(job)},
            policy=None,
            timeout_s=timeout_s,
            characters=LONGEST_OUTPUT,
            cancelled=cancelled,
        )
    except WrongInput as error:
        return ScriptRun(output="", status="failed", reason=f"failed: {error}")
    except OSError as error:
        reason = f"failed: it could not be started in {workdir}: {error.strerror or error}"
        return ScriptRun(output="", status="failed", reason=reason)
    return _told(ended, timeout_s)


def check_script_name(folder: Path, name: str) -> None:
    """Raise WrongInput for a name that can never be that of a script in the folder."""
    asked = PurePath(name)
    if not name.strip() or "\0" in name or asked.is_absolute() or ".." in asked.parts:
        raise WrongInput(
            f"The script {readable(name)!r} cannot be used: name a file in {folder}, without a "
            "path to other folders."
        )


def find_script(folder: Path, name: str) -> Path:
    """Where the script of this name really is. Raises WrongInput when it must not be run."""
    check_script_name(folder, name)
    shown = readable(name)
    try:
        within, found = folder.resolve(strict=True), (folder / name).resolve(strict=True)
        about = found.stat()
    except (OSError, RuntimeError):  # RuntimeError: links in a circle
        raise WrongInput(f"The script {shown!r} is not in {folder}: put it there.") from None
    if not found.is_relative_to(within):
        raise WrongInput(
            f"The script {shown!r} is a link that leads out of {folder}. Put the file itself there."
        )
    if not stat.S_ISREG(about.st_mode):
        raise WrongInput(f"The script {shown!r} in {folder} is no plain file. Name a file there.")
    if not os.access(found, os.R_OK):
        raise WrongInput(f"The script {found} cannot be read by this user: chmod u+r {found}")
    for one in {path for end in (found, within / name) for path in (end, *end.parents)}:
        if one.is_relative_to(within) and one.stat().st_mode & _OTHERS_WRITE:
            raise WrongInput(
                f"The script {shown!r} is not used: others may write to {one}, and so put words "
                f"into the agent's prompt. Take that from them: chmod go-w {one}"
            )
    _command(found)
    return found


def _command(script: Path) -> tuple[str, ...]:
    """How a script is run. Raises WrongInput when nothing is known."""
    by = _RUN_BY.get(script.suffix.lower())
    if os.access(script, os.X_OK):
        # Some disks call every file executable: then the ending of the name has to do.
        with script.open("rb") as opened:
            if by is None or opened.read(2) == b"#!":
                return (str(script),)
    if by is None:
        raise WrongInput(
            f"It is not known how to run the script {script}: name it .py or .sh, or begin it with "
            f"a line such as #!/bin/sh and make it executable: chmod u+x {script}"
        )
    return (by, str(script))


def _told(ended: Ended, timeout_s: float) -> ScriptRun:
    output = readable(ended.output)
    status: RunStatus = "ok"
    reason, remarks = "", tuple[str, ...]()
    if ended.ending == "timeout":
        status, reason = "timed_out", f"failed: it ran longer than its limit of {timeout_s:g} s"
    elif ended.ending == "cancelled":
        status, reason = "interrupted", "was stopped: it was told to end"
    elif ended.exit_code:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        said = " / ".join(lines[-3:])[-_LONGEST_REASON:] or "it printed nothing"
        status, reason = "failed", f"failed: exit code {ended.exit_code}: {said}"
    elif _says_nothing_to_do(output):
        status, reason = "silent", "said that there is nothing to do"
    if _UNDECODABLE in ended.output:
        remark = f"The script's output was not all valid UTF-8: {_UNDECODABLE} stands for the rest."
        remarks = (remark,)
    return ScriptRun(output=output, status=status, reason=reason, remarks=remarks)


def _says_nothing_to_do(output: str) -> bool:
    """Whether `{"wakeAgent": false}` is all; a last line may be that of a fetched page."""
    # Decoding what is deeply nested would be a risk of its own.
    if len(output.strip()) > _LONGEST_WORD:
        return False
    try:
        said = msgspec.json.decode(output)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False
    return isinstance(said, dict) and said.get("wakeAgent") is False
