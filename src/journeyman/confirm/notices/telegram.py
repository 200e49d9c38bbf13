"""Telegram notices with buttons. A press in a private chat is a person's decision, received by
polling, so that no address of this machine has to be public. The account number identifies the
person, and a seal in the button identifies what was decided on. Whether the decision counts is up
to the service, as for every decision.
"""

import base64
import hashlib
import hmac
import http.client
import logging
import re
import threading
import urllib.error
import urllib.request
from collections import defaultdict
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import msgspec
from msgspec import Struct, field

from journeyman.confirm.decisions import decide
from journeyman.confirm.notices.text import NoticeText, outcome_line
from journeyman.confirm.schemas import Ballot
from journeyman.confirm.service import Service
from journeyman.notify.services import DeliveryFailed
from journeyman.records.confirmation import (
    Confirmation,
    ConfirmationId,
    Credential,
    Refusal,
    VoteChoice,
)
from journeyman.records.errors import BadSetting
from journeyman.store.confirmations import Confirmations
from journeyman.store.ledger import Ledger

logger = logging.getLogger(__name__)

_API_URL: Final = "https://api.telegram.org"
_MAX_MESSAGE_LENGTH: Final = 4096
_MAX_ANSWER_LENGTH: Final = 200
_CALL_LIMIT_S: Final = 8.0
_POLL_S: Final = 25
_POLL_GRACE_S: Final = 10.0
_EMPTY_POLL_PAUSE_S: Final = 0.2
_FIRST_PAUSE_S: Final = 1.0
_MAX_PAUSE_S: Final = 60.0
_CHOICES: Final[dict[str, VoteChoice]] = {"a": "approve", "d": "deny"}
_SEAL_BYTES: Final = 12
_ROOM_FOR_OUTCOME: Final = 450
_URL: Final = re.compile(
    r"\s*tgram://(?:bot)?(\d+:[a-z0-9_-]+)((?:/+-?\d{1,19})*)/*(?:\?.*)?\s*", re.IGNORECASE
)
_BUTTON_DATA: Final = re.compile(r"v1:([ad]):([^:]+):([A-Za-z0-9_=-]+)")
_SETTLED_CODES: Final = frozenset(("already_settled", "expired", "lapsed", "already_redeemed"))
_NO_PREVIEW: Final = {"is_disabled": True}

T = TypeVar("T")


class Account(Struct, frozen=True):
    """A person or a chat, by its number: names can be changed, the number cannot."""

    id: int
    type: str = ""


class ChatMessage(Struct, frozen=True):
    """A message sent by the bot. Telegram omits the text of old messages."""

    message_id: int
    chat: Account
    text: str = ""


class ButtonPress(Struct, frozen=True):
    """A person pressed a button; Telegram's `callback_query`."""

    id: str
    user: Account = field(name="from")
    message: ChatMessage | None = None
    data: str = ""


class Update(Struct, frozen=True):
    """An event, with Telegram's number for it, which is valid even if the rest is malformed."""

    update_id: int
    callback_query: Any = None


class TelegramChannel:
    """A bot that notifies people and receives their answers in a thread of its own. Raise
    BadSetting for a URL that cannot be used. Every URL of the API contains the bot's token:
    nothing here logs a URL or puts one into an error.
    """

    name = "telegram"

    def __init__(
        self,
        url: str,
        position: int,
        service: Service,
        confirmations: Confirmations,
        api_url: str = _API_URL,
    ) -> None:
        self._service = service
        self._confirmations = confirmations
        match = _URL.fullmatch(unquote(url))
        chats = [int(chat) for chat in match[2].split("/") if chat] if match else []
        self._chats = chats or list(approvers_on_telegram(confirmations))
        if match is None or not self._chats:
            raise BadSetting(
                f"The notification address number {position} (tgram://…) cannot be used. Write it "
                "as tgram://BOT_TOKEN/CHAT, where CHAT is a number (a person's own number for a "
                "private chat with the bot). Without CHAT, an approver needs a Telegram number."
            )
        self._url = f"{api_url}/bot{match[1]}"
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        # Seals the buttons. It survives a restart, so that buttons sent before keep working.
        self._key = service.signing.button_key()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="telegram", daemon=True)
        self._sent: defaultdict[ConfirmationId, list[ChatMessage]] = defaultdict(list)

    def _call(
        self, kind: type[T], method: str, *, limit_s: float = _CALL_LIMIT_S, **arguments: Any
    ) -> T:
        """Call a method of the API and return its result. Raise DeliveryFailed."""
        request = urllib.request.Request(  # noqa: S310 - the URL is built above
            f"{self._url}/{method}",
            msgspec.json.encode(arguments),
            {"Content-Type": "application/json"},
        )
        try:
            with self._opener.open(request, timeout=limit_s) as answer:
                return msgspec.convert(msgspec.json.decode(answer.read())["result"], kind)
        except urllib.error.HTTPError as error:
            error.close()
            raise DeliveryFailed(f"Telegram answered {error.code}") from None
        except (msgspec.DecodeError, msgspec.ValidationError, LookupError, TypeError):
            raise DeliveryFailed("Telegram sent an unexpected response") from None
        except (OSError, http.client.HTTPException) as error:
            why = type(getattr(error, "reason", error)).__name__
            raise DeliveryFailed(f"Telegram could not be reached ({why})") from None

    def start(self) -> None:
        """Start receiving answers."""
        self._thread.start()

    def stop(self) -> None:
        """Stop receiving answers. Unprocessed presses arrive again at the next start."""
        self._stopping.set()

    def send(self, text: NoticeText, confirmation: Confirmation) -> None:
        """Send a notice to every chat; reaching one is enough. Raise DeliveryFailed."""
        room = _MAX_MESSAGE_LENGTH - _ROOM_FOR_OUTCOME - len(text.title) - 1
        message = f"{text.title}\n{text.body(room)}"
        # There is a button to approve only below a message that shows everything that would run.
        channels = self._service.policy.rule_for(confirmation.action).channels
        is_approvable = self.name in channels and text.is_complete_within(room)
        choices: list[VoteChoice] = ["approve", "deny"] if is_approvable else ["deny"]
        data = {choice: button_data(self._key, confirmation, choice) for choice in choices}
        buttons = [{"text": name.capitalize(), "callback_data": data[name]} for name in choices]
        errors = []
        for chat in self._chats:
            rows = [] if chat < 0 else [buttons]  # a group's number is negative
            try:
                sent = self._call(
                    dict[str, Any],
                    "sendMessage",
                    chat_id=chat,
                    text=message,
                    link_preview_options=_NO_PREVIEW,
                    reply_markup={"inline_keyboard": rows},
                )
            except DeliveryFailed as error:
                errors.append(error)
                continue
            posted = ChatMessage(int(sent["message_id"]), Account(chat), message)
            self._sent[confirmation.id].append(posted)
        if len(errors) == len(self._chats):
            raise errors[0]

    def show_outcome(self, confirmation: Confirmation) -> None:
        """Remove the buttons wherever the notice was sent, and show the outcome."""
        for message in self._sent.pop(confirmation.id, []):
            self._mark_settled(message, confirmation)

    def _listen(self) -> None:
        offset, pause_s = 0, _FIRST_PAUSE_S
        while not self._stopping.is_set():
            try:
                updates = self._call(
                    list[Update],
                    "getUpdates",
                    offset=offset,
                    timeout=_POLL_S,
                    allowed_updates=["callback_query"],
                    limit_s=_POLL_S + _POLL_GRACE_S,
                )
            except DeliveryFailed as error:
                if pause_s == _FIRST_PAUSE_S:
                    logger.warning("answers from Telegram cannot be received: %s", error)
                self._stopping.wait(pause_s)
                pause_s = min(2 * pause_s, _MAX_PAUSE_S)
                continue
            pause_s = _FIRST_PAUSE_S
            if not updates:
                self._stopping.wait(_EMPTY_POLL_PAUSE_S)
            for update in updates:
                if self._stopping.is_set():
                    break
                self._process(update)
                offset = max(offset, update.update_id + 1)

    def _process(self, update: Update) -> None:
        """Process a press. Every press is answered, even if processing it fails."""
        try:
            press = msgspec.convert(update.callback_query, ButtonPress)
        except msgspec.ValidationError:
            return
        words, alert = "The decision could not be recorded here. Open the page.", True
        try:
            try:
                words, alert = self._decide(press)
            finally:
                self._call(
                    object,
                    "answerCallbackQuery",
                    callback_query_id=press.id,
                    text=words[:_MAX_ANSWER_LENGTH],
                    show_alert=alert,
                )
        except Exception:  # one press that fails must not end the polling
            logger.exception("a button pressed on Telegram could not be processed")

    def _decide(self, press: ButtonPress) -> tuple[str, bool]:
        """Act on a press; return the answer to the person, and whether it is shown as an alert."""
        message = press.message
        if message is None or message.chat.type != "private":
            return self._refuse(press, "Decide in your own chat with this bot.", "not private")
        by = approvers_on_telegram(self._confirmations).get(press.user.id)
        if by is None:
            return self._refuse(press, "You are not an approver. Nothing was decided.", "unknown")
        match = _BUTTON_DATA.fullmatch(press.data)
        card = None if match is None else self._confirmations.find(match[2])
        if match is None or card is None:
            return self._refuse(press, "The confirmation of this button is unknown.", "no card")
        choice = _CHOICES[match[1]]
        if hmac.compare_digest(match[3], _seal(self._key, card, choice)):
            ballot = Ballot(choice=choice, digest=card.digest, channel="telegram")
            policy = self._service.policy
            decided = self._service.write(decide, policy, card.id, ballot, by)
            if not isinstance(decided, Refusal):
                card = decided
                if card.status == "pending":
                    return outcome_line(card), False
            elif decided.code in _SETTLED_CODES:
                card = self._confirmations.find(card.id) or card
            else:
                return decided.message, True
        elif card.status == "pending":
            changed = "It has changed since this was sent. Nothing was decided: open the page."
            return self._refuse(press, changed, "wrong seal", card.id)
        # It is settled: show who decided, and remove the buttons of this message.
        self._mark_settled(message, card)
        return outcome_line(card), False

    def _refuse(
        self, press: ButtonPress, words: str, why: str, confirmation: str = ""
    ) -> tuple[str, bool]:
        """Record that nothing was decided, and return the answer to the person."""
        actor, about = f"telegram:{press.user.id}", {"channel": self.name, "why": why}
        self._service.write(Ledger.note, "refused", actor, confirmation, **about)
        return words, True

    def _mark_settled(self, message: ChatMessage, confirmation: Confirmation) -> None:
        outcome = outcome_line(confirmation)
        if message.text.startswith(outcome):
            return
        try:
            self._call(
                object,
                "editMessageText",
                chat_id=message.chat.id,
                message_id=message.message_id,
                text=f"{outcome}\n\n{message.text}",
                link_preview_options=_NO_PREVIEW,
            )
        except DeliveryFailed as error:  # deleted, or marked before: nothing to repair
            logger.info("the outcome of %s is not shown: %s", confirmation.short_id, error)


def approvers_on_telegram(confirmations: Confirmations) -> dict[int, Credential]:
    """Return the active approvers by the numbers of their Telegram accounts."""
    return {
        approver.telegram_id: approver
        for approver in confirmations.credentials("approver")
        if approver.revoked_at is None and approver.telegram_id is not None
    }


def button_data(key: bytes, confirmation: Confirmation, choice: VoteChoice) -> str:
    """Return what a button sends back: the choice, the confirmation, and a seal over both and the
    digest, so that a button decides only on what its message showed.
    """
    return f"v1:{choice[0]}:{confirmation.id}:{_seal(key, confirmation, choice)}"


def _seal(key: bytes, confirmation: Confirmation, choice: VoteChoice) -> str:
    sealed = "\0".join(("v1", choice[0], confirmation.id, confirmation.digest))
    mac = hmac.new(key, sealed.encode(), hashlib.sha256).digest()[:_SEAL_BYTES]
    return base64.urlsafe_b64encode(mac).decode()
