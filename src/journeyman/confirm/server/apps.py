"""Puts the routes of each port together: the same for agents and people on both, and the page with
its logins on its own.
"""

from collections.abc import Sequence
from functools import cache

from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp
from msgspec import Struct

from journeyman.confirm.options import reached
from journeyman.confirm.server import agents, anybody, login, overseeing, people
from journeyman.confirm.server.bodies import Strictly
from journeyman.confirm.server.desk import Desk, Port
from journeyman.confirm.server.documented import document_of
from journeyman.confirm.server.doors import BODY_WITHIN_S, DoorRules, Doors, hosts_of, origins_of
from journeyman.confirm.server.pages import LANDINGS, page_routes, read_files
from journeyman.confirm.server.problems import EXPLAINED
from journeyman.confirm.server.quick import Quick
from journeyman.confirm.server.refusals import RefusalBook
from journeyman.confirm.server.views import Views
from journeyman.confirm.server.waiting import Waiting
from journeyman.confirm.service import Service

HEARTBEAT_S = 15.0

_BOTH: tuple[HTTPRouteHandler, ...] = (
    *agents.ROUTES,
    *people.ROUTES,
    *overseeing.ROUTES,
    *anybody.ROUTES,
)
_DOCUMENTED: dict[Port, tuple[HTTPRouteHandler, ...]] = {
    "agents": _BOTH,
    "page": (*_BOTH, *login.ROUTES),
}


class Ports(Struct, frozen=True, kw_only=True):
    """Where the server listens. Before it does, 0 stands for any port that is free."""

    host: str = "127.0.0.1"
    agents: int = 6000
    page: int = 6080

    @property
    def agents_url(self) -> str:
        return f"http://{reached(self.host)}:{self.agents}"

    @property
    def page_url(self) -> str:
        return f"http://{reached(self.host)}:{self.page}"


def make_apps(
    service: Service,
    *,
    ports: Ports,
    waiting: Waiting,
    hosts: Sequence[str] = (),
    page_hosts: Sequence[str] = (),
    page_url: str = "",
    anonymous: bool = False,
    body_within_s: float = BODY_WITHIN_S,
    heartbeat_s: float = HEARTBEAT_S,
) -> tuple[ASGIApp, ASGIApp]:
    """The agents' application and the page's, for the ports that are really used. `hosts` and
    `page_hosts` are further names that they go by; `page_url` is where people find the page.
    """
    page_url = (page_url or ports.page_url).rstrip("/")
    views = Views(lambda: service.policy, agents_url=ports.agents_url, page_url=page_url)
    refusals = RefusalBook(service.refused)

    def made(port: Port, rules: DoorRules) -> ASGIApp:
        desk = Desk(
            service=service,
            views=views,
            waiting=waiting,
            refusals=refusals,
            port=port,
            heartbeat_s=heartbeat_s,
            anonymous=anonymous and port == "agents",
            secure_cookie=page_url.startswith("https:"),
            document=cache(lambda: document_of(_DOCUMENTED[port])),
        )
        return Doors(Quick(application(desk)), rules, desk)

    names = hosts_of(ports.host, ports.page, page_hosts)
    page_rules = DoorRules(
        hosts=names,
        origins=origins_of(names, page_url),
        landings=frozenset(LANDINGS),
        body_within_s=body_within_s,
    )
    agents_rules = DoorRules(
        hosts=hosts_of(ports.host, ports.agents, hosts), body_within_s=body_within_s
    )
    return made("agents", agents_rules), made("page", page_rules)


def application(desk: Desk) -> Litestar:
    """The routes of a port, without its doors."""
    routes = _DOCUMENTED[desk.port]
    return Litestar(
        route_handlers=[*routes, page_routes(read_files())] if desk.port == "page" else routes,
        exception_handlers=EXPLAINED,
        dto=Strictly,
        return_dto=None,
        openapi_config=None,
        logging_config=None,
        request_max_body_size=None,  # the doors have seen to it
    )
