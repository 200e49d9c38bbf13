"""Notices of new confirmations: their text, with secrets masked and the agent's own words marked as
such, and how they are sent through the channels or to the terminal, in a thread of its own. The
result is stored with the confirmation.
"""

import json
import logging
import math
import queue
import re
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final, TextIO

from msgspec import Struct

from journeyman.confirm.service import Service
from journeyman.confirm.telegram import MAX_LENGTH, TelegramChannel, approvers_on_telegram
from journeyman.notify.services import (
    DeliveryFailed,
    NotificationService,
    open_service,
    url_scheme,
)
from journeyman.records.confirmation import Confirmation, Notice
from journeyman.redaction.masking import mask_parameters_and_texts, mask_text
from journeyman.text.display import escape_live_text
from journeyman.text.truncation import fit_pieces, utf16_length

logger = logging.getLogger(__name__)

_STOP_TIMEOUT_S: Final = 1.0
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9]+(?:[._:/-][A-Za-z0-9]+)*")
_MAX_NAME_LENGTH: Final = 60
_MAX_FACT_LENGTH: Final = 200
_AUDIT_DIGITS: Final = 16
_MARKDOWN: Final = frozenset("\\`*_{}[]()<>#+-.!|~=&")
_OMITTED: Final = "\n{} more characters: open the page\n"

DETAILS_HEADING: Final = "Details (secrets are hidden):"
WORDS_HEADING: Final = "The agent's own words (not verified):"

NoticeChannel = NotificationService | TelegramChannel


class NoticeText(Struct, frozen=True, kw_only=True):
    """A notice in parts: if it is too long, text from the agent is cut and never what the service
    itself states.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    link: str
    details: tuple[str, ...]
    words: tuple[str, ...]
    footer: str
    hides_nothing: bool = False
    """Whether the action, its parameters and the description are shown without any omission."""

    def body(self, limit: int | None = None, is_markdown: bool = False) -> str:  # noqa: FBT001, FBT002 - as a BodyWriter
        """Return the text without the title, of up to `limit` UTF-16 units; more only if the fixed
        part alone is longer. Markdown renders as the same characters as the plain text.
        """

        def escape(character: str) -> str:
            return f"\\{character}" if is_markdown and character in _MARKDOWN else character

        link = f"<{self.link}>" if is_markdown else self.link
        line_end = "  \n" if is_markdown else "\n"
        facts = (f"{label}: {''.join(map(escape, value))}" for label, value in self.facts)
        header = "".join(f"{line}{line_end}" for line in (*facts, f"Open: {link}"))
        # Text from the agent, in pieces that are shown whole or not at all, each with the number
        # of the agent's characters in it. Every line is quoted, so that none can pass for a line
        # of the service.
        pieces: list[tuple[str, int]] = []
        for heading, lines in ((DETAILS_HEADING, self.details), (WORDS_HEADING, self.words)):
            pieces += [(f"{heading}{line_end}", 0)] if lines else []
            for line in lines:
                pieces += [("> ", 0), *((escape(char), 1) for char in line), (line_end, 0)]
        fixed = utf16_length(header) + utf16_length(self.footer)
        room = math.inf if limit is None else limit - fixed
        return header + fit_pieces(pieces, room, _OMITTED) + self.footer


def confirmation_notice(
    confirmation: Confirmation, *, page_link: str, audit_head: str
) -> NoticeText:
    """Return the notice of a waiting confirmation. `audit_head` is the newest audit entry as
    `seq:digest`.
    """
    # A secret revealed by a parameter is hidden everywhere, even if an edit removed it.
    parameters = {"now": confirmation.approved_details}
    if confirmation.edited is not None:
        parameters["original"] = confirmation.details
    texts = (confirmation.action, confirmation.claimed, confirmation.description)
    shown, (action, claimed, words) = mask_parameters_and_texts(parameters, texts)
    action, claimed = escape_live_text(action), escape_live_text(claimed)
    requester = _shorten(escape_live_text(confirmation.requester))
    expires = datetime.fromtimestamp(confirmation.expires_at, UTC)
    facts = {
        "Id": confirmation.short_id,
        "Action": _shorten(action),
        "Tier": confirmation.tier,
        "Requested by": requester + (f', calls itself "{_shorten(claimed)}"' if claimed else ""),
        "Needs": f"{confirmation.quorum} people, has {confirmation.approvals}",
        "Expires": f"{expires:%Y-%m-%d %H:%M:%S} UTC; without approval it is not done",
    }
    if confirmation.quorum == 1:
        del facts["Needs"]
    seq, _, digest = audit_head.partition(":")
    digest = digest.removeprefix("sha256:")[:_AUDIT_DIGITS]
    return NoticeText(
        title=notice_title(confirmation, action),
        facts=tuple(facts.items()),
        link=page_link,
        details=tuple(
            escape_live_text(f"{name}: {json.dumps(value, ensure_ascii=False)}")
            for name, value in shown.get("now", shown).items()
        ),
        words=tuple(escape_live_text(line) for line in words.split("\n")),
        footer=f"audit {seq}:{digest}…" if digest else "",
        hides_nothing=(shown, words, facts["Action"])
        == (parameters, confirmation.description, escape_live_text(confirmation.action)),
    )


def notice_title(confirmation: Confirmation, action: str) -> str:
    """Return the title of a notice. `action` must already be escaped and free of secrets."""
    # Services trust titles and escape little in them, so only a plain name is included.
    is_plain = len(action) <= _MAX_NAME_LENGTH and _PLAIN_NAME.fullmatch(action)
    subject = action if is_plain else "an action"
    return f"{confirmation.short_id}: {subject} waits for your decision"


def _shorten(text: str) -> str:
    excess = len(text) - _MAX_FACT_LENGTH
    return text if excess <= 0 else f"{text[:_MAX_FACT_LENGTH]}… ({excess} more characters)"


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
        self._channels = open_channels(urls, service)
        self.channels = tuple(channel.name for channel in self._channels)
        self._cards: queue.SimpleQueue[Confirmation | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)
        self._stopping = threading.Event()
        service.has_channels = bool(urls)
        service.on_new = self._cards.put

    def start(self) -> None:
        """Start sending, and receiving answers from chats."""
        self._thread.start()
        for channel in self._channels:
            if isinstance(channel, TelegramChannel):
                channel.start(self._stopping)

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
                send_notice(channel, text, card)
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


def send_notice(channel: NoticeChannel, text: NoticeText, card: Confirmation) -> None:
    """Send a notice through a channel. Raise DeliveryFailed."""
    if not isinstance(channel, TelegramChannel):
        channel.send(text.title, text.body, "warning")
        return
    room = MAX_LENGTH - len(text.title) - 1
    is_complete = text.hides_nothing and utf16_length(text.body()) <= room
    channel.send(card, f"{text.title}\n{text.body(room)}", is_complete=is_complete)


def open_channels(urls: Sequence[str], service: Service) -> tuple[NoticeChannel, ...]:
    """Return the channels in the order of their URLs. Telegram has buttons if an approver is known
    there. Raise BadSetting for a URL that cannot be used: at the start, because a notice that never
    arrives would be noticed too late.
    """
    has_buttons = bool(approvers_on_telegram(service))

    def channel(label: str, url: str) -> NoticeChannel:
        if has_buttons and url_scheme(url) == "tgram":
            return TelegramChannel(url, label, service)
        return open_service(url, label=label, about="Journeyman confirmations", extra="confirm")

    return tuple(
        channel(f"The notification address number {position}", url)
        for position, url in enumerate(urls, start=1)
    )
