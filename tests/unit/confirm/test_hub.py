"""Who listens, and does not keep up."""

import asyncio

from tests.unit.confirm.notices.outside import card

from journeyman.confirm.hub import Hub, until_none

CARD = card()


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
