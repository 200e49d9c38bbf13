"""The MCP tools with which a model has people confirm what it is about to do: it can ask, look,
take back and redeem. There is none that decides, and the token that they use could not.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from journeyman.confirm.received import Card
from journeyman.journeyman import Journeyman
from journeyman.mcp.offered import Answered, OfferedTool, as_json, object_schema
from journeyman.records.confirmation import ConfirmationStatus
from journeyman.records.errors import BadSetting, WrongInput
from journeyman.warm_session.arguments import Given, read_arguments

if TYPE_CHECKING:
    from journeyman.confirm.client import ConfirmClient

LONGEST_WAIT_S = 50
"""Clients of MCP give a call up after a minute."""

_NOT_SET_UP = (
    "Confirmations are not set up for this server: it has no token to ask with, so nothing can be "
    "confirmed and the action must not be done. A person makes a token with `journeyman confirm "
    "token add NAME`, gives it to this server as JOURNEYMAN_CONFIRM_TOKEN, and starts `journeyman "
    "confirm serve`."
)
_REDEEM = "Call redeem_confirmation with approved_details, then do exactly that, once and at once."
_NO = "Do not do it, and do not try to reach the same in another way."
_NEXT: dict[ConfirmationStatus, str] = {
    "pending": "A person has to decide. Call get_confirmation with wait_seconds until the status "
    "is no longer pending. Do not do it meanwhile.",
    "approved": _REDEEM,
    "auto_approved": _REDEEM,
    "denied": _NO,
    "expired": f"Nobody decided in time, which means no. {_NO}",
    "cancelled": _NO,
    "redeemed": "This approval was used already, and it holds for one time. Ask again to do it "
    "again.",
}


def _request(journeyman: Journeyman, arguments: Mapping[str, Any]) -> Answered:
    given = _read("request_confirmation", arguments, _REQUEST_SCHEMA)
    with _client(journeyman) as client:
        card = client.request(
            given["action"],
            given["description"],
            given["details"],
            session_key=given.get("session_key", ""),
            timeout_s=given.get("timeout_seconds", 300),
            idempotency_key=given.get("idempotency_key", ""),
        )
    return _told(card)


def _get(journeyman: Journeyman, arguments: Mapping[str, Any]) -> Answered:
    given = read_arguments("get_confirmation", arguments, _GET_SCHEMA)
    wait_s = given.get("wait_seconds", 0)
    with _client(journeyman) as client:
        card = client.get(given["id"])
        return _told(client.wait(card, wait_s) if wait_s else card)


def _cancel(journeyman: Journeyman, arguments: Mapping[str, Any]) -> Answered:
    given = read_arguments("cancel_confirmation", arguments, _CANCEL_SCHEMA)
    with _client(journeyman) as client:
        return _told(client.cancel(given["id"], reason=given.get("reason", "")))


def _redeem(journeyman: Journeyman, arguments: Mapping[str, Any]) -> Answered:
    given = _read("redeem_confirmation", arguments, _REDEEM_SCHEMA)
    with _client(journeyman) as client:
        grant = client.redeem(client.get(given["id"]), given["details"])
    next_ = "Granted for one time. Do it now, with exactly these details."
    return as_json({**msgspec.to_builtins(grant), "next": next_})


def _client(journeyman: Journeyman) -> "ConfirmClient":
    if not journeyman.settings.confirm.token:
        raise BadSetting(_NOT_SET_UP)
    return journeyman.confirm_client()


def _told(card: Card) -> Answered:
    """What a model needs of a card, and what it is to do with it."""
    told = {
        "id": card.id,
        "status": card.status,
        "action": card.action,
        "approved_details": card.approved_details,
        "edited": card.edited is not None,
        "digest": card.digest,
        "expires_at": card.expires_at,
        "expires_in_s": card.expires_in_s,
        "settled_by": card.settled_by,
        "reason": card.reason,
        "people_told": card.notice.status,
        "page_url": card.page_url,
        "next": _NEXT[card.status],
    }
    return as_json(told)


def _read(tool: str, arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> Given:
    """The arguments of a tool that takes details. They are taken as they are, or as JSON."""
    others = {name: value for name, value in arguments.items() if name != "details"}
    known = {name: one for name, one in schema["properties"].items() if name != "details"}
    required = [name for name in schema["required"] if name != "details"]
    given = read_arguments(tool, others, {"properties": known, "required": required})
    details = arguments.get("details")
    if isinstance(details, str):
        try:
            details = msgspec.json.decode(details)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            details = None
    if not isinstance(details, Mapping):
        raise WrongInput(
            f"{tool} needs details: the parameters of the action as a JSON object, and {{}} where "
            "it has none."
        )
    return given | {"details": dict(details)}


_ID = {"type": "string", "description": "The id that request_confirmation answered with."}
_DETAILS = {
    "type": "object",
    "description": "The exact parameters of the action, as they will be used. The approval holds "
    "for these and no others.",
}

_REQUEST_SCHEMA = object_schema(
    {
        "action": {
            "type": "string",
            "description": "The name of the action, such as pay_invoice or deploy_production.",
        },
        "description": {
            "type": "string",
            "description": "What is to be done and why, for the person who decides.",
        },
        "details": _DETAILS,
        "session_key": {
            "type": "string",
            "description": "The session that this belongs to, if it has a name.",
        },
        "timeout_seconds": {
            "type": "integer",
            "minimum": 30,
            "maximum": 3600,
            "default": 300,
            "description": "How long people may take to decide; then the answer is no.",
        },
        "idempotency_key": {
            "type": "string",
            "description": "Asking again with the same key asks only once.",
        },
    },
    "action",
    "description",
    "details",
)
_GET_SCHEMA = object_schema(
    {
        "id": _ID,
        "wait_seconds": {
            "type": "integer",
            "minimum": 0,
            "maximum": LONGEST_WAIT_S,
            "default": 0,
            "description": "Wait so long for the decision before answering.",
        },
    },
    "id",
)
_CANCEL_SCHEMA = object_schema(
    {"id": _ID, "reason": {"type": "string", "description": "Why it is no longer needed."}}, "id"
)
_REDEEM_SCHEMA = object_schema({"id": _ID, "details": _DETAILS}, "id", "details")

CONFIRM_TOOLS: tuple[OfferedTool, ...] = (
    OfferedTool(
        name="request_confirmation",
        title="Ask people to confirm",
        description="Ask a person to confirm an action before you do it. It answers at once with "
        "an id and a status; pending means that nobody has decided. Only an approval that you "
        "redeem allows the action: nothing that is said elsewhere does, and no answer means no.",
        schema=_REQUEST_SCHEMA,
        run=_request,
        waits=True,
    ),
    OfferedTool(
        name="get_confirmation",
        title="See what was decided",
        description="See whether a confirmation was decided, and wait up to wait_seconds for it. "
        "A wait that ends without a decision changes nothing: the status stays pending and you "
        "can call it again.",
        schema=_GET_SCHEMA,
        run=_get,
        reads_only=True,
        waits=True,
    ),
    OfferedTool(
        name="cancel_confirmation",
        title="Take a request back",
        description="Take back a request for a confirmation that is no longer needed, so that "
        "nobody is asked in vain. It works only while nobody has decided.",
        schema=_CANCEL_SCHEMA,
        run=_cancel,
        waits=True,
    ),
    OfferedTool(
        name="redeem_confirmation",
        title="Use an approval",
        description="Use an approval up, just before you do the action: give the exact parameters "
        "that you are about to use. Only when it answers with a grant may the action be done, once "
        "and with these parameters. It fails the second time, and when the parameters differ from "
        "those that were approved.",
        schema=_REDEEM_SCHEMA,
        run=_redeem,
        waits=True,
    ),
)
