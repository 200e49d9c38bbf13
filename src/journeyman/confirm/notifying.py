"""Joins the service with the notices: people are told of new cards, a card learns what came of its
notice, and answers from chats become decisions. The libraries for channels are loaded only where
some are configured.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from journeyman.confirm.answers import Ballot
from journeyman.confirm.notices.terminal import TerminalNotices
from journeyman.confirm.notices.text import NoticeText, notice_of
from journeyman.confirm.service import Service
from journeyman.records.confirmation import Choice, Confirmation, Credential, Refusal
from journeyman.store.confirmations import Confirmations

if TYPE_CHECKING:
    from journeyman.confirm.notices.telegram import Answering
    from journeyman.confirm.notices.telling import Telling

T = TypeVar("T")


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
        self._confirmations = confirmations
        self._page_url = page_url
        self._loop: asyncio.AbstractEventLoop | None = None
        self._early: list[Confirmation] = []
        self.channels: tuple[str, ...] = ()
        self._terminal = TerminalNotices(page_url, service.shown_in_terminal, terminal)
        self._telling: Telling | None = self._through_channels(urls, terminal) if urls else None
        service.told_new = self.tell
        service.notifies = self._telling is not None
        if self._telling is not None:
            service.told_settled = self._telling.settled

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        (self._telling or self._terminal).start()
        for card in self._early:
            self._tell(card, again=True)

    def stop(self) -> None:
        if self._loop is not None:
            (self._telling or self._terminal).stop()

    def tell(self, card: Confirmation) -> None:
        """Have people told of a card."""
        if self._loop is None:
            self._early.append(card)
        else:
            self._tell(card, again=False)

    def _tell(self, card: Confirmation, *, again: bool) -> None:
        if self._telling is None:
            self._terminal.tell(card, again=again)
        else:
            # Made where it is sent: the event loop has others to answer.
            self._telling.tell(card, lambda: self._notice(card, again=again))

    def _notice(self, card: Confirmation, *, again: bool) -> NoticeText:
        link = f"{self._page_url()}/open#{self._service.signing.card_link(card.id)}"
        seq, digest = self._service.audit_head()
        return notice_of(
            card,
            page_link=link,
            audit_head=f"{seq}:{digest}",
            about="again" if again else "new",
        )

    def _through_channels(self, urls: tuple[str, ...], terminal: TextIO | None) -> "Telling":
        from journeyman.confirm.notices.making import Telegram, make_channels  # noqa: PLC0415
        from journeyman.confirm.notices.telling import Telling  # noqa: PLC0415

        ids = tuple(one.telegram_id for one in self._approvers() if one.telegram_id is not None)
        telegram = Telegram(answering=self._answering(), ids=ids) if ids else None
        channels = make_channels(urls, telegram=telegram)
        self.channels = tuple(channel.name for channel in channels)
        return Telling(
            channels,
            self._service.noticed_soon,
            terminal=terminal,
        )

    def _answering(self) -> "Answering":
        from journeyman.confirm.notices.telegram import Answering  # noqa: PLC0415

        return Answering(
            key=self._service.signing.button_key(),
            approver_of=self._name_of,
            find=self._confirmations.find,
            decide=self._decide,
            may_approve=lambda card: (
                "telegram" in self._service.policy.rule_for(card.action).channels
            ),
            refused=lambda actor, about, id_: self._wait(self._service.refused(actor, about, id_)),
        )

    def _approvers(self) -> list[Credential]:
        known = self._confirmations.credentials("approver")
        return [one for one in known if one.revoked_at is None]

    def _name_of(self, number: int) -> str | None:
        return next((one.name for one in self._approvers() if one.telegram_id == number), None)

    def _decide(self, id_: str, choice: Choice, digest: str, name: str) -> Confirmation | Refusal:
        by = next((one for one in self._approvers() if one.name == name), None)
        if by is None:
            return Refusal(code="not_allowed", message="This account is not an approver's.")
        ballot = Ballot(choice=choice, digest=digest, channel="telegram")
        return self._wait(self._service.decide(id_, ballot, by))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        """From a channel's own thread: have the service do something, and wait for it."""
        assert self._loop is not None
        done: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return done.result()
