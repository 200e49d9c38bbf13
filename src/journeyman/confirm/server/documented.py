"""The OpenAPI document: which answers a route gives, who may call it, and the whole as bytes."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig, ResponseSpec
from litestar.openapi.spec import Components, SecurityScheme
from litestar.serialization import default_serializer

from journeyman.confirm.server.bodies import Strictly
from journeyman.confirm.server.problems import ErrorView
from journeyman.version import __version__

_WORDS = {
    400: "The request cannot be used as it is",
    401: "The service does not know who asks",
    403: "Not allowed",
    404: "Not known",
    405: "Another method is used here",
    408: "The body came too slowly",
    409: "Something happened before that excludes it",
    410: "Too late",
    412: "The digest is not the one that is stored",
    413: "The body is too large",
    415: "The body is not JSON",
    429: "Over a limit",
    500: "The service failed",
    503: "The service cannot do it now",
}
_ALWAYS = (400, 403, 405, 500, 503)
_WITH_BODY = (408, 413, 415)

BEARER: list[dict[str, list[str]]] = [{"bearer": []}, {"session": []}]
"""What a route needs: a token or key, or the page's session."""
SESSION: list[dict[str, list[str]]] = [{"session": []}]
NOBODY: list[dict[str, list[str]]] = []


def replies(
    good: dict[int, Any],
    bad: Iterable[int] = (),
    *,
    body: bool = False,
    media: str = "application/json",
) -> dict[int, ResponseSpec]:
    """What a route answers: its own answers, and the problems that it shares with others."""
    told = {
        status: ResponseSpec(kind, generate_examples=False, description="Done", media_type=media)
        for status, kind in good.items()
    }
    for status in sorted({*_ALWAYS, *bad, *(_WITH_BODY if body else ())}):
        told[status] = ResponseSpec(ErrorView, generate_examples=False, description=_WORDS[status])
    return told


CONFIG = OpenAPIConfig(
    title="Journeyman confirmations",
    version=__version__,
    description="Agents ask for risky actions and wait; people decide.",
    components=Components(
        security_schemes={
            "bearer": SecurityScheme(
                type="http", scheme="bearer", description="An agent's token or a person's key."
            ),
            "session": SecurityScheme(
                type="apiKey",
                name="journeyman_session",
                security_scheme_in="cookie",
                description="A person's session on the page; with X-CSRF-Token where it changes "
                "something.",
            ),
        }
    ),
)


def document_of(routes: Sequence[HTTPRouteHandler]) -> bytes:
    """The OpenAPI document of these routes, as JSON."""
    # An application of its own: one that serves the document brings pages of others along.
    app = Litestar(
        route_handlers=routes,
        openapi_config=CONFIG,
        dto=Strictly,
        return_dto=None,
        logging_config=None,
    )
    document = app.openapi_schema.to_schema()
    _complete(document["paths"])
    return msgspec.json.encode(document, enc_hook=default_serializer)


def _complete(paths: dict[str, Any]) -> None:
    """Add what the routes' own words have no place for."""
    paths["/confirm"]["post"]["parameters"] = [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "description": "The same as idempotency_key in the body.",
            "schema": {"type": "string", "maxLength": 200},
        }
    ]
    exported = paths["/audit/export"]["get"]["responses"]["200"]["content"]
    exported["text/csv"] = {"schema": {"type": "string"}}
    for way in ("cancel", "deny"):
        paths[f"/confirm/{{confirmation_id}}/{way}"]["post"]["requestBody"]["required"] = False
