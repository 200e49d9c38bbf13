"""The confirmation service, one per process: reads, changes, waiting, and background upkeep. Each
change is a transaction of its own, in a thread.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from msgspec.structs import replace

from journeyman.confirm import credentials
from journeyman.confirm.audit import Anchor, verify
from journeyman.confirm.broadcast import Hub, Listener
from journeyman.confirm.decisions import decide
from journeyman.confirm.digest import file_digests
from journeyman.confirm.policy import Policy
from journeyman.confirm.requests import cancel, expire_due, prepare, redeem, submit
from journeyman.confirm.schemas import Accepted, Granted, LoggedIn, Verified
from journeyman.confirm.whitelist import add_entry, revoke_entry
from journeyman.records.confirmation import (
    AuditKind,
    Confirmation,
    Credential,
    Notice,
    Refusal,
    Submission,
)
from journeyman.records.errors import JourneymanError, WrongInput
from journeyman.store.audit import stage_of
from journeyman.store.confirmations import Confirmations
from journeyman.store.ledger import Ledger

logger = logging.getLogger(__name__)

_LOOK_S = 0.5
"""How often overdue cards and a changed policy are looked for."""
_MOST_ENTRIES = 1_000
_PAUSE_AFTER_ERROR_S = 2.0
_STRANGER_PAUSE_S = 3.0

P = ParamSpec("P")
T = TypeVar("T")
Method = Callable[..., Coroutine[Any, Any, T]]


def _writes(work: Callable[..., T], *, by_policy: bool = False) -> Method[T]:
    """Return a method that runs `work` in a transaction, with the current policy if requested."""

    async def method(service: "Service", /, *args: Any, **kwargs: Any) -> T:
        policy = (service.policy,) if by_policy else ()
        return await asyncio.to_thread(service.write, work, *policy, *args, **kwargs)

    return method


def _reads(query: Callable[..., T]) -> Method[T]:
    """Return a method that queries the store in a thread."""

    async def method(service: "Service", /, *args: Any, **kwargs: Any) -> T:
        return await asyncio.to_thread(query, service.confirmations, *args, **kwargs)

    return method


class Service:
    """Confirmations in one store. `files` is the folder of the audit's anchor.
    `on_new` is called with new confirmations from any thread, and must not block.
    """

    def __init__(
        self,
        confirmations: Confirmations,
        files: Path,
        read_policy: Callable[[], Policy],
        *,
        clock: Callable[[], float] = time.time,
        look_s: float = _LOOK_S,
    ) -> None:
        self.confirmations = confirmations
        self.files = files
        self.policy = read_policy()
        self.on_new: Callable[[Confirmation], None] = lambda _card: None
        self.has_channels = True
        """Whether there are channels to notify people through."""
        self._read_policy = read_policy
        self._policy_problem = ""
        self.clock = clock
        self._look_s = look_s
        self._anchor = Anchor(files / "confirm.anchor")
        self._anchoring = threading.Lock()
        self._hub = Hub()
        self._head: tuple[int, str] | None = None
        self._seen, self._own = 0, set[int]()
        """The last audit entry that was published, and the later ones of this process."""
        self._next_stranger_at = -math.inf
        self._stopping = asyncio.Event()
        self._upkeep: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start. Raise AuditBroken if the audit does not reach its anchored head."""
        self._head = self._anchor.checked(self.confirmations)
        self._seen = self.confirmations.audit_head()[0]
        self._hub.start()
        await self._note("started", "service", policy=self.policy.digest)
        await self._record_policy(self.policy)
        await self._expire_due()
        self._upkeep = asyncio.create_task(self._run_upkeep())
        for card in await self.list(status="pending"):
            if card.notice.status == "waiting" or not self.has_channels:
                # Accepted by an earlier run that may have ended before it notified anyone.
                self.on_new(card)

    async def stop(self) -> None:
        """Answer waiting requests, and stop."""
        self._hub.close()
        self._stopping.set()
        if self._upkeep is not None:
            await self._upkeep
        await self._note("stopped", "service")

    def release_waiters(self) -> None:
        """End every wait and event stream, because the server stops."""
        self._hub.close()

    def write(
        self, work: Callable[Concatenate[Ledger, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Make a change and publish it, from any thread but the event loop's, which it would block.
        It is on disk before anyone learns of it.
        """
        with self.confirmations.writing(self.clock()) as ledger:
            result = work(ledger, *args, **kwargs)
        self._own.update(entry.seq for entry in ledger.entries)
        try:
            if ledger.entries:
                head = (ledger.entries[-1].seq, ledger.entries[-1].digest)
                with self._anchoring:
                    self._head = max(self._head or head, head)
                    self._anchor.write(*self._head)
        except OSError as error:
            logger.warning("the head of the audit was not anchored: %s", error)
        self._hub.publish(ledger.changed.values())
        return result

    def _publish_others(self) -> None:
        """Publish what other processes on this database wrote since the last look."""
        entries = self.confirmations.audit(limit=_MOST_ENTRIES, after=self._seen)
        if entries:
            self._seen = max(entry.seq for entry in entries)
        ids = {entry.confirmation for entry in entries if entry.seq not in self._own} - {""}
        self._own = {seq for seq in self._own if seq > self._seen}
        found = map(self.confirmations.find, ids)
        self._hub.publish(card for card in found if card is not None)

    _note = _writes(Ledger.note)
    check_writes = _writes(Ledger.check_writes)
    """Raise OutsideProblem if the database cannot be written to now."""
    log_out = _writes(credentials.log_out)
    cancel = _writes(cancel)
    decide = _writes(decide, by_policy=True)
    add_to_whitelist = _writes(add_entry, by_policy=True)
    revoke = _writes(revoke_entry)
    list = _reads(Confirmations.list)
    pending = _reads(Confirmations.count_pending)
    whitelist = _reads(Confirmations.whitelist)
    audit = _reads(Confirmations.audit)

    async def note(self, kind: AuditKind, by: Credential, id_: str = "", /, **about: Any) -> None:
        """Record in the audit what a person was shown."""
        await self._note(kind, credentials.actor_of(by), id_, **about)

    async def viewed(self, card: Confirmation, by: Credential) -> None:
        """Record in the audit that a person was shown a confirmation."""
        await self.note("viewed", by, card.id, digest=card.digest, status=card.status)

    async def refused(self, actor: str, about: dict[str, Any], confirmation: str = "") -> None:
        """Record in the audit a request that was refused before it reached the service."""
        await self._note("refused", actor, confirmation, **about)

    async def refused_stranger(self, at: str) -> None:
        """Record a wrong credential: in the log, and in the audit without filling it."""
        logger.warning("refused an unknown credential: %s", at)
        if self.clock() >= self._next_stranger_at:
            self._next_stranger_at = self.clock() + _STRANGER_PAUSE_S
            await self.refused("stranger", {"at": at, "why": "an unknown credential"})

    async def authenticate(self, secret: str) -> Credential | None:
        """Return the credential of a token, key or session; None if it is unknown or expired."""
        found = await self._credential(secret)
        return None if found is None or found.kind == "link" else found

    async def _credential(self, secret: str) -> Credential | None:
        digest = credentials.secret_digest(secret)
        found = await asyncio.to_thread(self.confirmations.find_credential, digest)
        is_over = found is None or (found.expires_at or math.inf) <= self.clock()
        return None if is_over else found

    async def log_in(self, name: str, key: str) -> LoggedIn | Refusal:
        credential = await self.authenticate(key)
        return await asyncio.to_thread(self.write, credentials.log_in, name, credential)

    async def open_link(self, secret: str) -> LoggedIn | Refusal:
        """Use a one-time link: open a session for its approver."""
        found = await self._credential(secret)
        link = found if found is not None and found.kind == "link" else None
        return await asyncio.to_thread(self.write, credentials.open_link, link)

    async def submit(self, submission: Submission) -> Accepted | Refusal:
        answer = await asyncio.to_thread(self._submit, submission)
        if isinstance(answer, Accepted) and answer.is_new:
            self.on_new(answer.confirmation)
        return answer

    def _submit(self, submission: Submission) -> Accepted | Refusal:
        policy = self.policy
        try:
            card = prepare(submission, policy, has_channels=self.has_channels)
        except WrongInput as error:
            about = {"code": "bad_request", "action": submission.action}
            self.write(Ledger.note, "refused", f"agent:{submission.requester}", **about)
            return Refusal("bad_request", str(error))
        return self.write(submit, policy, submission, card)

    async def get(self, id_: str) -> Confirmation | None:
        """Return a card by its id or a prefix of it; an overdue one is expired first."""
        card = await asyncio.to_thread(self.confirmations.find, id_)
        if card is not None and card.status == "pending" and card.expires_at <= self.clock():
            await self._expire_due()
            card = await asyncio.to_thread(self.confirmations.find, card.id)
        return card

    async def wait(self, id_: str, seconds: float) -> Confirmation | None:
        """Return the card once it is settled, or unchanged after `seconds`: a timeout decides
        nothing.
        """
        # Listen before reading the card, so that a change in between is not missed.
        with self._hub.listener(id_) as changes, suppress(TimeoutError):
            card = await self.get(id_)
            if card is None or card.status != "pending" or seconds <= 0:
                return card
            async with asyncio.timeout(seconds):
                while (changed := await changes.get()) is not None:
                    if changed.status != "pending":
                        return changed
        return await self.get(id_)

    def listener(self) -> AbstractContextManager[Listener]:
        """Receive every changed card from now on; None ends them."""
        return self._hub.listener()

    async def redeem(
        self, id_: str, by: Credential, digest: str, details: dict[str, Any] | None = None
    ) -> Granted | Refusal:
        return await asyncio.to_thread(self._redeem, id_, by, digest, details)

    def _redeem(
        self, id_: str, by: Credential, digest: str, details: dict[str, Any] | None
    ) -> Granted | Refusal:
        card, drift, policy = self.confirmations.find(id_), "", self.policy
        if card is not None and (bound := card.context.get("files")):
            try:
                now = file_digests(card.approved_details, policy.rule_for(card.action).file_params)
                drift = "" if now == bound else "a file that it names has changed since then"
            except WrongInput as error:
                drift = str(error)
        return self.write(redeem, policy, id_, by, digest=digest, details=details, drift=drift)

    def record_notice(self, id_: str, notice: Notice) -> None:
        """Record whether people were notified. The card then shows it."""
        self.write(_record_notice, id_, notice)

    async def verify_audit(self) -> Verified:
        return await asyncio.to_thread(lambda: verify(self.confirmations, self._anchor.read()))

    def audit_head(self) -> tuple[int, str]:
        """Return the number and digest of the last entry this service wrote, for notices."""
        return self._head or self.confirmations.audit_head()

    async def _expire_due(self) -> float | None:
        """Expire overdue cards and return when the next one is due."""
        expired = 1
        while expired:
            expired, next_due = await asyncio.to_thread(self.write, expire_due)
        return next_due

    async def _run_upkeep(self) -> None:
        while not self._stopping.is_set():
            try:
                await self._reload_policy()
                await asyncio.to_thread(self._publish_others)
                due = await self._expire_due()
                pause = self._look_s if due is None else due - self.clock()
                pause = min(max(pause, 0.01), self._look_s)
            except Exception as error:
                # Around one turn of a background loop, which must continue.
                is_expected = isinstance(error, JourneymanError)
                logger.warning("the upkeep failed: %s", error, exc_info=not is_expected)
                pause = _PAUSE_AFTER_ERROR_S
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)

    async def _reload_policy(self) -> None:
        try:
            policy = await asyncio.to_thread(self._read_policy)
        except JourneymanError as error:
            # Keep the current policy: a mistake in the file must not let anything through.
            if str(error) != self._policy_problem:
                logger.warning("the current policy stays in force: %s", error)
            self._policy_problem = str(error)
            return
        self._policy_problem = ""
        if policy != self.policy:
            await self._record_policy(policy)
            self.policy = policy

    async def _record_policy(self, policy: Policy) -> None:
        """Record the policy in force, unless it is the one that was recorded last."""
        last = await self.audit(limit=1, kind="policy_changed")
        if not last or last[0].about.get("digest") != policy.digest:
            about = {"digest": policy.digest, "policy": policy.describe()}
            await self._note("policy_changed", "service", **about)


def _record_notice(ledger: Ledger, id_: str, notice: Notice) -> None:
    card = ledger.find(id_)
    if card is None:
        return
    kind: AuditKind = "notice_failed" if notice.status == "failed" else "notified"
    about: dict[str, Any] = {"channel": notice.channel, "error": notice.error}
    if stage_of(card.status) == "closed" or ledger.fault(card):
        # A settled card, or one that was tampered with, stays unchanged.
        ledger.note(kind, "service", id_, **about)
    else:
        ledger.record(kind, "service", replace(card, notice=notice), **about)
