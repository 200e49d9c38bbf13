"""API errors and their one shape: `{"error": {"code", "message", …}}`. Refusals by the service,
Litestar's own errors and unexpected exceptions all end here.
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

ErrorCode = (
    RefusalCode | Literal["wrong_method", "too_large", "not_json", "internal", "unavailable"]
)
"""The codes of refusals, and those of the HTTP server itself."""
Result = TypeVar("Result")

_CODES: dict[int, tuple[ErrorCode, ...]] = {
    400: ("bad_request",), 401: ("unauthenticated",), 404: ("unknown",), 405: ("wrong_method",),
    403: ("not_allowed", "own_request", "channel_not_allowed", "forbidden_action",
          "edit_not_allowed"),
    410: ("expired", "lapsed"), 412: ("digest_differs",), 413: ("too_large",),
    409: ("already_settled", "not_approved", "already_redeemed", "changed", "key_reused",
          "already_voted"),
    415: ("not_json",), 429: ("over_limit",), 500: ("internal",), 503: ("unavailable",),
}  # fmt: skip
STATUS_CODES = {code: status for status, codes in _CODES.items() for code in codes}


class ApiError(Exception):
    """An error response. `details` are further fields of the error document."""

    def __init__(
        self, code: ErrorCode, message: str, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.details = dict(details or {})


def raise_if_refused(result: Result | Refusal) -> Result:
    """Return the result of the service. Raise ApiError if it is a refusal."""
    if isinstance(result, Refusal):
        raise ApiError(result.code, result.message, result.about)
    return result


def handle_exception(
    request: Request[Any, Any, Any], exception: Exception
) -> Response[dict[str, Any]]:
    """Return the error response for any exception."""
    error = exception if isinstance(exception, ApiError) else _to_api_error(request, exception)
    headers = {"cache-control": "no-store"}
    if isinstance(exception, HTTPException) and "allow" in (exception.headers or {}):
        headers["allow"] = (exception.headers or {})["allow"]
    if error.code == "unauthenticated":
        headers["www-authenticate"] = "Bearer"
    if error.code == "over_limit":
        left = error.details.get("reset_at", 0.0) - time.time()
        headers["retry-after"] = str(max(1, math.ceil(left)))
    times = {
        name: datetime.fromtimestamp(value, UTC)
        for name, value in error.details.items()
        if name.endswith("_at") and isinstance(value, int | float)
    }
    return Response(
        {"error": {**error.details, **times, "code": error.code, "message": str(error)}},
        status_code=STATUS_CODES[error.code],
        headers=headers,
        media_type="application/json",
    )


def _to_api_error(request: Request[Any, Any, Any], exception: Exception) -> ApiError:
    """Translate a Litestar error or an unexpected one. Details of faults go only to the log."""
    operation = f"{request.method} {request.url.path}"
    match exception:
        case ValidationException(extra=[{"key": str(key), "message": message}, *_]):
            field = key.rstrip("_")
            return ApiError("bad_request", f"{field!r} is not valid: {message}.", {"field": field})
        case HTTPException(status_code=404):
            message = f"There is nothing at {request.url.path}. See /openapi.json."
            return ApiError("unknown", message)
        case HTTPException(status_code=405):
            return ApiError("wrong_method", f"{operation} is not supported.")
        case HTTPException(status_code=413):
            return ApiError("too_large", "The body is larger than 1 MB.")
        case HTTPException() if exception.status_code < 500:
            return ApiError("bad_request", f"{operation} is not valid: {exception.detail}")
        case WrongInput():
            return ApiError("bad_request", str(exception))
        case OutsideProblem():
            log.error("%s: %s", operation, exception)
            return ApiError("unavailable", str(exception))
    log.error("%s failed", operation, exc_info=exception)
    return ApiError("internal", "The service failed on this request. See its log for the reason.")
