"""The contract of stored confirmations, on SQLite and on a real PostgreSQL: the ledger, reading,
the audit chain, and two services on one database.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.confirm_core import NOW, a_card, confirm_core
from tests.waiting import LONGEST_S, until_async

from journeyman.confirm import credentials
from journeyman.confirm.schemas import Granted
from journeyman.records.confirmation import (
    Confirmation,
    ConfirmationId,
    Constraint,
    Credential,
    Notice,
    Vote,
    WhitelistEntry,
)
from journeyman.records.errors import Unstorable
from journeyman.store.audit import GENESIS_DIGEST, WINDOW_S, digest_of
from journeyman.store.episodes import wait_for_learners
from journeyman.store.ledger import Ledger
from journeyman.store.store import Store

OLD_COLUMNS = ("id", "action", "requester", "status", "created_at", "expires_at")


def submit(ledger: Ledger, card: Confirmation, **about: Any) -> Confirmation:
    """Store a card as a request does: as pending first."""
    given = {
        "digest": card.digest,
        "expires_at": card.expires_at,
        "fingerprint": f"fingerprint {card.id}",
        "counted_as": card.action,
        "asks": True,
    }
    ledger.record("submitted", f"agent:{card.requester}", card, **{**given, **about})
    return card


def add(store: Store, *cards: Confirmation, now: float = NOW) -> None:
    with store.confirmations.writing(now) as ledger:
        for card in cards:
            submit(ledger, card)


class TestConfirmations:
    def test_reading_returns_exactly_what_was_stored(self, store: Store, database_url: str) -> None:
        card = a_card(
            action="größer 東京 %s :x",
            details={"text": "nul \x00 🦓 \u2028 \u202e", "n": [1, 2.5, None, True, 2**53 - 1]},
            edited={"text": ""},
            votes=(Vote(approver="ann", choice="approve", at=NOW, digest="sha256:a"),),
            notice=Notice(status="failed", error="no"),
        )
        add(store, card)
        with Store(database_url) as again:
            assert again.confirmations.find(card.id) == card
        settled = replace(card, status="denied", settled_at=NOW + 1, settled_by="ann")
        with store.confirmations.writing(NOW + 1) as ledger:
            ledger.record("denied", "approver:ann", settled)
        assert store.confirmations.find(card.id) == settled
        assert store.confirmations.list(status="denied") == [settled]
        assert store.confirmations.list(status="pending") == []

    def test_a_confirmation_is_found_by_a_unique_prefix(self, store: Store) -> None:
        first, second = (a_card(id=ConfirmationId(start + "0" * 28)) for start in ("abc1", "abc2"))
        add(store, first, second)
        find = store.confirmations.find
        assert find("abc1") == first
        assert find(second.id) == second
        for wrong in ("", "abc", "ABC1", "abc_", "abc%", "abd", f"{first.id}0", "\x00"):
            assert find(wrong) is None

    def test_the_list_is_newest_first_and_can_be_paged(self, store: Store) -> None:
        cards = [
            a_card(number, requester=("a", "b")[number % 2], created_at=NOW + number)
            for number in range(6)
        ]
        add(store, *cards)
        listed = store.confirmations.list
        newest = cards[::-1]
        assert listed() == newest
        assert listed(limit=2) == newest[:2]
        assert listed(limit=2, before=newest[1].id) == newest[2:4]
        assert listed(requester="a") == newest[1::2]
        assert listed(since=NOW + 4) == newest[:2]
        assert listed(before="unknown") == []

    def test_a_transaction_is_stored_completely_or_not_at_all(self, store: Store) -> None:
        def fail() -> None:
            with store.confirmations.writing(NOW) as ledger:
                submit(ledger, a_card())
                raise KeyError

        with pytest.raises(KeyError):
            fail()
        assert store.confirmations.list() == []
        assert store.confirmations.audit_head() == (0, GENESIS_DIGEST)
        with store.confirmations.writing(NOW) as ledger:
            assert (ledger.times("", "send_mail", "asked"), ledger.due()) == ([], [])
            submit(ledger, a_card())

    def test_a_transaction_sees_its_own_changes(self, store: Store) -> None:
        with store.confirmations.writing(NOW + 300) as ledger:
            late = submit(ledger, a_card(2, expires_at=NOW + 299), fingerprint="alike")
            assert ledger.find(late.id) == late
            assert ledger.waiting_alike("alike") == late
            ended = replace(late, status="expired")
            ledger.record("expired", "service", ended)
            assert ledger.find(late.id) == ended
            assert ledger.fault(ended) == ""
            assert list(ledger.changed.values()) == [ended]
        assert store.confirmations.find(late.id) == ended

    def test_due_confirmations_and_the_next_expiry(self, store: Store, database_url: str) -> None:
        cards = [a_card(number, expires_at=NOW + number) for number in (3, 1, 2)]
        add(store, *cards, a_card(9, expires_at=NOW))
        with store.confirmations.writing(NOW) as ledger:
            ledger.record("denied", "approver:ann", a_card(9, status="denied", expires_at=NOW))
        assert store.confirmations.count_pending() == 3
        with Store(database_url) as again:
            for known in (store.confirmations, again.confirmations):
                with known.writing(NOW + 2) as ledger:
                    assert [card.expires_at - NOW for card in ledger.due()] == [1, 2]
                    assert ledger.next_expiry() == NOW + 1

    def test_ids_are_unique(self, store: Store) -> None:
        add(store, a_card())
        with pytest.raises(RuntimeError, match="submitted cannot follow"):
            add(store, a_card())
        assert len(store.confirmations.list()) == 1


class TestRequests:
    """Request times are counted the same within one transaction and across several."""

    def test_the_window_slides(self, store: Store, database_url: str) -> None:
        writing = store.confirmations.writing
        with writing(NOW) as ledger:
            for number in range(2):
                submit(ledger, a_card(number))
            assert ledger.times("", "send_mail", "asked") == [NOW, NOW]
        with writing(NOW) as ledger:
            first = submit(ledger, a_card(2))
        with writing(NOW + 10) as ledger:  # another request that shares a card
            shared = replace(first, submissions=2)
            ledger.record("shared", "agent:builder", shared, counted_as="send_mail")
        for later, recent, cards, first_at in (
            (10, 4, 3, NOW),
            (WINDOW_S - 0.5, 4, 3, NOW),
            (WINDOW_S, 1, 0, NOW + 10),
            (WINDOW_S + 10, 0, 0, None),
        ):
            with Store(database_url) as again:
                for known in (store.confirmations, again.confirmations):
                    with known.writing(NOW + later) as ledger:
                        found = ledger.times("", "send_mail", "asked")
                        assert (len(found), len(ledger.times("builder"))) == (recent, cards)
                        assert next(iter(found), None) == first_at
                        assert ledger.times("", "another", "asked") == []

    def test_what_is_approved_without_asking_is_counted_apart(
        self, store: Store, database_url: str
    ) -> None:
        with store.confirmations.writing(NOW) as ledger:
            submit(ledger, a_card(0))
            for number in (1, 2):
                submit(ledger, a_card(number), asks=False)
        with Store(database_url) as again:
            for known in (store.confirmations, again.confirmations):
                with known.writing(NOW) as ledger:
                    assert len(ledger.times("", "send_mail", "asked")) == 1
                    assert len(ledger.times("builder", "send_mail")) == 2
                    assert len(ledger.times("builder")) == 1

    def test_an_idempotency_key_belongs_to_its_requester(self, store: Store) -> None:
        with store.confirmations.writing(NOW) as ledger:
            ledger.add_key("builder", "k \x00 ü", "c1")
            assert ledger.find_key("builder", "k \x00 ü") == "c1"
        with store.confirmations.writing(NOW + 1e6) as ledger:
            assert ledger.find_key("builder", "k \x00 ü") == "c1"
            assert ledger.find_key("other", "k \x00 ü") is None
            assert ledger.find_key("builder", "K") is None

    def test_an_identical_confirmation_is_found_while_it_is_pending(
        self, store: Store, database_url: str
    ) -> None:
        card = a_card()
        with store.confirmations.writing(NOW) as ledger:
            submit(ledger, card, fingerprint="alike")
        with Store(database_url) as again, again.confirmations.writing(NOW) as ledger:
            assert ledger.waiting_alike("alike") == card
            ledger.record("approved", "approver:ann", replace(card, status="approved"))
        with store.confirmations.writing(NOW) as ledger:
            assert ledger.waiting_alike("alike") is None


def test_the_whitelist(store: Store) -> None:
    entries = [
        WhitelistEntry(
            id=f"e{number}",
            action=action,
            constraints={"n": Constraint(at_most=10.5), "to": Constraint(one_of=("ü", None))},
            added_by="ann",
            added_at=NOW,
        )
        for number, action in enumerate(("a", "a", "b"))
    ]
    known = store.confirmations
    with known.writing(NOW) as ledger:
        assert ledger.whitelisted("a") == []
        for entry in entries:
            ledger.add(entry)
        assert ledger.whitelisted("a") == entries[:2]
    gone = replace(entries[0], revoked_at=NOW + 1, revoked_by="bob")
    used = replace(entries[2], uses=1, last_used_at=NOW + 1)
    with known.writing(NOW + 1) as ledger:
        assert ledger.whitelisted("A") == []
        ledger.save(gone)
        ledger.save(used)
        assert ledger.whitelisted("a") == entries[1:2]
        assert ledger.find_entry("e0") == gone
    assert known.whitelist() == [used, entries[1]]


class TestCredentials:
    def person(self, id_: str = "1", **facts: Any) -> Credential:
        given = {"id": id_, "kind": "approver", "name": "ann", "created_at": NOW}
        return Credential(**{**given, **facts})

    def test_a_secret_is_recognised_by_its_digest_until_revoked(self, store: Store) -> None:
        ann = self.person(telegram_id=2**40)
        session = self.person("2", kind="session", expires_at=NOW + 60)
        known = store.confirmations
        with known.writing(NOW) as ledger:
            ledger.add(ann, secret_digest="digest of ann")
            ledger.add(session, secret_digest="digest of session")
        assert known.find_credential("digest of ann") == ann
        assert known.find_credential("digest of session") == session
        assert known.find_credential("") is None
        assert known.credentials("approver") == [ann]
        assert known.credentials("session") == [session]
        with known.writing(NOW) as ledger:
            ledger.save(replace(ann, revoked_at=NOW))
            ledger.revoke_sessions("ann")
            assert ledger.find_credential("approver", "ann") is None
        assert known.find_credential("digest of ann") is None
        assert known.find_credential("digest of session") is None
        assert known.credentials("approver")[0].revoked_at == NOW

    def test_secrets_are_unique(self, store: Store) -> None:
        def twice() -> None:
            with store.confirmations.writing(NOW) as ledger:
                ledger.add(self.person("1"), secret_digest="d")
                ledger.add(self.person("2", name="bob"), secret_digest="d")

        with pytest.raises(Unstorable):
            twice()

    def test_a_link_is_spent_once(self, store: Store) -> None:
        with store.confirmations.writing(NOW) as ledger:
            ledger.add(self.person("n", kind="link"), secret_digest="d")
            assert [ledger.spend_link("n") for _ in range(2)] == [True, False]
        with store.confirmations.writing(NOW) as ledger:
            assert [ledger.spend_link(id_) for id_ in ("n", "m")] == [False, False]


class TestAudit:
    def test_the_chain_continues_over_transactions_and_reopening(
        self, store: Store, database_url: str
    ) -> None:
        def note(known: Any, *actors: str) -> None:
            with known.writing(NOW) as ledger:
                for actor in actors:
                    ledger.note("viewed", actor, "c1", said='nul \x00 "🦓" \u2028', n=1.5)
                noted.extend(ledger.entries)

        noted: list[Any] = []
        note(store.confirmations, "a", "b")
        with Store(database_url) as again:
            note(again.confirmations, "c")
        note(store.confirmations, "d")
        known = store.confirmations
        assert [entry.seq for entry in noted] == [1, 2, 3, 4]
        assert [entry.previous for entry in noted[1:]] == [entry.digest for entry in noted[:-1]]
        assert known.audit(limit=9) == noted[::-1]
        assert known.audit(limit=9, before=3) == noted[1::-1]
        assert known.audit(limit=9, confirmation="c2") == []
        assert known.audit(limit=9, kind="voted") == []
        assert known.audit(limit=9, after=1, before=4) == noted[2:0:-1]
        assert known.audit_head() == (4, noted[-1].digest)
        trail = known.checked(lambda _: ("", ""))
        assert (trail.problems, trail.seq, trail.digest) == ([], 4, noted[-1].digest)
        for text, digest in known.audit_texts():
            assert digest_of(text) == digest

    def test_concurrent_writers_leave_one_chain(self, store: Store, database_url: str) -> None:
        def write(number: int) -> None:
            with Store(database_url) as mine:
                for turn in range(8):
                    with mine.confirmations.writing(NOW) as ledger:
                        ledger.note("viewed", f"{number}.{turn}")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
        found = store.confirmations.audit(limit=100)
        assert [entry.seq for entry in found] == list(range(32, 0, -1))
        assert len({entry.actor for entry in found}) == 32
        assert not store.confirmations.checked(lambda _: ("", "")).problems


class TestTwoServices:
    """Two services on one database, as in two processes behind two ports."""

    def test_a_decision_in_one_reaches_a_waiter_of_the_other(
        self, postgres_url: str, tmp_path: Path
    ) -> None:
        async def run() -> None:
            async with (
                confirm_core(tmp_path / "one", database=postgres_url) as one,
                confirm_core(tmp_path / "two", database=postgres_url) as two,
            ):
                ann = one.approver("ann")
                card = await one.ask()
                with two.service.listener() as changes:
                    waiting = asyncio.create_task(two.service.wait(card.id, 30))
                    await asyncio.sleep(0)
                    await one.approve(card, ann)
                    waited = await waiting
                    heard = await asyncio.wait_for(changes.get(), LONGEST_S)
                assert waited is not None
                assert (waited.status, waited.settled_by) == ("approved", "ann")
                assert heard is not None
                assert heard.id == card.id
                by = one.agent("builder")
                redeemed = [
                    await core.service.redeem(card.id, by, card.digest) for core in (two, one)
                ]
                assert isinstance(redeemed[0], Granted)
                assert not isinstance(redeemed[1], Granted)

        asyncio.run(run())

    def test_both_write_one_chain_and_one_of_two_racing_decisions_counts(
        self, postgres_url: str, tmp_path: Path
    ) -> None:
        async def run() -> None:
            async with (
                confirm_core(tmp_path / "one", database=postgres_url) as one,
                confirm_core(tmp_path / "two", database=postgres_url) as two,
            ):
                ann = one.approver("ann")
                cards = await asyncio.gather(
                    *((one, two)[n % 2].ask(details={"n": n}) for n in range(20))
                )
                answers = await asyncio.gather(
                    *(
                        core.decide(card, ann, choice)
                        for card in cards
                        for core, choice in ((one, "approve"), (two, "deny"))
                    )
                )
                won = [isinstance(answer, Confirmation) for answer in answers]
                assert [sum(won[at : at + 2]) for at in range(0, 40, 2)] == [1] * 20
                for core in (one, two):
                    checked = await core.service.verify_audit()
                    assert (checked.ok, checked.problem) == (True, "")
                kinds = [entry.kind for entry in one.audit()]
                assert kinds.count("approved") + kinds.count("denied") == 20
                assert kinds.count("refused") == 20

        asyncio.run(run())

    def test_a_credential_revoked_in_one_is_soon_refused_by_the_other(
        self, postgres_url: str, tmp_path: Path
    ) -> None:
        async def run() -> None:
            async with (
                confirm_core(tmp_path / "one", database=postgres_url) as one,
                confirm_core(tmp_path / "two", database=postgres_url) as two,
            ):
                one.approver("ann")
                key = one.secrets["ann"]
                assert await two.service.authenticate(key) is not None
                with one.store.confirmations.writing(one.clock()) as ledger:
                    credentials.revoke(ledger, "approver", "ann", "test")

                async def is_unknown() -> bool:
                    return await two.service.authenticate(key) is None

                await until_async(is_unknown)

        asyncio.run(run())


def test_confirmations_do_not_wait_for_learning(postgres_url: str) -> None:
    with (
        Store(postgres_url) as store,
        ThreadPoolExecutor(1) as other,
        store.episodes._writing("learning") as connection,
    ):
        wait_for_learners(connection)
        other.submit(add, store, a_card()).result(timeout=60)
