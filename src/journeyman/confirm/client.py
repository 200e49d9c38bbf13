"""The client of the confirmation service, for agents that request and redeem and, with an
approver's key, for people who decide. Programs with an event loop call it in a thread.
"""

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar

import httpx2
import msgspec
from msgspec import Struct

from journeyman.confirm import schemas
from journeyman.confirm.digest import canonical, digest_of
from journeyman.confirm.schemas import Card, Grant
from journeyman.records.confirmation import ConfirmationStatus, Constraint
from journeyman.records.errors import (
    BadSetting,
    ConfirmationChanged,
    ConfirmationRefused,
    JourneymanError,
    ServiceUnavailable,
    WrongInput,
)
from journeyman.text.display import visible

PATIENCE_S = 10.0
"""How long the service may take to answer."""
_MAX_POLL_S = 30.0
_CANCELLABLE_POLL_S = 1.0
_PAUSE_S = 1.0
"""Pause between attempts to reach the service."""
_EARLY_S = 0.1
"""Pause before asking again if the service answered early without a decision."""
_EXPIRY_GRACE_S = 1.0
"""How long after its deadline a card should be expired."""
_GIVE_UP_S = 30.0
"""How long after its deadline to stop waiting for a card that the service does not expire."""
_MAX_BODY_BYTES = 64 * 1024 * 1024
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_CHANGED = ("changed", "digest_differs")
_CREDENTIAL_ADVICE = (
    "The confirmation service requires a token or key, and none is set or it is not known. An "
    "agent needs a token from `journeyman confirm token add NAME`, as JOURNEYMAN_CONFIRM_TOKEN "
    "or as token below [confirm] in config.toml; a person needs a key from `journeyman confirm "
    "approver add NAME`."
)
_OTHER_REQUEST = "The service answered for another request. Do not do it; ask again."

Details = Mapping[str, Any]
Received = TypeVar("Received")


class Answer(Struct, frozen=True, kw_only=True):
    """Whether the action may be done now. Only then is there a grant; otherwise `why` says why."""

    approved: bool
    card: Card | None = None
    grant: Grant | None = None
    why: str = ""

    def __bool__(self) -> bool:
        return self.approved


class _UnexpectedResponse(Exception):
    """A response that the confirmation service would not send."""


class ConfirmClient:
    """Connects to the confirmation service at `url`, as the holder of the token or key.

    The usual call is `ask`: its answer is true only if a person, or a whitelist entry added by a
    person, approved exactly these details. Use it as a context manager, or `close` it. Raise
    BadSetting for an invalid address or token.
    """

    def __init__(self, url: str, token: str = "", *, patience_s: float = PATIENCE_S) -> None:
        self.url = url.rstrip("/")
        self._patience_s = patience_s
        if not url.startswith(("http://", "https://")):
            raise BadSetting(
                f"The address of the confirmation service, {visible(url)!r}, is not valid. Set "
                "confirm.url to one that begins with http:// or https://."
            )
        if not (token.isascii() and token.isprintable()):
            raise BadSetting(
                "The token for the confirmation service contains characters that no token has. "
                "Create one with `journeyman confirm token add NAME`."
            )
        is_encrypted = url.startswith("https://")
        self._http = httpx2.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            # Without TLS, a proxy could read the token.
            trust_env=is_encrypted,
            # Loading the machine's certificates takes longer than a request without TLS.
            verify=is_encrypted,
        )

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _call(
        self,
        kind: type[Received],
        method: str,
        path: str,
        body: Struct | None = None,
        *,
        wait_s: float = 0.0,
        **query: object,
    ) -> Received:
        """Send one request, which the service may hold for `wait_s`. Raise ConfirmationRefused if
        the service refuses, and ServiceUnavailable.
        """
        limit_s = self._patience_s + wait_s
        request: dict[str, Any] = {
            "params": {name: str(value) for name, value in query.items() if value},
            "content": None if body is None else msgspec.json.encode(body),
            "headers": {} if body is None else {"Content-Type": "application/json"},
            "timeout": limit_s,
        }
        try:
            status, content = self._receive(method, path, request, time.monotonic() + limit_s)
            return _parse(status, content, kind)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, _UnexpectedResponse) as error:
            is_other = isinstance(error, _UnexpectedResponse)
            what = "is not a confirmation service" if is_other else "did not answer"
            raise ServiceUnavailable(
                f"The confirmation service was called, but {visible(self.url)} {what}: "
                f"{visible(str(error) or type(error).__name__)}. Start it with `journeyman confirm "
                "serve`, or set confirm.url to its address."
            ) from error

    def _receive(
        self, method: str, path: str, request: dict[str, Any], deadline: float
    ) -> tuple[int, bytes]:
        """Return the status and the body, limited so that an endless response ends."""
        content = bytearray()
        with self._http.stream(method, path, **request) as response:
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > _MAX_BODY_BYTES or time.monotonic() > deadline:
                    raise _UnexpectedResponse("an endless response")
        return response.status_code, bytes(content)

    def request(
        self,
        /,
        action: str,
        description: str,
        details: Details | None = None,
        *,
        timeout_s: int = 300,
        **options: str,
    ) -> schemas.SubmittedCard:
        """Request a confirmation and return it. Its `warnings` say what the service changed, such
        as a timeout outside 30 to 3,600 seconds. Options are `session_key`,
        `idempotency_key`, which prevents a second request when a call is repeated, and `requester`,
        what the agent calls itself (the service identifies it by its token).
        """
        submitted = schemas.NewConfirmation(
            action=action,
            description=description,
            details=_as_json(details or {}),
            timeout_seconds=timeout_s,
            **options,
        )
        return self._call(schemas.SubmittedCard, "POST", "/confirm", submitted)

    def get(self, id_: str, *, wait_s: float = 0.0) -> Card:
        """Return a card: at once, or as soon as it is decided within `wait_s` (60 at most)."""
        wait = f"{wait_s:g}" if wait_s else ""
        return self._call(Card, "GET", _path(id_), wait_s=wait_s, wait=wait)

    def list(
        self, *, status: ConfirmationStatus | None = None, limit: int = 50, before: str = ""
    ) -> Sequence[Card]:
        """Return cards, newest first: all of them to an approver, an agent's own to the agent."""
        query: dict[str, Any] = {"status": status, "limit": limit, "before": before}
        return self._call(schemas.Cards, "GET", "/confirmations", **query).confirmations

    def cancel(self, id_: str, *, reason: str = "") -> Card:
        """Cancel a request."""
        return self._call(Card, "POST", _path(id_, "/cancel"), schemas.Cancellation(reason=reason))

    def approve(
        self, /, id_: str, digest: str, *, details: Details | None = None, **options: str
    ) -> Card:
        """Approve what `digest` identifies; with `details`, approve these instead. `reason` and
        `typed` are as in `Decision`.
        """
        changed = None if details is None else _as_json(details)
        body = schemas.Decision(digest=digest, edited=changed, **options)
        return self._call(Card, "POST", _path(id_, "/approve"), body)

    def deny(self, id_: str, *, reason: str = "", digest: str = "") -> Card:
        """Deny a request."""
        body = schemas.Decision(reason=reason, digest=digest)
        return self._call(Card, "POST", _path(id_, "/deny"), body)

    def whitelist(self) -> Sequence[schemas.ListedEntry]:
        """Return what is approved without asking."""
        return self._call(schemas.Whitelist, "GET", "/whitelist").whitelist

    def add_to_whitelist(
        self,
        /,
        action: str,
        *,
        constraints: Mapping[str, Constraint] | None = None,
        expires_in_s: int | None = None,
        **limits: Any,
    ) -> schemas.ListedEntry:
        """Approve an action without asking from now on, within the limits: `session_key`,
        `requester`, `other_parameters` and `reason` are as in the entry.
        """
        entry = schemas.NewWhitelistEntry(
            action=action,
            constraints=dict(constraints or {}),
            expires_in_seconds=expires_in_s,
            **limits,
        )
        return self._call(schemas.ListedEntry, "POST", "/whitelist", entry)

    def revoke(self, entry_id: str) -> schemas.ListedEntry:
        """Remove an entry from the whitelist."""
        return self._call(schemas.ListedEntry, "DELETE", f"/whitelist/{_check_id(entry_id)}")

    def audit(
        self, limit: int = 50, *, before: int | None = None, confirmation: str = ""
    ) -> Sequence[schemas.ListedEvent]:
        """Return the newest entries of the audit log, of all or of one confirmation."""
        query: dict[str, Any] = {"limit": limit, "before": before, "confirmation": confirmation}
        return self._call(schemas.AuditPage, "GET", "/audit", **query).audit

    def wait(
        self,
        asked: Card | str,
        timeout_s: float | None = None,
        *,
        cancelled: Callable[[], bool] | None = None,
    ) -> Card:
        """Wait until a card is decided. If the service is unreachable, retry until the card
        expires, then raise ServiceUnavailable. After `timeout_s`, or once `cancelled` says so,
        return the card unchanged: still pending, because no one has decided.
        """
        card = asked if isinstance(asked, Card) else self.get(asked)
        began = time.monotonic()
        # From the time it has left, not from its date: the clocks of two machines may differ.
        expires = began + card.expires_in_s
        ends = min(expires + _GIVE_UP_S, began + (math.inf if timeout_s is None else timeout_s))
        poll_s = _MAX_POLL_S if cancelled is None else _CANCELLABLE_POLL_S
        while card.status == "pending" and (left := ends - time.monotonic()) > 0:
            if cancelled is not None and cancelled():
                break
            sent = time.monotonic()
            wait_s = min(left, poll_s, max(expires - sent, 0.0) + _EXPIRY_GRACE_S)
            try:
                card = self.get(card.id, wait_s=wait_s)
            except ServiceUnavailable:
                if time.monotonic() >= expires:
                    raise
                time.sleep(min(_PAUSE_S, left))
            else:
                if card.status == "pending" and time.monotonic() - sent < wait_s - _EARLY_S:
                    time.sleep(_EARLY_S)
        return card

    def redeem(self, card: Card, details: Details) -> Grant:
        """Return the grant for what is about to run. The digest is computed from it here and now;
        the service compares it with what was approved, so that a difference is recorded.
        """
        to_run = _as_json(details)
        digest = digest_of(card, to_run)
        body = schemas.Redemption(digest=digest, details=to_run)
        grant = self._call(Grant, "POST", _path(card.id, "/redeem"), body)
        if (grant.id, grant.digest) != (card.id, digest) or not grant.grant:
            raise ConfirmationChanged(
                f"The grant for {card.short_id} is not for what is about to run. Do not run it; "
                "ask again.",
                code="changed",
            )
        return grant

    def ask(
        self,
        /,
        action: str,
        description: str,
        details: Details | None = None,
        on_waiting: Callable[[Card], None] = lambda _: None,
        cancelled: Callable[[], bool] | None = None,
        **options: Any,
    ) -> Answer:
        """Request, wait and redeem; options are those of `request`. Only a redeemed approval is a
        yes; everything else, including any error and an approval with changes, is a no.
        `on_waiting` gets a card that a person has to decide on, and `cancelled` ends the wait.
        """
        card: Card | None = None
        try:
            card = self.request(action, description, details, **options)
            if card.status == "pending":
                on_waiting(card)
                card = self.wait(card, cancelled=cancelled)
            if card.status == "pending":
                card = self.cancel(card.id, reason="the agent was stopped")
            why = _OTHER_REQUEST
            requested = (action, description, options.get("session_key", ""))
            if (card.action, card.description, card.session_key) == requested:
                why = "" if card.is_approved else card.outcome
            if not why and card.edited is not None:
                changed = msgspec.json.encode(card.approved_details).decode()
                why = visible(
                    f"{card.settled_by or 'A person'} approved it with other parameters: "
                    f"{changed}. Do not do it as requested; ask again with these."
                )
            if why:
                return Answer(approved=False, card=card, why=why)
            # The details as they are now: what changed during the wait was not approved.
            grant = self.redeem(card, details or {})
        except JourneymanError as error:
            return Answer(approved=False, card=card, why=str(error))
        return Answer(approved=True, card=card, grant=grant)


def _path(id_: str, suffix: str = "") -> str:
    return f"/confirm/{_check_id(id_)}{suffix}"


def _check_id(id_: str) -> str:
    if not isinstance(id_, str) or not _ID.fullmatch(id_):
        raise WrongInput(
            f"{visible(str(id_))!r} is not an id. `journeyman confirm list` shows the ids."
        )
    return id_


def _as_json(details: Details) -> dict[str, Any]:
    """Return the details as JSON values. Raise WrongInput if JSON cannot express them exactly."""
    if not isinstance(details, Mapping):
        raise WrongInput("The details of a confirmation must be an object with names and values.")
    canonical(details)
    return msgspec.json.decode(msgspec.json.encode(details), type=dict[str, Any])


def _parse(status: int, content: bytes, kind: type[Received]) -> Received:
    """Return the response of the service. Raise ConfirmationRefused if it refused."""
    try:
        if 200 <= status < 300:
            return msgspec.json.decode(content, type=kind)
        refusal = msgspec.json.decode(content, type=schemas.ErrorBody).error
        about = msgspec.json.decode(content, type=dict[str, dict[str, Any]])["error"]
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        problem = f"HTTP {status} with a response that cannot be read: {error}"
        raise _UnexpectedResponse(problem) from error
    if not 400 <= status < 500:
        raise _UnexpectedResponse(f"HTTP {status}: {refusal.message}")
    message = refusal.message
    # Advice that depends on the caller, whom the service does not know.
    if refusal.code == "unauthenticated":
        message = _CREDENTIAL_ADVICE
    error_type = ConfirmationChanged if refusal.code in _CHANGED else ConfirmationRefused
    raise error_type(visible(message), code=refusal.code, about=about)
