"""The service that surfaces call, one in a process: reads, changes, waiting, and its upkeep."""

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
from journeyman.confirm.credentials import Signing, actor_of, read_key
from journeyman.confirm.decisions import decide, stats_of
from journeyman.confirm.digest import file_digests
from journeyman.confirm.hub import Hub, until_none
from journeyman.confirm.policy import Policy
from journeyman.confirm.requests import cancel, expire_due, prepare, redeem, submit
from journeyman.confirm.schemas import Accepted, Granted, LoggedIn, Stats, Verified
from journeyman.confirm.whitelist import add_entry, revoke_entry
from journeyman.confirm.writer import Writer
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
from journeyman.store.confirmations import Confirmations, Ledger

logger = logging.getLogger(__name__)

_LOOK_S = 0.5
"""How often others' changes are looked for."""
_AFTER_PROBLEM_S = 2.0
_STATS_DAYS = 30
_SOON_DONE = 8_192
"""Details of so many letters are gone through at once, on the event loop; longer ones beside it."""
_MOST_PASSED_ON = 10_000
_RECENT_S = 1.0
"""How long a credential is known without being looked up: a busy agent sends many requests."""
_CHANGES_OF_WHO = frozenset(("credential_made", "credential_revoked", "logged_out"))
"""What the audit says when a credential that was looked up may no longer be good."""

P = ParamSpec("P")
T = TypeVar("T")
Told = Callable[[Confirmation], None]
Method = Callable[..., Coroutine[Any, Any, T]]


def _writes(work: Callable[..., T], *, by_policy: bool = False) -> Method[T]:
    """A method that makes a change in a transaction, where asked for by the policy in force."""

    async def method(service: "Service", /, *given: Any, **named: Any) -> T:
        policy = (service.policy,) if by_policy else ()
        return await service.writer.do(work, *policy, *given, **named)

    return method


def _reads(query: Callable[..., T]) -> Method[T]:
    """A method that asks the store."""

    async def method(service: "Service", /, *given: Any, **named: Any) -> T:
        return await asyncio.to_thread(query, service.confirmations, *given, **named)

    return method


class Service:
    """Confirmations over one store. `files` is the folder of its key and of the audit's anchor;
    `told_new` and `told_settled` hear of cards, from any thread, and must not wait.
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
        self.told_new: Told = lambda _card: None
        self.told_settled: Told = lambda _card: None
        self.notifies = True
        """Whether there are channels through which people are told."""
        self.writer = Writer(confirmations, clock, self._written)
        self._read_policy = read_policy
        self._policy_problem = ""
        self._clock = clock
        self._look_s = look_s
        self._anchor = Anchor(files / "confirm.anchor")
        self._hub = Hub()
        self._head: tuple[int, str] | None = None
        self._long_work = asyncio.Lock()
        self._known: dict[str, tuple[Credential, float]] = {}
        self._upkeep: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to work. Raises AuditBroken when the audit does not reach its noted head."""
        self._head = self._anchor.checked(self.confirmations)
        self._hub.start()
        try:
            await self.writer.do(Ledger.note, "started", "service", policy=self.policy.digest)
            await self._note_policy(self.policy)
            await self._sweep()
        except BaseException:
            await asyncio.to_thread(self.writer.stop)
            raise
        self._upkeep = asyncio.create_task(self._keep_up())
        for card in await self.list(status="pending"):
            if card.notice.status == "waiting" or not self.notifies:
                # It was taken, but the program may have ended before anybody was told.
                self.told_new(card)

    async def stop(self) -> None:
        """Answer who still waits, write what was begun, and end."""
        self._hub.close()
        try:
            if self._upkeep is not None:
                self._upkeep.cancel()
                with suppress(asyncio.CancelledError):
                    await self._upkeep
            await self.writer.do(Ledger.note, "stopped", "service")
        finally:
            # Also when it cannot be written down: threads and files do not stay behind.
            await asyncio.to_thread(self.writer.stop)

    def release_waiters(self) -> None:
        """Let everybody go who waits or listens: the server stops."""
        self._hub.close()

    check_writes = _writes(Ledger.check_writes)
    """Raises OutsideProblem when the database cannot be written to now."""
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
        """Write down what somebody was shown."""
        await self.writer.do(Ledger.note, kind, actor_of(by), id_, **about)

    async def viewed(self, card: Confirmation, by: Credential) -> None:
        """Write down that a person was shown a card."""
        await self.note("viewed", by, card.id, digest=card.digest, status=card.status)

    async def refused(self, actor: str, about: dict[str, Any], confirmation: str = "") -> None:
        """Write down what was refused at the door."""
        await self.writer.do(Ledger.note, "refused", actor, confirmation, **about)

    async def authenticate(self, secret: str) -> Credential | None:
        """Whose token, key or session this is; None for nobody's, and when its time is over."""
        digest, now = credentials.secret_digest(secret), self._clock()
        # What is forgotten while it is looked up is put where nobody looks any more.
        known = self._known
        found, since = known.get(digest, (None, -math.inf))
        if not 0 <= now - since < _RECENT_S:
            found = await asyncio.to_thread(self.confirmations.find_credential, digest)
            if found is not None:
                known[digest] = (found, now)
        is_over = found and found.expires_at is not None and found.expires_at <= now
        return None if is_over else found

    async def log_in(self, name: str, key: str) -> LoggedIn | Refusal:
        return await self.writer.do(credentials.log_in, name, await self.authenticate(key))

    async def open_link(self, link: str) -> LoggedIn | Refusal:
        """Use a one-time link: a session for its approver, or one to look at its card."""
        return await self.writer.do(credentials.open_link, self.signing.read_link(link))

    async def submit(self, submission: Submission) -> Accepted | Refusal:
        policy = self.policy
        rule = policy.rule_for(submission.action)
        preparing = partial(prepare, submission, policy, notifies=self.notifies)
        is_long = rule.schema or rule.file_params or _is_long(submission.details)
        try:
            card = await self._beside(preparing) if is_long else preparing()
        except WrongInput as error:
            about = {"code": "bad_request", "action": submission.action}
            await self.refused(f"agent:{submission.requester}", about)
            return Refusal("bad_request", str(error))
        answer = await self.writer.do(submit, policy, submission, card)
        if isinstance(answer, Accepted) and answer.is_new:
            self.told_new(answer.confirmation)
        return answer

    async def get(self, id_: str) -> Confirmation | None:
        """A card by its id or the beginning of it. One whose time is over says so."""
        card = await asyncio.to_thread(self.confirmations.find, id_)
        if card is not None and card.status == "pending" and card.expires_at <= self._clock():
            await self._sweep()
            card = await asyncio.to_thread(self.confirmations.find, card.id)
        return card

    async def wait(self, id_: str, seconds: float) -> Confirmation | None:
        """The card when it is settled, or as it is when the time is over, which decides nothing."""
        # First listen, then look: what is settled in between is not missed.
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
        """Cards as they change, one or all, until the service stops or they fall behind."""
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
                now = await self._beside(file_digests, card.approved_details, file_params)
                drift = "" if now == bound else "a file that it names has changed since"
            except WrongInput as error:
                drift = str(error)
        return await self.writer.do(
            redeem, self.policy, id_, by, digest=digest, details=details, drift=drift
        )

    def noticed_soon(self, id_: str, notice: Notice) -> None:
        """From any thread: write down whether people were told; who waits sees it on the card."""
        self.writer.soon(_noticed, id_, notice)

    def shown_in_terminal(self, ids: Sequence[str]) -> None:
        """From any thread: the terminal said that these wait, which is no notice by a channel."""
        about: dict[str, Any] = {"channel": "terminal", "cards": [*ids]}
        self.writer.soon(Ledger.note, "notified", "service", **about)

    async def stats(self) -> Stats:
        since = self._clock() - _STATS_DAYS * 86_400
        return stats_of(await self.list(since=since), days=_STATS_DAYS)

    async def verify_audit(self) -> Verified:
        return await asyncio.to_thread(lambda: verify(self.confirmations, self._anchor.read()))

    def audit_head(self) -> tuple[int, str]:
        """The number and digest of the last entry that this service wrote, for notices."""
        return self._head or self.confirmations.audit_head()

    async def _beside(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Work for an agent that may be long: one at a time, so that others get on."""
        async with self._long_work:
            return await asyncio.to_thread(work, *given, **named)

    def _written(self, ledger: Ledger) -> None:
        """In the writer's thread: note the head, pass on what this and other processes wrote."""
        others: Sequence[AuditEntry] = ()
        if self._head and (before := ledger.head_before[0]) > self._head[0]:
            others = self.confirmations.audit(
                limit=_MOST_PASSED_ON, after=self._head[0], before=before + 1
            )
        ids = {entry.confirmation for entry in others} - {"", *ledger.changed}
        found = map(self.confirmations.find, ids)
        cards = [*ledger.changed.values(), *(card for card in found if card is not None)]
        try:
            if entries := [*ledger.entries[-1:], *others[:1]]:
                self._head = (entries[0].seq, entries[0].digest)
                self._anchor.write(*self._head)
        finally:
            # A head that cannot be noted must not leave anybody waiting.
            if any(entry.kind in _CHANGES_OF_WHO for entry in (*ledger.entries, *others)):
                self._known = {}
            self._hub.publish(cards)
            for card in cards:
                if card.status != "pending":
                    self.told_settled(card)

    async def _sweep(self) -> float | None:
        """Expire what is due; when the next card is. What others wrote is noticed with it."""
        expired = 1
        while expired:
            expired, following = await self.writer.do(expire_due)
        return following

    async def _keep_up(self) -> None:
        while True:
            try:
                await self._look_at_policy()
                due = await self._sweep()
                pause = self._look_s if due is None else due - self._clock()
                pause = min(max(pause, 0.01), self._look_s)
            except Exception as error:
                # Around one turn of a background loop: the next one comes, whatever it was.
                is_known = isinstance(error, JourneymanError)
                logger.warning("a turn of the upkeep failed: %s", error, exc_info=not is_known)
                pause = _AFTER_PROBLEM_S
            await asyncio.sleep(pause)

    async def _look_at_policy(self) -> None:
        try:
            policy = await asyncio.to_thread(self._read_policy)
        except JourneymanError as error:
            # The one in force stays in force: a slip in the file must not let anything through.
            if str(error) != self._policy_problem:
                logger.warning("the policy in force stays: %s", error)
            self._policy_problem = str(error)
            return
        self._policy_problem = ""
        if policy != self.policy:
            await self._note_policy(policy)
            self.policy = policy

    async def _note_policy(self, policy: Policy) -> None:
        """Write down which policy is in force, unless it is the one that was written down last."""
        last = await self.audit(limit=1, kind="policy_changed")
        if not last or last[0].about.get("digest") != policy.digest:
            about = {"digest": policy.digest, "policy": policy.describe()}
            await self.writer.do(Ledger.note, "policy_changed", "service", **about)


def _is_long(details: dict[str, Any]) -> bool:
    try:
        return len(repr(details)) > _SOON_DONE
    except RecursionError:
        return True


def _noticed(ledger: Ledger, id_: str, notice: Notice) -> None:
    card = ledger.find(id_)
    if card is None:
        return
    kind: AuditKind = "notice_failed" if notice.status == "failed" else "notified"
    about: dict[str, Any] = {"channel": notice.channel, "error": notice.error}
    if stage_of(card.status) == "closed" or ledger.fault(card):
        # It is settled, or not to be relied on: the card stays as it is.
        ledger.note(kind, "service", id_, **about)
    else:
        ledger.record(kind, "service", replace(card, notice=notice), **about)
