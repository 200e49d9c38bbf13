"""Waiting for presses of buttons on Telegram, by long polling: no address of ours has to be public.
What a press means is not decided here.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import httpx2

from journeyman.confirm.notices.bot_api import ApiProblem, BotApi, Press

logger = logging.getLogger(__name__)

_WAIT_S: Final = 25
_BREATH_S: Final = 0.2
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0
_PATIENCE_S: Final = 1.0


class Listening:
    """Hands every press to `pressed`, one after the other, in a thread of its own.

    The thread runs a small event loop, because there a wait of half a minute can be ended at once.
    """

    def __init__(
        self, api: BotApi, pressed: Callable[[Press], None], *, wait_s: int = _WAIT_S
    ) -> None:
        self._api = api
        self._pressed = pressed
        self._wait_s = wait_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="telegram", daemon=True)
        self._stopping = threading.Event()

    def start(self) -> None:
        """Begin to listen."""
        self._loop = asyncio.new_event_loop()
        self._thread.start()

    def stop(self) -> None:
        """Stop within a second. Presses not dealt with come again at the next start."""
        self._stopping.set()
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._end)
            self._thread.join(_PATIENCE_S)

    def _run(self) -> None:
        loop = self._loop
        assert loop is not None
        with (
            asyncio.Runner(loop_factory=lambda: loop) as runner,
            suppress(asyncio.CancelledError),
        ):
            runner.run(self._listen())

    def _end(self) -> None:
        # Only this task: it ends those that the HTTP client has started for it, and knows which of
        # them have not begun yet.
        if self._task is not None:
            self._task.cancel()

    async def _listen(self) -> None:
        self._task = asyncio.current_task()
        offset = 0
        pause_s = _FIRST_PAUSE_S
        async with self._api.poller() as client:
            while not self._stopping.is_set():
                try:
                    offset = await self._turn(client, offset)
                except ApiProblem as problem:
                    if pause_s == _FIRST_PAUSE_S:
                        logger.warning("answers on Telegram do not come in: %s", problem)
                    await asyncio.sleep(min(max(pause_s, problem.retry_after_s), _LONGEST_PAUSE_S))
                    pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                else:
                    pause_s = _FIRST_PAUSE_S

    async def _turn(self, client: httpx2.AsyncClient, offset: int) -> int:
        """One wait for presses, and dealing with them; the number to ask from next time."""
        updates = await self._api.updates(client, offset=offset, wait_s=self._wait_s)
        if not updates:
            await asyncio.sleep(_BREATH_S)
        for update in updates:
            if self._stopping.is_set():
                break
            if update.callback_query is not None:
                self._deal_with(update.callback_query)
            offset = max(offset, update.update_id + 1)
        return offset

    def _deal_with(self, press: Press) -> None:
        # On the loop, which is there for nothing else.
        try:
            self._pressed(press)
        except Exception:  # one press that goes wrong must not end the listening
            logger.exception("a press of a button on Telegram could not be dealt with")
