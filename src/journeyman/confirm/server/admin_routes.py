"""Routes for operating the service: the audit log, the policy, statistics, health and the OpenAPI
document.
"""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any

from litestar import Response, get
from litestar.params import QueryParameter
from litestar.response import Stream
from msgspec.structs import replace

from journeyman.confirm import schemas as api
from journeyman.confirm.audit import Format, export_lines
from journeyman.confirm.schemas import to_schema
from journeyman.confirm.server.agent_routes import CardId, Limit
from journeyman.confirm.server.guards import approver_guard
from journeyman.confirm.server.openapi import ok_response
from journeyman.confirm.server.request_context import LARGEST_INTEGER, ApiRequest
from journeyman.confirm.service_options import home_id
from journeyman.version import __version__

_LINES_PER_CHUNK = 500
_MEDIA_TYPES: dict[Format, str] = {"jsonl": "application/jsonl", "csv": "text/csv"}

Before = Annotated[int, QueryParameter(ge=1, le=LARGEST_INTEGER)]


@get("/audit", guards=[approver_guard])
async def audit(
    request: ApiRequest,
    limit: Limit = 50,
    before: Before = LARGEST_INTEGER,
    confirmation: CardId = "",
) -> api.AuditPage:
    """List the audit log, newest first. Starts with the entry before `before`; `confirmation`
    selects the entries about one confirmation.
    """
    found = await request.service.audit(limit=limit, before=before, confirmation=confirmation)
    events = [to_schema(entry, api.ListedEvent) for entry in found]
    entries = [replace(event, timestamp=event.at) for event in events]
    return api.AuditPage(audit=entries, entries=entries, count=len(entries))


@get("/audit/export", guards=[approver_guard], responses=ok_response(str, _MEDIA_TYPES["jsonl"]))
async def export_audit(
    request: ApiRequest, format_: Annotated[Format, QueryParameter(name="format")] = "jsonl"
) -> Stream:
    """Export the whole audit log as a file, oldest first. In jsonl, the digest of a line is the
    sha256 of the line without its digest.
    """
    await request.service.note("exported", request.user, format=format_)
    lines = export_lines(request.service.confirmations.audit_texts(), format_)

    def chunks() -> Iterator[str]:
        while chunk := "".join(islice(lines, _LINES_PER_CHUNK)):
            yield chunk

    disposition = f'attachment; filename="journeyman-audit.{format_}"'
    headers = {"content-disposition": disposition, "cache-control": "no-store"}
    return Stream(chunks(), media_type=_MEDIA_TYPES[format_], headers=headers)


@get("/audit/verify", guards=[approver_guard])
async def verify_audit(request: ApiRequest) -> api.Verified:
    """Verify the hash chain of the audit log. Names the first invalid entry."""
    return await request.service.verify_audit()


@get("/policy", guards=[approver_guard])
async def policy(request: ApiRequest) -> dict[str, Any]:
    """Get the policy in force. Contains the rules, and what can never be bypassed."""
    current = request.service.policy
    return {"digest": current.digest, **current.describe()}


@get("/stats", guards=[approver_guard])
async def stats(request: ApiRequest) -> api.Stats:
    """Get statistics on recent decisions. If nearly everything is approved quickly, too many
    requests need a person.
    """
    recent = await request.service.stats()
    decided = recent.approved + recent.denied
    return replace(recent, approval_rate=recent.approved / decided if decided else None)


@get("/health")
async def health(request: ApiRequest) -> api.Health:
    """Check that the service is running and can write. Returns 503 with the reason when the
    database is not writable. Nothing is recorded.
    """
    await request.context.write_check.ensure_writable()
    pending, now = await request.service.pending(), datetime.now(UTC)
    return api.Health(
        status="ok",
        version=__version__,
        home=home_id(request.context.options.files),
        pending=pending,
        pending_count=pending,
        timestamp=now,
    )


@get("/openapi.json", include_in_schema=False)
async def openapi(request: ApiRequest) -> Response[bytes]:
    """Get the OpenAPI document of this port."""
    document = await asyncio.to_thread(request.app.state["document"])
    return Response(document, media_type="application/json")


ADMIN_ROUTES = (audit, export_audit, verify_audit, policy, stats, health, openapi)
