"""Sends the notices of the service: people are told of new cards through the channels or in the
terminal, away from everybody who waits; a card learns what came of its notice, and answers from
chats become decisions.
"""

import logging
import queue
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TextIO

from journeyman.confirm.masking import masked_text
from journeyman.confirm.notices.telegram import TelegramChannel, approvers_on_telegram
from journeyman.confirm.notices.text import (
    About,
    NoticeChannel,
    NoticeText,
    NotTold,
    inert,
    notice_of,
    title_of,
)
from journeyman.confirm.service import Service
from journeyman.records.confirmation import Confirmation, ConfirmationId, Notice
from journeyman.store.confirmations import Confirmations

logger = logging.getLogger(__name__)

_TELEGRAM: Final = re.compile(r"\s*tgram://", re.IGNORECASE)
_PATIENCE_S: Final = 1.0
_GATHERED_S: Final = 0.1
_MOST_LINES: Final = 5

Work = Callable[[], object]


def _write_line(line: str, terminal: TextIO | None) -> bool:
    """Write a line to the terminal, or to the service's errors; whether that worked."""
    stream = sys.stderr if terminal is None else terminal
    try:
        stream.write(line.encode("ascii", "backslashreplace").decode() + "\n")
        stream.flush()
    except (OSError, ValueError):  # gone, or closed
        return False
    return True


class Telling:
    """Tells people through the first channel that works, in a thread of its own. When all fail, the
    notice stands in the service's terminal. `report` takes what came of a notice, and `shown` which
    cards only the terminal told of, from any thread.
    """

    def __init__(
        self,
        channels: Sequence[NoticeChannel],
        report: Callable[[ConfirmationId, Notice], None],
        *,
        shown: Callable[[Sequence[ConfirmationId]], None] = lambda _: None,
        most_waiting: int = 256,
        terminal: TextIO | None = None,
    ) -> None:
        self._channels = tuple(channels)
        self._report = report
        self._shown = shown
        self._terminal = terminal
        self._lines: deque[tuple[ConfirmationId, Callable[[], str]]] = deque()
        self._waiting: queue.Queue[Work | None] = queue.Queue(most_waiting)
        self._thread = threading.Thread(target=self._run, name="telling", daemon=True)
        self._stopping = threading.Event()

    def start(self) -> None:
        """Begin to tell people, and to listen where they can answer."""
        self._thread.start()
        for channel in self._channels:
            channel.start()

    def stop(self) -> None:
        """Stop. Notices that wait are dropped unreported: who starts again tells them again."""
        self._stopping.set()
        for channel in self._channels:
            channel.stop()
        with suppress(queue.Full):  # then the worker sees that it is to stop by itself
            self._waiting.put_nowait(None)
        self._thread.join(_PATIENCE_S)

    def tell(self, confirmation: Confirmation, make: Callable[[], NoticeText]) -> None:
        """Have people told what `make` makes. Never waits: a queue that is full is a failure, and
        reported so.
        """
        try:
            self._waiting.put_nowait(partial(self._tell, confirmation, make))
        except queue.Full:
            error = "too many notices wait to be sent"
            logger.warning("the notice of %s was not sent: %s", confirmation.short_id, error)
            self._report(confirmation.id, Notice(status="failed", error=error))

    def tell_in_terminal(self, card: Confirmation, make: Callable[[], str]) -> None:
        """Have the terminal say what `make` makes. Never waits."""
        self._lines.append((card.id, make))
        with suppress(queue.Full):  # then somebody is about to write all lines
            self._waiting.put_nowait(self._write_lines)

    def _write_lines(self) -> None:
        """Write what waits. Many at once are summed up: nobody reads a hundred lines."""
        if self._lines:
            time.sleep(_GATHERED_S)
            came = [self._lines.popleft() for _ in range(len(self._lines))]
            lines = [make() for _, make in came[:_MOST_LINES]]
            if len(came) > _MOST_LINES:
                lines.append(f"and {len(came) - _MOST_LINES} more wait")
            if _write_line("\n".join(lines), self._terminal):
                self._shown([id_ for id_, _ in came])

    def settled(self, confirmation: Confirmation) -> None:
        """Have it shown, where people were told, that the matter is settled. Never waits."""
        for channel in self._channels:
            if channel.follows_up:
                with suppress(queue.Full):
                    end = partial(channel.settled, confirmation)
                    self._waiting.put_nowait(partial(self._tried, channel, confirmation, end))

    def _run(self) -> None:
        while (work := self._waiting.get()) is not None and not self._stopping.is_set():
            try:
                work()
            except Exception:  # one notice that goes wrong must not silence all that follow
                logger.exception("a notice could not be dealt with")

    def _tell(self, confirmation: Confirmation, make: Callable[[], NoticeText]) -> None:
        text, errors = make(), []
        for channel in self._channels:
            error = self._tried(channel, confirmation, partial(channel.send, text, confirmation))
            if not error:
                self._report(confirmation.id, Notice(status="sent", channel=channel.name))
                return
            errors.append(f"{channel.name}: {error}")
        shown = _write_line(f"{text.title}. Open: {text.link}", self._terminal)
        way = "terminal" if shown else ""
        failed = Notice(status="failed", channel=way, error="; ".join(errors))
        self._report(confirmation.id, failed)

    def _tried(self, channel: NoticeChannel, confirmation: Confirmation, call: Work) -> str:
        """Call it; why it failed, or empty."""
        try:
            call()
        except NotTold as problem:
            error = str(problem)
        except Exception as problem:  # noqa: BLE001 - a stranger's code, whose words may hold secrets
            error = f"it broke off ({type(problem).__name__})"
        else:
            return ""
        failed = "the notice of %s failed on %s: %s"
        logger.warning(failed, confirmation.short_id, channel.name, error)
        return error


class Notifying:
    """Tells people, through the channels or in the terminal. Cards that come before `start`, which
    an earlier run may have told of, are kept until then.
    """

    def __init__(
        self,
        service: Service,
        confirmations: Confirmations,
        urls: tuple[str, ...],
        page_url: Callable[[], str],
        terminal: TextIO | None = None,
    ) -> None:
        self._service = service
        self._page_url = page_url
        self._is_started = False
        self._early: list[Confirmation] = []
        has_buttons = bool(approvers_on_telegram(confirmations))
        telegram = partial(TelegramChannel, service=service, confirmations=confirmations)
        channels = make_channels(urls, telegram=telegram if has_buttons else None) if urls else ()
        self.channels = tuple(channel.name for channel in channels)
        self._telling = Telling(
            channels, service.noticed_soon, shown=service.shown_in_terminal, terminal=terminal
        )
        service.notifies = bool(urls)
        service.told_new = self.tell
        service.told_settled = self._telling.settled

    def start(self) -> None:
        """Begin, on the service's event loop."""
        self._is_started = True
        self._telling.start()
        for card in self._early:
            self._tell(card, "again")

    def stop(self) -> None:
        if self._is_started:
            self._telling.stop()

    def tell(self, card: Confirmation) -> None:
        """Have people told of a card."""
        if self._is_started:
            self._tell(card, "new")
        else:
            self._early.append(card)

    def _tell(self, card: Confirmation, about: About) -> None:
        # Made where it is sent: the event loop has others to answer.
        if self.channels:
            self._telling.tell(card, partial(self._notice, card, about))
        else:
            self._telling.tell_in_terminal(card, partial(self._line, card, about))

    def _line(self, card: Confirmation, about: About) -> str:
        title = title_of(card, inert(masked_text(card.action)), about)
        return f"{title}. Open: {self._page_url()}/#/card/{card.id}"

    def _notice(self, card: Confirmation, about: About) -> NoticeText:
        link = f"{self._page_url()}/open#{self._service.signing.card_link(card.id)}"
        seq, digest = self._service.audit_head()
        return notice_of(card, page_link=link, audit_head=f"{seq}:{digest}", about=about)


def make_channels(
    urls: Sequence[str], *, telegram: Callable[[str, int], NoticeChannel] | None = None
) -> tuple[NoticeChannel, ...]:
    """The channels, in the order of their addresses. With `telegram`, notices there have buttons;
    without, they are like everybody's. Raises BadSetting: an address that cannot be used is refused
    at the start, because a notice that nobody gets is noticed too late.
    """
    # Loaded here: the library is heavy, and most services have no address.
    from journeyman.confirm.notices.apprise_service import AppriseChannel  # noqa: PLC0415

    return tuple(
        (telegram if telegram and _TELEGRAM.match(url) else AppriseChannel)(url, position)
        for position, url in enumerate(urls, start=1)
    )
