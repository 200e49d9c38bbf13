"""Hermes as a host."""

import re
from collections.abc import Mapping

from journeyman.hosts.host import HostPage
from journeyman.hosts.runner import RunRequest
from journeyman.models.context_windows import known_context_tokens

_CONTEXT_LENGTH = re.compile(
    r"^model:[ \t]*\n(?:[ \t]+.*\n)*?[ \t]+context_length:[ \t]*(\d+)", re.MULTILINE
)


class Hermes(HostPage):
    """What we know of Hermes."""

    name = "hermes"
    title = "Hermes"
    program = "hermes"
    variable = "HERMES_HOME"
    folder = ".hermes"
    file = "config.yaml"
    install = "pip install hermes-agent"
    log_in = "hermes setup"

    def window(self, request: RunRequest, environ: Mapping[str, str]) -> int | None:
        try:
            settings = (self.settings_folder(environ) / self.file).read_text("utf-8")
        except (OSError, ValueError):
            settings = ""
        stated = _CONTEXT_LENGTH.search(settings)
        return int(stated[1]) if stated else known_context_tokens(request.model)
