"""Credentials are cached for a second, and dropped from the cache when they change."""

import asyncio
from pathlib import Path

import pytest
from tests.confirm_core import Clock, confirm_core
from tests.waiting import LONGEST_S

from journeyman.confirm import credentials
from journeyman.records.confirmation import Credential
from journeyman.store.confirmations import Confirmations


def test_credential_is_cached_for_a_second_but_not_past_its_expiry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookups: list[str] = []
    find = Confirmations.find_credential

    def counted(known: Confirmations, digest: str) -> Credential | None:
        lookups.append(digest)
        return find(known, digest)

    async def run() -> None:
        clock = Clock()
        async with confirm_core(tmp_path, clock=clock) as core:
            ann, key = core.approver("ann"), core.secrets["ann"]
            await core.service.check_writes()  # loads what was written directly to the store
            authenticate = core.service.authenticate
            for forward, looked_up in ((0.0, 1), (0.99, 1), (0.01, 2), (-5.0, 3)):
                clock.forward(forward)
                assert await authenticate(key) == ann
                assert len(lookups) == looked_up
            assert [await authenticate("nobody's") for _ in range(2)] == [None, None]
            assert len(lookups) == 5, "unknown secrets are not cached"
            session = await core.service.log_in("ann", key)
            assert isinstance(session, credentials.LoggedIn)
            secret = credentials.session_secret(session.secret, session.csrf)
            clock.forward(credentials.SESSION_S - 0.5)
            assert await authenticate(secret) == session.credential
            clock.forward(0.5)
            assert await authenticate(secret) is None

    monkeypatch.setattr(Confirmations, "find_credential", counted)
    asyncio.run(run())


def test_credential_revoked_during_its_lookup_is_not_cached(
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
                ).result(LONGEST_S)
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
