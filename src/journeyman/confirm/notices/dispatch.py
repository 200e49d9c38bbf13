"""Sends notices of new confirmations through the channels or to the terminal, in a thread of its
own. The result is stored with the confirmation, and answers from chats become decisions.
"""

import logging
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TextIO

from journeyman.confirm.notices.telegram import TelegramChannel, approvers_on_telegram
from journeyman.confirm.notices.text import NoticeText, confirmation_notice, notice_title
from journeyman.confirm.service import Service
from journeyman.notify.services import (
    DeliveryFailed,
    NotificationService,
    open_service,
    url_scheme,
)
from journeyman.records.confirmation import Confirmation, Notice
from journeyman.redaction.masking import mask_text
from journeyman.store.confirmations import Confirmations
from journeyman.text.display import escape_live_text

logger = logging.getLogger(__name__)

_STOP_TIMEOUT_S: Final = 1.0


class ServiceChannel:
    """A notification service that only delivers; decisions are made on the page."""

    def __init__(self, service: NotificationService) -> None:
        self._service = service
        self.name = service.name

    def send(self, text: NoticeText, confirmation: Confirmation) -> None:  # noqa: ARG002 - the interface
        """Send a notice. Raise DeliveryFailed."""
        self._service.send(text.title, text.body, "warning")


NoticeChannel = TelegramChannel | ServiceChannel


class Notifier:
    """Notifies people of confirmations through the first channel that works, in a thread of its
    own; without channels, or if all fail, in the terminal. Confirmations that arrive before
    `start`, of which an earlier run may have notified people, are held until then.
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
        self._terminal = terminal
        has_buttons = bool(approvers_on_telegram(confirmations))
        telegram = partial(TelegramChannel, service=service, confirmations=confirmations)
        self._channels = make_channels(urls, telegram=telegram if has_buttons else None)
        self._chats = [each for each in self._channels if isinstance(each, TelegramChannel)]
        self.channels = tuple(channel.name for channel in self._channels)
        self._tasks: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)
        self._stopping = threading.Event()
        service.has_channels = bool(urls)
        service.on_new = self.notify
        service.on_settled = self._show_outcome

    def start(self) -> None:
        """Start sending, and listening in chats where people can answer."""
        self._thread.start()
        for chat in self._chats:
            chat.start()

    def stop(self) -> None:
        """Stop. Queued notices are dropped: the next start sends them again."""
        self._stopping.set()
        for chat in self._chats:
            chat.stop()
        if self._thread.ident is not None:
            self._tasks.put(None)
            self._thread.join(_STOP_TIMEOUT_S)

    def notify(self, card: Confirmation) -> None:
        """Have people notified of a confirmation. Never blocks."""
        self._tasks.put(partial(self._send, card))

    def _show_outcome(self, card: Confirmation) -> None:
        for chat in self._chats:
            self._tasks.put(partial(chat.show_outcome, card))

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None and not self._stopping.is_set():
            try:
                task()
            except Exception:  # one notice that fails must not silence those that follow
                logger.exception("a notice could not be processed")

    def _send(self, card: Confirmation) -> None:
        link = f"{self._page_url()}/#/card/{card.id}"
        if not self._channels:
            action = escape_live_text(mask_text(card.action))
            self._write_line(f"{notice_title(card, action)}. Open: {link}")
            return
        seq, digest = self._service.audit_head()
        head = f"{seq}:{digest}"
        text = confirmation_notice(card, page_link=link, audit_head=head)
        errors = []
        for channel in self._channels:
            try:
                channel.send(text, card)
            except DeliveryFailed as failure:
                error = str(failure)
            except Exception as failure:  # noqa: BLE001 - third-party code; its text may hold secrets
                error = f"it failed unexpectedly ({type(failure).__name__})"
            else:
                self._service.record_notice(card.id, Notice(status="sent", channel=channel.name))
                return
            logger.warning("the notice of %s failed on %s: %s", card.short_id, channel.name, error)
            errors.append(f"{channel.name}: {error}")
        is_shown = self._write_line(f"{text.title}. Open: {text.link}")
        fallback = "terminal" if is_shown else ""
        failed = Notice(status="failed", channel=fallback, error="; ".join(errors))
        self._service.record_notice(card.id, failed)

    def _write_line(self, line: str) -> bool:
        """Write a line to the terminal, or to stderr without one; return whether that worked."""
        stream = sys.stderr if self._terminal is None else self._terminal
        try:
            stream.write(line.encode("ascii", "backslashreplace").decode() + "\n")
            stream.flush()
        except (OSError, ValueError):  # gone or closed
            return False
        return True


def make_channels(
    urls: Sequence[str], *, telegram: Callable[[str, int], TelegramChannel] | None = None
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
