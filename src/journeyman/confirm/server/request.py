"""A request as routes see it: its sender known and let through by the route's guard, its body read
strictly by type, with a message that names the field that is wrong. An agent has a token, a person
a key or a session in the browser; what is decided is decided under the credential's own name.
"""

import logging
import math
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar, cast

import msgspec
from litestar import Request
from litestar.datastructures import State
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard
from msgspec import Struct
from msgspec.structs import replace

from journeyman.confirm.credentials import actor_of, may_decide, session_secret
from journeyman.confirm.decisions import by_todays_rule
from journeyman.confirm.masking import masked, masked_text
from journeyman.confirm.options import Options
from journeyman.confirm.schemas import Card, shown
from journeyman.confirm.server.middleware import OpenRequests, RefusalLog
from journeyman.confirm.server.problems import Refused
from journeyman.confirm.service import Service
from journeyman.records.confirmation import Confirmation, Credential
from journeyman.records.errors import OutsideProblem

log = logging.getLogger("journeyman.confirm")

_CHECKED_EVERY_S = 1.0
DEEPEST = 32
"""How many levels of lists and objects a request may nest: more is not read by any person."""
LARGEST_INTEGER = 2**53 - 1
"""Beyond it, JSON readers disagree about which number was meant."""

COOKIE = "journeyman_session"
ANONYMOUS = Credential(id="anonymous", kind="agent", name="anonymous", created_at=0.0)
ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What an id, or the beginning of one, can look like."""

Body = TypeVar("Body")
Shown = TypeVar("Shown", bound=Card)


class WriteCheck:
    """Whether the database can be written to, tried at most once in a second."""

    def __init__(self, check: Callable[[], Awaitable[None]]) -> None:
        self._check = check
        self._checked_at = -math.inf
        self._problem = ""

    async def passed(self) -> None:
        """Raises Refused with what is wrong."""
        if time.monotonic() - self._checked_at > _CHECKED_EVERY_S:
            self._checked_at = time.monotonic()
            try:
                await self._check()
                self._problem = ""
            except OutsideProblem as problem:
                log.warning("the database cannot be written to: %s", problem)
                self._problem = str(problem)
        if self._problem:
            raise Refused("unavailable", self._problem)


class Context(Struct, frozen=True, kw_only=True):
    """What the routes of one port share."""

    service: Service
    options: Options
    open_requests: OpenRequests
    refusals: RefusalLog
    write_check: WriteCheck
    port: Literal["agents", "page"]
    heartbeat_s: float
    """After how long a stream says that it is still there."""
    anonymous: bool = False
    """Whether agents without a token are taken, under the name `anonymous`."""


class KnownRequest(Request[Credential, Any, State]):
    """A request whose `user` is the credential of its sender, where the route has a guard."""

    @property
    def context(self) -> Context:
        """What is shared by the routes of the port that it came to."""
        return cast("Context", self.app.state["context"])

    @property
    def service(self) -> Service:
        return self.context.service

    async def body(self) -> bytes:
        """The body, which the checks of every request have read."""
        return cast("bytes", self.scope["state"]["body"])

    async def json(self) -> Any:
        """The body as exactly what the route takes: Litestar's own way would take "300" for 300.
        Raises Refused.
        """
        wanted = self.route_handler.parsed_data_field
        assert wanted is not None
        return read_body(await self.body(), wanted.annotation)

    async def visible_card(self, id_: str) -> Confirmation:
        """The card that is asked for. Raises Refused: to who may not see it, there is none."""
        by = self.user
        card = await self.service.get(id_) if ID.fullmatch(id_) else None
        if card is not None:
            is_own = card.requester == by.name
            if is_own if by.kind == "agent" else by.view_only in ("", card.id):
                return card
        raise Refused("unknown", "There is no such confirmation, or it is not yours to see.")

    def refusal(self, why: str) -> tuple[dict[str, Any], str]:
        """What the audit says of one that is refused, and the card that it is about, if it can be
        one's id: strangers' text is no id.
        """
        id_ = str(self.path_params.get("confirmation_id", ""))
        about = {"at": f"{self.method} {self.scope['path'][:200]}", "why": why}
        return about, id_ if ID.fullmatch(id_) else ""

    async def is_still_known(self) -> bool:
        """Whether the sender still is: for what goes on for long."""
        secret = str(self.scope["state"].get("secret", ""))
        return self.user is ANONYMOUS or await self.service.authenticate(secret) is not None

    def card(self, card: Confirmation) -> Card:
        """A card as its sender may see it: who has only a link sees no secrets, because whoever
        read the notice could have that.
        """
        if self.user.view_only:
            card = replace(
                card,
                details=masked(card.details),
                edited=None if card.edited is None else masked(card.edited),
                description=masked_text(card.description, card.details),
            )
        return self.card_as(Card, card)

    def card_as(self, kind: type[Shown], card: Confirmation, **more: Any) -> Shown:
        """A card, with what the policy allows with it now."""
        policy, left = self.service.policy, 0.0
        rule = policy.rule_for(card.action)
        if card.status == "pending":
            card = by_todays_rule(policy, card)
            left = round(max(0.0, card.expires_at - time.time()), 3)
        return replace(
            shown(card, kind),
            expires_in_s=left,
            editable=rule.edits,
            second_factor=bool(rule.second_factor),
            page_url=f"{self.context.options.shown_page_url}/#/card/{card.id}",
            **more,
        )


def _guard(may: Callable[[Credential], bool], otherwise: str) -> Guard:
    """Lets those through who may. An agent that tries what it may not is written down."""

    async def guard(request: Any, _: BaseRouteHandler) -> None:
        by = await _identified(request)
        if not may(by):
            if by.kind == "agent":
                refusal = request.refusal("an agent may not do this")
                await request.service.refused(actor_of(by), *refusal)
            raise Refused("not_allowed", otherwise)

    return guard


agents = _guard(
    lambda by: by.kind == "agent",
    "This is for agents, who ask for things and use what was approved: use an agent's token.",
)
approvers = _guard(
    may_decide,
    "An agent's token cannot do this, nor a link to one card. A person does it with their own "
    "key, or logged in on the page.",
)
agents_or_approvers = _guard(
    lambda by: not by.view_only, "This link lets you look at one card. Log in for more."
)
viewers = _guard(lambda _: True, "")
"""Everybody who is known; which card they see is for `visible_card`."""
sessions = _guard(lambda by: by.kind == "session", "This is for the page, after logging in.")


async def _identified(request: KnownRequest) -> Credential:
    """Finds who asks and puts it into the request. Raises Refused when nobody known does."""
    context, path = request.context, request.scope["path"]
    bearer, secret = request.headers.get("authorization"), ""
    if bearer is not None:
        scheme, _, rest = bearer.partition(" ")
        secret = rest.strip() if scheme.lower() == "bearer" else ""
    elif context.port == "page":
        # Without the page's half of a session's secret the cookie is worth nothing.
        halves = (request.cookies.get(COOKIE, ""), request.headers.get("x-csrf-token", ""))
        secret = session_secret(*halves) if all(halves) else ""
    found = await context.service.authenticate(secret) if secret else None
    if not secret and context.anonymous and bearer is None:
        found = ANONYMOUS
    # A session's secret is good only as a cookie, where it needs the token beside it.
    elif found is None or (found.kind == "session") is not (bearer is None):
        if secret or bearer is not None or path != "/me":  # the page asks that before the login
            why = "with a credential that is not known" if secret else "without a credential"
            await context.refusals.stranger(*request.refusal(why))
        raise Refused(
            "unauthenticated",
            "The service does not know who asks. Send an agent's token or a person's key as "
            "`Authorization: Bearer …`, or log in on the page.",
        )
    request.scope["user"] = found
    request.scope["state"]["secret"] = secret
    return found


def read_body(body: bytes, kind: type[Body]) -> Body:
    """A body as a schema has it. Raises Refused with the field that is wrong."""
    try:
        value = msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        said, _, where = str(error).partition(" - at ")
        field = where.strip("`").removeprefix("$").removeprefix(".")
        place = f" in {field!r}" if field else ""
        raise _wrong(f"The body does not fit{place}: {said}.", field) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _wrong(f"The body is not JSON: {error}.") from error
    except RecursionError as error:
        raise _too_deep("") from error
    _check(value)
    return value


def _check(value: Any, field: str = "", depth: int = 0) -> None:
    """Raise Refused where a field nests too deep, or has a number that readers read differently."""
    if isinstance(value, int | float):
        if abs(value) > LARGEST_INTEGER if isinstance(value, int) else not math.isfinite(value):
            raise _wrong(f"A number in {field!r} is too large; send it as text.", field)
        return
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, str) or value is None:
        return
    if depth > DEEPEST:
        raise _too_deep(field)
    for name, part in value.items() if isinstance(value, dict) else enumerate(value):
        _check(part, field or str(name), depth + 1)


def _too_deep(field: str) -> Refused:
    return _wrong(f"The body nests deeper than {DEEPEST} levels. Send it flatter.", field)


def _wrong(message: str, field: str = "") -> Refused:
    return Refused("bad_request", message, {"field": field} if field else {})
