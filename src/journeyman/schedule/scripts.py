"""Scripts whose output goes into a job's prompt: found in one folder only, run under a time limit,
and what they print bounded and made safe to read. What becomes of a run whose script failed is left
to others.
"""

import errno
import os
import re
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Final, Literal

import msgspec
from msgspec import Struct

from journeyman.agent.tools.processes import Ended, run_process
from journeyman.records.errors import WrongInput
from journeyman.schedule.output import readable

LONGEST_OUTPUT: Final = 32_000
_LONGEST_REASON: Final = 300
_REASON_LINES: Final = 3
_MOST_LISTED: Final = 20
_LONGEST_WORD: Final = 200
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_NOT_STARTED: Final = 127
_UNDECODABLE: Final = "\N{REPLACEMENT CHARACTER}"
_LEFT_OUT: Final = re.compile(r"\n\[… ([\d,]+) characters left out …\]\n")

_RUN_BY: Final = {".py": sys.executable, ".sh": "/bin/sh"}
_SECRET: Final = ("OPENAI_API_KEY",)
_OWN: Final = "JOURNEYMAN_"

_WHY_NOT_STARTED: Final = {
    errno.ENOEXEC: "its first line has to say what runs it, as in #!/bin/sh",
    errno.ENOENT: "what its first line names is not on this machine",
    errno.EACCES: "this user may not run it, or not what its first line names",
}


class ScriptRun(Struct, frozen=True, kw_only=True):
    """What became of a script. `wakes` is False when it says that there is nothing to do."""

    output: str
    ending: Literal["ok", "failed", "timed_out", "cancelled"]
    reason: str = ""
    remarks: tuple[str, ...] = ()
    wakes: bool = True


def find_script(folder: Path, name: str) -> Path:
    """A script by its name in the folder. Raises WrongInput when it is not there, is not in the
    folder, could have been changed by others, or there is no way to run it.
    """
    _checked(folder, name)
    return folder / name


def run_script(
    path: Path,
    *,
    folder: Path,
    workdir: Path,
    job: str,
    timeout_s: float,
    environment: Mapping[str, str],
    cancelled: Callable[[], bool],
) -> ScriptRun:
    """Run a script of the folder, in `workdir`, to its end or its time limit. It gets the
    environment without this program's own secrets. Whatever it does is in what is returned.
    """
    try:
        # Looked at again, because a link can have been changed since the script was found.
        command = _command(_checked(folder, os.path.relpath(path, folder)))
        ended = run_process(
            command,
            folder=workdir,
            environment=_environment(environment, job),
            policy=None,
            timeout_s=timeout_s,
            characters=LONGEST_OUTPUT,
            cancelled=cancelled,
        )
    except WrongInput as error:
        return ScriptRun(output="", ending="failed", reason=str(error))
    except OSError as error:
        reason = f"it could not be started in {workdir}: {error.strerror or error}"
        return ScriptRun(output="", ending="failed", reason=reason)
    return _told(ended, command, timeout_s)


def check_script_name(folder: Path, name: str) -> None:
    """Raise WrongInput for a name that can never be that of a script in the folder."""
    asked = PurePath(name)
    if not name.strip() or "\0" in name or asked.is_absolute() or ".." in asked.parts:
        raise WrongInput(
            f"The script {readable(name)!r} cannot be used: name a file in {folder}, without a "
            "path to other folders."
        )


def _checked(folder: Path, name: str) -> Path:
    """Where a script really is, once nothing speaks against it."""
    shown = readable(name)
    asked = PurePath(name)
    check_script_name(folder, name)
    try:
        within, found = folder.resolve(strict=True), (folder / name).resolve(strict=True)
        about = found.stat()
    except (OSError, RuntimeError):  # RuntimeError: links in a circle
        raise WrongInput(f"The script {shown!r} is not in {folder}. {_listing(folder)}") from None
    if not found.is_relative_to(within):
        raise WrongInput(
            f"The script {shown!r} is a link that leads out of {folder}. Put the file itself there."
        )
    if not stat.S_ISREG(about.st_mode):
        what = "a folder" if stat.S_ISDIR(about.st_mode) else "no plain file"
        raise WrongInput(f"The script {shown!r} in {folder} is {what}. {_listing(folder)}")
    if not os.access(found, os.R_OK):
        raise WrongInput(f"The script {found} cannot be read by this user: chmod u+r {found}")
    for one in _leading_to(found, within) | _leading_to(within / asked, within):
        if one.stat().st_mode & _OTHERS_WRITE:
            raise WrongInput(
                f"The script {shown!r} is not used: others may write to {one}, and so put words "
                f"into the agent's prompt. Take that from them: chmod go-w {one}"
            )
    _command(found)
    return found


def _leading_to(path: Path, within: Path) -> set[Path]:
    """A file and the folders above it, up to `within`."""
    return {path, *(parent for parent in path.parents if parent.is_relative_to(within))}


def _listing(folder: Path) -> str:
    try:
        names = sorted(one.name for one in folder.iterdir() if one.is_file())
    except OSError:
        return "That folder is not there yet: make it, and put the script into it."
    if not names:
        return "The folder is empty: put the script into it."
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return f"There is: {readable(', '.join(names[:_MOST_LISTED]))}{more}."


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


def _environment(given: Mapping[str, str], job: str) -> dict[str, str]:
    passed = {
        name: value
        for name, value in given.items()
        if not name.startswith(_OWN) and name not in _SECRET
    }
    # What was printed before a time limit is worth having.
    return {"PYTHONUNBUFFERED": "1", **passed, "JOURNEYMAN_JOB": readable(job)}


def _told(ended: Ended, command: tuple[str, ...], timeout_s: float) -> ScriptRun:
    output = readable(ended.output)
    ending: Literal["ok", "failed", "timed_out", "cancelled"] = "ok"
    reason = ""
    if ended.ending == "timeout":
        ending, reason = "timed_out", f"it ran longer than its limit of {timeout_s:g} s"
    elif ended.ending == "cancelled":
        ending, reason = "cancelled", "it was told to end"
    elif ended.exit_code:
        ending, reason = "failed", _why_failed(ended, command[-1], output)
    return ScriptRun(
        output=output,
        ending=ending,
        reason=reason,
        remarks=tuple(_remarks(ended.output)),
        wakes=ending != "ok" or not _says_nothing_to_do(output),
    )


def _why_failed(ended: Ended, script: str, output: str) -> str:
    if ended.exit_code == _NOT_STARTED:
        for number, why in _WHY_NOT_STARTED.items():
            if ended.output == f"{script}: {os.strerror(number)}\n":
                return f"it could not be started: {why}"
    lines = [line.strip() for line in output.splitlines() if line.strip()][-_REASON_LINES:]
    said = " / ".join(lines)
    if len(said) > _LONGEST_REASON:
        said = f"…{said[-_LONGEST_REASON:]}"
    return f"exit code {ended.exit_code}" + (f": {said}" if said else ", and it printed nothing")


def _remarks(output: str) -> list[str]:
    remarks = []
    # Longer than asked for only where a note stands in the middle, at a place that is known.
    cut = _LEFT_OUT.match(output, LONGEST_OUTPUT // 2) if len(output) > LONGEST_OUTPUT else None
    if cut:
        remarks.append(
            f"The script printed much: {cut[1]} characters from the middle of it were left out, "
            f"{LONGEST_OUTPUT:,} kept."
        )
    if _UNDECODABLE in output:
        remarks.append(
            f"The script's output was not all valid UTF-8: {_UNDECODABLE} stands for the rest."
        )
    return remarks


def _says_nothing_to_do(output: str) -> bool:
    """Whether `{"wakeAgent": false}` is all that was printed. A last line is not enough: it may be
    the last line of a page that the script fetched.
    """
    word = output.strip()
    if len(word) > _LONGEST_WORD:  # decoding what is deeply nested would be a risk of its own
        return False
    try:
        said = msgspec.json.decode(word)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False
    return isinstance(said, dict) and said.get("wakeAgent") is False
