"""opencode as a host."""

from journeyman.hosts.host import HostPage


class OpenCode(HostPage):
    """What we know of opencode."""

    name = "opencode"
    title = "opencode"
    program = "opencode"
    variable = "XDG_CONFIG_HOME"
    folder = ".config"
    file = "opencode/plugin/journeyman.js"
    install = "npm install -g opencode-ai"
    log_in = "opencode auth login"
