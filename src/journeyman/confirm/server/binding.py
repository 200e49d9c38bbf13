"""Takes a port, or says why it cannot be taken and what to do about it."""

import errno
import ipaddress
import socket

from journeyman.records.errors import ServiceUnavailable

BACKLOG = 2048
_SETTINGS = {"agents": "CONFIRMATION_PORT", "page": "confirm.page_port"}


def is_loopback(host: str) -> bool:
    """Whether a host is this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bound(host: str, port: int, name: str) -> socket.socket:
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        taken = socket.socket(family, kind, number)
    except OSError as error:
        raise ServiceUnavailable(_unbound(host, port, name, error)) from error
    try:
        # A port that a server has just left is free; one that has a server is not.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
        taken.listen(BACKLOG)
    except OSError as error:
        taken.close()
        raise ServiceUnavailable(_unbound(host, port, name, error)) from error
    return taken


def _unbound(host: str, port: int, name: str, error: OSError) -> str:
    doing = f"The {name} port {port} on {host} could not be opened for confirmations"
    if error.errno == errno.EADDRINUSE:
        return (
            f"{doing}: another program has it, perhaps a second `journeyman confirm serve`. See "
            f"which one with `ss -ltnp`, or take another port with {_SETTINGS[name]}."
        )
    if error.errno == errno.EACCES:
        return f"{doing}: {error.strerror}. Take a port from 1024 on with {_SETTINGS[name]}."
    return f"{doing}: {error.strerror or error}. Take an address of this machine: confirm.host."
