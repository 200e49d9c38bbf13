"""The last resort, and the only notice where nothing is configured: lines in the terminal of the
service. Many at once are summed up, because nobody reads a hundred lines.
"""

import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TextIO

from journeyman.confirm.masking import masked_text
from journeyman.confirm.notices.text import inert, title_of
from journeyman.records.confirmation import Confirmation, ConfirmationId

TERMINAL: Final = "terminal"
_GATHERED_S: Final = 0.1
_MOST_LINES: Final = 5

Report = Callable[[Sequence[ConfirmationId]], None]
"""Hears that the terminal said that these cards wait. Must not wait itself."""


def write_line(line: str, terminal: TextIO | None) -> bool:
    """Write a line to the terminal, or to the service's errors; whether that worked."""
    stream = sys.stderr if terminal is None else terminal
    try:
        stream.write(line.encode("ascii", "backslashreplace").decode() + "\n")
        stream.flush()
    except (OSError, ValueError):  # gone, or closed
        return False
    return True


class TerminalNotices:
    """Tells people in the terminal, in a thread of its own."""

    def __init__(
        self, page_url: Callable[[], str], report: Report, terminal: TextIO | None = None
    ) -> None:
        self._page_url = page_url
        self._report = report
        self._terminal = terminal
        self._waiting: deque[tuple[Confirmation, bool]] = deque()
        self._came = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telling", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop; what was not told is told by the next start."""
        self._stopping.set()
        self._came.set()
        if self._thread.is_alive():
            self._thread.join()

    def tell(self, card: Confirmation, *, again: bool = False) -> None:
        """Have people told of a card. Never waits."""
        self._waiting.append((card, again))
        if not self._came.is_set():
            self._came.set()

    def _run(self) -> None:
        while self._came.wait() and not self._stopping.wait(_GATHERED_S):
            self._came.clear()
            came: list[tuple[Confirmation, bool]] = []
            with suppress(IndexError):
                while True:
                    came.append(self._waiting.popleft())
            if came:
                self._show(came)

    def _show(self, came: Sequence[tuple[Confirmation, bool]]) -> None:
        lines = [self._line(card, again=again) for card, again in came[:_MOST_LINES]]
        if len(came) > _MOST_LINES:
            lines.append(f"and {len(came) - _MOST_LINES} more wait. Open: {self._page_url()}")
        if write_line("\n".join(lines), self._terminal):
            self._report([card.id for card, _ in came])

    def _line(self, card: Confirmation, *, again: bool) -> str:
        action = inert(masked_text(card.action))
        title = title_of(card, action, "again" if again else "new")
        return f"{title}. Open: {self._page_url()}/#/card/{card.id}"
