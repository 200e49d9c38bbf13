"""What went wrong, in one shape: `{"error": {"code", "message", …}}`. Refusals of the service, the
framework's own complaints and faults nobody expected all end here.
"""

import logging
import math
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException

from journeyman.records.confirmation import Refusal, RefusalCode
from journeyman.records.errors import OutsideProblem, WrongInput

log = logging.getLogger("journeyman.confirm")

ServerCode = Literal["wrong_method", "too_slow", "too_large", "not_json", "internal", "unavailable"]
"""What is refused before the service is asked, or fails after."""
Allowed = TypeVar("Allowed")

_CODES: dict[int, tuple[RefusalCode | ServerCode, ...]] = {
    400: ("bad_request",), 401: ("unauthenticated",), 404: ("unknown",), 405: ("wrong_method",),
    403: ("not_allowed", "own_request", "second_factor", "channel_not_allowed", "forbidden_action",
          "edit_not_allowed"),
    408: ("too_slow",), 410: ("expired", "lapsed"), 412: ("digest_differs",), 413: ("too_large",),
    409: ("already_settled", "not_approved", "already_redeemed", "changed", "key_reused",
          "already_voted"),
    415: ("not_json",), 429: ("over_limit",), 500: ("internal",), 503: ("unavailable",),
}  # fmt: skip
STATUS = {code: status for status, codes in _CODES.items() for code in codes}


class Refused(Exception):
    """A request that is not done, and what its sender is told. With `close`, the connection ends
    with the answer.
    """

    def __init__(
        self,
        code: RefusalCode | ServerCode,
        message: str,
        about: Mapping[str, Any] | None = None,
        *,
        close: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.about = dict(about or {})
        self.headers = {"connection": "close"} if close else {}


def allowed(answer: Allowed | Refusal) -> Allowed:
    """What the service did. Raises Refused when it refused."""
    if isinstance(answer, Refusal):
        raise Refused(answer.code, answer.message, answer.about)
    return answer


def respond(request: Request[Any, Any, Any], error: Exception) -> Response[dict[str, Any]]:
    """What the sender of a request is told of an error."""
    refused = error if isinstance(error, Refused) else _refused(request, error)
    about = refused.about
    if refused.code == "unauthenticated":
        refused.headers["www-authenticate"] = "Bearer"
    if refused.code == "over_limit" and "reset_at" in about:
        refused.headers["retry-after"] = str(max(1, math.ceil(about["reset_at"] - time.time())))
    for name, value in about.items():
        if name.endswith("_at") and isinstance(value, int | float):
            about[name] = datetime.fromtimestamp(value, UTC)
    return Response(
        {"error": {**about, "code": refused.code, "message": str(refused)}},
        status_code=STATUS[refused.code],
        headers={"cache-control": "no-store", **refused.headers},
        media_type="application/json",
    )


def _refused(request: Request[Any, Any, Any], error: Exception) -> Refused:
    """Litestar's own complaint, or a fault of this program, of which only the log learns more."""
    place = f"{request.method} {request.url.path}"
    match error:
        case ValidationException():
            return _wrong_parameter(error)
        case HTTPException(status_code=404):
            nothing = f"There is nothing at {request.url.path}. See /openapi.json."
            return Refused("unknown", nothing)
        case HTTPException(status_code=405):
            methods = {*(error.headers or {}).get("allow", "").split(", ")} - {"OPTIONS", ""}
            allow = ", ".join(sorted(methods))
            refused = Refused("wrong_method", f"{place} is not a way to call this: use {allow}.")
            refused.headers["allow"] = allow
            return refused
        case HTTPException() if error.status_code < 500:
            return Refused("bad_request", f"{place} was not understood: {error.detail}")
        case WrongInput():
            return Refused("bad_request", str(error))
        case OutsideProblem():
            log.error("%s: %s", place, error)
            return Refused("unavailable", str(error))
    log.error("%s failed", place, exc_info=error)
    return Refused("internal", "The service failed on this request. Its log says why.")


def _wrong_parameter(error: ValidationException) -> Refused:
    found = error.extra if isinstance(error.extra, list) else []
    first = next((one for one in found if isinstance(one, dict)), {})
    field = str(first.get("key", "")).rstrip("_")
    if field == "data":
        return Refused("bad_request", "The request has no body. Send a JSON object.")
    if not field:
        return Refused("bad_request", str(error.detail))
    wrong = f"The parameter {field!r} cannot be used: {first.get('message', 'not valid')}."
    return Refused("bad_request", wrong, {"field": field})
