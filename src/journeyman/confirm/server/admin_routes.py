"""Routes for operating the service: the audit log, the policy, health and the OpenAPI document."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any

from litestar import get
from litestar.params import QueryParameter
from litestar.response import Stream
from msgspec.structs import replace

from journeyman.confirm import schemas as api
from journeyman.confirm.audit import export_lines
from journeyman.confirm.schemas import to_schema
from journeyman.confirm.server.agent_routes import CardId, Limit
from journeyman.confirm.server.guards import approver_guard
from journeyman.confirm.server.request_context import LARGEST_INTEGER, ApiRequest
from journeyman.confirm.service_options import home_id
from journeyman.version import __version__

_LINES_PER_CHUNK = 500

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


@get("/audit/export", guards=[approver_guard], media_type="application/jsonl")
async def export_audit(request: ApiRequest) -> Stream:
    """Export the whole audit log as a file, oldest first. The digest of a line is the sha256 of the
    line without its digest.
    """
    await request.service.note("exported", request.user)
    lines = export_lines(request.service.confirmations.audit_texts())

    def chunks() -> Iterator[str]:
        while chunk := "".join(islice(lines, _LINES_PER_CHUNK)):
            yield chunk

    disposition = 'attachment; filename="journeyman-audit.jsonl"'
    headers = {"content-disposition": disposition, "cache-control": "no-store"}
    return Stream(chunks(), media_type="application/jsonl", headers=headers)


@get("/audit/verify", guards=[approver_guard])
async def verify_audit(request: ApiRequest) -> api.Verified:
    """Verify the hash chain of the audit log. Names the first invalid entry."""
    return await request.service.verify_audit()


@get("/policy", guards=[approver_guard])
async def policy(request: ApiRequest) -> dict[str, Any]:
    """Get the policy in force. Contains the rules, and what can never be bypassed."""
    current = request.service.policy
    return {"digest": current.digest, **current.describe()}


@get("/health")
async def health(request: ApiRequest) -> api.Health:
    """Check that the service is running and can write. Returns 503 with the reason when the
    database is not writable. Nothing is recorded.
    """
    await request.service.check_writes()
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
async def openapi(request: ApiRequest) -> dict[str, Any]:
    """Get the OpenAPI document of this port."""
    return request.app.openapi_schema.to_schema()


ADMIN_ROUTES = (audit, export_audit, verify_audit, policy, health, openapi)
