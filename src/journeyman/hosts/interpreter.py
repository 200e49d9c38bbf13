"""Finds the interpreter and the packages of a Python program, such as Hermes."""

import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from journeyman.hosts.host import run_program

_FIND = "import importlib.util as u, sys; print(u.find_spec(sys.argv[1]).origin)"
_LONG_SHEBANG = re.compile(r"^'''exec' (?P<python>\"[^\"]+\"|\S+)", re.MULTILINE)
_WRAPPED = re.compile(r"exec\s+(?:-a\s+\S+\s+)?[\"']?(?P<program>/[^\"'\s]+)")
_MAX_WRAPPERS = 3


def find_interpreter(program: Path, environ: Mapping[str, str], depth: int = 0) -> str:
    """Return the interpreter of a Python program, from its first line; also through a script that
    only calls it. Empty if there is none.
    """
    try:
        head = program.resolve().read_bytes()[:4096].decode("utf-8", "replace")
    except OSError:
        return ""
    first = head.partition("\n")[0].removeprefix("#!").strip()
    if not head.startswith("#!") or not first:
        return ""
    words = shlex.split(first)
    if "python" in Path(words[0]).name:
        return words[0]
    if Path(words[0]).name == "env" and "python" in words[-1]:
        return shutil.which(words[-1], path=environ.get("PATH")) or ""
    if long := _LONG_SHEBANG.search(head):
        return long["python"].strip('"')
    wrapped = _WRAPPED.search(head)
    if wrapped is None or depth == _MAX_WRAPPERS:
        return ""
    if "python" in Path(wrapped["program"]).name:
        return wrapped["program"]
    return find_interpreter(Path(wrapped["program"]), environ, depth + 1)


def find_package(name: str, program: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the folder of a package in the environment of a Python program."""
    python = find_interpreter(program, environ)
    done = run_program((python, "-c", _FIND, name), environ) if python else None
    return Path(done.stdout.strip()).parent if done and done.returncode == 0 else None
