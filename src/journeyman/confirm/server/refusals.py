"""Writes down who was turned away at the door, but not more than the log can bear: a stranger must
not be able to fill the audit by knocking.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from journeyman.records.errors import OutsideProblem

log = logging.getLogger("journeyman.confirm")

MOST_A_MINUTE = 20

Write = Callable[[str, dict[str, Any], str], Awaitable[None]]
"""Writes down who was refused, about what, and concerning which confirmation."""


class RefusalBook:
    """Audit entries about refusals; those about strangers are limited by the minute."""

    def __init__(self, write: Write, *, now: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._now = now
        self._minute = -1
        self._written = 0

    async def stranger(self, about: dict[str, Any], confirmation: str = "") -> None:
        """Somebody without a credential, or with one that is not known."""
        minute = int(self._now() // 60)
        if minute != self._minute:
            if self._written > MOST_A_MINUTE:
                log.warning(
                    "%d refusals of strangers were not written to the audit log: more than %d came "
                    "in a minute.",
                    self._written - MOST_A_MINUTE,
                    MOST_A_MINUTE,
                )
            self._minute, self._written = minute, 0
        self._written += 1
        if self._written <= MOST_A_MINUTE:
            try:
                await self._write("stranger", about, confirmation)
            except OutsideProblem as problem:  # the refusal stands without its entry
                log.warning("a refusal was not written to the audit log: %s", problem)

    async def known(self, name: str, about: dict[str, Any], confirmation: str = "") -> None:
        """Somebody with a credential that is not enough. Always written."""
        await self._write(name, about, confirmation)
