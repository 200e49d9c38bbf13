"""Refusals are written down, but a stranger cannot fill the audit with them."""

import asyncio
from typing import Any

import pytest

from journeyman.confirm.server.refusals import MOST_A_MINUTE, RefusalBook


class Book:
    def __init__(self) -> None:
        self.written: list[tuple[str, dict[str, Any], str]] = []
        self.time = 30.0
        self.refusals = RefusalBook(self.write, now=lambda: self.time)

    async def write(self, actor: str, about: dict[str, Any], confirmation: str) -> None:
        self.written.append((actor, about, confirmation))

    def strangers(self, count: int) -> None:
        async def knock() -> None:
            for number in range(count):
                await self.refusals.stranger({"number": number})

        asyncio.run(knock())


def test_strangers_are_written_down_up_to_a_limit_by_the_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    book = Book()
    book.strangers(MOST_A_MINUTE + 30)
    assert len(book.written) == MOST_A_MINUTE
    book.time = 61.0
    book.strangers(3)
    assert len(book.written) == MOST_A_MINUTE + 3
    assert book.written[-1] == ("stranger", {"number": 2}, "")
    assert "30 refusals of strangers were not written" in caplog.text


def test_who_is_known_is_always_written_down() -> None:
    book = Book()
    book.strangers(MOST_A_MINUTE)

    async def try_often() -> None:
        for _ in range(50):
            await book.refusals.known("agent:builder", {"why": "no"}, "abc")

    asyncio.run(try_often())
    assert book.written[MOST_A_MINUTE:] == [("agent:builder", {"why": "no"}, "abc")] * 50
