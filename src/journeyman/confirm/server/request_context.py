"""The request class and the context that the routes of one port share, and the event streams. A
request body is decoded strictly by type, and errors name the invalid field.
"""

import asyncio
import math
import re
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, Literal, TypeVar, cast

import msgspec
from litestar import Request
from litestar.datastructures import State
from litestar.response import Stream
from msgspec import Struct
from msgspec.structs import replace

from journeyman.confirm.decisions import with_current_rule
from journeyman.confirm.schemas import Card, to_schema
from journeyman.confirm.server.errors import ApiError
from journeyman.confirm.server.middleware import RefusalLog
from journeyman.confirm.service import Service
from journeyman.confirm.service_options import ServiceOptions
from journeyman.records.confirmation import SETTLED, Confirmation, Credential

MAX_BODY_DEPTH = 32
"""Maximum nesting of lists and objects in a body; no person reads deeper ones."""
LARGEST_INTEGER = 2**53 - 1
"""JSON parsers disagree about larger integers."""
MAX_STREAMS_PER_CREDENTIAL = 64
"""Each stream holds a connection open, and every change is sent to it."""
HEARTBEAT_S = 15.0
"""A stream without events sends a heartbeat after this long."""

SESSION_COOKIE = "journeyman_session"
EVENT_STREAM = "text/event-stream"
ANONYMOUS = Credential(id="anonymous", kind="agent", name="anonymous", created_at=0.0)
ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Matches an id or the beginning of one."""

Body = TypeVar("Body")
CardType = TypeVar("CardType", bound=Card)


class AppContext(Struct, frozen=True, kw_only=True):
    """What the routes of one port share. `streams` counts the open event streams by credential."""

    service: Service
    options: ServiceOptions
    refusals: RefusalLog
    port: Literal["agents", "page"]
    streams: Counter[str]
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

    def audit_details(self, reason: str) -> tuple[dict[str, Any], str]:
        """Return the audit details of a refusal, and the id of its confirmation. Clients control
        that text, so it is left out if it cannot be an id.
        """
        id_ = str(self.path_params.get("confirmation_id", ""))
        details = {"at": f"{self.method} {self.scope['path'][:200]}", "why": reason}
        return details, id_ if ID_PATTERN.fullmatch(id_) else ""

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

    def event_stream(self, id_: str = "") -> Stream:
        """Return a stream of the changes of one confirmation until it is settled, or of all
        confirmations until the client disconnects or the service stops. Raise ApiError if too many
        are open.
        """
        if self.context.streams[self.user.id] >= MAX_STREAMS_PER_CREDENTIAL:
            raise ApiError(
                "over_limit",
                f"{MAX_STREAMS_PER_CREDENTIAL} streams are open with this credential. Close one, "
                "or poll.",
            )
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return Stream(self._events(id_), media_type=EVENT_STREAM, headers=headers)

    async def _events(self, id_: str) -> AsyncIterator[bytes]:
        streams, changes = self.context.streams, self.service.changes(id_)

        async def next_change() -> Confirmation | None:
            return await anext(changes, None)

        change = asyncio.create_task(next_change())
        streams[self.user.id] += 1
        try:
            await asyncio.sleep(0)  # starts the subscription first, so that no state is missed
            pending = () if id_ else await self.service.list(status="pending")
            updates = (await self.service.get(id_),) if id_ else (*reversed(pending),)
            while True:
                for confirmation in updates:
                    if confirmation is None:
                        return
                    data = msgspec.json.encode(self.to_card(confirmation))
                    yield b"event: confirmation\ndata: %s\n\n" % data
                    if id_ and confirmation.status in SETTLED:
                        return
                await asyncio.wait((change,), timeout=self.context.heartbeat_s)
                # A credential may be revoked while its stream is open.
                secret = str(self.scope["state"].get("secret", ""))
                if self.user is not ANONYMOUS and not await self.service.authenticate(secret):
                    return
                updates = ()
                if change.done():
                    updates, change = (change.result(),), asyncio.create_task(next_change())
                else:
                    yield b": still here\n\n"
        finally:
            streams[self.user.id] -= 1
            change.cancel()
            await asyncio.wait((change,))
            await changes.aclose()


def decode_body(body: bytes, type_: type[Body]) -> Body:
    """Return a body as the given type; null in an optional field means that it is left out. Raise
    ApiError that names the invalid field.
    """
    try:
        value = msgspec.json.decode(_without_nulls(body, type_), type=type_)
    except msgspec.ValidationError as error:
        problem, _, location = str(error).partition(" - at ")
        field = location.strip("`").removeprefix("$").removeprefix(".")
        place = f" in {field!r}" if field else ""
        raise _invalid_body(f"The body is not valid{place}: {problem}.", field) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _invalid_body(f"The body is not JSON: {error}.") from error
    except RecursionError as error:
        raise _nested_too_deeply("") from error
    _check_value(value)
    return value


def _without_nulls(body: bytes, type_: type) -> bytes:
    if b"null" not in body or not issubclass(type_, msgspec.Struct):
        return body
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    optional = {field.encode_name for field in msgspec.structs.fields(type_) if not field.required}
    kept = {
        name: value
        for name, value in fields.items()
        if name not in optional or bytes(value).strip() != b"null"
    }
    return msgspec.json.encode(kept)


def _check_value(value: Any, field: str = "", depth: int = 0) -> None:
    """Raise ApiError if a value is nested too deeply, or has a number that parsers disagree on."""
    if isinstance(value, int | float):
        if abs(value) > LARGEST_INTEGER if isinstance(value, int) else not math.isfinite(value):
            raise _invalid_body(f"A number in {field!r} is too large; send it as text.", field)
        return
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, str) or value is None:
        return
    if depth > MAX_BODY_DEPTH:
        raise _nested_too_deeply(field)
    for name, item in value.items() if isinstance(value, dict) else enumerate(value):
        _check_value(item, field or str(name), depth + 1)


def _nested_too_deeply(field: str) -> ApiError:
    message = f"The body is nested more than {MAX_BODY_DEPTH} levels deep. Send a flatter one."
    return _invalid_body(message, field)


def _invalid_body(message: str, field: str = "") -> ApiError:
    return ApiError("bad_request", message, {"field": field} if field else {})
