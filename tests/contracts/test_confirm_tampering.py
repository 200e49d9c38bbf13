"""Somebody who can write to the database changes it: every column of cards and of the audit, with
plausible values and with odd ones. `audit verify` says so each time, and nothing is approved or
redeemed that was changed, by a service that runs on and by one that was just started.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from msgspec.structs import replace

from journeyman.confirm import credentials
from journeyman.confirm.audit import exported, verify
from journeyman.confirm.decisions import decide
from journeyman.confirm.policy import Policy
from journeyman.confirm.requests import cancel, expire_due, prepare, redeem, submit
from journeyman.confirm.schemas import Accepted, Ballot, Verified
from journeyman.records.confirmation import Confirmation, Credential, Refusal, Submission
from journeyman.records.errors import JourneymanError
from journeyman.store.audit import digest_of
from journeyman.store.confirmation_tables import audit, confirmations
from journeyman.store.store import Store

NOW = 1_800_000_000.0
POLICY = Policy(rate_limit=1_000, requester_limit=1_000)
COLUMNS = {table: [column.name for column in table.c] for table in (confirmations, audit)}
ODD = ("", "abc", -1, 7, 2**63 - 1, 1.5, b"\xff\xfe", None)
"""Put into every column, as far as the database takes it."""


class House:
    """A database with cards in it, and somebody who changes it."""

    def __init__(self, store: Store, url: str) -> None:
        self.store, self.url = store, url
        self.engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        with store.confirmations.writing(NOW) as ledger:
            self.builder = credentials.add_agent(ledger, "builder", by="test")[0]
            self.ann = credentials.add_approver(ledger, "ann", by="test")[0]

    def ask(self, **more: Any) -> Confirmation:
        asked = Submission(action="pay", description="d", requester="builder", **more)
        with self.store.confirmations.writing(NOW) as ledger:
            answer = submit(ledger, POLICY, asked, prepare(asked, POLICY))
        assert isinstance(answer, Accepted)
        return answer.confirmation

    def approve(self, card: Confirmation, store: Store | None = None) -> Confirmation | Refusal:
        ballot = Ballot(choice="approve", digest=card.digest)
        with (store or self.store).confirmations.writing(NOW + 1) as ledger:
            return decide(ledger, POLICY, card.id, ballot, self.ann)

    def redeem(
        self, card: Confirmation, store: Store | None = None, by: Credential | None = None
    ) -> object:
        with (store or self.store).confirmations.writing(NOW + 2) as ledger:
            by = by or self.builder
            return redeem(ledger, POLICY, card.id, by, digest=card.digest, details=card.details)

    def verify(self, noted: tuple[int, str] | None = None) -> Verified:
        known = self.store.confirmations
        list(exported(known.audit_texts(), "csv"))
        known.audit(limit=1_000)
        return verify(known, noted or known.audit_head())

    def rows(self, table: sa.Table) -> list[sa.Row[Any]]:
        with self.engine.connect() as connection:
            return list(connection.execute(table.select().order_by(table.c.seq)))

    @contextmanager
    def changed(self, table: str, column: str, seq: int, new: Any) -> Iterator[bool]:
        """The column of a row changed for as long as the block lasts; whether that could be done
        and made a difference.
        """
        with self.engine.connect() as connection:
            asked = sa.text(f"SELECT {column} FROM {table} WHERE seq = :seq")
            old = connection.execute(asked, {"seq": seq}).scalar_one()
        is_rounded = isinstance(new, float) and isinstance(old, int) and "postgres" in self.url
        is_same = (new, type(new)) == (old, type(old))
        done = not is_same and not is_rounded and self._set(table, column, seq, new)
        here = new if column == "seq" else seq
        try:
            yield done
        finally:
            assert not done or self._set(table, column, here, old)

    def _set(self, table: str, column: str, seq: object, value: object) -> bool:
        change = sa.text(f"UPDATE {table} SET {column} = :value WHERE seq = :seq")
        try:
            with self.engine.begin() as connection:
                return connection.execute(change, {"value": value, "seq": seq}).rowcount == 1
        except (sa.exc.DBAPIError, OverflowError):
            return False  # the database does not take this there

    def refused(self, card: Confirmation) -> bool:
        """Whether the card is redeemed neither by who runs on nor by who starts now."""
        with Store(self.url) as fresh:
            return _is_refused(self, card, self.store) and _is_refused(self, card, fresh)


def _is_refused(house: House, card: Confirmation, store: Store) -> bool:
    try:
        return isinstance(house.redeem(card, store), Refusal)
    except JourneymanError:
        return True  # nothing more is written at all


@pytest.fixture
def house(store: Store, database_url: str) -> Iterator[House]:
    made = House(store, database_url)
    yield made
    made.engine.dispose()


def approved(house: House, **more: Any) -> Confirmation:
    card = house.approve(house.ask(**more))
    assert isinstance(card, Confirmation)
    return card


def test_every_column_of_a_card(house: House) -> None:
    card = approved(house, details={"amount": 1})
    seq = house.rows(confirmations)[0].seq
    assert house.verify().ok
    tried, missed = set(), []
    for column in COLUMNS[confirmations]:
        for new in (*ODD, "eve", "pending", NOW + 9, card.id.upper(), '{"id": 1}'):
            with house.changed("confirmations", column, seq, new) as is_changed:
                if not is_changed:
                    continue
                tried.add(column)
                # Without its id nobody finds it any more.
                if house.verify().ok or not house.refused(card):
                    missed.append((column, new))
    assert missed == []
    assert tried == set(COLUMNS[confirmations])
    assert house.verify().ok
    assert not isinstance(house.redeem(card), Refusal)


def test_every_field_inside_a_card(house: House) -> None:
    """Also when the columns beside it are changed to say the same, and the digest with it."""
    card = approved(house, details={"amount": 1})
    row = house.rows(confirmations)[0]
    others: dict[str, Any] = {
        "details": {"amount": 1_000_000},
        "edited": {"amount": 1_000_000},
        "context": {"files": {"/x": "sha256:0"}},
        "votes": [],
        "notice": {"status": "sent", "channel": "", "error": ""},
        "quorum": 0,
        "submissions": 5,
        "status": "auto_approved",
        "tier": "routine",
    }
    missed = []
    for field in Confirmation.__struct_fields__:
        told = msgspec.to_builtins(card)
        before = told[field]
        told[field] = others.get(field, 7.5 if isinstance(before, float | None) else "eve")
        assert told[field] != before, field
        body = msgspec.json.encode(told).decode()
        with house.changed("confirmations", "body", row.seq, body) as is_changed:
            assert is_changed
            if house.verify().ok or not house.refused(card):
                missed.append(field)
    assert missed == []
    assert house.verify().ok
    assert not isinstance(house.redeem(card), Refusal)


def test_every_column_of_the_audit(house: House) -> None:
    """Of the entries about the card: a service that runs on looks at them again. Of others: it
    knows what they said, and one that starts now refuses.
    """
    card = approved(house)
    house.ask(details={"another": 1})
    tried, missed = set(), []
    for row in house.rows(audit)[1:]:
        for column in COLUMNS[audit]:
            is_about_it = row.confirmation == card.id
            texts = (row.entry.replace("n", "m"), row.entry[:-1], row.digest[::-1], "viewed")
            for new in (*ODD, *texts) if is_about_it else (-1, "", row.entry[:-1]):
                noted = house.store.confirmations.audit_head()
                with house.changed("audit", column, row.seq, new) as is_changed:
                    if not is_changed:
                        continue
                    tried.add(column)
                    with Store(house.url) as fresh:
                        held = not _is_refused(house, card, fresh)
                    if is_about_it:
                        held |= not _is_refused(house, card, house.store)
                    if house.verify(noted).ok or held:
                        missed.append((row.seq, column, new))
    assert missed == []
    assert tried == set(COLUMNS[audit])
    assert house.verify().ok
    with Store(house.url) as fresh:
        assert not isinstance(house.redeem(card, fresh), Refusal)


def test_an_entry_that_was_taken_out_or_put_in(house: House) -> None:
    card = approved(house)
    house.ask(details={"another": 1})
    for row in house.rows(audit)[:-1]:
        with house.engine.begin() as connection:
            connection.execute(audit.delete().where(audit.c.seq == row.seq))
        assert not house.verify().ok
        with Store(house.url) as fresh:
            assert _is_refused(house, card, fresh)
        with house.engine.begin() as connection:
            connection.execute(audit.insert().values(row._mapping))
    assert house.verify().ok
    kept = house.rows(audit)[-1]
    for seq, text in (
        (kept.seq + 10, kept.entry),
        (2**63 - 1, "{}"),
        (-5, "no JSON"),
        (0, '{"seq": 0, "kind": "unheard of"}'),
    ):
        entry = {"seq": seq, "kind": "k", "confirmation": card.id, "entry": text}
        with house.engine.begin() as connection:
            connection.execute(audit.insert().values(**entry, digest=digest_of(text)))
        assert not house.verify().ok
        with Store(house.url) as fresh:
            assert isinstance(house.redeem(card, fresh), Refusal)
        with house.engine.begin() as connection:
            connection.execute(audit.delete().where(~audit.c.seq.between(1, kept.seq)))


def test_a_card_that_was_deleted_or_made_up(house: House) -> None:
    card = approved(house)
    row = house.rows(confirmations)[0]
    made_up = replace(card, id="f" * 32, short_id="ffffff")
    with house.engine.begin() as connection:
        connection.execute(confirmations.delete())
    assert "row is gone" in house.verify().problem
    assert house.refused(card)
    with house.engine.begin() as connection:
        connection.execute(confirmations.insert().values(row._mapping))
        values = {**row._mapping, "seq": row.seq + 100, "id": made_up.id}
        values["body"] = msgspec.json.encode(made_up).decode()
        connection.execute(confirmations.insert().values(values))
    assert f"{made_up.id}: the audit knows nothing of it" in house.verify().problem
    assert house.refused(made_up)


class TestSecondRedemption:
    def test_a_card_set_back_is_not_redeemed_again(self, house: House) -> None:
        card = approved(house)
        before = house.rows(confirmations)[0]
        assert not isinstance(house.redeem(card), Refusal)
        with house.engine.begin() as connection:
            connection.execute(confirmations.delete())
            connection.execute(confirmations.insert().values(before._mapping))
        assert house.refused(card)
        assert not house.verify().ok

    def test_nor_when_the_entry_that_says_so_is_hidden(self, house: House) -> None:
        card = approved(house)
        before = house.rows(confirmations)[0]
        house.redeem(card)
        house.ask(details={"later": 1})
        gone = next(row for row in house.rows(audit) if row.kind == "redeemed")
        for change in (
            audit.delete(),
            audit.update().values(kind="viewed"),
            audit.update().values(confirmation=""),
            audit.update().values(entry=gone.entry.replace("redeemed", "viewed")),
        ):
            with house.engine.begin() as connection:
                connection.execute(confirmations.delete().where(confirmations.c.id == card.id))
                connection.execute(confirmations.insert().values(before._mapping))
                connection.execute(change.where(audit.c.seq == gone.seq))
            assert house.refused(card)
            assert not house.verify().ok
            with house.engine.begin() as connection:
                connection.execute(audit.delete().where(audit.c.seq == gone.seq))
                connection.execute(audit.insert().values(gone._mapping))

    def test_nor_is_a_second_one_ever_written(self, house: House) -> None:
        card = approved(house)
        house.redeem(card)
        with (
            pytest.raises(RuntimeError, match="redeemed cannot follow"),
            house.store.confirmations.writing(NOW + 3) as ledger,
        ):
            ledger.record("redeemed", "agent:builder", replace(card, status="redeemed"))
        assert house.verify().ok

    def test_of_many_at_once_one_is(self, house: House) -> None:
        card = approved(house)

        def one(_number: int) -> bool:
            with Store(house.url) as mine:
                return isinstance(house.redeem(card, mine), Refusal)

        with ThreadPoolExecutor(6) as pool:
            refused = list(pool.map(one, range(12)))
        assert refused.count(False) == 1
        assert [row.kind for row in house.rows(audit)].count("redeemed") == 1
        assert house.verify().ok


def test_what_was_changed_before_the_decision_is_not_decided(house: House) -> None:
    card = house.ask(details={"amount": 1})
    row = house.rows(confirmations)[0]
    body = row.body.replace('"amount":1', '"amount":1000')
    with house.changed("confirmations", "body", row.seq, body), Store(house.url) as fresh:
        for store in (house.store, fresh):
            assert isinstance(house.approve(card, store), Refusal)
            with store.confirmations.writing(NOW + 1) as ledger:
                ballot = Ballot(choice="deny", digest=card.digest)
                assert isinstance(decide(ledger, POLICY, card.id, ballot, house.ann), Refusal)
                assert isinstance(cancel(ledger, card.id, house.builder), Refusal)
        with house.store.confirmations.writing(NOW + 1e6) as ledger:
            assert expire_due(ledger)[0] == 1, "nobody waits for it for ever"
    ended = house.store.confirmations.find(card.id)
    assert ended is not None
    assert not house.verify().ok, "that it was changed stays to be seen"


def test_a_reset_lets_things_go_on(house: House) -> None:
    card = approved(house)
    entry = house.rows(audit)[1]
    with house.changed("audit", "digest", entry.seq, "0" * 64):
        with Store(house.url) as fresh:
            assert isinstance(house.redeem(card, fresh), Refusal)
            with fresh.confirmations.writing(NOW + 2) as ledger:
                ledger.note("anchor_reset", "ann")
            assert not isinstance(house.redeem(card, fresh), Refusal)
        assert not house.verify().ok
