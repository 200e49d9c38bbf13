"""The Python environment that Hermes runs in: whether Journeyman is installed there, which is how
Hermes finds its plugin, and what to run if it is not. Its parser also checks edits of config.yaml.
"""

import importlib.metadata
import json
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from journeyman.hosts.installation.programs import run_quietly
from journeyman.hosts.installation.yaml_list import Parse
from journeyman.version import __version__

_GROUP, _NAME, _HERMES = "hermes_agent.plugins", "journeyman", "hermes-agent"
_LONG_SHEBANG = re.compile(r"^'''exec' (?P<python>\"[^\"]+\"|\S+)", re.MULTILINE)
_WRAPPED = re.compile(r"exec\s+(?:-a\s+\S+\s+)?[\"']?(?P<program>/[^\"'\s]+)")
_MAX_WRAPPERS = 3

_QUESTION = f"""
import importlib.metadata, importlib.util, json
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
points = importlib.metadata.entry_points(group={_GROUP!r})
print(json.dumps({{
    "hermes": version({_HERMES!r}),
    "version": version({_NAME!r}),
    "is_plugin": any(point.name == {_NAME!r} for point in points),
    "has_pip": importlib.util.find_spec("pip") is not None,
}}))
"""
_YAML_QUESTION = """
import json, sys, yaml
try:
    value = yaml.safe_load(sys.stdin.read())
except yaml.YAMLError as error:
    print(json.dumps({"error": str(error)}))
else:
    print(json.dumps({"value": value}, default=str))
"""


class HermesEnvironment(Struct, frozen=True, kw_only=True):
    """What Hermes' interpreter says: the version of Hermes, and that of Journeyman, which is empty
    if it is not installed there. `is_plugin` says whether Hermes can find the plugin.
    """

    python: str
    hermes: str = ""
    version: str = ""
    is_plugin: bool = False
    has_pip: bool = True

    @property
    def is_current(self) -> bool:
        return self.is_plugin and self.version == __version__

    @property
    def install_command(self) -> str:
        """The command that installs this version of Journeyman there."""
        source = shlex.quote(_own_source())
        python = shlex.quote(self.python)
        if self.has_pip:
            return f"{python} -m pip install {source}"
        return f"uv pip install --python {python} {source}"


def find_environment(program: str, environ: Mapping[str, str]) -> HermesEnvironment | None:
    """Return the environment of a `hermes` program; None if its interpreter cannot be found."""
    python = find_interpreter(Path(program), environ)
    answer = run_quietly([python, "-c", _QUESTION], environ) if python else None
    if not python or answer is None:
        return None
    try:
        found = msgspec.json.decode(answer, type=dict[str, Any])
        return HermesEnvironment(python=python, **found)
    except (msgspec.DecodeError, TypeError):
        return None


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


def yaml_parser(environment: HermesEnvironment | None, environ: Mapping[str, str]) -> Parse | None:
    """Return a function that reads YAML: with the library if it is installed here, or with Hermes'
    interpreter; None if neither can.
    """
    try:
        import yaml  # type: ignore[import-untyped] # noqa: PLC0415 - an optional extra
    except ImportError:
        return None if environment is None else _remote_parser(environment.python, environ)

    def parse(text: str) -> Any:
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(_one_line(error)) from error

    return parse


def _remote_parser(python: str, environ: Mapping[str, str]) -> Parse:
    def parse(text: str) -> Any:
        answer = run_quietly([python, "-c", _YAML_QUESTION], environ, text=text)
        found = json.loads(answer) if answer else {"error": "Hermes cannot read it"}
        if "error" in found:
            raise ValueError(_one_line(found["error"]))
        return found["value"]

    return parse


def _one_line(error: object) -> str:
    return " ".join(str(error).split())


def _own_source() -> str:
    """Return what to name to an installer to get this installation: the folder that it was
    installed from, or its name and version.
    """
    try:
        distribution = importlib.metadata.distribution(_NAME)
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    except (importlib.metadata.PackageNotFoundError, ValueError):
        origin = {}
    url = str(origin.get("url") or "")
    if url.startswith("file://"):
        return url.removeprefix("file://")
    return f"{_NAME}=={__version__}"
