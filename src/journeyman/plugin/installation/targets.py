"""What is installed into each host: the file, and what of it is Journeyman's."""

import json
from collections.abc import Collection, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from msgspec import Struct

from journeyman.hosts.pages import PAGES
from journeyman.hosts.programs import host_file
from journeyman.plugin import client
from journeyman.plugin.installation.file_change import (
    FileChange,
    is_unchanged,
    kept_content,
    read_file,
)
from journeyman.plugin.installation.hermes_environment import PLUGIN, HermesEnvironment
from journeyman.plugin.installation.hooks_file import (
    Groups,
    wanted_groups,
    with_hooks,
    without_hooks,
)
from journeyman.plugin.installation.record import FileRecord
from journeyman.records.errors import OutsideProblem
from journeyman.records.host import Host
from journeyman.settings import HostsSettings

PARTS = ("opening", "gate", "import")
"""What Journeyman does in a host; each part can be left out."""

_PLUGIN_FILE = "opencode_plugin.js"
_PLACEHOLDER = "__JOURNEYMAN__"
_PLUGIN_MARK = b"journeyman hosts install opencode"

_HERMES_RUN_PLUGIN = """\
import importlib.util
import sys

if "journeyman" not in sys.modules:
    spec = importlib.util.spec_from_file_location("journeyman", %r)
    sys.modules["journeyman"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["journeyman"])

from journeyman.plugin.hermes import register_run


def register(ctx, *, is_gated):
    register_run(ctx, gate_tools=%r, subagents=%r, is_gated=is_gated)
"""


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
    """What is installed into a host. `program` is as in its record."""

    name: str
    title: str
    path: Path
    program: tuple[str, ...]

    def with_entries(self, content: bytes | None) -> bytes:
        """Return the content of the file with Journeyman's entries; None is a file that does not
        exist. Raise OutsideProblem if it cannot be edited.
        """
        raise NotImplementedError

    def without_entries(self, content: bytes, *, is_created: bool) -> bytes | None:
        """Return the content without the entries; None if the file was created for them and has
        nothing else. Raise OutsideProblem.
        """
        raise NotImplementedError

    def plan_installation(self, record: FileRecord | None) -> FileChange:
        """Return the change that puts the entries into the file, or updates them."""
        before = read_file(self.path)
        return FileChange(
            path=self.path,
            before=before,
            after=self.with_entries(before),
            original=self._original(before, record),
        )

    def plan_removal(self, record: FileRecord | None) -> FileChange:
        """Return the change that takes the entries out: the original content, byte for byte, if no
        one has changed the file since; otherwise everything but the entries.
        """
        path = Path(record.path) if record else self.path
        before = read_file(path)
        after = self._original(before, record)
        return FileChange(path=path, before=before, after=after, original=after)

    def _original(self, content: bytes | None, record: FileRecord | None) -> bytes | None:
        if is_unchanged(record, content):
            return kept_content(record)
        is_created = record is not None and not record.copy
        return None if content is None else self.without_entries(content, is_created=is_created)


class HooksTarget(Target, frozen=True, kw_only=True):
    """The hooks of Claude Code or Codex, in a JSON file."""

    wanted: Groups

    def with_entries(self, content: bytes | None) -> bytes:
        settings = self.settings(content)
        try:
            updated = with_hooks(settings, self.wanted)
            return content if content and updated == settings else _dumped(updated)
        except UnicodeEncodeError as error:
            raise self._problem(f"it or a path of this installation is not Unicode: {error}") from (
                error
            )
        except ValueError as error:
            raise self._problem(str(error)) from error

    def without_entries(self, content: bytes, *, is_created: bool) -> bytes | None:
        settings = self.settings(content)
        left = without_hooks(settings)
        if is_created and not left:
            return None
        return content if left == settings else _dumped(left)

    def settings(self, content: bytes | None) -> dict[str, Any]:
        """Return what the file holds; an empty file is an empty object. Raise OutsideProblem."""
        try:
            text = (content or b"").decode("utf-8-sig")
            settings = json.loads(text) if text.strip() else {}
        except (ValueError, RecursionError) as error:
            raise self._problem(f"it is not plain JSON in UTF-8: {error}") from error
        if not isinstance(settings, dict):
            raise self._problem("it does not contain a JSON object")
        return settings

    def _problem(self, clause: str) -> OutsideProblem:
        return OutsideProblem(
            f"{self.path} cannot be edited: {clause}. {self.title} does not read such a file "
            "either. Nothing was changed. Correct the file, then run the command again."
        )


def _dumped(settings: Mapping[str, Any]) -> bytes:
    return f"{json.dumps(settings, indent=2, ensure_ascii=False)}\n".encode()


class OwnFile(Target, frozen=True, kw_only=True):
    """A file that is entirely Journeyman's. `mark` occurs in every version of it."""

    content: bytes
    mark: bytes

    def with_entries(self, content: bytes | None) -> bytes:
        if content is not None and self.mark not in content:
            raise OutsideProblem(
                f"{self.path} exists, and Journeyman did not write it. Nothing was changed. Move "
                "it away, then run the command again."
            )
        return self.content

    def without_entries(self, content: bytes, *, is_created: bool) -> bytes | None:  # noqa: ARG002
        return None if self.mark in content else content


class HermesPlugin(Target, frozen=True, kw_only=True):
    """The plugin of Hermes, which Hermes itself enables in its config.yaml."""

    hermes: str
    """The path of Hermes' program; empty if it is not found."""
    environment: HermesEnvironment | None

    def plan_installation(self, record: FileRecord | None) -> FileChange:
        if self.environment is None:
            raise OutsideProblem(
                "The program hermes or its Python was not found on the search path. Nothing was "
                f"changed. Install Journeyman into the environment that Hermes runs in, add "
                f"{PLUGIN} to plugins.enabled in {self.path}, and put hermes on the search path."
            )
        if not self.environment.is_plugin:
            raise OutsideProblem(
                "Hermes finds the plugin only if Journeyman is installed in its environment. "
                f"Install it there, then run the command again: {self.environment.install_command}"
            )
        before = read_file(self.path)
        command = (self.hermes, "plugins", "enable", PLUGIN, "--no-allow-tool-override")
        return FileChange(
            path=self.path,
            before=before,
            after=before,
            original=kept_content(record) if is_unchanged(record, before) else before,
            command=() if self.environment.status == "enabled" else command,
        )

    def plan_removal(self, record: FileRecord | None) -> FileChange:
        before = read_file(self.path)
        if is_unchanged(record, before) and kept_content(record) != before:
            return FileChange(path=self.path, before=before, after=kept_content(record))
        is_enabled = self.environment is not None and self.environment.status == "enabled"
        command = (self.hermes, "plugins", "disable", PLUGIN) if is_enabled else ()
        return FileChange(path=self.path, before=before, after=before, command=command)


def host_target(
    host: Host,
    around: Surroundings,
    parts: Collection[str],
    hermes: str,
    environment: HermesEnvironment | None,
) -> Target:
    """Return what is installed into a host."""
    path = host_file(host, around.environ)
    title = PAGES[host].title
    program = around.hook_client(host)
    if host == "hermes":
        return HermesPlugin(
            name=host,
            title=title,
            path=path,
            program=around.server,
            hermes=hermes,
            environment=environment,
        )
    if host == "opencode":
        content = _opencode_plugin(around, parts, path)
        return OwnFile(
            name=host, title=title, path=path, program=program, content=content, mark=_PLUGIN_MARK
        )
    wanted = wanted_groups(host, parts, program, around.settings, str(path), page=around.page)
    return HooksTarget(name=host, title=title, path=path, program=program, wanted=wanted)


def _opencode_plugin(around: Surroundings, parts: Collection[str], path: Path) -> bytes:
    source = resources.files("journeyman.plugin").joinpath(_PLUGIN_FILE).read_text(encoding="utf-8")
    called = {
        "home": str(around.home),
        "socket": client.socket_path(str(around.home)),
        "python": around.python,
        "file": str(path),
        "parts": [part for part in PARTS if part in parts],
    }
    return source.replace(_PLACEHOLDER, json.dumps(called), 1).encode()


def hermes_run_plugin(settings: HostsSettings) -> bytes:
    """Return a plugin for one run of Hermes, which has this package from here: it need not be
    installed in Hermes' environment.
    """
    package = str(resources.files("journeyman").joinpath("__init__.py"))
    values = (package, settings.gate_tools, settings.subagents)
    return (_HERMES_RUN_PLUGIN % values).encode()
