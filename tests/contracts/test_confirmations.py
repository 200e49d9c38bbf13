"""What confirmations promise in the store, on SQLite and on a real PostgreSQL: the ledger, what is
read beside it, the audit's chain, and two services on one database.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.confirm_core import confirm_core

from journeyman.confirm import credentials
from journeyman.confirm.answers import Granted
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
from journeyman.store.asked import Wanted
from journeyman.store.audit import NOTHING_BEFORE, digest_of
from journeyman.store.ledger import WINDOW_S
from journeyman.store.store import Store

NOW = 1_800_000_000.125


def a_card(number: int = 1, **facts: Any) -> Confirmation:
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


def add(store: Store, *cards: Confirmation, now: float = NOW) -> None:
    with store.confirmations.writing(now) as ledger:
        for card in cards:
            ledger.add(card, f"fingerprint {card.id}")


class TestCards:
    def test_what_was_kept_is_read_to_the_letter(self, store: Store, database_url: str) -> None:
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
            ledger.save(settled)
        assert store.confirmations.find(card.id) == settled
        assert store.confirmations.list(status="denied") == [settled]
        assert store.confirmations.list(status="pending") == []

    def test_a_card_is_found_by_a_beginning_that_only_it_has(self, store: Store) -> None:
        first, second = (a_card(id=ConfirmationId(start + "0" * 28)) for start in ("abc1", "abc2"))
        add(store, first, second)
        find = store.confirmations.find
        assert find("abc1") == first
        assert find(second.id) == second
        for wrong in ("", "abc", "ABC1", "abc_", "abc%", "abd", f"{first.id}0", "\x00"):
            assert find(wrong) is None

    def test_the_list_is_newest_first_and_goes_on_before_a_card(self, store: Store) -> None:
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

    def test_all_of_a_transaction_is_kept_or_nothing(self, store: Store) -> None:
        def fail() -> None:
            with store.confirmations.writing(NOW) as ledger:
                ledger.add(a_card(), "f")
                ledger.note("submitted", "agent:a")
                raise KeyError

        with pytest.raises(KeyError):
            fail()
        assert store.confirmations.list() == []
        assert store.confirmations.audit_head() == (0, NOTHING_BEFORE)

    def test_a_transaction_sees_what_it_did(self, store: Store) -> None:
        add(store, a_card(1))
        with store.confirmations.writing(NOW + 300) as ledger:
            late = a_card(2, expires_at=NOW + 299)
            ledger.add(late, "f")
            assert ledger.find(late.id) == late
            assert {card.id for card in ledger.due()} == {a_card(1).id, late.id}
            ended = replace(late, status="expired")
            ledger.save(ended)
            assert ledger.find(late.id) == ended
            assert list(ledger.changed.values()) == [ended]
        assert store.confirmations.find(late.id) == ended

    def test_what_is_due_and_when_the_next_is(self, store: Store) -> None:
        assert store.confirmations.next_expiry() is None
        cards = [a_card(number, expires_at=NOW + number) for number in (3, 1, 2)]
        add(store, *cards, a_card(9, status="denied", expires_at=NOW))
        assert store.confirmations.next_expiry() == NOW + 1
        assert store.confirmations.count_pending() == 3
        with store.confirmations.writing(NOW + 2) as ledger:
            assert [card.expires_at - NOW for card in ledger.due()] == [1, 2]

    def test_one_id_is_one_card(self, store: Store) -> None:
        add(store, a_card())
        with pytest.raises(Unstorable):
            add(store, a_card())
        assert len(store.confirmations.list()) == 1


class TestAsked:
    """What was asked and when: inside a transaction and over several it is the same."""

    def ask(self, ledger: Any, number: int, *, card: str = "", key: str = "") -> None:
        wanted = Wanted("builder", "send_mail", f"f{number}")
        ledger.asked.count(
            ledger.asked.seen(wanted),
            wanted=wanted,
            key=key,
            card=card or f"{number:032x}",
            is_new=not card,
        )

    def test_the_window_slides(self, store: Store) -> None:
        writing = store.confirmations.writing
        with writing(NOW) as ledger:
            for number in range(2):
                self.ask(ledger, number)
        with writing(NOW) as ledger:
            self.ask(ledger, 2)
        with writing(NOW + 10) as ledger:
            self.ask(ledger, 0, card=f"{0:032x}")  # one more that shares the first's card
        for later, recent, cards, first in (
            (10, 4, 3, NOW),
            (WINDOW_S - 0.5, 4, 3, NOW),
            (WINDOW_S, 1, 0, NOW + 10),
            (WINDOW_S + 10, 0, 0, None),
        ):
            with writing(NOW + later) as ledger:
                seen = ledger.asked.seen(Wanted("builder", "send_mail", "f"))
                assert (seen.of_action.recent, seen.cards.recent) == (recent, cards)
                assert seen.of_action.first_at == first
                assert ledger.asked.seen(Wanted("other", "send_mail", "f")).of_action.recent == 0
                assert ledger.asked.seen(Wanted("builder", "another", "f")).of_action.recent == 0

    def test_a_key_is_known_with_its_request(self, store: Store) -> None:
        with store.confirmations.writing(NOW) as ledger:
            self.ask(ledger, 1, key="k \x00 ü")
            assert ledger.asked.told("builder", "k \x00 ü") == ("f1", f"{1:032x}")
        with store.confirmations.writing(NOW + 1e6) as ledger:
            assert ledger.asked.told("builder", "k \x00 ü") == ("f1", f"{1:032x}")
            assert ledger.asked.told("other", "k \x00 ü") is None
            assert ledger.asked.told("builder", "K") is None

    def test_a_card_alike_is_seen_while_it_waits(self, store: Store) -> None:
        card = a_card()
        with store.confirmations.writing(NOW) as ledger:
            ledger.add(card, "alike")
        with store.confirmations.writing(NOW) as ledger:
            assert ledger.asked.seen(Wanted("b", "a", "alike")).alike == card.id
            ledger.save(replace(card, status="approved"))
        with store.confirmations.writing(NOW) as ledger:
            assert ledger.asked.seen(Wanted("b", "a", "alike")).alike is None

    def test_many_are_looked_up_at_once(self, store: Store) -> None:
        with store.confirmations.writing(NOW) as ledger:
            for number in range(90):
                self.ask(ledger, number)
            ledger.add(a_card(), "f7")
        with store.confirmations.writing(NOW + 1) as ledger:
            wanted = [Wanted("builder", "send_mail", f"f{number}") for number in range(100)]
            ledger.asked.look_up([*wanted, Wanted("other", "é\x00", "f7")])
            for one in wanted:
                assert ledger.asked.seen(one).of_action.recent == 90
                assert (ledger.asked.seen(one).alike is not None) == (one.fingerprint == "f7")
            assert ledger.asked.seen(Wanted("other", "é\x00", "f7")).cards.recent == 0


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
            ledger.add_entry(entry)
        assert ledger.whitelisted("a") == entries[:2]
    gone = replace(entries[0], revoked_at=NOW + 1, revoked_by="bob")
    used = replace(entries[2], uses=1, last_used_at=NOW + 1)
    with known.writing(NOW + 1) as ledger:
        assert ledger.whitelisted("A") == []
        ledger.save_entry(gone)
        ledger.save_entry(used)
        assert ledger.whitelisted("a") == entries[1:2]
        assert ledger.find_entry("e0") == gone
    assert known.whitelist() == [used, entries[1]]
    assert known.whitelist(revoked=True) == [used, entries[1], gone]


class TestCredentials:
    def person(self, id_: str = "1", **facts: Any) -> Credential:
        given = {"id": id_, "kind": "approver", "name": "ann", "created_at": NOW}
        return Credential(**{**given, **facts})

    def test_a_secret_is_known_by_its_digest_until_it_is_revoked(self, store: Store) -> None:
        ann = self.person(telegram_id=2**40)
        session = self.person("2", kind="session", expires_at=NOW + 60)
        known = store.confirmations
        with known.writing(NOW) as ledger:
            ledger.add_credential(ann, "digest of ann")
            ledger.add_credential(session, "digest of session")
        assert known.find_credential("digest of ann") == ann
        assert known.find_credential("digest of session") == session
        assert known.find_credential("") is None
        assert known.credentials() == [ann]
        assert known.credentials("session") == [session]
        with known.writing(NOW) as ledger:
            ledger.save_credential(replace(ann, revoked_at=NOW))
            ledger.revoke_sessions("ann")
            assert ledger.find_credential("approver", "ann") is None
        assert known.find_credential("digest of ann") is None
        assert known.find_credential("digest of session") is None
        assert known.credentials()[0].revoked_at == NOW

    def test_two_cannot_have_one_secret(self, store: Store) -> None:
        def twice() -> None:
            with store.confirmations.writing(NOW) as ledger:
                ledger.add_credential(self.person("1"), "d")
                ledger.add_credential(self.person("2", name="bob"), "d")

        with pytest.raises(Unstorable):
            twice()

    def test_the_device_and_its_last_step(self, store: Store) -> None:
        known = store.confirmations
        with known.writing(NOW) as ledger:
            ledger.add_credential(self.person(), "d")
            ledger.save_credential(self.person(has_totp=True), totp_secret="secret")
            ledger.use_totp_step("1", 60_000_000)
        with known.writing(NOW) as ledger:
            found = ledger.find_credential("approver", "ann")
            assert found is not None
            assert (found.totp_secret, found.totp_step) == ("secret", 60_000_000)
            ledger.save_credential(self.person(has_totp=True))
        with known.writing(NOW) as ledger:
            found = ledger.find_credential("approver", "ann")
            assert found is not None
            assert found.totp_secret == "secret"

    def test_a_link_is_spent_once(self, store: Store) -> None:
        with store.confirmations.writing(NOW) as ledger:
            assert [ledger.spend_link("n") for _ in range(2)] == [True, False]
        with store.confirmations.writing(NOW) as ledger:
            assert [ledger.spend_link(nonce) for nonce in ("n", "m")] == [False, True]


class TestAudit:
    def test_the_chain_goes_on_over_transactions_and_openings(
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
        assert known.audit_after(2) == [(3, "viewed", "c1"), (4, "viewed", "c1")]
        assert known.audit_head() == (4, noted[-1].digest)
        assert [known.audit_digest(seq) for seq in (4, 5)] == [noted[-1].digest, None]
        assert known.audit_break() == (None, (4, noted[-1].digest))
        for text, digest in known.audit_texts():
            assert digest_of(text) == digest

    def test_writers_side_by_side_leave_one_chain(self, store: Store, database_url: str) -> None:
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
        assert store.confirmations.audit_break()[0] is None


class TestTwoServices:
    """Two processes' worth of service on one database, as behind two ports."""

    def test_what_one_decides_a_waiter_of_the_other_gets(
        self, postgres_url: str, tmp_path: Path
    ) -> None:
        async def run() -> None:
            async with (
                confirm_core(tmp_path / "one", database=postgres_url) as one,
                confirm_core(tmp_path / "two", database=postgres_url) as two,
            ):
                ann = one.approver("ann")
                card = await one.ask()
                listening = two.service.changes()
                heard = asyncio.ensure_future(anext(listening))
                waiting = asyncio.create_task(two.service.wait(card.id, 30))
                await asyncio.sleep(0)
                await one.approve(card, ann)
                waited = await waiting
                assert waited is not None
                assert (waited.status, waited.settled_by) == ("approved", "ann")
                assert (await asyncio.wait_for(heard, 20)).id == card.id
                await listening.aclose()  # type: ignore[attr-defined]
                by = one.agent("builder")
                redeemed = [
                    await core.service.redeem(card.id, by, card.digest) for core in (two, one)
                ]
                assert isinstance(redeemed[0], Granted)
                assert not isinstance(redeemed[1], Granted)

        asyncio.run(run())

    def test_both_write_one_chain_and_one_of_two_racing_words_counts(
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

    def test_what_one_revokes_the_other_soon_refuses(
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
                for _ in range(3_000):
                    if await two.service.authenticate(key) is None:
                        return
                    await asyncio.sleep(0.02)
                raise AssertionError("it is still known")

        asyncio.run(run())
