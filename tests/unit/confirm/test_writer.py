"""Group commit: each change once, whatever happens to the others and after it."""

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.confirm_core import Clock
from tests.databases import database

from journeyman.confirm.writer import Writer
from journeyman.store.confirmations import Ledger
from journeyman.store.store import Store


def nobody(_ledger: Ledger) -> None:
    """For where nobody is told."""


def noting(name: str) -> Callable[[Ledger], int]:
    return lambda ledger: ledger.note("viewed", name).seq


def fails(ledger: Ledger) -> int:
    ledger.note("viewed", "fails")
    raise KeyError("broken")


def write(
    home: Path, *works: Callable[[Ledger], int], told: Callable[[Ledger], None] = nobody
) -> tuple[list[int | BaseException], list[str]]:
    """What changes that arrive together came to, and the actors in the audit."""

    async def run(store: Store) -> list[int | BaseException]:
        writer = Writer(store.confirmations, Clock(), told)
        begin = threading.Event()
        writer.soon(lambda _ledger: begin.wait(10))  # the others come while this is written
        asked = [asyncio.ensure_future(writer.do(work)) for work in works]
        await asyncio.sleep(0)
        begin.set()
        try:
            return await asyncio.gather(*asked, return_exceptions=True)
        finally:
            await asyncio.to_thread(writer.stop)

    with Store(database(home)) as store:
        results = asyncio.run(run(store))
        found = store.confirmations.audit(limit=1_000)
        assert not store.confirmations.checked(lambda _: ("", "")).problems
    return results, [entry.actor for entry in reversed(found)]


def test_one_that_fails_costs_the_others_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    results, actors = write(tmp_path, noting("a"), fails, noting("b"))
    assert actors == ["a", "b"]
    assert results[::2] == [1, 2]
    assert isinstance(results[1], KeyError)
    assert "not written" in caplog.text


def test_what_is_written_is_not_written_again_when_telling_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def told(_ledger: Ledger) -> None:
        raise OSError("No space left on device")

    with caplog.at_level(logging.ERROR):
        results, actors = write(tmp_path, noting("a"), noting("b"), told=told)
    assert (results, actors) == ([1, 2], ["a", "b"])
    assert "written but not passed on" in caplog.text
