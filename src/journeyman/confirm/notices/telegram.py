"""Telegram with buttons that answer: a notice in a private chat, and the press of a button as a
person's word, for which no address of ours has to be public. Who the person is comes from the
number of the account, what was decided on from a seal in the button; whether the decision counts is
decided where every decision is.
"""

import asyncio
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
from collections.abc import Coroutine
from typing import Any, Final, Generic, TypeVar
from urllib.parse import unquote

import msgspec
from msgspec import Struct, field

from journeyman.confirm.notices.text import NoticeChannel, NoticeText, NotTold, outcome_of
from journeyman.confirm.schemas import Ballot
from journeyman.confirm.service import Service
from journeyman.records.confirmation import (
    Choice,
    Confirmation,
    ConfirmationId,
    Credential,
    Refusal,
)
from journeyman.records.errors import BadSetting
from journeyman.store.confirmations import Confirmations

logger = logging.getLogger(__name__)

_OFFICIAL: Final = "https://api.telegram.org"
_LONGEST_MESSAGE: Final = 4096
_LONGEST_ANSWER: Final = 200
_CALL_LIMIT_S: Final = 8.0
_POLL_GRACE_S: Final = 10.0
_WAIT_S: Final = 25
_BREATH_S: Final = 0.2
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0
_CHOICES: Final[dict[str, Choice]] = {"a": "approve", "d": "deny"}
_SEAL_BYTES: Final = 12
_ROOM_FOR_OUTCOME: Final = 450
_NOT_TAKEN: Final = 400
_ADDRESS: Final = re.compile(
    r"\s*tgram://(?:bot)?(\d+:[a-z0-9_-]+)((?:/+-?\d{1,19})*)/*(?:\?.*)?\s*", re.IGNORECASE
)
_DATA: Final = re.compile(r"v1:([ad]):([^:]+):([A-Za-z0-9_=-]+)")
_OVER: Final = frozenset(("already_settled", "expired", "lapsed", "already_redeemed"))
_NO_PREVIEW: Final = {"is_disabled": True}

T = TypeVar("T")


class ApiProblem(NotTold):
    """The API refused, or gave no answer: then `status` is 0."""

    def __init__(self, reason: str, *, status: int = 0) -> None:
        super().__init__(reason)
        self.status = status


class Said(Struct, Generic[T], frozen=True):
    """What the API answers when it did something."""

    result: T


class Account(Struct, frozen=True):
    """Who pressed, or the chat where a message stands. The number stays; names can be changed."""

    id: int
    type: str = ""


class Message(Struct, frozen=True):
    """A message of the bot's. Telegram leaves the text out when it is old."""

    message_id: int
    chat: Account
    text: str = ""


class Press(Struct, frozen=True):
    """The press of a button."""

    id: str
    user: Account = field(name="from")
    message: Message | None = None
    data: str = ""


class Update(Struct, frozen=True):
    """One thing that happened, with Telegram's number, which counts also when the rest is odd."""

    update_id: int
    callback_query: Any = None


class TelegramChannel(NoticeChannel):
    """One bot that tells people and takes their answers, in a thread of its own. Raises BadSetting
    for an address that cannot be used. The token is part of every address of the API: nothing here
    logs one or puts one into an error.
    """

    name = "telegram"
    follows_up = True

    def __init__(
        self,
        url: str,
        position: int,
        service: Service,
        confirmations: Confirmations,
        api_url: str = _OFFICIAL,
    ) -> None:
        self._service = service
        self._confirmations = confirmations
        found = _ADDRESS.fullmatch(unquote(url))
        chats = [int(chat) for chat in found[2].split("/") if chat] if found else []
        self._chats = chats or list(approvers_on_telegram(confirmations))
        if found is None or not self._chats:
            raise BadSetting(
                f"The notification address number {position} (tgram://…) cannot be used: it is "
                "written tgram://BOT_TOKEN/CHAT, where CHAT is a number (a person's own number for "
                "a private chat with the bot). Without a CHAT, an approver needs a Telegram number."
            )
        self._url = f"{api_url}/bot{found[1]}"
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        # Seals the buttons. The same after a restart, or buttons sent before are dead.
        self._key = service.signing.button_key()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="telegram", daemon=True)
        self._sent: defaultdict[ConfirmationId, list[Message]] = defaultdict(list)

    def _call(
        self, kind: type[T], method: str, *, limit_s: float = _CALL_LIMIT_S, **arguments: Any
    ) -> T:
        """Call a method of the API; its result. Raises ApiProblem."""
        request = urllib.request.Request(  # noqa: S310 - the address is ours
            f"{self._url}/{method}",
            msgspec.json.encode(arguments),
            {"Content-Type": "application/json"},
        )
        try:
            with self._opener.open(request, timeout=limit_s) as answer:
                return msgspec.json.decode(answer.read(), type=Said[kind]).result  # type: ignore[valid-type]
        except urllib.error.HTTPError as error:
            error.close()
            raise ApiProblem(f"Telegram answered {error.code}", status=error.code) from None
        except msgspec.DecodeError:
            raise ApiProblem("Telegram answered with something else than asked for") from None
        except (OSError, http.client.HTTPException) as error:
            why = type(getattr(error, "reason", error)).__name__
            raise ApiProblem(f"Telegram could not be reached ({why})") from None

    def start(self) -> None:
        """Begin to take answers, for the service on this event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        """Take no more answers: presses not dealt with come again at the next start."""
        self._stopping.set()

    def send(self, text: NoticeText, confirmation: Confirmation) -> None:
        """Send a notice to every chat; one that is reached is enough. Raises NotTold."""
        room = _LONGEST_MESSAGE - _ROOM_FOR_OUTCOME - len(text.title) - 1
        message = f"{text.title}\n{text.plain(room)}"
        # A button to approve stands only below all of what would run.
        channels = self._service.policy.rule_for(confirmation.action).channels
        is_approvable = self.name in channels and text.shows_all(room)
        choices: list[Choice] = ["approve", "deny"] if is_approvable else ["deny"]
        data = {one: button_data(self._key, confirmation, one) for one in choices}
        buttons = [{"text": one.capitalize(), "callback_data": data[one]} for one in choices]
        link, problems = {"text": "Open", "url": text.link}, []
        for chat in self._chats:
            rows = [] if chat < 0 else [buttons]  # a group's number is negative
            try:
                try:
                    sent = self._send(chat, message, [*rows, [link]])
                except ApiProblem as problem:
                    if problem.status != _NOT_TAKEN:
                        raise
                    # Telegram takes no buttons to some addresses, of this machine say; it stands
                    # in the text all the same.
                    sent = self._send(chat, message, rows)
                self._sent[confirmation.id].append(sent)
            except ApiProblem as problem:
                problems.append(problem)
        if len(problems) == len(self._chats):
            raise problems[0]

    def _send(self, chat: int, text: str, rows: list[list[dict[str, str]]]) -> Message:
        sent = self._call(
            dict[str, Any],
            "sendMessage",
            chat_id=chat,
            text=text,
            link_preview_options=_NO_PREVIEW,
            reply_markup={"inline_keyboard": rows},
        )
        return Message(int(sent["message_id"]), Account(chat), text)

    def settled(self, confirmation: Confirmation) -> None:
        """Take the buttons away wherever the notice was sent, and say what came of it."""
        for message in self._sent.pop(confirmation.id, []):
            self._stamp(message, confirmation)

    def _listen(self) -> None:
        offset, pause_s = 0, _FIRST_PAUSE_S
        while not self._stopping.is_set():
            try:
                updates = self._call(
                    list[Update],
                    "getUpdates",
                    offset=offset,
                    timeout=_WAIT_S,
                    allowed_updates=["callback_query"],
                    limit_s=_WAIT_S + _POLL_GRACE_S,
                )
            except ApiProblem as problem:
                if pause_s == _FIRST_PAUSE_S:
                    logger.warning("answers on Telegram do not come in: %s", problem)
                self._stopping.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                continue
            pause_s = _FIRST_PAUSE_S
            if not updates:
                self._stopping.wait(_BREATH_S)
            for update in updates:
                if self._stopping.is_set():
                    break
                self._deal_with(update)
                offset = max(offset, update.update_id + 1)

    def _deal_with(self, update: Update) -> None:
        """Deal with a press. Every press is answered, whatever comes of it."""
        try:
            press = msgspec.convert(update.callback_query, Press)
        except msgspec.ValidationError:
            return
        words, alert = "It could not be decided here. Open the page.", True
        try:
            try:
                words, alert = self._decided(press)
            finally:
                self._call(
                    object,
                    "answerCallbackQuery",
                    callback_query_id=press.id,
                    text=words[:_LONGEST_ANSWER],
                    show_alert=alert,
                )
        except Exception:  # one press that goes wrong must not end the listening
            logger.exception("a press of a button on Telegram could not be dealt with")

    def _decided(self, press: Press) -> tuple[str, bool]:
        """What a press comes to: the words for the person, and whether they must be seen."""
        message = press.message
        if message is None or message.chat.type != "private":
            return self._nothing(press, "Decide in your own chat with this bot.", "not private")
        by = approvers_on_telegram(self._confirmations).get(press.user.id)
        if by is None:
            return self._nothing(press, "You are not known here. Nothing was decided.", "unknown")
        read = _DATA.fullmatch(press.data)
        card = None if read is None else self._confirmations.find(read[2])
        if read is None or card is None:
            return self._nothing(press, "What this button was for is not known here.", "no card")
        choice = _CHOICES[read[1]]
        if hmac.compare_digest(read[3], _seal(self._key, card, choice)):
            ballot = Ballot(choice=choice, digest=card.digest, channel="telegram")
            decided = self._wait(self._service.decide(card.id, ballot, by))
            if not isinstance(decided, Refusal):
                card = decided
                if card.status == "pending":
                    return outcome_of(card), False
            elif decided.code in _OVER:
                card = self._confirmations.find(card.id) or card
            else:
                return decided.message, True
        elif card.status == "pending":
            changed = "It has changed since this was sent. Nothing was decided: open the page."
            return self._nothing(press, changed, "wrong seal", card.id)
        # It is over: say who decided, and take the buttons of this message away.
        self._stamp(message, card)
        return outcome_of(card), False

    def _nothing(
        self, press: Press, words: str, why: str, confirmation: str = ""
    ) -> tuple[str, bool]:
        about = {"channel": self.name, "why": why}
        self._wait(self._service.refused(f"telegram:{press.user.id}", about, confirmation))
        return words, True

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _stamp(self, message: Message, confirmation: Confirmation) -> None:
        outcome = outcome_of(confirmation)
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
        except ApiProblem as problem:  # deleted by somebody, or stamped twice: nothing to mend
            logger.info("the end of %s is not shown: %s", confirmation.short_id, problem)


def approvers_on_telegram(confirmations: Confirmations) -> dict[int, Credential]:
    """The people who decide, by the numbers of their accounts."""
    known = confirmations.credentials("approver")
    numbers = ((one.telegram_id, one) for one in known if one.revoked_at is None)
    return {number: one for number, one in numbers if number is not None}


def button_data(key: bytes, confirmation: Confirmation, choice: Choice) -> str:
    """What a button sends back: the choice, which confirmation, and a seal over both and over the
    digest, so that a button decides only on what its message showed.
    """
    return f"v1:{choice[0]}:{confirmation.id}:{_seal(key, confirmation, choice)}"


def _seal(key: bytes, confirmation: Confirmation, choice: Choice) -> str:
    sealed = "\0".join(("v1", choice[0], confirmation.id, confirmation.digest))
    mac = hmac.new(key, sealed.encode(), hashlib.sha256).digest()[:_SEAL_BYTES]
    return base64.urlsafe_b64encode(mac).decode()
