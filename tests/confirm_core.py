"""A confirmation service without its server, for tests: the real core on a real database, in the
test's own event loop, with a clock that advances only when the test moves it.

    async def test(home):
        async with confirm_core(home) as core:
            card = await core.ask(action="send_mail")
            await core.approve(card, core.approver("ann"))
            core.clock.forward(600)

An unexpected refusal fails the test.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests import databases

from journeyman.confirm import credentials
from journeyman.confirm.policy import Policy
from journeyman.confirm.schemas import Accepted, Ballot, Granted
from journeyman.confirm.service import Service
from journeyman.records.confirmation import (
    AuditEntry,
    AuditKind,
    Confirmation,
    ConfirmationId,
    Credential,
    Refusal,
    Submission,
)
from journeyman.store.store import Store

EVERYTHING = Policy(rate_limit=100_000, requester_limit=100_000)
"""The built-in rules, without rate limits."""
NOW = 1_800_000_000.125
LOOK_S = 0.05
"""How often a service in a test checks for changes by others."""


class Clock:
    """The test's clock, which advances only on request."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += seconds


class Core:
    """A running service, with shortcuts for tests."""

    def __init__(self, service: Service, store: Store, clock: Clock) -> None:
        self.service = service
        self.store = store
        self.clock = clock
        self.secrets: dict[str, str] = {}
        self._known: dict[str, Credential] = {}

    def agent(self, name: str = "builder", *, owner: str = "") -> Credential:
        """An agent; the same one for the same name."""
        if name not in self._known:
            with self.store.confirmations.writing(self.clock()) as ledger:
                made = credentials.add_agent(ledger, name, owner, by="test")
            self._known[name], self.secrets[name] = made
        return self._known[name]

    def approver(self, name: str = "ann") -> Credential:
        """An approver; the same one for the same name."""
        if name not in self._known:
            with self.store.confirmations.writing(self.clock()) as ledger:
                made = credentials.add_approver(ledger, name, by="test")
            self._known[name], self.secrets[name] = made
        return self._known[name]

    async def submit(self, **asked: Any) -> Accepted | Refusal:
        given = {"action": "send_mail", "description": "Tell Bob.", "requester": "builder"}
        return await self.service.submit(Submission(**{**given, **asked}))

    async def ask(self, **asked: Any) -> Confirmation:
        """Submit a request that must be accepted, and return its card."""
        answer = await self.submit(**asked)
        assert isinstance(answer, Accepted), answer
        return answer.confirmation

    async def decide(
        self, card: Confirmation, by: Credential, choice: Any = "approve", **more: Any
    ) -> Confirmation | Refusal:
        ballot = Ballot(choice=choice, **{"digest": card.digest, **more})
        return await self.service.decide(card.id, ballot, by)

    async def approve(self, card: Confirmation, by: Credential, **more: Any) -> Confirmation:
        """Approve the card, which must succeed, and return it."""
        answer = await self.decide(card, by, **more)
        assert isinstance(answer, Confirmation), answer
        return answer

    async def redeem(self, card: Confirmation, **more: Any) -> Granted | Refusal:
        by = self.agent(card.requester)
        return await self.service.redeem(card.id, by, **{"digest": card.digest, **more})

    async def now(self, card: Confirmation) -> Confirmation:
        """The card in its current state."""
        found = await self.service.get(card.id)
        assert found is not None
        return found

    def audit(self, kind: AuditKind | None = None, card: str = "") -> list[AuditEntry]:
        """The audit entries, oldest first."""
        found = self.store.confirmations.audit(limit=100_000, kind=kind, confirmation=card)
        return list(reversed(found))


@asynccontextmanager
async def confirm_core(
    home: Path,
    *,
    policy: Policy | Callable[[], Policy] = EVERYTHING,
    clock: Clock | None = None,
    database: str = "",
    **told: Callable[[Confirmation], None],
) -> AsyncIterator[Core]:
    """Run a service for the duration of the block."""
    clock = clock or Clock()
    read = policy if callable(policy) else lambda: policy
    with Store(database or databases.database(home)) as store:
        service = Service(store.confirmations, home, read, clock=clock, look_s=LOOK_S, **told)
        await service.start()
        try:
            yield Core(service, store, clock)
        finally:
            await service.stop()


def a_card(number: int = 1, **facts: Any) -> Confirmation:
    """A pending card, as a record."""
    id_ = f"{number:032x}"
    given = {
        "id": ConfirmationId(id_),
        "short_id": id_[:6],
        "action": "send_mail",
        "tier": "ask",
        "rule": "r",
        "description": "d",
        "details": {},
        "requester": "builder",
        "nonce": "n",
        "submitted_digest": "sha256:a",
        "digest": "sha256:a",
        "created_at": NOW,
        "expires_at": NOW + 300,
    }
    return Confirmation(**{**given, **facts})


def refused_as(answer: object) -> str:
    """The code of a refusal; empty for any other answer."""
    return answer.code if isinstance(answer, Refusal) else ""
