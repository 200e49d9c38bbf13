"""How the service is set up, as plain values; the settings know where they come from."""

from pathlib import Path

from msgspec import Struct


class Options(Struct, frozen=True, kw_only=True):
    """What a service on this machine needs to know. `files` is the folder for its key and for the
    audit's anchor.
    """

    files: Path
    policy: Path
    policy_required: bool = False
    """Whether the file has to be there; otherwise the built-in rules hold without it."""
    rate_limit: int = 10
    host: str = "127.0.0.1"
    port: int = 6000
    page_port: int = 6080
    hosts: tuple[str, ...] = ()
    page_hosts: tuple[str, ...] = ()
    page_url: str = ""
    notify: tuple[str, ...] = ()

    @property
    def shown_page_url(self) -> str:
        """The page's address as people open it."""
        if self.page_url:
            return self.page_url.rstrip("/")
        return f"http://{reached(self.host)}:{self.page_port}"

    def __repr__(self) -> str:
        """Without the addresses for notices, which have secrets in them."""
        return f"Options(host={self.host!r}, port={self.port!r}, page_port={self.page_port!r})"


def reached(host: str) -> str:
    """How an address that is listened on is written in a URL on this machine: one that means all
    addresses is reached as this machine's own.
    """
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"[{here}]" if ":" in here else here
