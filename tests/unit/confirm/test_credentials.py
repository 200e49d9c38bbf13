"""Credentials: names, secrets, revocation and sessions."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.confirm_core import confirm_core
from tests.databases import database
from tests.tables import table

from journeyman.confirm import credentials
from journeyman.confirm.credentials import SESSION_S
from journeyman.confirm.schemas import LoggedIn
from journeyman.records.confirmation import Refusal
from journeyman.records.errors import WrongInput
from journeyman.store.confirmations import Confirmations
from journeyman.store.store import Store

NOW = 1_800_000_000.0


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Confirmations]:
    home = tmp_path_factory.mktemp("home")
    with Store(database(home)) as store:
        with store.confirmations.writing(NOW) as ledger:
            credentials.add_approver(ledger, "ann", by="test")
            credentials.add_agent(ledger, "builder", by="test")
        yield store.confirmations


@table(
    "name",
    ["", " ann", "a b", "a:b", "-a", "a" * 65, "ä", "a\n", "Policy", "service", "ANONYMOUS"],
)
def test_a_name_cannot_pass_for_something_else(known: Confirmations, name: str) -> None:
    with known.writing(NOW) as ledger, pytest.raises(WrongInput, match="is not a valid name"):
        credentials.add_agent(ledger, name, by="test")


def test_names_are_unique_and_owners_are_approvers(known: Confirmations) -> None:
    with known.writing(NOW) as ledger:
        for taken in ("ann", "builder"):
            with pytest.raises(WrongInput, match="already"):
                credentials.add_agent(ledger, taken, by="test")
            with pytest.raises(WrongInput, match="already"):
                credentials.add_approver(ledger, taken, by="test")
        for not_an_approver in ("nobody", "builder"):
            with pytest.raises(WrongInput, match="no approver"):
                credentials.add_agent(ledger, "new", by="test", owner=not_an_approver)


def test_secrets_are_long_prefixed_and_unique(known: Confirmations) -> None:
    with known.writing(NOW) as ledger:
        made = [credentials.add_agent(ledger, f"agent{n}", by="test")[1] for n in range(3)]
        key = credentials.add_approver(ledger, "bob", by="test")[1]
    assert len({*made, key}) == 4
    assert all(secret.startswith("jma_") and len(secret) >= 47 for secret in made)
    assert key.startswith("jmk_")


def test_revoked_name_can_be_reused_with_a_new_secret(known: Confirmations) -> None:
    with known.writing(NOW) as ledger:
        _, first = credentials.add_agent(ledger, "phoenix", by="test")
        gone = credentials.revoke(ledger, "agent", "phoenix", "approver:ann")
        _, second = credentials.add_agent(ledger, "phoenix", by="test")
        with pytest.raises(WrongInput, match="no agent"):
            credentials.revoke(ledger, "agent", "nobody", "test")
    assert gone.revoked_at == NOW
    assert known.find_credential(credentials.secret_digest(first)) is None
    assert known.find_credential(credentials.secret_digest(second)) is not None
    assert known.audit(limit=2, kind="credential_revoked")[0].actor == "approver:ann"


def test_sessions_start_with_a_key_and_expire(tmp_path: Path) -> None:
    async def run() -> None:
        async with confirm_core(tmp_path) as core:
            core.approver("ann")
            core.agent("builder")
            log_in = core.service.log_in
            for name, secret in (
                ("ann", "wrong"),
                ("bob", core.secrets["ann"]),
                ("ann", core.secrets["builder"]),
                ("builder", core.secrets["builder"]),
            ):
                assert isinstance(await log_in(name, secret), Refusal)
            entered = await log_in("ann", core.secrets["ann"])
            assert isinstance(entered, LoggedIn)
            assert entered.secret not in repr(entered)
            assert isinstance(await log_in("ann", entered.secret), Refusal)

            async def known(session: LoggedIn) -> bool:
                whole = credentials.session_secret(session.secret, session.csrf)
                return await core.service.authenticate(whole) is not None

            for half in (entered.secret, entered.csrf):
                assert await core.service.authenticate(half) is None
            core.clock.forward(SESSION_S - 1)
            assert await known(entered)
            core.clock.forward(1)
            assert not await known(entered)
            again = await log_in("ann", core.secrets["ann"])
            assert isinstance(again, LoggedIn)
            assert await known(again)
            await core.service.log_out(again.credential)
            assert not await known(again)

    asyncio.run(run())
