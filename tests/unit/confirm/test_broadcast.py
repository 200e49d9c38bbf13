"""Listeners that fall behind."""

import asyncio

from tests.unit.notify.fake_services import card

from journeyman.confirm.broadcast import Hub, until_none

CARD = card()


def test_slow_listener_is_disconnected() -> None:
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
