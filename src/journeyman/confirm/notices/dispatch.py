"""Sends notices of new confirmations through the channels or to the terminal, in a thread of its
own. The result is stored with the confirmation.
"""

import logging
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Final, TextIO

from journeyman.confirm.notices.text import confirmation_notice, notice_title
from journeyman.confirm.service import Service
from journeyman.notify.services import DeliveryFailed, NotificationService, open_service
from journeyman.records.confirmation import Confirmation, Notice
from journeyman.redaction.masking import mask_text
from journeyman.text.display import escape_live_text

logger = logging.getLogger(__name__)

_STOP_TIMEOUT_S: Final = 1.0


class Notifier:
    """Notifies people of confirmations through the first channel that works, in a thread of its
    own; without channels, or if all fail, in the terminal. Confirmations that arrive before
    `start`, of which an earlier run may have notified people, are held until then.
    """

    def __init__(
        self,
        service: Service,
        urls: tuple[str, ...],
        page_url: Callable[[], str],
        terminal: TextIO | None = None,
    ) -> None:
        self._service = service
        self._page_url = page_url
        self._terminal = terminal
        self._channels = open_channels(urls)
        self.channels = tuple(channel.name for channel in self._channels)
        self._cards: queue.SimpleQueue[Confirmation | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)
        self._stopping = threading.Event()
        service.has_channels = bool(urls)
        service.on_new = self._cards.put

    def start(self) -> None:
        """Start sending."""
        self._thread.start()

    def stop(self) -> None:
        """Stop. Queued notices are dropped: the next start sends them again."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._cards.put(None)
            self._thread.join(_STOP_TIMEOUT_S)

    def _run(self) -> None:
        while (card := self._cards.get()) is not None and not self._stopping.is_set():
            try:
                self._send(card)
            except Exception:  # one notice that fails must not silence those that follow
                logger.exception("a notice could not be processed")

    def _send(self, card: Confirmation) -> None:
        link = f"{self._page_url()}/#/card/{card.id}"
        if not self._channels:
            action = escape_live_text(mask_text(card.action))
            self._write_line(f"{notice_title(card, action)}. Open: {link}")
            return
        seq, digest = self._service.audit_head()
        text = confirmation_notice(card, page_link=link, audit_head=f"{seq}:{digest}")
        errors = []
        for channel in self._channels:
            try:
                channel.send(text.title, text.body, "warning")
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


def open_channels(urls: Sequence[str]) -> tuple[NotificationService, ...]:
    """Return the channels in the order of their URLs. Raise BadSetting for a URL that cannot be
    used: at the start, because a notice that never arrives would be noticed too late.
    """
    return tuple(
        open_service(
            url,
            label=f"The notification address number {position}",
            about="Journeyman confirmations",
            extra="confirm",
        )
        for position, url in enumerate(urls, start=1)
    )
