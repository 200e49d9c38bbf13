"""Sends notices of new confirmations through the channels or to the terminal, in a thread of its
own. The result is stored with the confirmation, and answers from chats become decisions.
"""

import logging
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TextIO

from journeyman.confirm.notices.channels import NoticeChannel, ServiceChannel
from journeyman.confirm.notices.telegram import TelegramChannel, approvers_on_telegram
from journeyman.confirm.notices.text import NoticeText, confirmation_notice, notice_title
from journeyman.confirm.service import Service
from journeyman.notify.services import DeliveryFailed, open_service, url_scheme
from journeyman.records.confirmation import Confirmation, ConfirmationId, Notice
from journeyman.redaction.masking import mask_text
from journeyman.store.confirmations import Confirmations
from journeyman.text.display import escape_live_text

logger = logging.getLogger(__name__)

_STOP_TIMEOUT_S: Final = 1.0
_GATHER_S: Final = 0.1
_MAX_LINES: Final = 5

Task = Callable[[], object]


def _write_line(line: str, terminal: TextIO | None) -> bool:
    """Write a line to the terminal, or to stderr without one; return whether that worked."""
    stream = sys.stderr if terminal is None else terminal
    try:
        stream.write(line.encode("ascii", "backslashreplace").decode() + "\n")
        stream.flush()
    except (OSError, ValueError):  # gone or closed
        return False
    return True


class NoticeQueue:
    """Sends notices through the first channel that works, in a thread of its own. If all fail, the
    notice goes to the service's terminal. `report` receives the result of each notice, and
    `on_shown` the confirmations announced only in the terminal; both are called from any thread.
    """

    def __init__(
        self,
        channels: Sequence[NoticeChannel],
        report: Callable[[ConfirmationId, Notice], None],
        *,
        on_shown: Callable[[Sequence[ConfirmationId]], None] = lambda _: None,
        max_queued: int = 256,
        terminal: TextIO | None = None,
    ) -> None:
        self._channels = tuple(channels)
        self._report = report
        self._on_shown = on_shown
        self._terminal = terminal
        self._lines: deque[tuple[ConfirmationId, Callable[[], str]]] = deque()
        self._tasks: queue.Queue[Task | None] = queue.Queue(max_queued)
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)
        self._stopping = threading.Event()

    def start(self) -> None:
        """Start sending, and listening on channels where people can answer."""
        self._thread.start()
        for channel in self._channels:
            channel.start()

    def stop(self) -> None:
        """Stop. Queued notices are dropped without a report: the next start sends them again."""
        self._stopping.set()
        for channel in self._channels:
            channel.stop()
        with suppress(queue.Full):  # then the worker sees the stop event after its current task
            self._tasks.put_nowait(None)
        self._thread.join(_STOP_TIMEOUT_S)

    def send(self, confirmation: Confirmation, make_text: Callable[[], NoticeText]) -> None:
        """Queue a notice. Never blocks: a full queue is reported as a failure."""
        try:
            self._tasks.put_nowait(partial(self._send, confirmation, make_text))
        except queue.Full:
            error = "too many notices are waiting to be sent"
            logger.warning("the notice of %s was not sent: %s", confirmation.short_id, error)
            self._report(confirmation.id, Notice(status="failed", error=error))

    def show_in_terminal(self, card: Confirmation, make_line: Callable[[], str]) -> None:
        """Queue a line for the terminal. Never blocks."""
        self._lines.append((card.id, make_line))
        with suppress(queue.Full):  # then a queued task is about to write all lines
            self._tasks.put_nowait(self._write_lines)

    def _write_lines(self) -> None:
        """Write the queued lines. Only the first few are written out; the rest are counted."""
        if self._lines:
            time.sleep(_GATHER_S)
            queued = [self._lines.popleft() for _ in range(len(self._lines))]
            lines = [make_line() for _, make_line in queued[:_MAX_LINES]]
            if len(queued) > _MAX_LINES:
                lines.append(f"and {len(queued) - _MAX_LINES} more are waiting")
            if _write_line("\n".join(lines), self._terminal):
                self._on_shown([id_ for id_, _ in queued])

    def show_outcome(self, confirmation: Confirmation) -> None:
        """Have the channels show how a confirmation was settled. Never blocks."""
        for channel in self._channels:
            if channel.shows_outcomes:
                with suppress(queue.Full):
                    show = partial(channel.show_outcome, confirmation)
                    self._tasks.put_nowait(partial(self._attempt, channel, confirmation, show))

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None and not self._stopping.is_set():
            try:
                task()
            except Exception:  # one notice that fails must not silence those that follow
                logger.exception("a notice could not be processed")

    def _send(self, confirmation: Confirmation, make_text: Callable[[], NoticeText]) -> None:
        text, errors = make_text(), []
        for channel in self._channels:
            error = self._attempt(channel, confirmation, partial(channel.send, text, confirmation))
            if not error:
                self._report(confirmation.id, Notice(status="sent", channel=channel.name))
                return
            errors.append(f"{channel.name}: {error}")
        is_shown = _write_line(f"{text.title}. Open: {text.link}", self._terminal)
        fallback = "terminal" if is_shown else ""
        failed = Notice(status="failed", channel=fallback, error="; ".join(errors))
        self._report(confirmation.id, failed)

    def _attempt(self, channel: NoticeChannel, confirmation: Confirmation, call: Task) -> str:
        """Make the call; return why it failed, or an empty string."""
        try:
            call()
        except DeliveryFailed as failure:
            error = str(failure)
        except Exception as failure:  # noqa: BLE001 - third-party code; its text may hold secrets
            error = f"it failed unexpectedly ({type(failure).__name__})"
        else:
            return ""
        message = "the notice of %s failed on %s: %s"
        logger.warning(message, confirmation.short_id, channel.name, error)
        return error


class Notifier:
    """Notifies people of confirmations, through the channels or in the terminal. Confirmations that
    arrive before `start`, of which an earlier run may have notified people, are held until then.
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
        self._held: list[Confirmation] = []
        has_buttons = bool(approvers_on_telegram(confirmations))
        telegram = partial(TelegramChannel, service=service, confirmations=confirmations)
        channels = make_channels(urls, telegram=telegram if has_buttons else None)
        self.channels = tuple(channel.name for channel in channels)
        self._queue = NoticeQueue(
            channels, service.record_notice, on_shown=service.record_shown, terminal=terminal
        )
        service.has_channels = bool(urls)
        service.on_new = self.notify
        service.on_settled = self._queue.show_outcome

    def start(self) -> None:
        """Start, on the event loop of the service."""
        self._is_started = True
        self._queue.start()
        for card in self._held:
            self._notify(card, is_resent=True)

    def stop(self) -> None:
        if self._is_started:
            self._queue.stop()

    def notify(self, card: Confirmation) -> None:
        """Have people notified of a confirmation."""
        if self._is_started:
            self._notify(card, is_resent=False)
        else:
            self._held.append(card)

    def _notify(self, card: Confirmation, *, is_resent: bool) -> None:
        # The text is made in the queue's thread, to keep the event loop free.
        if self.channels:
            self._queue.send(card, partial(self._text, card, is_resent=is_resent))
        else:
            self._queue.show_in_terminal(card, partial(self._line, card, is_resent=is_resent))

    def _line(self, card: Confirmation, *, is_resent: bool) -> str:
        action = escape_live_text(mask_text(card.action))
        title = notice_title(card, action, is_resent=is_resent)
        return f"{title}. Open: {self._page_url()}/#/card/{card.id}"

    def _text(self, card: Confirmation, *, is_resent: bool) -> NoticeText:
        link = f"{self._page_url()}/open#{self._service.signing.card_link(card.id)}"
        seq, digest = self._service.audit_head()
        head = f"{seq}:{digest}"
        return confirmation_notice(card, page_link=link, audit_head=head, is_resent=is_resent)


def make_channels(
    urls: Sequence[str], *, telegram: Callable[[str, int], NoticeChannel] | None = None
) -> tuple[NoticeChannel, ...]:
    """Return the channels in the order of their URLs. With `telegram`, notices there have buttons;
    without it, Telegram is a service like any other. Raise BadSetting for a URL that cannot be
    used: at the start, because a notice that never arrives would be noticed too late.
    """

    def channel(url: str, position: int) -> NoticeChannel:
        if telegram and url_scheme(url) == "tgram":
            return telegram(url, position)
        label = f"The notification address number {position}"
        about = "Journeyman confirmations"
        return ServiceChannel(open_service(url, label=label, about=about, extra="confirm"))

    return tuple(channel(url, position) for position, url in enumerate(urls, start=1))
