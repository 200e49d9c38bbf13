"""Group commit writes each change exactly once, regardless of failures elsewhere."""

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.confirm_core import Clock
from tests.databases import database
from tests.waiting import LONGEST_S

from journeyman.confirm.group_commit import Writer
from journeyman.store.ledger import Ledger
from journeyman.store.store import Store


def do_nothing(_ledger: Ledger) -> None:
    """Nothing to do after a commit."""


def noting(name: str) -> Callable[[Ledger], int]:
    return lambda ledger: ledger.note("viewed", name).seq


def fails(ledger: Ledger) -> int:
    ledger.note("viewed", "fails")
    raise KeyError("broken")


def write(
    home: Path, *works: Callable[[Ledger], int], after_commit: Callable[[Ledger], None] = do_nothing
) -> tuple[list[int | BaseException], list[str]]:
    """Write changes as one group; return their results and the actors in the audit log."""

    async def run(store: Store) -> list[int | BaseException]:
        writer = Writer(store.confirmations, Clock(), after_commit)
        begin = threading.Event()
        writer.soon(lambda _ledger: begin.wait(LONGEST_S))  # the others arrive during this write
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


def test_failed_change_does_not_affect_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    results, actors = write(tmp_path, noting("a"), fails, noting("b"))
    assert actors == ["a", "b"]
    assert results[::2] == [1, 2]
    assert isinstance(results[1], KeyError)
    assert "not written" in caplog.text


def test_failed_publishing_does_not_repeat_the_write(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def after_commit(_ledger: Ledger) -> None:
        raise OSError("No space left on device")

    with caplog.at_level(logging.ERROR):
        results, actors = write(tmp_path, noting("a"), noting("b"), after_commit=after_commit)
    assert (results, actors) == ([1, 2], ["a", "b"])
    assert "written but not published" in caplog.text
