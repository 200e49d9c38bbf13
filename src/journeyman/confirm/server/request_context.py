"""The request class and the context that the routes of one port share. A request body is decoded
strictly by type, and errors name the invalid field.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any, TypeVar, cast

import msgspec
from litestar import Request
from litestar.datastructures import State
from msgspec import Struct
from msgspec.structs import replace

from journeyman.confirm.decisions import with_current_rule
from journeyman.confirm.schemas import Card, to_schema
from journeyman.confirm.server.errors import ApiError
from journeyman.confirm.service import Service
from journeyman.confirm.service_options import ServiceOptions
from journeyman.records.confirmation import Confirmation, Credential

LARGEST_INTEGER = 2**53 - 1
"""JSON parsers disagree about larger integers."""
MAX_BODY_DEPTH = 32
"""Maximum nesting of lists and objects in a body; no person reads deeper ones."""
HEARTBEAT_S = 15.0
"""A stream without events sends a heartbeat after this long."""

SESSION_COOKIE = "journeyman_session"
ANONYMOUS = Credential(id="anonymous", kind="agent", name="anonymous", created_at=0.0)
ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Matches an id or the beginning of one."""

Body = TypeVar("Body")
CardType = TypeVar("CardType", bound=Card)


class AppContext(Struct, frozen=True, kw_only=True):
    """What the routes of one port share."""

    service: Service
    options: ServiceOptions
    is_page: bool
    heartbeat_s: float = HEARTBEAT_S
    anonymous: bool = False
    """Whether agents without a token are accepted, under the name `anonymous`."""


class ApiRequest(Request[Credential, Any, State]):
    """A request. On routes with a guard, `user` is the credential of the client."""

    @property
    def context(self) -> AppContext:
        return cast("AppContext", self.app.state["context"])

    @property
    def service(self) -> Service:
        return self.context.service

    async def json(self) -> Any:
        """Return the body as the exact type that the route takes. Litestar's own decoding would
        accept "300" for 300. Raise ApiError if it is invalid.
        """
        field = self.route_handler.parsed_data_field
        assert field is not None
        return decode_body(await self.body(), field.annotation)

    async def get_visible_card(self, id_: str) -> Confirmation:
        """Return a confirmation. Raise ApiError if it does not exist or the client must not see it;
        the two are not distinguished.
        """
        user = self.user
        card = await self.service.get(id_) if ID_PATTERN.fullmatch(id_) else None
        if card is not None and (user.kind != "agent" or card.requester == user.name):
            return card
        raise ApiError("unknown", "There is no such confirmation, or it is not yours to see.")

    def to_card(self, confirmation: Confirmation) -> Card:
        """Return a confirmation for the client."""
        return self.to_card_type(Card, confirmation)

    def to_card_type(
        self, type_: type[CardType], confirmation: Confirmation, **fields: Any
    ) -> CardType:
        """Return a confirmation with what the policy currently allows for it."""
        policy, expires_in_s = self.service.policy, 0.0
        rule = policy.rule_for(confirmation.action)
        if confirmation.status == "pending":
            confirmation = with_current_rule(policy, confirmation)
            expires_in_s = round(max(0.0, confirmation.expires_at - self.service.clock()), 3)
        card = to_schema(confirmation, type_)
        return replace(
            card,
            resolved_by=card.settled_by,
            resolved_at=card.settled_at,
            timeout_seconds=round(confirmation.expires_at - confirmation.created_at),
            expires_in_s=expires_in_s,
            editable=rule.edits,
            page_url=f"{self.context.options.shown_page_url}/#/card/{confirmation.id}",
            **fields,
        )

    async def inbox_events(self) -> AsyncIterator[bytes]:
        """Yield the pending confirmations, oldest first, then every change, as server-sent events,
        until the service stops or the credential is revoked.
        """
        with self.service.listener() as changes:
            updates = [*reversed(await self.service.list(status="pending"))]
            while await self.service.authenticate(self.scope["state"]["secret"]):
                for confirmation in updates:
                    data = msgspec.json.encode(self.to_card(confirmation))
                    yield b"event: confirmation\ndata: %s\n\n" % data
                updates = []
                try:
                    changed = await asyncio.wait_for(changes.get(), self.context.heartbeat_s)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                if changed is None:
                    return
                updates = [changed]


def decode_body(body: bytes, type_: type[Body]) -> Body:
    """Return a body as the given type; null in an optional field means that it is left out. Raise
    ApiError that names the invalid field.
    """
    try:
        value = msgspec.json.decode(body)
        if _is_deep(value):
            raise ApiError("bad_request", f"The body is nested over {MAX_BODY_DEPTH} levels deep.")
        if isinstance(value, dict):
            value = {name: item for name, item in value.items() if item is not None}
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        problem, _, location = str(error).partition(" - at ")
        field = location.strip("`").removeprefix("$").removeprefix(".")
        place = f" in {field!r}" if field else ""
        about = {"field": field} if field else {}
        message = f"The body is not valid{place}: {problem}."
        raise ApiError("bad_request", message, about) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError("bad_request", f"The body is not JSON: {error}.") from error


def _is_deep(value: object, levels: int = MAX_BODY_DEPTH) -> bool:
    if not isinstance(value, dict | list):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return not levels or any(_is_deep(item, levels - 1) for item in inside)
