"""What is installed into each host: the file, and the editor that knows Journeyman's entries."""

import json
from collections.abc import Collection, Mapping
from importlib import resources
from pathlib import Path

from msgspec import Struct

from journeyman.hosts import client
from journeyman.hosts.installation.editors import HooksEditor, PluginsEditor, WholeFile
from journeyman.hosts.installation.file_change import Editor
from journeyman.hosts.installation.hermes_environment import HermesEnvironment, yaml_parser
from journeyman.hosts.installation.hooks_file import wanted_groups
from journeyman.hosts.installation.programs import KINDS, SERVICE, host_file
from journeyman.hosts.installation.service_unit import Manager, ServiceFile, service_file
from journeyman.records.host import Host
from journeyman.settings import HostsSettings

PARTS = ("opening", "gate", "import")
"""What Journeyman does in a host; each part can be left out."""

_PLUGIN_FILE = "opencode_plugin.js"
_PLACEHOLDER = "__JOURNEYMAN__"
_PLUGIN_MARK = b"journeyman hosts install opencode"


class Surroundings(Struct, frozen=True, kw_only=True):
    """The installation of Journeyman that hosts call, and the environment in which it is found."""

    home: Path
    python: str
    environ: Mapping[str, str]
    settings: HostsSettings
    page: str
    """Where people decide on held calls."""

    def hook_client(self, host: str) -> tuple[str, ...]:
        """The command line of the client for a host's hooks, up to the event."""
        return (self.python, "-I", "-S", client.__file__, str(self.home), host)

    @property
    def server(self) -> tuple[str, ...]:
        """The command line of the resident process. Modules in the current folder are not used."""
        return (self.python, "-P", "-m", "journeyman", "--home", str(self.home), "serve")


class Target(Struct, frozen=True, kw_only=True):
    """What is installed under a name: a host, or the service. `program` is as in its record."""

    name: str
    title: str
    path: Path
    editor: Editor
    program: tuple[str, ...]


def host_target(
    host: Host, around: Surroundings, parts: Collection[str], hermes: HermesEnvironment | None
) -> Target:
    """Return what is installed into a host."""
    path = host_file(host, around.environ)
    title = KINDS[host].title
    program = around.hook_client(host)
    editor: Editor
    if host == "hermes":
        editor = PluginsEditor(path, yaml_parser(hermes, around.environ))
        program = around.server
    elif host == "opencode":
        editor = WholeFile(_opencode_plugin(around, parts, path), _PLUGIN_MARK)
    else:
        wanted = wanted_groups(host, parts, program, around.settings, str(path), page=around.page)
        editor = HooksEditor(path, title, wanted, takes_bom=host == "claude-code")
    return Target(name=host, title=title, path=path, editor=editor, program=program)


def _opencode_plugin(around: Surroundings, parts: Collection[str], path: Path) -> bytes:
    source = resources.files("journeyman.hosts").joinpath(_PLUGIN_FILE).read_text(encoding="utf-8")
    called = {
        "home": str(around.home),
        "socket": client.socket_path(str(around.home)),
        "python": around.python,
        "file": str(path),
        "parts": [part for part in PARTS if part in parts],
    }
    return source.replace(_PLACEHOLDER, json.dumps(called), 1).encode()


def unit_of(around: Surroundings, manager: Manager) -> ServiceFile:
    return service_file(manager, around.server, around.home, around.environ)


def service_target(around: Surroundings, manager: Manager) -> Target:
    """Return what is installed as the service."""
    unit = unit_of(around, manager)
    return Target(
        name=SERVICE,
        title="the service",
        path=unit.path,
        editor=WholeFile(unit.content, unit.mark),
        program=around.server,
    )
