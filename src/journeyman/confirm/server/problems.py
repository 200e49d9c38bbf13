"""What went wrong, in one shape: `{"error": {"code", "message", …}}`. Refusals of the service, the
framework's own complaints and faults nobody expected all end here.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from msgspec import Struct

from journeyman.confirm.server.answer import Answer, Header, Ready, answered
from journeyman.records.confirmation import Refusal, RefusalCode
from journeyman.records.errors import OutsideProblem, WrongInput

log = logging.getLogger("journeyman.confirm")

DoorCode = Literal["wrong_method", "too_slow", "too_large", "not_json", "internal", "unavailable"]
"""What is refused before anybody is asked, or fails after."""

STATUS: dict[str, int] = {
    "bad_request": 400,
    "unauthenticated": 401,
    "not_allowed": 403,
    "own_request": 403,
    "second_factor": 403,
    "channel_not_allowed": 403,
    "forbidden_action": 403,
    "edit_not_allowed": 403,
    "unknown": 404,
    "wrong_method": 405,
    "too_slow": 408,
    "already_settled": 409,
    "not_approved": 409,
    "already_redeemed": 409,
    "changed": 409,
    "key_reused": 409,
    "already_voted": 409,
    "expired": 410,
    "lapsed": 410,
    "digest_differs": 412,
    "too_large": 413,
    "not_json": 415,
    "over_limit": 429,
    "internal": 500,
    "unavailable": 503,
}


class Problem(Struct, frozen=True, kw_only=True):
    """What went wrong. Some codes say more beside it: who settled and when, or a limit's state."""

    code: RefusalCode | DoorCode
    message: str
    field: str | None = None


class ErrorView(Struct, frozen=True, kw_only=True):
    """Every answer that is not a yes."""

    error: Problem


def refused(refusal: Refusal) -> Answer:
    """A refusal of the service, as an answer."""
    headers: tuple[Header, ...] = ()
    reset_at = refusal.about.get("reset_at")
    if refusal.code == "over_limit" and isinstance(reset_at, int | float):
        headers = ((b"retry-after", b"%d" % max(1, math.ceil(reset_at - time.time()))),)
    return problem(refusal.code, refusal.message, refusal.about, headers=headers)


def problem(
    code: RefusalCode | DoorCode,
    message: str,
    about: Mapping[str, Any] | None = None,
    *,
    headers: tuple[Header, ...] = (),
) -> Answer:
    """An answer that says what went wrong."""
    more = {name: _told(name, value) for name, value in (about or {}).items()}
    if code == "unauthenticated":
        headers = (*headers, (b"www-authenticate", b"Bearer"))
    return answered(
        {"error": {**more, "code": code, "message": message}}, status=STATUS[code], headers=headers
    )


def _told(name: str, value: Any) -> Any:
    if name.endswith("_at") and isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC)
    return value


class BadBody(Exception):
    """A body that is not what the route takes. `field` is where, empty for the whole."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


def of_bad_body(_request: Request[Any, Any, Any], error: BadBody) -> Ready:
    about = {"field": error.field} if error.field else {}
    return Ready(problem("bad_request", str(error), about))


def of_framework(request: Request[Any, Any, Any], error: HTTPException) -> Ready:
    """Litestar's own complaints: no such route, not this method, a parameter that does not fit."""
    if isinstance(error, ValidationException):
        return Ready(_of_parameters(error))
    where = f"{request.method} {request.url.path}"
    if error.status_code == 404:
        said = problem("unknown", f"There is nothing at {request.url.path}. See /openapi.json.")
    elif error.status_code == 405:
        known = (error.headers or {}).get("allow", "").split(", ")
        allowed = ", ".join(sorted(set(known) - {"OPTIONS", ""}))
        said = problem(
            "wrong_method",
            f"{where} is not a way to call this; it takes {allowed}.",
            headers=((b"allow", allowed.encode()),),
        )
    elif error.status_code < 500:
        said = problem("bad_request", f"{where} was not understood: {error.detail}")
    else:
        return of_fault(request, error)
    return Ready(said)


def _of_parameters(error: ValidationException) -> Answer:
    found = error.extra if isinstance(error.extra, list) else []
    first = next((one for one in found if isinstance(one, dict)), {})
    field = str(first.get("key", "")).rstrip("_")
    if field == "data":
        return problem("bad_request", "The request has no body. Send a JSON object.")
    if not field:
        return problem("bad_request", str(error.detail))
    wrong = f"The parameter {field!r} cannot be used: {first.get('message', 'not valid')}."
    return problem("bad_request", wrong, {"field": field})


def of_wrong_input(_request: Request[Any, Any, Any], error: WrongInput) -> Ready:
    return Ready(problem("bad_request", str(error)))


def of_outside(request: Request[Any, Any, Any], error: OutsideProblem) -> Ready:
    log.error("%s %s: %s", request.method, request.url.path, error)
    return Ready(problem("unavailable", str(error)))


def of_fault(request: Request[Any, Any, Any], error: Exception) -> Ready:
    """A fault of this program. The caller learns that there was one; the log learns which."""
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return Ready(problem("internal", "The service failed on this request. Its log says why."))


EXPLAINED: dict[int | type[Exception], Callable[[Request[Any, Any, Any], Any], Response[Any]]] = {
    BadBody: of_bad_body,
    HTTPException: of_framework,
    WrongInput: of_wrong_input,
    OutsideProblem: of_outside,
    Exception: of_fault,
}
"""Which error is explained how, for Litestar."""


def explained(request: Request[Any, Any, Any], error: Exception) -> Answer:
    """The answer for an error, by the same table."""
    kinds = [kind for kind in EXPLAINED if isinstance(kind, type) and isinstance(error, kind)]
    ready = EXPLAINED[kinds[0]](request, error)
    assert isinstance(ready, Ready)
    return ready.answer
