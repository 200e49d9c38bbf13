"""The OpenAPI document of the routes. A route's docstring is its description, the first sentence of
it the summary; every route returns errors in the same shape.
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
from journeyman.confirm.server.errors import STATUS_CODES
from journeyman.confirm.server.request_context import SESSION_COOKIE, ApiRequest
from journeyman.version import __version__

_REQUESTS = (
    *("NewConfirmation", "Cancellation", "Redemption", "Approval", "Denial", "NewWhitelistEntry"),
    *("LoginRequest", "LinkRequest"),
)
_WITHOUT_CREDENTIAL = ("/health", "/login", "/links/open")


def ok_response(type_: type, media_type: str = "application/json") -> dict[int, ResponseSpec]:
    """Document a 200 response that the return type of the route does not describe."""
    spec = ResponseSpec(type_, generate_examples=False, description="Done", media_type=media_type)
    return {200: spec}


def _operation_id(handler: HTTPRouteHandler, *_: object) -> str:
    """Return the name of the handler in camel case: `log_in` becomes logIn."""
    first, *rest = handler.handler_name.strip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


_CONFIG = OpenAPIConfig(
    title="Journeyman confirmations",
    version=__version__,
    description="Agents request risky actions and wait; people decide. The bearer token is an "
    "agent's token or a person's key; a session on the page sends X-CSRF-Token with its cookie.",
    operation_id_creator=_operation_id,
    use_handler_docstrings=True,
    components=Components(
        security_schemes={
            "bearer": SecurityScheme(type="http", scheme="bearer"),
            "session": SecurityScheme(
                type="apiKey", name=SESSION_COOKIE, security_scheme_in="cookie"
            ),
        }
    ),
)


def _allow_nulls(definition: dict[str, Any]) -> None:
    """Document that an optional field of a request may be null, which means that it is left out."""
    properties = definition["properties"]
    for name in properties.keys() - set(definition["required"]):
        options = properties[name].get("anyOf", [properties[name]])
        if {"type": "null"} not in options:
            default = properties[name].pop("default", None)
            properties[name] = {"anyOf": [*options, {"type": "null"}], "default": default}


def openapi_document(routes: Sequence[HTTPRouteHandler]) -> bytes:
    """Return the OpenAPI document of these routes, as JSON."""
    # A separate application: the OpenAPI support of Litestar also serves third-party pages.
    app = Litestar(
        route_handlers=routes,
        request_class=ApiRequest,
        openapi_config=_CONFIG,
        logging_config=None,
    )
    document: dict[str, Any] = app.openapi_schema.to_schema()
    paths, components = document["paths"], document["components"]
    types = [getattr(schemas, name) for name in components["schemas"] if hasattr(schemas, name)]
    (error_schema, *_), definitions = msgspec.json.schema_components(
        [schemas.ErrorBody, *types], ref_template="#/components/schemas/{name}"
    )
    components["schemas"] |= definitions
    for name, definition in definitions.items():
        if name in _REQUESTS:
            _allow_nulls(definition)
    operations = [(path, operation) for path, item in paths.items() for operation in item.values()]
    for path, operation in operations:
        operation["description"] = " ".join(operation["description"].split())
        operation["summary"] = operation["description"].partition(". ")[0].rstrip(".")
        if path not in _WITHOUT_CREDENTIAL:
            operation["security"] = [{"bearer": []}, {"session": []}]
        for status in sorted({*STATUS_CODES.values()} - ({401} if path == "/health" else set())):
            operation["responses"][str(status)] = {
                "description": HTTPStatus(status).phrase,
                "content": {"application/json": {"schema": error_schema}},
            }
    # Facts that route declarations cannot express.
    export_content = paths["/audit/export"]["get"]["responses"]["200"]["content"]
    export_content["text/csv"] = {"schema": {"type": "string"}}
    for action in ("cancel", "deny"):
        paths[f"/confirm/{{confirmation_id}}/{action}"]["post"]["requestBody"]["required"] = False
    return msgspec.json.encode(document, enc_hook=default_serializer)
