"""What the clients of the confirmation service do, however they speak with it: they send, wait,
redeem, and check what comes back.
"""

import math
import re
import time
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from journeyman.confirm import schemas
from journeyman.confirm.digest import canonical, digest_of
from journeyman.confirm.schemas import Card, Grant
from journeyman.confirm.shown_text import visible
from journeyman.records.confirmation import ConfirmationStatus, Constraint
from journeyman.records.errors import (
    BadSetting,
    ConfirmationChanged,
    ConfirmationRefused,
    JourneymanError,
    ServiceUnavailable,
    WrongInput,
)

PATIENCE_S = 10.0
"""How long the service may be silent."""
_LONGEST_POLL_S = 30.0
_PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Between attempts to reach a service that is gone; the last again and again."""
_EARLY_S = 0.1
"""Before asking again when the service answered early without a decision."""
_SOON_S = 1.0
"""How long after its end a card should be expired."""
_LATE_S = 30.0
"""And when to stop waiting for a service that does not expire it."""
_VERIFY_S = 60.0
_LARGEST = 64 * 1024 * 1024
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_NO_JSON = (msgspec.DecodeError, UnicodeError, RecursionError)
_CHANGED = ("changed", "digest_differs")
_ANOTHER = "The service answered about another request than this one. Do not do it; ask again."

Details = Mapping[str, Any]
Received = TypeVar("Received")


class Answer(Struct, frozen=True, kw_only=True):
    """Whether it may be done now. Only then is there a grant; `why` says why not."""

    approved: bool
    card: Card | None = None
    grant: Grant | None = None
    why: str = ""

    def __bool__(self) -> bool:
        return self.approved


class Unreached(Exception):
    """A connection that did not come about, or broke."""


class _Impostor(Exception):
    """An answer that is not the service's way to speak."""


class Content(bytearray):
    """The body of an answer as it arrives: up to a size and a time, so that a service that never
    ends holds nobody up for ever.
    """

    ends: float

    def add(self, piece: bytes) -> None:
        self.extend(piece)
        if len(self) > _LARGEST or time.monotonic() > self.ends:
            raise _Impostor("an answer without an end")


class Operations:
    """The methods of both clients. Raises BadSetting for what is no address or no token."""

    def __init__(self, url: str, token: str = "", *, patience_s: float = PATIENCE_S) -> None:
        self.url = url.rstrip("/")
        self._patience_s = patience_s
        self._options = _connection_options(self.url, token)

    async def _exchange(self, content: Content, request: dict[str, Any]) -> int:
        """Send a request and take the answer's body; its status. Raises Unreached."""
        raise NotImplementedError

    async def _pause(self, seconds: float) -> None:
        raise NotImplementedError

    async def _call(
        self,
        kind: type[Received],
        method: str,
        path: str,
        body: Struct | None = None,
        *,
        wait_s: float = 0.0,
        **query: object,
    ) -> Received:
        """One request; `wait_s` is how long the service may take before it answers. Raises
        ConfirmationRefused when it says no, and ServiceUnavailable.
        """
        limit_s = self._patience_s + wait_s
        content = Content()
        content.ends = time.monotonic() + limit_s
        request = {
            "method": method,
            "url": path,
            "params": {name: str(value) for name, value in query.items() if value},
            "content": None if body is None else msgspec.json.encode(body),
            "headers": {} if body is None else {"Content-Type": "application/json"},
            "timeout": limit_s,
        }
        try:
            return _read(await self._exchange(content, request), bytes(content), kind)
        except (Unreached, _Impostor) as problem:
            is_odd = isinstance(problem, _Impostor)
            what = "did not speak like the confirmation service" if is_odd else "did not answer"
            raise ServiceUnavailable(
                f"What should be the confirmation service at {visible(self.url)} {what}: "
                f"{visible(str(problem))}. Start it with `journeyman confirm serve`, or set "
                "confirm.url to where it is."
            ) from problem

    async def request(
        self,
        /,
        action: str,
        description: str,
        details: Details | None = None,
        *,
        timeout_s: int = 300,
        **options: str,
    ) -> Card:
        """Ask for an action to be confirmed. The card is a `SubmittedCard`; options are
        `session_key`, `idempotency_key`, under which it is asked only once, and `requester`, what
        the agent calls itself (who it is, the service knows from its token).
        """
        submitted = schemas.NewConfirmation(
            action=action,
            description=description,
            details=_plain(details or {}),
            timeout_seconds=timeout_s,
            **options,
        )
        return await self._call(schemas.SubmittedCard, "POST", "/confirm", submitted)

    async def get(self, id_: str, *, wait_s: float = 0.0) -> Card:
        """A card, at once, or as soon as it is decided within `wait_s` seconds (60 at most)."""
        wait = f"{wait_s:g}" if wait_s else ""
        return await self._call(Card, "GET", _path(id_), wait_s=wait_s, wait=wait)

    async def cancel(self, id_: str, *, reason: str = "") -> Card:
        """Take a request back."""
        body = schemas.Cancellation(reason=reason)
        return await self._call(Card, "POST", _path(id_, "/cancel"), body)

    async def approve(
        self, /, id_: str, digest: str, *, details: Details | None = None, **more: str
    ) -> Card:
        """Approve what `digest` stands for; with `details`, approve it changed to them. `reason`,
        `code` and `typed` are as in `Approval`.
        """
        changed = None if details is None else _plain(details)
        body = schemas.Approval(digest=digest, details=changed, **more)
        return await self._call(Card, "POST", _path(id_, "/approve"), body)

    async def deny(self, id_: str, *, reason: str = "", digest: str = "") -> Card:
        """Say no."""
        body = schemas.Denial(reason=reason, digest=digest)
        return await self._call(Card, "POST", _path(id_, "/deny"), body)

    async def whitelist(self) -> list[schemas.ListedEntry]:
        """What is let through without asking."""
        return (await self._call(schemas.Whitelist, "GET", "/whitelist")).whitelist

    async def add_to_whitelist(
        self,
        /,
        action: str,
        *,
        constraints: Mapping[str, Constraint] | None = None,
        expires_in_s: int | None = None,
        **limits: Any,
    ) -> schemas.ListedEntry:
        """Let an action through from now on, as far as the rest says: `session_key`, `requester`,
        `other_parameters` and `reason` are as in the entry.
        """
        entry = schemas.NewWhitelistEntry(
            action=action,
            constraints=dict(constraints or {}),
            expires_in_seconds=expires_in_s,
            **limits,
        )
        return await self._call(schemas.ListedEntry, "POST", "/whitelist", entry)

    async def revoke(self, entry_id: str) -> schemas.ListedEntry:
        """Take an entry off the whitelist."""
        path = f"/whitelist/{_checked(entry_id)}"
        return await self._call(schemas.ListedEntry, "DELETE", path)

    async def audit(
        self, limit: int = 50, *, before: int | None = None, confirmation: str = ""
    ) -> list[schemas.ListedEvent]:
        """The newest entries of the audit log, or of one confirmation's part of it."""
        query: dict[str, Any] = {"limit": limit, "before": before, "confirmation": confirmation}
        return (await self._call(schemas.AuditPage, "GET", "/audit", **query)).audit

    async def verify_audit(self) -> schemas.Verified:
        """Have the service check the chain of its audit log."""
        return await self._call(schemas.Verified, "GET", "/audit/verify", wait_s=_VERIFY_S)

    async def health(self) -> schemas.Health:
        """Whether the service is there."""
        return await self._call(schemas.Health, "GET", "/health")

    async def wait(self, asked: Card | str, timeout_s: float | None = None) -> Card:
        """Wait until a card is decided. A service that is gone may come back until the card
        expires; then ServiceUnavailable is raised. When the caller's own time is over, the card is
        returned as it is: still pending, because nobody has decided.
        """
        card = asked if isinstance(asked, Card) else await self.get(asked)
        began = time.monotonic()
        # By how long it has left, not by its date: the clocks of two machines may differ.
        expires = began + card.expires_in_s
        ends = min(expires + _LATE_S, began + (math.inf if timeout_s is None else timeout_s))
        attempts = 0
        while card.status == "pending" and (left := ends - time.monotonic()) > 0:
            sent = time.monotonic()
            wait_s = min(left, _LONGEST_POLL_S, max(expires - sent, 0.0) + _SOON_S)
            try:
                card = await self.get(card.id, wait_s=wait_s)
            except ServiceUnavailable:
                if time.monotonic() >= expires:
                    raise
                await self._pause(min(_PAUSES_S[min(attempts, len(_PAUSES_S) - 1)], left))
                attempts += 1
            else:
                attempts = 0
                if card.status == "pending" and time.monotonic() - sent < wait_s - _EARLY_S:
                    await self._pause(_EARLY_S)
        return card

    async def redeem(self, card: Card, details: Details) -> Grant:
        """Take the grant for what is about to run. The digest is made from that, here and now; it
        is the service that compares it with what was approved, so that a difference is on its
        record.
        """
        runs = _plain(details)
        digest = digest_of(card, runs)
        body = schemas.Redemption(digest=digest, details=runs)
        grant = await self._call(Grant, "POST", _path(card.id, "/redeem"), body)
        if (grant.id, grant.digest) != (card.id, digest) or not grant.grant:
            raise ConfirmationChanged(
                f"The grant for {card.short_id} is for something else than what is about to run. "
                "Do not run it; ask again.",
                code="changed",
            )
        return grant

    async def ask(
        self,
        /,
        action: str,
        description: str,
        details: Details | None = None,
        *,
        take_edits: bool = False,
        **options: Any,
    ) -> Answer:
        """Ask, wait and redeem; options are those of `request`. Only a redeemed approval is a yes:
        everything else, whatever goes wrong, is a no. With `take_edits` the caller runs
        `answer.grant.details`, which a person may have changed; without it, an approval of
        something changed is a no.
        """
        card: Card | None = None
        try:
            card = await self.request(action, description, details, **options)
            card = await self.wait(card)
            why = _ANOTHER
            wanted = (action, description, options.get("session_key", ""))
            if (card.action, card.description, card.session_key) == wanted:
                why = "" if card.is_approved else card.outcome
            if not why and card.edited is not None and not take_edits:
                changed = msgspec.json.encode(card.approved_details).decode()
                why = visible(
                    f"{card.settled_by or 'A person'} approved it with other parameters: "
                    f"{changed}. Do not do it as it was; ask again with these."
                )
            if why:
                return Answer(approved=False, card=card, why=why)
            # As they are now: what was changed while a person decided was not approved.
            grant = await self.redeem(card, card.approved_details if take_edits else details or {})
        except JourneymanError as error:
            return Answer(approved=False, card=card, why=str(error))
        return Answer(approved=True, card=card, grant=grant)

    async def list(
        self, *, status: ConfirmationStatus | None = None, limit: int = 50, before: str = ""
    ) -> list[Card]:
        """Cards, newest first: for an approver all, for an agent its own."""
        query: dict[str, Any] = {"status": status, "limit": limit, "before": before}
        return (await self._call(schemas.Cards, "GET", "/confirmations", **query)).confirmations


def _connection_options(url: str, token: str) -> dict[str, Any]:
    if not url.startswith(("http://", "https://")):
        raise BadSetting(
            f"The address of the confirmation service is {visible(url)!r}. Set confirm.url to one "
            "that begins with http:// or https://."
        )
    if not (token.isascii() and token.isprintable()):
        raise BadSetting(
            "The token for the confirmation service has characters in it that no token has. Make "
            "one with `journeyman confirm token add NAME`."
        )
    is_encrypted = url.startswith("https://")
    return {
        "base_url": url,
        "headers": {"Authorization": f"Bearer {token}"} if token else {},
        # A proxy would read the token, except inside TLS.
        "trust_env": is_encrypted,
        # To read the machine's certificates takes longer than a request without TLS.
        "verify": is_encrypted,
    }


def _path(id_: str, way: str = "") -> str:
    return f"/confirm/{_checked(id_)}{way}"


def _checked(id_: str) -> str:
    if not isinstance(id_, str) or not _ID.fullmatch(id_):
        raise WrongInput(
            f"{visible(str(id_))!r} is not an id. `journeyman confirm list` shows the ids."
        )
    return id_


def _plain(details: Details) -> dict[str, Any]:
    """The details as JSON has them. Raises WrongInput for what has no exact JSON."""
    if not isinstance(details, Mapping):
        raise WrongInput("The details of a confirmation must be an object with names and values.")
    canonical(details)
    return msgspec.json.decode(msgspec.json.encode(details), type=dict[str, Any])


def _read(status: int, content: bytes, kind: type[Received]) -> Received:
    """What the service said. Raises ConfirmationRefused when it said no."""
    try:
        if 200 <= status < 300:
            return msgspec.json.decode(content, type=kind)
        said = msgspec.json.decode(content, type=schemas.ErrorBody).error
        about = msgspec.json.decode(content, type=dict[str, dict[str, Any]])["error"]
    except _NO_JSON as error:
        raise _Impostor(f"HTTP {status} with an answer that cannot be read: {error}") from error
    if not 400 <= status < 500:
        raise _Impostor(f"HTTP {status}: {said.message}")
    message = said.message
    # What the service cannot know of who asks.
    if said.code == "unauthenticated":
        message = (
            "The confirmation service does not know this token or key, or none was given. An agent "
            "needs one from `journeyman confirm token add NAME` as confirm.token, a person one "
            "from `journeyman confirm approver add NAME`."
        )
    elif said.code == "over_limit" and "reset_at" in about:
        message += f" From {about['reset_at']} on there is room."
    refused = ConfirmationChanged if said.code in _CHANGED else ConfirmationRefused
    raise refused(visible(message), code=said.code, about=about)
