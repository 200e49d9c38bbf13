"""What goes on by itself: cards are expired on time though nobody asks, what other processes on the
same database wrote is noticed, and a changed policy is taken up and written down.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from journeyman.confirm.expiring import expire_due
from journeyman.confirm.policy import Policy
from journeyman.confirm.writer import Writer
from journeyman.records.confirmation import AuditEntry, Confirmation
from journeyman.records.errors import JourneymanError
from journeyman.store.confirmations import Confirmations
from journeyman.store.ledger import Ledger

logger = logging.getLogger(__name__)

_Found = TypeVar("_Found")

CHANGES_OF_WHO = frozenset(("credential_made", "credential_revoked", "logged_out"))
"""What the audit says when a credential that was looked up may no longer be good."""

LOOK_S = 0.5
"""How often others' changes are looked for."""
_AFTER_PROBLEM_S = 2.0


class Changed(Protocol):
    """Hears of cards that another process changed, and whether credentials were."""

    def __call__(self, cards: Sequence[Confirmation], *, who: bool) -> None: ...


class Upkeep:
    """Two loops beside the service. What goes wrong in a turn is logged, and the next one comes."""

    def __init__(
        self,
        confirmations: Confirmations,
        writer: Writer,
        *,
        read_policy: Callable[[], Policy],
        changed: Changed,
        took_policy: Callable[[Policy], None],
        clock: Callable[[], float],
        look_s: float = LOOK_S,
    ) -> None:
        self._confirmations = confirmations
        self._look_s = look_s
        self._writer = writer
        self._read_policy = read_policy
        self._changed = changed
        self._took_policy = took_policy
        self._clock = clock
        self._policy_digest = ""
        self._policy_problem = ""
        self._seen = 0
        self._own: set[int] = set()
        self._lock = threading.Lock()
        self._next_expiry: float | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._threads = ThreadPoolExecutor(2, "journeyman-upkeep")

    async def start(self, policy: Policy) -> None:
        self._seen = (await self._apart(self._confirmations.audit_head))[0]
        await self._note_policy(policy)
        await self.sweep()
        self._tasks = [
            asyncio.create_task(self._again(self._sweep_turn)),
            asyncio.create_task(self._again(self._look_turn)),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        # What was begun apart has a connection to the database: it must be over before that is.
        await asyncio.to_thread(self._threads.shutdown)

    async def _apart(self, work: Callable[[], _Found]) -> _Found:
        """Something that waits for the database, beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def wrote(self, entries: Sequence[AuditEntry]) -> None:
        """From the writer's thread: these entries are our own."""
        with self._lock:
            self._own.update(entry.seq for entry in entries)

    def expect(self, cards: Sequence[Confirmation]) -> None:
        """From any thread: the time of these cards will end."""
        ends = [card.expires_at for card in cards if card.status == "pending"]
        with self._lock:
            if ends and (self._next_expiry is None or min(ends) < self._next_expiry):
                self._next_expiry = min(ends)

    async def sweep(self) -> None:
        """Expire what is due."""
        while await self._writer.do(expire_due):
            pass
        with self._lock:
            self._next_expiry = None
        following = await self._apart(self._confirmations.next_expiry)
        with self._lock:
            # A card that came while this was read has told of its end by itself.
            ends = [at for at in (following, self._next_expiry) if at is not None]
            self._next_expiry = min(ends, default=None)

    async def _again(self, turn: Callable[[], Coroutine[Any, Any, float]]) -> None:
        while True:
            try:
                pause = await turn()
            except JourneymanError as error:
                logger.warning("%s", error)
                pause = _AFTER_PROBLEM_S
            except Exception:
                # Around one turn of a background loop: the next one comes, whatever it was.
                logger.exception("a turn of the upkeep failed")
                pause = _AFTER_PROBLEM_S
            await asyncio.sleep(pause)

    async def _sweep_turn(self) -> float:
        """Sleeps to the next expiry, and not long, for a shorter one may come."""
        due = self._next_expiry
        if due is not None and due <= self._clock():
            await self.sweep()
            due = self._next_expiry
        if due is None:
            return self._look_s
        return min(max(due - self._clock(), 0.0), self._look_s)

    async def _look_turn(self) -> float:
        await self._apart(self._look)
        await self._look_at_policy()
        return self._look_s

    def _look(self) -> None:
        """Find what other processes wrote: the audit has an entry for everything."""
        found = self._confirmations.audit_after(self._seen)
        if not found:
            return
        with self._lock:
            others = [one for one in found if one[0] not in self._own]
            self._seen = found[-1][0]
            self._own = {seq for seq in self._own if seq > self._seen}
        ids = dict.fromkeys(id_ for _, _, id_ in others if id_)
        cards = [card for id_ in ids if (card := self._confirmations.find(id_)) is not None]
        who = any(kind in CHANGES_OF_WHO for _, kind, _ in others)
        if cards or who:
            self._changed(cards, who=who)

    async def _look_at_policy(self) -> None:
        try:
            policy = await self._apart(self._read_policy)
        except JourneymanError as error:
            # The one in force stays in force: a slip in the file must not let anything through.
            if str(error) != self._policy_problem:
                logger.warning("the policy in force stays: %s", error)
            self._policy_problem = str(error)
            return
        self._policy_problem = ""
        if policy.digest != self._policy_digest:
            await self._note_policy(policy)
            self._took_policy(policy)

    async def _note_policy(self, policy: Policy) -> None:
        await self._writer.do(partial(_note_policy, policy=policy, known=self._confirmations))
        self._policy_digest = policy.digest


def _note_policy(ledger: Ledger, policy: Policy, known: Confirmations) -> None:
    """Write down which policy is in force, unless it is the one that was written down last."""
    last = known.audit(limit=1, kind="policy_changed")
    if not last or last[0].about.get("digest") != policy.digest:
        ledger.note("policy_changed", "service", digest=policy.digest, policy=policy.describe())
