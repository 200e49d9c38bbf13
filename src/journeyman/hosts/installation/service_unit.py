"""The service that keeps `journeyman serve` running: a systemd user unit, or a launchd agent."""

import plistlib
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from journeyman.hosts.installation.programs import user_home

UNIT_MARK = b"# Written by `journeyman hosts install service`"
AGENT_MARK = b"<string>journeyman.serve</string>"
_UNIT = "journeyman.service"
_LABEL = "journeyman.serve"
_PLAIN = re.compile(r"[A-Za-z0-9_./:@=+-]+")

_UNIT_TEXT = """\
{mark}; `journeyman hosts remove service` removes it.
[Unit]
Description=Journeyman: hooks of agents, confirmations and jobs

[Service]
ExecStart={command}
Restart=on-failure
RestartSec=5
UMask=0077

[Install]
WantedBy=default.target
"""


class ServiceFile(Struct, frozen=True, kw_only=True):
    """The file of a service, its content, and the commands that start and stop it."""

    path: Path
    content: bytes
    mark: bytes
    start: str
    stop: str
    link: Path
    """What exists while the service is enabled; launchd keeps no such link."""

    @property
    def is_enabled(self) -> bool:
        return self.link.is_symlink()


def service_file(
    program: Sequence[str],
    home: Path,
    environ: Mapping[str, str],
    *,
    platform: str = sys.platform,
) -> ServiceFile:
    """Return the file for a service that runs a program."""
    if platform == "darwin":
        return _launchd_agent(program, home, environ)
    configuration = environ.get("XDG_CONFIG_HOME") or user_home(environ) / ".config"
    folder = Path(configuration) / "systemd" / "user"
    executable, *arguments = program
    # Variables are expanded in arguments only.
    words = [executable, *(argument.replace("$", "$$") for argument in arguments)]
    command = " ".join(map(_systemd_word, words))
    text = _UNIT_TEXT.format(mark=UNIT_MARK.decode(), command=command)
    return ServiceFile(
        path=folder / _UNIT,
        content=text.encode(),
        mark=UNIT_MARK,
        start=f"systemctl --user daemon-reload && systemctl --user enable --now {_UNIT}",
        stop=f"systemctl --user disable --now {_UNIT}",
        link=folder / "default.target.wants" / _UNIT,
    )


def _systemd_word(word: str) -> str:
    """Quote a word of a command line for systemd, which expands % also in quotes."""
    word = word.replace("%", "%%")
    if _PLAIN.fullmatch(word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _launchd_agent(program: Sequence[str], home: Path, environ: Mapping[str, str]) -> ServiceFile:
    path = user_home(environ) / "Library" / "LaunchAgents" / f"{_LABEL}.plist"
    agent = {
        "Label": _LABEL,
        "ProgramArguments": [*program],
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "Umask": 0o077,
        "StandardErrorPath": str(home / "serve.log"),
        "StandardOutPath": str(home / "serve.log"),
    }
    return ServiceFile(
        path=path,
        content=plistlib.dumps(agent, sort_keys=False),
        mark=AGENT_MARK,
        start=f"launchctl bootstrap gui/$(id -u) {shlex.quote(str(path))}",
        stop=f"launchctl bootout gui/$(id -u)/{_LABEL}",
        link=Path("/nonexistent"),
    )
