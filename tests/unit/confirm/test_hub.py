"""Who waits for what: nobody is forgotten, and nobody is waited for."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from tests.unit.confirm.notices.outside import card

from journeyman.confirm.hub import Hub, until_none

CARD = card()


def test_all_waiters_of_a_card_hear_of_its_end_and_no_others() -> None:
    async def run() -> None:
        hub = Hub()
        hub.start()
        with (
            hub.settlement(CARD.id) as first,
            hub.settlement(CARD.id) as second,
            hub.settlement("another") as other,
        ):
            hub.publish([CARD])  # it still waits: nothing is over
            await asyncio.sleep(0)
            assert not first.done()
            ended = card(status="denied")
            with ThreadPoolExecutor(1) as pool:
                pool.submit(hub.publish, [ended]).result()
            assert await first is ended
            assert await second is ended
            hub.publish([card(status="approved")])  # too late to change what was told
            await asyncio.sleep(0.01)
            assert first.result() is ended
            assert not other.done()

    asyncio.run(run())


def test_a_listener_that_does_not_keep_up_is_let_go() -> None:
    async def run() -> None:
        hub = Hub()
        hub.start()
        with hub.listener() as slow, hub.listener(CARD.id) as quick:
            for _ in range(1_500):
                hub.publish([CARD])
            await asyncio.sleep(0.01)
            heard = [one async for one in until_none(slow)]
            assert len(heard) == 1_000
            assert await quick.get() == CARD

    asyncio.run(run())


def test_closing_lets_everybody_go() -> None:
    async def run() -> None:
        hub = Hub()
        hub.start()
        with hub.settlement(CARD.id) as waiting, hub.listener() as listening:
            hub.close()
            assert waiting.cancelled()
            assert await listening.get() is None
            with hub.listener() as late:
                assert await late.get() is None

    asyncio.run(run())
