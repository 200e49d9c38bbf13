"""Talking with the confirmation service over several requests: waiting for a decision, redeeming an
approval, and both after asking. Each is a generator that yields what to do next and is sent what
came of it, so that the clients only have to do it.
"""

import math
import time
from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from journeyman.confirm import calls
from journeyman.confirm.digest import digest_of
from journeyman.confirm.received import Answer, Card, Grant
from journeyman.confirm.shown_text import visible
from journeyman.confirm.wire import Call, plain
from journeyman.records.errors import (
    ConfirmationChanged,
    JourneymanError,
    ServiceUnavailable,
)

LONGEST_POLL_S = 30.0
_PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Between attempts to reach a service that is gone; the last again and again."""
_EARLY_S = 0.1
"""Before asking again when the service answered early without a decision."""
_SOON_S = 1.0
"""How long after its end a card should be expired."""
_LATE_S = 30.0
"""And when to stop waiting for a service that does not expire it."""


class Pause(Struct, frozen=True):
    """Do nothing for a while."""

    seconds: float


Result = TypeVar("Result")
Steps: TypeAlias = Generator[Call[Any] | Pause, Any, Result]


def waiting(
    asked: Card | str,
    timeout_s: float | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Steps[Card]:
    """Wait until a card is decided. A service that is gone may come back until the card expires;
    then ServiceUnavailable is raised. When the caller's own time is over, the card is returned as
    it is: still pending, because nobody has decided.
    """
    card: Card = asked if isinstance(asked, Card) else (yield calls.get(asked))
    began = clock()
    # By how long it has left, not by its date: the clocks of two machines may differ.
    expires = began + card.expires_in_s
    ends = min(expires + _LATE_S, began + (math.inf if timeout_s is None else timeout_s))
    attempts = 0
    while card.status == "pending" and (left := ends - clock()) > 0:
        sent = clock()
        wait_s = min(left, LONGEST_POLL_S, max(expires - sent, 0.0) + _SOON_S)
        try:
            card = yield calls.get(card.id, wait_s=wait_s)
        except ServiceUnavailable:
            if clock() >= expires:
                raise
            yield Pause(min(_PAUSES_S[min(attempts, len(_PAUSES_S) - 1)], left))
            attempts += 1
        else:
            attempts = 0
            if card.status == "pending" and clock() - sent < wait_s - _EARLY_S:
                yield Pause(_EARLY_S)
    return card


def redeeming(card: Card, details: Mapping[str, Any]) -> Steps[Grant]:
    """Take the grant for what is about to run. The digest is made from that, here and now; it is
    the service that compares it with what was approved, so that a difference is on its record.
    """
    digest = digest_of(
        action=card.action,
        description=card.description,
        details=plain(details),
        requester=card.requester,
        session_key=card.session_key,
        context=card.context,
        nonce=card.nonce,
    )
    grant: Grant = yield calls.redeem(card.id, digest, details)
    if (grant.id, grant.digest) != (card.id, digest) or not grant.grant:
        raise ConfirmationChanged(
            f"The grant for {card.short_id} is for something else than what is about to run. Do "
            "not run it; ask again.",
            code="changed",
        )
    return grant


def asking(
    action: str,
    description: str,
    details: Mapping[str, Any] | None = None,
    *,
    session_key: str = "",
    timeout_s: int = 300,
    idempotency_key: str = "",
    requester: str = "",
    take_edits: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> Steps[Answer]:
    """Ask, wait and redeem. Only a redeemed approval is a yes: everything else, whatever goes
    wrong, is a no. With `take_edits` the caller runs `answer.grant.details`, which a person may
    have changed; without it, an approval of something changed is a no.
    """
    card: Card | None = None
    try:
        wanted = plain(details or {})
        card = yield calls.request(
            action,
            description,
            wanted,
            session_key=session_key,
            timeout_s=timeout_s,
            idempotency_key=idempotency_key,
            requester=requester,
        )
        card = yield from waiting(card, clock=clock)
        if (card.action, card.description, card.session_key) != (action, description, session_key):
            return Answer(approved=False, card=card, why=_ANOTHER)
        if not card.is_approved:
            return Answer(approved=False, card=card, why=card.outcome)
        if card.edited is not None and not take_edits:
            return Answer(approved=False, card=card, why=_edited(card))
        # As they are now: what was changed while a person decided was not approved.
        runs = card.approved_details if take_edits else plain(details or {})
        grant = yield from redeeming(card, runs)
    except JourneymanError as error:
        return Answer(approved=False, card=card, why=str(error))
    return Answer(approved=True, card=card, grant=grant)


_ANOTHER = "The service answered about another request than this one. Do not do it; ask again."


def _edited(card: Card) -> str:
    by = visible(card.settled_by) or "A person"
    details = visible(msgspec.json.encode(card.approved_details).decode())
    return (
        f"{by} approved it with other parameters: {details}. Do not do it as it was; ask again "
        "with these."
    )
