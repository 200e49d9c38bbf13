"""The confirmation service, one per process: reads, changes, waiting, and background upkeep."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from msgspec.structs import replace

from journeyman.confirm import credentials
from journeyman.confirm.audit import Anchor, verify
from journeyman.confirm.broadcast import Hub, until_none
from journeyman.confirm.credentials import Signing, actor_of, read_key
from journeyman.confirm.decisions import decide, stats_of
from journeyman.confirm.digest import file_digests
from journeyman.confirm.group_commit import Writer
from journeyman.confirm.policy import Policy
from journeyman.confirm.requests import cancel, expire_due, prepare, redeem, submit
from journeyman.confirm.schemas import Accepted, Granted, LoggedIn, Stats, Verified
from journeyman.confirm.whitelist import add_entry, revoke_entry
from journeyman.records.confirmation import (
    AuditEntry,
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
"""How often changes by other processes are looked for."""
_PAUSE_AFTER_ERROR_S = 2.0
_STATS_DAYS = 30
_MAX_INLINE_LENGTH = 8_192
"""Longest details, in characters, that are processed on the event loop; others use a thread."""
_MAX_FOREIGN_ENTRIES = 10_000
_CREDENTIAL_CACHE_S = 1.0
"""How long a credential is cached: a busy agent sends many requests."""
_CREDENTIAL_EVENTS = frozenset(("credential_made", "credential_revoked", "logged_out"))
"""Audit events after which a cached credential may no longer be valid."""

P = ParamSpec("P")
T = TypeVar("T")
Listener = Callable[[Confirmation], None]
Method = Callable[..., Coroutine[Any, Any, T]]


def _writes(work: Callable[..., T], *, by_policy: bool = False) -> Method[T]:
    """Return a method that runs `work` in a transaction, with the current policy if requested."""

    async def method(service: "Service", /, *args: Any, **kwargs: Any) -> T:
        policy = (service.policy,) if by_policy else ()
        return await service.writer.do(work, *policy, *args, **kwargs)

    return method


def _reads(query: Callable[..., T]) -> Method[T]:
    """Return a method that queries the store in a thread."""

    async def method(service: "Service", /, *args: Any, **kwargs: Any) -> T:
        return await asyncio.to_thread(query, service.confirmations, *args, **kwargs)

    return method


class Service:
    """Confirmations in one store. `files` is the folder of its key and of the audit's anchor.
    `on_new` and `on_settled` are called with confirmations from any thread, and must not block.
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
        self.policy = read_policy()
        self.signing = Signing(read_key(files / "confirm.key"))
        self.on_new: Listener = lambda _card: None
        self.on_settled: Listener = lambda _card: None
        self.has_channels = True
        """Whether there are channels to notify people through."""
        self.writer = Writer(confirmations, clock, self._after_commit)
        self._read_policy = read_policy
        self._policy_problem = ""
        self.clock = clock
        self._look_s = look_s
        self._anchor = Anchor(files / "confirm.anchor")
        self._hub = Hub()
        self._head: tuple[int, str] | None = None
        self._long_work = asyncio.Lock()
        self._credentials: dict[str, tuple[Credential, float]] = {}
        self._upkeep: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start. Raise AuditBroken if the audit does not reach its anchored head."""
        self._head = self._anchor.checked(self.confirmations)
        self._hub.start()
        try:
            await self.writer.do(Ledger.note, "started", "service", policy=self.policy.digest)
            await self._record_policy(self.policy)
            await self._expire_due()
        except BaseException:
            await asyncio.to_thread(self.writer.stop)
            raise
        self._upkeep = asyncio.create_task(self._run_upkeep())
        for card in await self.list(status="pending"):
            if card.notice.status == "waiting" or not self.has_channels:
                # Accepted by an earlier run that may have ended before it notified anyone.
                self.on_new(card)

    async def stop(self) -> None:
        """Answer waiting requests, finish pending writes, and stop."""
        self._hub.close()
        try:
            if self._upkeep is not None:
                self._upkeep.cancel()
                with suppress(asyncio.CancelledError):
                    await self._upkeep
            await self.writer.do(Ledger.note, "stopped", "service")
        finally:
            # Even if nothing can be written, so that no thread or file stays open.
            await asyncio.to_thread(self.writer.stop)

    def release_waiters(self) -> None:
        """End every wait and event stream, because the server stops."""
        self._hub.close()

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
        await self.writer.do(Ledger.note, kind, actor_of(by), id_, **about)

    async def viewed(self, card: Confirmation, by: Credential) -> None:
        """Record in the audit that a person was shown a confirmation."""
        await self.note("viewed", by, card.id, digest=card.digest, status=card.status)

    async def refused(self, actor: str, about: dict[str, Any], confirmation: str = "") -> None:
        """Record in the audit a request that was refused before it reached the service."""
        await self.writer.do(Ledger.note, "refused", actor, confirmation, **about)

    async def authenticate(self, secret: str) -> Credential | None:
        """Return the credential of a token, key or session; None if it is unknown or expired."""
        digest, now = credentials.secret_digest(secret), self.clock()
        # Kept in a local: if the cache is replaced during the lookup, a stale result goes to the
        # discarded cache.
        cache = self._credentials
        credential, cached_at = cache.get(digest, (None, -math.inf))
        if not 0 <= now - cached_at < _CREDENTIAL_CACHE_S:
            credential = await asyncio.to_thread(self.confirmations.find_credential, digest)
            if credential is not None:
                cache[digest] = (credential, now)
        if credential is None or credential.expires_at is None or now < credential.expires_at:
            return credential
        return None

    async def log_in(self, name: str, key: str) -> LoggedIn | Refusal:
        return await self.writer.do(credentials.log_in, name, await self.authenticate(key))

    async def open_link(self, link: str) -> LoggedIn | Refusal:
        """Use a one-time link: open a session for its approver, or one that views its card."""
        return await self.writer.do(credentials.open_link, self.signing.read_link(link))

    async def submit(self, submission: Submission) -> Accepted | Refusal:
        policy = self.policy
        rule = policy.rule_for(submission.action)
        prepare_card = partial(prepare, submission, policy, has_channels=self.has_channels)
        is_slow = rule.schema or rule.file_params or _is_long(submission.details)
        try:
            card = await self._in_thread(prepare_card) if is_slow else prepare_card()
        except WrongInput as error:
            about = {"code": "bad_request", "action": submission.action}
            await self.refused(f"agent:{submission.requester}", about)
            return Refusal("bad_request", str(error))
        answer = await self.writer.do(submit, policy, submission, card)
        if isinstance(answer, Accepted) and answer.is_new:
            self.on_new(answer.confirmation)
        return answer

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
                async for changed in until_none(changes):
                    if changed.status != "pending":
                        return changed
        return await self.get(id_)

    async def changes(self, id_: str | None = None) -> AsyncGenerator[Confirmation, None]:
        """Yield one card or all as they change, until the service stops or the caller lags."""
        with self._hub.listener(id_ or "") as changes:
            async for card in until_none(changes):
                yield card

    async def redeem(
        self, id_: str, by: Credential, digest: str, details: dict[str, Any] | None = None
    ) -> Granted | Refusal:
        card, drift = await asyncio.to_thread(self.confirmations.find, id_), ""
        if card is not None and (bound := card.context.get("files")):
            file_params = self.policy.rule_for(card.action).file_params
            try:
                now = await self._in_thread(file_digests, card.approved_details, file_params)
                drift = "" if now == bound else "a file that it names has changed since then"
            except WrongInput as error:
                drift = str(error)
        return await self.writer.do(
            redeem, self.policy, id_, by, digest=digest, details=details, drift=drift
        )

    def record_notice(self, id_: str, notice: Notice) -> None:
        """From any thread: record whether people were notified. The card then shows it."""
        self.writer.soon(_record_notice, id_, notice)

    def record_shown(self, ids: Sequence[str]) -> None:
        """From any thread: record that these were announced only in the terminal."""
        about: dict[str, Any] = {"channel": "terminal", "cards": [*ids]}
        self.writer.soon(Ledger.note, "notified", "service", **about)

    async def stats(self) -> Stats:
        since = self.clock() - _STATS_DAYS * 86_400
        return stats_of(await self.list(since=since), days=_STATS_DAYS)

    async def verify_audit(self) -> Verified:
        return await asyncio.to_thread(lambda: verify(self.confirmations, self._anchor.read()))

    def audit_head(self) -> tuple[int, str]:
        """Return the number and digest of the last entry this service wrote, for notices."""
        return self._head or self.confirmations.audit_head()

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run work that may take long in a thread, one at a time, so that others can proceed."""
        async with self._long_work:
            return await asyncio.to_thread(work, *args, **kwargs)

    def _after_commit(self, ledger: Ledger) -> None:
        """In the writer's thread: anchor the head, and publish what any process wrote."""
        others: Sequence[AuditEntry] = ()
        if self._head and (before := ledger.head_before[0]) > self._head[0]:
            others = self.confirmations.audit(
                limit=_MAX_FOREIGN_ENTRIES, after=self._head[0], before=before + 1
            )
        ids = {entry.confirmation for entry in others} - {"", *ledger.changed}
        foreign = map(self.confirmations.find, ids)
        cards = [*ledger.changed.values(), *(card for card in foreign if card is not None)]
        try:
            if entries := [*ledger.entries[-1:], *others[:1]]:
                self._head = (entries[0].seq, entries[0].digest)
                self._anchor.write(*self._head)
        finally:
            # Listeners are served even if the head cannot be anchored.
            if any(entry.kind in _CREDENTIAL_EVENTS for entry in (*ledger.entries, *others)):
                self._credentials = {}
            self._hub.publish(cards)
            for card in cards:
                if card.status != "pending":
                    self.on_settled(card)

    async def _expire_due(self) -> float | None:
        """Expire overdue cards and return when the next one is due. This also detects what other
        processes wrote.
        """
        expired = 1
        while expired:
            expired, next_due = await self.writer.do(expire_due)
        return next_due

    async def _run_upkeep(self) -> None:
        while True:
            try:
                await self._reload_policy()
                due = await self._expire_due()
                pause = self._look_s if due is None else due - self.clock()
                pause = min(max(pause, 0.01), self._look_s)
            except Exception as error:
                # Around one turn of a background loop, which must continue.
                is_expected = isinstance(error, JourneymanError)
                logger.warning("the upkeep failed: %s", error, exc_info=not is_expected)
                pause = _PAUSE_AFTER_ERROR_S
            await asyncio.sleep(pause)

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
            await self.writer.do(Ledger.note, "policy_changed", "service", **about)


def _is_long(details: dict[str, Any]) -> bool:
    try:
        return len(repr(details)) > _MAX_INLINE_LENGTH
    except RecursionError:
        return True


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
