"""Whose secret it is: looked up, known for a second, and forgotten when something changes."""

import asyncio
from pathlib import Path

import pytest
from tests.confirm_core import Clock, confirm_core

from journeyman.confirm import credentials
from journeyman.records.confirmation import Credential
from journeyman.store.confirmations import Confirmations


def test_a_credential_is_known_for_a_second_and_never_after_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    find = Confirmations.find_credential

    def counted(known: Confirmations, digest: str) -> Credential | None:
        asked.append(digest)
        return find(known, digest)

    async def run() -> None:
        clock = Clock()
        async with confirm_core(tmp_path, clock=clock) as core:
            ann, key = core.approver("ann"), core.secrets["ann"]
            await core.service.check_writes()  # what was written beside it is taken in
            who = core.service.authenticate
            for forward, looked_up in ((0.0, 1), (0.99, 1), (0.01, 2), (-5.0, 3)):
                clock.forward(forward)
                assert await who(key) == ann
                assert len(asked) == looked_up
            assert [await who("nobody's") for _ in range(2)] == [None, None]
            assert len(asked) == 5, "nobody is not remembered"
            session = await core.service.log_in("ann", key)
            assert isinstance(session, credentials.LoggedIn)
            secret = credentials.session_secret(session.secret, session.csrf)
            clock.forward(credentials.SESSION_S - 0.5)
            assert await who(secret) == session.credential
            clock.forward(0.5)
            assert await who(secret) is None

    monkeypatch.setattr(Confirmations, "find_credential", counted)
    asyncio.run(run())


def test_one_that_is_revoked_while_it_is_looked_up_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = Confirmations.find_credential

    async def run() -> None:
        async with confirm_core(tmp_path) as core:
            ann, key = core.approver("ann"), core.secrets["ann"]
            session = await core.service.log_in("ann", key)
            assert isinstance(session, credentials.LoggedIn)

            def revoked(known: Confirmations, digest: str) -> Credential | None:
                found = find(known, digest)
                asyncio.run_coroutine_threadsafe(
                    core.service.log_out(session.credential), loop
                ).result(10)
                return found

            loop = asyncio.get_running_loop()
            core.clock.forward(2)
            with monkeypatch.context() as patched:
                patched.setattr(Confirmations, "find_credential", revoked)
                secret = credentials.session_secret(session.secret, session.csrf)
                assert await core.service.authenticate(secret) == session.credential
            assert await core.service.authenticate(secret) is None
            assert await core.service.authenticate(key) == ann

    asyncio.run(run())
