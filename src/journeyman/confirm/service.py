"""The service that surfaces call: asynchronous, one in a process. It authenticates, reads, hands
changes to the writer and lets callers wait. What may be done is decided by the operations, in the
transaction; how it is shown and sent is for others.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from msgspec.json import encode
from msgspec.structs import replace

from journeyman.confirm import credentials
from journeyman.confirm.anchor import Anchor
from journeyman.confirm.answers import Accepted, Ballot, Granted, LoggedIn, Stats, Verified
from journeyman.confirm.checking import anchored, verify
from journeyman.confirm.deciding import actor_of, decide
from journeyman.confirm.digest import file_digests
from journeyman.confirm.hub import Hub, until_none
from journeyman.confirm.known import Known
from journeyman.confirm.listing import add_entry, revoke_entry
from journeyman.confirm.policy import Policy
from journeyman.confirm.redeeming import cancel, redeem
from journeyman.confirm.signing import Signing, read_key
from journeyman.confirm.statistics import stats_of
from journeyman.confirm.submitting import prepare, submit
from journeyman.confirm.upkeep import CHANGES_OF_WHO, LOOK_S, Upkeep
from journeyman.confirm.writer import Writer
from journeyman.records.confirmation import (
    AuditEntry,
    Confirmation,
    ConfirmationStatus,
    Credential,
    Notice,
    Refusal,
    Submission,
    WhitelistEntry,
)
from journeyman.records.errors import WrongInput
from journeyman.store.confirmations import Confirmations
from journeyman.store.ledger import Ledger

_STATS_DAYS = 30
_SOON_DONE = 8_192
"""Details of so many bytes are gone through at once, on the event loop; longer ones beside it."""
_READERS = 4

P = ParamSpec("P")
T = TypeVar("T")
Told = Callable[[Confirmation], None]


def _nobody(_card: Confirmation) -> None:
    """For where nobody is told."""


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
        look_s: float = LOOK_S,
    ) -> None:
        self.policy = read_policy()
        self.signing = Signing(read_key(files / "confirm.key"))
        self.told_new: Told = _nobody
        self.notifies = True
        """Whether there are channels through which people are told."""
        self.told_settled: Told = _nobody
        self._confirmations = confirmations
        self._clock = clock
        self._anchor = Anchor(files / "confirm.anchor")
        self._hub = Hub()
        self._head: tuple[int, str] | None = None
        self._writer = Writer(confirmations, clock, self._written, lambda: self._head)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="confirm-reader")
        self._long_work = ThreadPoolExecutor(1, thread_name_prefix="confirm-long-work")
        self._known = Known(confirmations.find_credential, clock)
        self._upkeep = Upkeep(
            confirmations,
            self._writer,
            read_policy=read_policy,
            changed=self._changed_elsewhere,
            took_policy=self._took_policy,
            clock=clock,
            look_s=look_s,
        )

    async def start(self) -> None:
        """Begin to work. Raises AuditBroken when the audit does not reach its noted head."""
        self._head = self._anchor.read()
        anchored(self._confirmations, self._head, self._anchor.path)
        self._hub.start()
        self._writer.start()
        begun = False
        try:
            await self._writer.do(partial(_started, policy=self.policy))
            await self._upkeep.start(self.policy)
            begun = True
        finally:
            if not begun:
                await self._end()
        for card in await self._read(partial(self._confirmations.list, status="pending")):
            if card.notice.status == "waiting" or not self.notifies:
                # It was taken, but the program may have ended before anybody was told.
                self.told_new(card)

    async def stop(self) -> None:
        """Answer who still waits, write what was begun, and end."""
        self._hub.close()
        try:
            await self._upkeep.stop()
            await self._writer.do(lambda ledger: ledger.note("stopped", "service"))
        finally:
            # Also when it cannot be written down: threads and files do not stay behind.
            await self._end()

    async def _end(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self._writer.stop)
        self._readers.shutdown()
        self._long_work.shutdown()
        self._anchor.close()

    # Who

    async def authenticate(self, secret: str) -> Credential | None:
        """Whose token, key or session this is; None for nobody's, and when its time is over."""
        digest = credentials.secret_digest(secret)
        found = self._known.recent(digest)
        return found or await self._read(self._known.look_up, digest)

    async def log_in(self, name: str, key: str) -> LoggedIn | Refusal:
        known = await self.authenticate(key)
        return await self._writer.do(lambda ledger: credentials.log_in(ledger, name, known))

    async def log_out(self, by: Credential) -> None:
        if by.kind == "session":
            await self._writer.do(lambda ledger: credentials.log_out(ledger, by))

    async def open_link(self, link: str) -> LoggedIn | Refusal:
        """Use a one-time link: a session for its approver, or one to look at its card."""
        return await self._writer.do(lambda ledger: self._opened(ledger, link))

    # Cards

    async def submit(self, submission: Submission) -> Accepted | Refusal:
        policy = self.policy
        rule = policy.rule_for(submission.action)
        try:
            context: dict[str, Any] = {}
            if rule.file_params:
                files = await self._digests(submission.details, rule.file_params)
                context = {"files": files}
            if rule.schema is None and _is_short(submission.details):
                prepared = prepare(submission, policy, context, notifies=self.notifies)
            else:
                preparing = partial(prepare, submission, policy, context, notifies=self.notifies)
                prepared = await self._beside(preparing)
        except WrongInput as error:
            about = {"code": "bad_request", "action": submission.action}
            await self.refused(f"agent:{submission.requester}", about)
            return Refusal(code="bad_request", message=str(error))
        answer = await self._writer.do(
            lambda ledger: submit(ledger, policy, prepared), prepared.wanted
        )
        if isinstance(answer, Accepted) and answer.is_new:
            self.told_new(answer.confirmation)
        return answer

    async def get(self, id_: str) -> Confirmation | None:
        """A card by its id or the beginning of it. One whose time is over says so, also when the
        sweeper has not come by yet.
        """
        card = await self._read(self._confirmations.find, id_)
        if card is not None and card.status == "pending" and card.expires_at <= self._clock():
            await self._upkeep.sweep()
            card = await self._read(self._confirmations.find, card.id)
        return card

    async def viewed(self, confirmation: Confirmation, by: Credential) -> None:
        """Write down that a person was shown a card."""
        about = {"digest": confirmation.digest, "status": confirmation.status}
        await self._writer.do(
            lambda ledger: ledger.note("viewed", actor_of(by), confirmation.id, **about)
        )

    async def viewed_many(self, by: Credential, **about: Any) -> None:
        """Write down that a person was shown many cards."""
        await self._writer.do(lambda ledger: ledger.note("viewed", actor_of(by), "", **about))

    async def exported(self, by: Credential, format_: str) -> None:
        """Write down that a person was given the whole audit."""
        await self._writer.do(lambda ledger: ledger.note("exported", actor_of(by), format=format_))

    async def wait(self, id_: str, seconds: float) -> Confirmation | None:
        """The card when it is settled, or as it is when the time is over, which decides nothing."""
        whole = await self._whole_id(id_)
        # First listen, then look: what is settled in between is not missed.
        with self._hub.settlement(whole) as settled:
            card = await self.get(whole)
            if card is None or card.status != "pending" or seconds <= 0:
                return card
            done, _ = await asyncio.wait((settled,), timeout=seconds)
            if done and not settled.cancelled():
                return settled.result()
        return await self.get(whole)

    async def changes(self, id_: str | None = None) -> AsyncIterator[Confirmation]:
        """Cards as they change from now on: of one, or of all. Ends when the service stops, or
        when the listener does not keep up.
        """
        with self._hub.listener(id_ or "") as changes:
            async for card in until_none(changes):
                yield card

    async def cancel(self, id_: str, by: Credential, reason: str = "") -> Confirmation | Refusal:
        whole = await self._whole_id(id_)
        return await self._writer.do(lambda ledger: cancel(ledger, whole, by, reason))

    async def redeem(
        self, id_: str, by: Credential, digest: str, details: dict[str, Any] | None = None
    ) -> Granted | Refusal:
        card = await self._read(self._confirmations.find, id_)
        drift = "" if card is None else await self._drift(card)
        whole, policy = (id_ if card is None else card.id), self.policy
        answer = await self._writer.do(
            lambda ledger: redeem(
                ledger, policy, whole, by, digest=digest, details=details, drift=drift
            )
        )
        if isinstance(answer, Refusal):
            return answer
        return Granted(confirmation=answer, grant=self.signing.grant(answer))

    async def decide(self, id_: str, ballot: Ballot, by: Credential) -> Confirmation | Refusal:
        whole, policy = await self._whole_id(id_), self.policy
        return await self._writer.do(lambda ledger: decide(ledger, policy, whole, ballot, by))

    async def list(
        self,
        *,
        status: ConfirmationStatus | None = None,
        requester: str = "",
        limit: int = 50,
        before: str = "",
    ) -> Sequence[Confirmation]:
        """Cards, newest first."""
        find = partial(
            self._confirmations.list,
            status=status,
            requester=requester,
            limit=limit,
            before=before,
        )
        return await self._read(find)

    async def pending(self) -> int:
        return await self._read(self._confirmations.count_pending)

    def noticed_soon(self, id_: str, notice: Notice) -> None:
        """From any thread: write down whether people were told; who waits sees it on the card."""
        self._writer.soon(lambda ledger: _noticed(ledger, id_, notice))

    def shown_in_terminal(self, ids: Sequence[str]) -> None:
        """From any thread: the terminal said that these wait. One entry for all of them, and the
        cards stay as they are: nobody was told through a channel.
        """
        self._writer.soon(
            lambda ledger: ledger.note("notified", "service", channel="terminal", cards=list(ids))
        )

    async def stats(self) -> Stats:
        since = self._clock() - _STATS_DAYS * 86_400
        cards = await self._read(partial(self._confirmations.list, since=since))
        return stats_of(cards, days=_STATS_DAYS)

    # The whitelist

    async def whitelist(self) -> Sequence[WhitelistEntry]:
        return await self._read(self._confirmations.whitelist)

    async def add_to_whitelist(
        self, entry: WhitelistEntry, by: Credential
    ) -> WhitelistEntry | Refusal:
        policy = self.policy
        return await self._writer.do(lambda ledger: add_entry(ledger, policy, entry, by))

    async def revoke(self, entry_id: str, by: Credential) -> WhitelistEntry | Refusal:
        return await self._writer.do(lambda ledger: revoke_entry(ledger, entry_id, by))

    # The audit

    async def audit(
        self, *, limit: int, before: int | None = None, confirmation: str = ""
    ) -> Sequence[AuditEntry]:
        confirmation = await self._whole_id(confirmation) if confirmation else ""
        find = partial(
            self._confirmations.audit, limit=limit, before=before, confirmation=confirmation
        )
        return await self._read(find)

    def export_audit(self) -> Iterator[tuple[str, str]]:
        """Every entry's text and its digest, oldest first; for a thread beside the loop."""
        return self._confirmations.audit_texts()

    async def verify_audit(self) -> Verified:
        return await self._read(lambda: verify(self._confirmations, self._anchor.read()))

    async def refused(self, actor: str, about: dict[str, Any], confirmation: str = "") -> None:
        """Write down what was refused at the door."""
        await self._writer.do(lambda ledger: ledger.note("refused", actor, confirmation, **about))

    def audit_head(self) -> tuple[int, str]:
        """The number and digest of the last entry that this service wrote, for notices."""
        return self._head or self._confirmations.audit_head()

    # Inside

    async def _read(self, read: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, partial(read, *given, **named))

    async def _beside(self, work: Callable[[], T]) -> T:
        """Long work that an agent asked for: one at a time, so that others get on."""
        return await asyncio.get_running_loop().run_in_executor(self._long_work, work)

    async def _digests(self, details: dict[str, Any], params: Sequence[str]) -> dict[str, str]:
        return await self._beside(partial(file_digests, details, params))

    async def _whole_id(self, id_: str) -> str:
        if len(id_) == 32:
            return id_
        card = await self._read(self._confirmations.find, id_)
        return id_ if card is None else card.id

    async def _drift(self, card: Confirmation) -> str:
        """What changed in the files that were bound to a request."""
        bound = card.context.get("files")
        if not bound:
            return ""
        file_params = self.policy.rule_for(card.action).file_params
        try:
            now = await self._digests(card.approved_details, file_params)
        except WrongInput as error:
            return str(error)
        return "" if now == bound else "a file that it names has changed since"

    def _opened(self, ledger: Ledger, token: str) -> LoggedIn | Refusal:
        link = self.signing.read_link(token)
        if link is None or not ledger.spend_link(link.nonce):
            return Refusal(
                code="unauthenticated",
                message="This link was used already, is too old, or is not one of ours. Log in "
                "with your name and key instead.",
            )
        if link.approver:
            return credentials.open_session(ledger, link.approver, "link")
        return credentials.open_viewing(ledger, link.confirmation)

    def _written(self, ledger: Ledger) -> None:
        """In the writer's thread, after a commit."""
        try:
            if ledger.entries:
                last = ledger.entries[-1]
                self._head = (last.seq, last.digest)
                self._anchor.write(last.seq, last.digest)
        finally:
            # A head that cannot be noted must not leave anybody waiting.
            self._upkeep.wrote(ledger.entries)
            if any(entry.kind in CHANGES_OF_WHO for entry in ledger.entries):
                self._known.forget()
            self._publish(list(ledger.changed.values()))

    def _changed_elsewhere(self, cards: Sequence[Confirmation], *, who: bool) -> None:
        if who:
            self._known.forget()
        self._publish(cards)

    def _publish(self, cards: Sequence[Confirmation]) -> None:
        self._upkeep.expect(cards)
        self._hub.publish(cards)
        for card in cards:
            if card.status != "pending":
                self.told_settled(card)

    def _took_policy(self, policy: Policy) -> None:
        self.policy = policy


def _is_short(details: dict[str, Any]) -> bool:
    try:
        return len(encode(details)) < _SOON_DONE
    except ValueError:  # what cannot be written as JSON is told by who binds it
        return False


def _started(ledger: Ledger, policy: Policy) -> None:
    ledger.note("started", "service", policy=policy.digest)


def _noticed(ledger: Ledger, id_: str, notice: Notice) -> None:
    card = ledger.find(id_)
    if card is None:
        return
    ledger.save(replace(card, notice=notice))
    ledger.note(
        "notice_failed" if notice.status == "failed" else "notified",
        "service",
        id_,
        channel=notice.channel,
        error=notice.error,
    )
