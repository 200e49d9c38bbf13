"""The service that keeps `journeyman serve` running: a systemd user unit."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from journeyman.hosts.programs import user_home

UNIT_MARK = b"# Written by `journeyman hosts install service`"
_UNIT = "journeyman.service"
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
    start: str
    stop: str
    link: Path
    """What exists while the service is enabled."""

    @property
    def is_enabled(self) -> bool:
        return self.link.is_symlink()


def service_file(program: Sequence[str], environ: Mapping[str, str]) -> ServiceFile:
    """Return the file for a service that runs a program."""
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
