"""The OpenAPI document of the routes. A route's docstring is its description there, the first
sentence its summary; every route answers problems in the same shape.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig, ResponseSpec
from litestar.openapi.spec import Components, SecurityScheme
from litestar.serialization import default_serializer

from journeyman.confirm import schemas
from journeyman.confirm.server.problems import STATUS
from journeyman.confirm.server.request import COOKIE, KnownRequest
from journeyman.version import __version__

_WITHOUT_CREDENTIAL = ("/health", "/login", "/links/open")


def answers(kind: type, media_type: str = "application/json") -> dict[int, ResponseSpec]:
    """An answer that the route's own type does not tell of."""
    spec = ResponseSpec(kind, generate_examples=False, description="Done", media_type=media_type)
    return {200: spec}


def _operation_id(handler: HTTPRouteHandler, *_: object) -> str:
    """A function's name as operations are named: `log_in` is logIn."""
    first, *rest = handler.handler_name.strip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


_CONFIG = OpenAPIConfig(
    title="Journeyman confirmations",
    version=__version__,
    description="Agents ask for risky actions and wait; people decide. Bearer is an agent's token "
    "or a person's key; a session on the page sends X-CSRF-Token beside its cookie.",
    operation_id_creator=_operation_id,
    use_handler_docstrings=True,
    components=Components(
        security_schemes={
            "bearer": SecurityScheme(type="http", scheme="bearer"),
            "session": SecurityScheme(type="apiKey", name=COOKIE, security_scheme_in="cookie"),
        }
    ),
)


def document_of(routes: Sequence[HTTPRouteHandler]) -> bytes:
    """The OpenAPI document of these routes, as JSON."""
    # An application of its own: one that serves the document brings pages of others along.
    app = Litestar(
        route_handlers=routes,
        request_class=KnownRequest,
        openapi_config=_CONFIG,
        logging_config=None,
    )
    document: dict[str, Any] = app.openapi_schema.to_schema()
    paths, components = document["paths"], document["components"]
    kinds = [getattr(schemas, name) for name in components["schemas"] if hasattr(schemas, name)]
    (problem, *_), described = msgspec.json.schema_components(
        [schemas.ErrorBody, *kinds], ref_template="#/components/schemas/{name}"
    )
    components["schemas"] |= described
    for path, method in ((path, one) for path, found in paths.items() for one in found):
        operation = paths[path][method]
        operation["description"] = " ".join(operation["description"].split())
        operation["summary"] = operation["description"].partition(". ")[0].rstrip(".")
        if path not in _WITHOUT_CREDENTIAL:
            operation["security"] = [{"bearer": []}, {"session": []}]
        for status in sorted({*STATUS.values()} - ({401} if path == "/health" else set())):
            operation["responses"][str(status)] = {
                "description": HTTPStatus(status).phrase,
                "content": {"application/json": {"schema": problem}},
            }
    # What the routes' own words have no place for.
    exported = paths["/audit/export"]["get"]["responses"]["200"]["content"]
    exported["text/csv"] = {"schema": {"type": "string"}}
    for way in ("cancel", "deny"):
        paths[f"/confirm/{{confirmation_id}}/{way}"]["post"]["requestBody"]["required"] = False
    return msgspec.json.encode(document, enc_hook=default_serializer)
