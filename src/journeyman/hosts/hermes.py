"""Hermes as a host."""

from journeyman.hosts.host import HostPage


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
