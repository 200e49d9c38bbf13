"""The whole service on one machine: the core, the HTTP server and the notices, joined, started and
stopped together.
"""

import asyncio
import getpass
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from msgspec import Struct

from journeyman.confirm.options import Options
from journeyman.confirm.policy_file import PolicyFile
from journeyman.records.errors import MissingPart
from journeyman.store.confirmations import Confirmations

try:
    from journeyman.confirm.notifying import Notifying
    from journeyman.confirm.server.apps import Ports
    from journeyman.confirm.server.serving import Serving
    from journeyman.confirm.service import Service
except ImportError as missing:
    raise MissingPart(
        f"Serving confirmations needs parts that are not installed here ({missing}). Install them "
        "with: pip install 'journeyman[confirm]'"
    ) from missing

if TYPE_CHECKING:
    from journeyman.confirm.administration import Administration


class Login(Struct, frozen=True, kw_only=True):
    """The first approver's way in, made by the first start and shown once."""

    name: str
    key: str
    link: str

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"Login(name={self.name!r})"


class Started(Struct, frozen=True, kw_only=True):
    """Where the service answers now."""

    agents_url: str
    page_url: str
    channels: tuple[str, ...]
    login: Login | None
    anonymous: bool


class Running:
    """One service with its server and its notices, ready to begin. Raises what `bind` and the
    settings of the notices raise.
    """

    def __init__(
        self,
        confirmations: Confirmations,
        administration: "Administration",
        options: Options,
        clock: Callable[[], float],
        *,
        anonymous: bool = False,
        terminal: TextIO | None = None,
    ) -> None:
        policy = PolicyFile(
            options.policy, rate_limit=options.rate_limit, required=options.policy_required
        )
        service = Service(confirmations, options.files, policy.read, clock=clock)
        self._anonymous = anonymous
        self._serving = Serving(
            service,
            ports=Ports(host=options.host, agents=options.port, page=options.page_port),
            hosts=options.hosts,
            page_hosts=options.page_hosts,
            page_url=options.page_url,
            anonymous=anonymous,
            ending=self._end_notices,
        )
        self._notifying = Notifying(
            service, confirmations, options.notify, lambda: self._serving.page_url, terminal
        )
        self._serving.bind()
        self._login = _first_login(administration.at(self._serving.page_url))

    def serve(self, told: Callable[[Started], None]) -> None:
        """Serve until a signal; `told` hears when both ports answer."""
        self._serving.run(lambda _: told(self._started()))

    @contextmanager
    def in_thread(self) -> Iterator[Started]:
        """Serve for as long as the block lasts."""
        begun: list[Started] = []
        with self._serving.in_thread(lambda _: begun.append(self._started())):
            yield begun[0]

    def _end_notices(self) -> None:
        self._notifying.stop()

    def _started(self) -> Started:
        """On the event loop, once both ports answer."""
        self._notifying.start(asyncio.get_running_loop())
        return Started(
            agents_url=self._serving.agents_url,
            page_url=self._serving.page_url,
            channels=self._notifying.channels,
            login=self._login,
            anonymous=self._anonymous,
        )


def _first_login(administration: "Administration") -> Login | None:
    """An approver, where there never was one: without, nobody could decide anything."""
    if administration.credentials("approver"):
        return None
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""
    name = re.sub(r"[^A-Za-z0-9._@-]", "", user).lstrip("._@-")[:64] or "owner"
    _, key = administration.add_approver(name, by="first start")
    return Login(name=name, key=key, link=administration.login_link(name, by="first start"))
