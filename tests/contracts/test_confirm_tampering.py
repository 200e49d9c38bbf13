"""An attacker with write access changes any column of the confirmations and the audit, to plausible
and to odd values. `audit verify` reports every change, and neither a running nor a newly started
service approves or redeems anything that was changed.
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
from journeyman.confirm.audit import export_lines, verify
from journeyman.confirm.decisions import decide
from journeyman.confirm.policy import Policy
from journeyman.confirm.requests import cancel, expire_due, prepare, redeem, submit
from journeyman.confirm.schemas import Accepted, Ballot, Verified
from journeyman.records.confirmation import Confirmation, Credential, Refusal, Submission
from journeyman.records.errors import JourneymanError
from journeyman.store.audit import digest_of
from journeyman.store.store import Store
from journeyman.store.tables import audit, confirmations

NOW = 1_800_000_000.0
POLICY = Policy(rate_limit=1_000, requester_limit=1_000)
COLUMNS = {table: [column.name for column in table.c] for table in (confirmations, audit)}
ODD = ("", "abc", -1, 7, 2**63 - 1, 1.5, b"\xff\xfe", None)
"""Written into every column that accepts them."""


class TamperedDatabase:
    """A database with confirmations, and an attacker who changes it."""

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
        list(export_lines(known.audit_texts()))
        known.audit(limit=1_000)
        return verify(known, noted or known.audit_head())

    def rows(self, table: sa.Table) -> list[sa.Row[Any]]:
        with self.engine.connect() as connection:
            return list(connection.execute(table.select().order_by(table.c.seq)))

    @contextmanager
    def changed(self, table: str, column: str, seq: int, new: Any) -> Iterator[bool]:
        """Change the column of a row for the duration of the block; yield whether the database
        accepted the change and the value is different.
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
            return False  # the database rejects this value

    def refused(self, card: Confirmation) -> bool:
        """Whether neither a running nor a newly started service redeems the card."""
        with Store(self.url) as fresh:
            return _is_refused(self, card, self.store) and _is_refused(self, card, fresh)


def _is_refused(database: TamperedDatabase, card: Confirmation, store: Store) -> bool:
    try:
        return isinstance(database.redeem(card, store), Refusal)
    except JourneymanError:
        return True  # nothing more is written


@pytest.fixture
def database(store: Store, database_url: str) -> Iterator[TamperedDatabase]:
    made = TamperedDatabase(store, database_url)
    yield made
    made.engine.dispose()


def approved(database: TamperedDatabase, **more: Any) -> Confirmation:
    card = database.approve(database.ask(**more))
    assert isinstance(card, Confirmation)
    return card


def test_every_column_of_a_confirmation(database: TamperedDatabase) -> None:
    card = approved(database, details={"amount": 1})
    seq = database.rows(confirmations)[0].seq
    assert database.verify().ok
    tried, missed = set(), []
    for column in COLUMNS[confirmations]:
        for new in (*ODD, "eve", "pending", NOW + 9, card.id.upper(), '{"id": 1}'):
            with database.changed("confirmations", column, seq, new) as is_changed:
                if not is_changed:
                    continue
                tried.add(column)
                # Without its id it cannot be found.
                if database.verify().ok or not database.refused(card):
                    missed.append((column, new))
    assert missed == []
    assert tried == set(COLUMNS[confirmations])
    assert database.verify().ok
    assert not isinstance(database.redeem(card), Refusal)


def test_every_field_of_a_confirmation_record(database: TamperedDatabase) -> None:
    """Even if the related columns and the digest are changed to match."""
    card = approved(database, details={"amount": 1})
    row = database.rows(confirmations)[0]
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
        with database.changed("confirmations", "body", row.seq, body) as is_changed:
            assert is_changed
            if database.verify().ok or not database.refused(card):
                missed.append(field)
    assert missed == []
    assert database.verify().ok
    assert not isinstance(database.redeem(card), Refusal)


def test_every_column_of_the_audit(database: TamperedDatabase) -> None:
    """A running service checks entries about the card again and remembers the contents of all
    others; a newly started service refuses after any change.
    """
    card = approved(database)
    database.ask(details={"another": 1})
    tried, missed = set(), []
    for row in database.rows(audit)[1:]:
        for column in COLUMNS[audit]:
            is_about_it = row.confirmation == card.id
            texts = (row.entry.replace("n", "m"), row.entry[:-1], row.digest[::-1], "viewed")
            for new in (*ODD, *texts) if is_about_it else (-1, "", row.entry[:-1]):
                noted = database.store.confirmations.audit_head()
                with database.changed("audit", column, row.seq, new) as is_changed:
                    if not is_changed:
                        continue
                    tried.add(column)
                    with Store(database.url) as fresh:
                        held = not _is_refused(database, card, fresh)
                    if is_about_it:
                        held |= not _is_refused(database, card, database.store)
                    if database.verify(noted).ok or held:
                        missed.append((row.seq, column, new))
    assert missed == []
    assert tried == set(COLUMNS[audit])
    assert database.verify().ok
    with Store(database.url) as fresh:
        assert not isinstance(database.redeem(card, fresh), Refusal)


def test_a_removed_or_inserted_entry(database: TamperedDatabase) -> None:
    card = approved(database)
    database.ask(details={"another": 1})
    for row in database.rows(audit)[:-1]:
        with database.engine.begin() as connection:
            connection.execute(audit.delete().where(audit.c.seq == row.seq))
        assert not database.verify().ok
        with Store(database.url) as fresh:
            assert _is_refused(database, card, fresh)
        with database.engine.begin() as connection:
            connection.execute(audit.insert().values(row._mapping))
    assert database.verify().ok
    kept = database.rows(audit)[-1]
    for seq, text in (
        (kept.seq + 10, kept.entry),
        (2**63 - 1, "{}"),
        (-5, "no JSON"),
        (0, '{"seq": 0, "kind": "unheard of"}'),
    ):
        entry = {"seq": seq, "kind": "k", "confirmation": card.id, "entry": text}
        with database.engine.begin() as connection:
            connection.execute(audit.insert().values(**entry, digest=digest_of(text)))
        assert not database.verify().ok
        with Store(database.url) as fresh:
            assert isinstance(database.redeem(card, fresh), Refusal)
        with database.engine.begin() as connection:
            connection.execute(audit.delete().where(~audit.c.seq.between(1, kept.seq)))


def test_a_deleted_or_forged_confirmation(database: TamperedDatabase) -> None:
    card = approved(database)
    row = database.rows(confirmations)[0]
    made_up = replace(card, id="f" * 32, short_id="ffffff")
    with database.engine.begin() as connection:
        connection.execute(confirmations.delete())
    assert "row is missing" in database.verify().problem
    assert database.refused(card)
    with database.engine.begin() as connection:
        connection.execute(confirmations.insert().values(row._mapping))
        values = {**row._mapping, "seq": row.seq + 100, "id": made_up.id}
        values["body"] = msgspec.json.encode(made_up).decode()
        connection.execute(confirmations.insert().values(values))
    assert f"{made_up.id}: it is not in the audit" in database.verify().problem
    assert database.refused(made_up)


class TestSecondRedemption:
    def test_a_reset_confirmation_is_not_redeemed_again(self, database: TamperedDatabase) -> None:
        card = approved(database)
        before = database.rows(confirmations)[0]
        assert not isinstance(database.redeem(card), Refusal)
        with database.engine.begin() as connection:
            connection.execute(confirmations.delete())
            connection.execute(confirmations.insert().values(before._mapping))
        assert database.refused(card)
        assert not database.verify().ok

    def test_not_even_if_the_redemption_entry_is_hidden(self, database: TamperedDatabase) -> None:
        card = approved(database)
        before = database.rows(confirmations)[0]
        database.redeem(card)
        database.ask(details={"later": 1})
        gone = next(row for row in database.rows(audit) if row.kind == "redeemed")
        for change in (
            audit.delete(),
            audit.update().values(kind="viewed"),
            audit.update().values(confirmation=""),
            audit.update().values(entry=gone.entry.replace("redeemed", "viewed")),
        ):
            with database.engine.begin() as connection:
                connection.execute(confirmations.delete().where(confirmations.c.id == card.id))
                connection.execute(confirmations.insert().values(before._mapping))
                connection.execute(change.where(audit.c.seq == gone.seq))
            assert database.refused(card)
            assert not database.verify().ok
            with database.engine.begin() as connection:
                connection.execute(audit.delete().where(audit.c.seq == gone.seq))
                connection.execute(audit.insert().values(gone._mapping))

    def test_a_second_redemption_is_never_written(self, database: TamperedDatabase) -> None:
        card = approved(database)
        database.redeem(card)
        with (
            pytest.raises(RuntimeError, match="redeemed cannot follow"),
            database.store.confirmations.writing(NOW + 3) as ledger,
        ):
            ledger.record("redeemed", "agent:builder", replace(card, status="redeemed"))
        assert database.verify().ok

    def test_one_of_many_concurrent_redemptions_succeeds(self, database: TamperedDatabase) -> None:
        card = approved(database)

        def one(_number: int) -> bool:
            with Store(database.url) as mine:
                return isinstance(database.redeem(card, mine), Refusal)

        with ThreadPoolExecutor(6) as pool:
            refused = list(pool.map(one, range(12)))
        assert refused.count(False) == 1
        assert [row.kind for row in database.rows(audit)].count("redeemed") == 1
        assert database.verify().ok


def test_a_confirmation_changed_before_the_decision_is_not_decided(
    database: TamperedDatabase,
) -> None:
    card = database.ask(details={"amount": 1})
    row = database.rows(confirmations)[0]
    body = row.body.replace('"amount":1', '"amount":1000')
    with database.changed("confirmations", "body", row.seq, body), Store(database.url) as fresh:
        for store in (database.store, fresh):
            assert isinstance(database.approve(card, store), Refusal)
            with store.confirmations.writing(NOW + 1) as ledger:
                ballot = Ballot(choice="deny", digest=card.digest)
                assert isinstance(decide(ledger, POLICY, card.id, ballot, database.ann), Refusal)
                assert isinstance(cancel(ledger, card.id, database.builder), Refusal)
        with database.store.confirmations.writing(NOW + 1e6) as ledger:
            assert expire_due(ledger)[0] == 1, "nobody waits for it for ever"
    ended = database.store.confirmations.find(card.id)
    assert ended is not None
    assert not database.verify().ok, "that it was changed stays to be seen"


def test_work_continues_after_a_reset(database: TamperedDatabase) -> None:
    card = approved(database)
    entry = database.rows(audit)[1]
    with database.changed("audit", "digest", entry.seq, "0" * 64):
        with Store(database.url) as fresh:
            assert isinstance(database.redeem(card, fresh), Refusal)
            with fresh.confirmations.writing(NOW + 2) as ledger:
                ledger.note("anchor_reset", "ann")
            assert not isinstance(database.redeem(card, fresh), Refusal)
        assert not database.verify().ok
