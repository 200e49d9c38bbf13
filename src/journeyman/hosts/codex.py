"""Codex as a host."""

from journeyman.hosts.host import HostPage


class Codex(HostPage):
    """What we know of Codex."""

    name = "codex"
    title = "Codex"
    program = "codex"
    variable = "CODEX_HOME"
    folder = ".codex"
    file = "hooks.json"
    install = "npm install -g @openai/codex"
    log_in = "codex login"
