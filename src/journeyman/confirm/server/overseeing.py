"""The routes for keeping an eye on it: the whitelist, the audit log, the policy, and how people
decide.
"""

import time
from typing import Annotated, Literal

from litestar import delete, get, post
from litestar.params import FromPath, JSONBody, QueryParameter
from litestar.response.base import ASGIResponse

from journeyman.confirm.answers import Verified
from journeyman.confirm.server.answer import Answer, answered
from journeyman.confirm.server.bodies import NewWhitelistEntry
from journeyman.confirm.server.desk import Asked, desk_of
from journeyman.confirm.server.documented import BEARER, replies
from journeyman.confirm.server.export import Export
from journeyman.confirm.server.problems import refused
from journeyman.confirm.server.shapes import (
    AuditPage,
    EntryView,
    PolicyView,
    StatsView,
    WhitelistView,
)
from journeyman.confirm.server.views import audit_view, entry_view, policy_view, stats_view
from journeyman.confirm.server.who import approvers
from journeyman.records.confirmation import Refusal, WhitelistEntry

_LARGEST_SEQ = 2**53 - 1

AuditLimit = Annotated[int, QueryParameter(ge=1, le=500)]
AuditBefore = Annotated[
    int, QueryParameter(ge=1, le=_LARGEST_SEQ, description="Entries before this one.")
]
AuditCard = Annotated[str, QueryParameter(max_length=64, pattern="^[A-Za-z0-9_-]*$")]


@get(
    "/whitelist",
    before_request=approvers,
    operation_id="whitelist",
    summary="What is let through without asking",
    security=BEARER,
    responses=replies({200: WhitelistView}, (401,)),
)
async def whitelist(request: Asked) -> Answer:
    """With who added each entry and how often it was used."""
    found = await desk_of(request).service.whitelist()
    return answered(WhitelistView(whitelist=[entry_view(entry) for entry in found]))


@post(
    "/whitelist",
    before_request=approvers,
    status_code=201,
    operation_id="addToWhitelist",
    summary="Let an action through from now on",
    security=BEARER,
    responses=replies({201: EntryView}, (401,), body=True),
)
async def add_to_whitelist(request: Asked, data: JSONBody[NewWhitelistEntry]) -> Answer:
    """As far as the entry says; what can never be bypassed is refused."""
    lasts = data.expires_in_seconds
    entry = WhitelistEntry(
        id="",
        action=data.action,
        session_key=data.session_key,
        requester=data.requester,
        constraints=data.constraints,
        other_parameters=data.other_parameters,
        added_by=request.user.name,
        added_at=time.time(),
        reason=data.reason,
        expires_at=None if lasts is None else time.time() + lasts,
    )
    added = await desk_of(request).service.add_to_whitelist(entry, request.user)
    if isinstance(added, Refusal):
        return refused(added)
    return answered(entry_view(added), status=201)


@delete(
    "/whitelist/{entry_id:str}",
    before_request=approvers,
    status_code=200,
    operation_id="revokeFromWhitelist",
    summary="Take an entry off the whitelist",
    security=BEARER,
    responses=replies({200: EntryView}, (401, 404), body=True),
)
async def revoke(request: Asked, entry_id: FromPath[str]) -> Answer:
    """The entry is kept, as revoked, and no longer listed."""
    gone = await desk_of(request).service.revoke(entry_id[:64], request.user)
    return refused(gone) if isinstance(gone, Refusal) else answered(entry_view(gone))


@get(
    "/audit",
    before_request=approvers,
    operation_id="audit",
    summary="The audit log, newest first",
    security=BEARER,
    responses=replies({200: AuditPage}, (401,)),
)
async def audit(
    request: Asked,
    limit: AuditLimit = 50,
    before: AuditBefore = _LARGEST_SEQ,
    confirmation: AuditCard = "",
) -> Answer:
    """All of it, or what is about one confirmation."""
    found = await desk_of(request).service.audit(
        limit=limit, before=before, confirmation=confirmation
    )
    return answered(AuditPage(audit=[audit_view(entry) for entry in found]))


@get(
    "/audit/export",
    before_request=approvers,
    operation_id="exportAudit",
    summary="The whole audit log as a file, oldest first",
    description="In a line of jsonl, sha256 of the line without its digest is the digest.",
    security=BEARER,
    responses=replies({200: str}, (401,), media="application/jsonl"),
)
async def export(
    request: Asked,
    format_: Annotated[Literal["jsonl", "csv"], QueryParameter(name="format")] = "jsonl",
) -> ASGIResponse:
    """Every entry."""
    await desk_of(request).service.exported(request.user, format_)
    return Export(desk_of(request).service, format_)


@get(
    "/audit/verify",
    before_request=approvers,
    operation_id="verifyAudit",
    summary="Check the chain of the audit log",
    security=BEARER,
    responses=replies({200: Verified}, (401,)),
)
async def verify(request: Asked) -> Answer:
    """Names the first entry that does not hold."""
    return answered(await desk_of(request).service.verify_audit())


@get(
    "/policy",
    before_request=approvers,
    operation_id="policy",
    summary="The policy in force",
    security=BEARER,
    responses=replies({200: PolicyView}, (401,)),
)
async def policy(request: Asked) -> Answer:
    """The rules, and what can never be bypassed."""
    return answered(policy_view(desk_of(request).service.policy))


@get(
    "/stats",
    before_request=approvers,
    operation_id="stats",
    summary="How people decided lately",
    security=BEARER,
    responses=replies({200: StatsView}, (401,)),
)
async def stats(request: Asked) -> Answer:
    """Approving nearly all, and fast, means that too much is asked."""
    return answered(stats_view(await desk_of(request).service.stats()))


ROUTES = (whitelist, add_to_whitelist, revoke, audit, export, verify, policy, stats)
