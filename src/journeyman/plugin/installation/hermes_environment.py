"""The Python environment that Hermes runs in: whether Journeyman is installed there, which is how
Hermes finds its plugin, and what to run if it is not.
"""

import importlib.metadata
import json
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from journeyman.hosts.interpreter import find_interpreter
from journeyman.hosts.programs import run_quietly
from journeyman.version import __version__

PLUGIN = "journeyman"
_ANSWER_S = 60.0

_QUESTION = f"""
import importlib.metadata, importlib.util, json
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
points = importlib.metadata.entry_points(group="hermes_agent.plugins")
print(json.dumps({{
    "hermes": version("hermes-agent"),
    "version": version({PLUGIN!r}),
    "is_plugin": any(point.name == {PLUGIN!r} for point in points),
    "has_pip": importlib.util.find_spec("pip") is not None,
}}))
"""


class HermesEnvironment(Struct, frozen=True, kw_only=True):
    """What Hermes' interpreter says: the version of Hermes, and that of Journeyman, which is empty
    if it is not installed there. `is_plugin` says whether Hermes can find the plugin, and `status`
    what Hermes makes of it: enabled, disabled or not enabled.
    """

    python: str
    hermes: str = ""
    version: str = ""
    is_plugin: bool = False
    has_pip: bool = True
    status: str = ""

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
        found = json.loads(answer)
        status = _plugin_status(program, environ) if found["is_plugin"] else ""
        return HermesEnvironment(python=python, status=status, **found)
    except (ValueError, TypeError, KeyError):
        return None


def _plugin_status(program: str, environ: Mapping[str, str]) -> str:
    listed = run_quietly([program, "plugins", "list", "--json"], environ, timeout_s=_ANSWER_S) or ""
    with suppress(ValueError, TypeError, AttributeError, KeyError):
        plugins = json.loads(listed[listed.find("[") :])
        return next((str(one["status"]) for one in plugins if one.get("name") == PLUGIN), "")
    return ""


def _own_source() -> str:
    """Return what to name to an installer to get this installation: the folder that it was
    installed from, or its name and version.
    """
    try:
        distribution = importlib.metadata.distribution(PLUGIN)
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    except (importlib.metadata.PackageNotFoundError, ValueError):
        origin = {}
    url = str(origin.get("url") or "")
    if url.startswith("file://"):
        return url.removeprefix("file://")
    return f"{PLUGIN}=={__version__}"
