"""Telegram with buttons that answer: a notice in a private chat, and the press of a button as a
person's word. Who the person is comes from the number of the account, what was decided on from a
seal in the button; whether the decision counts is decided where every decision is.
"""

import base64
import hashlib
import hmac
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from journeyman.confirm.notices.bot_api import LONGEST_MESSAGE, ApiProblem, BotApi, Press
from journeyman.confirm.notices.channel import NotTold
from journeyman.confirm.notices.telegram_listening import Listening
from journeyman.confirm.notices.text import NoticeText, outcome_of
from journeyman.records.confirmation import Choice, Confirmation, ConfirmationId, Refusal

logger = logging.getLogger(__name__)

_LETTERS: Final[Mapping[Choice, str]] = {"approve": "a", "deny": "d"}
_CHOICES: Final[Mapping[str, Choice]] = {"a": "approve", "d": "deny"}
_SEAL_BYTES: Final = 12
_LONGEST_DATA: Final = 64  # bytes; Telegram's limit
_ROOM_FOR_OUTCOME: Final = 450
_MOST_REMEMBERED: Final = 1000
_NOT_TAKEN: Final = 400
_OVER: Final = frozenset(("already_settled", "expired", "lapsed", "already_redeemed"))

Buttons = dict[str, list[list[dict[str, str]]]]


class Answering(Struct, frozen=True, kw_only=True):
    """What the buttons need from the service. All are called in Telegram's own thread and may
    wait.
    """

    key: bytes
    """Seals the buttons. The same after a restart, or buttons sent before are dead."""
    approver_of: Callable[[int], str | None]
    """The approver with this number of a Telegram account."""
    find: Callable[[str], Confirmation | None]
    """A confirmation by its id or short id."""
    decide: Callable[[str, Choice, str, str], Confirmation | Refusal]
    """The decision: id, choice, the digest that the person saw, the approver's name."""
    may_approve: Callable[[Confirmation], bool]
    """Whether the rule lets this be approved on Telegram; denying is always offered."""
    refused: Callable[[str, dict[str, Any], str], None]
    """Notes a press that came to nothing: by whom, why, on which confirmation."""


class TelegramChannel:
    """One bot that tells people and takes their answers."""

    name = "telegram"

    def __init__(
        self,
        api: BotApi,
        chats: Sequence[int],
        answering: Answering,
        *,
        private_only: bool = True,
    ) -> None:
        self._api = api
        self._chats = tuple(chats)
        self._service = answering
        self._private_only = private_only
        self._listening = Listening(api, self._pressed)
        self._sent: OrderedDict[ConfirmationId, list[tuple[int, int, str]]] = OrderedDict()
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin to take answers."""
        self._listening.start()

    def stop(self) -> None:
        """Take no more answers."""
        self._listening.stop()
        self._api.close()

    def send(self, text: NoticeText, confirmation: Confirmation) -> None:
        """Send a notice to every chat; one that is reached is enough. Raises NotTold."""
        room = LONGEST_MESSAGE - _ROOM_FOR_OUTCOME - len(text.title) - 1
        message = f"{text.title}\n{text.plain(room)}"
        # A button to approve stands only below all of what would run.
        choices: list[Choice] = ["deny"]
        if self._service.may_approve(confirmation) and text.shows_all(room):
            choices.insert(0, "approve")
        problems = []
        for chat in self._chats:
            try:
                self._send(chat, message, text.link, confirmation, choices)
            except ApiProblem as problem:
                problems.append(problem)
        if len(problems) == len(self._chats):
            raise problems[0] if problems else NotTold("nobody's account is known")

    def settled(self, confirmation: Confirmation) -> None:
        """Take the buttons away wherever the notice was sent, and say what came of it."""
        with self._lock:
            messages = self._sent.pop(confirmation.id, [])
        for chat, message_id, text in messages:
            self._stamp(chat, message_id, text, confirmation)

    def _send(
        self,
        chat: int,
        message: str,
        link: str,
        confirmation: Confirmation,
        choices: Sequence[Choice],
    ) -> None:
        rows = self._buttons(chat, confirmation, choices)
        said = {"chat_id": chat, "text": message, "link_preview_options": {"is_disabled": True}}
        try:
            with_link = {"inline_keyboard": [*rows, [{"text": "Open", "url": link}]]}
            message_id = self._api.send_message(**said, reply_markup=with_link)
        except ApiProblem as problem:
            if problem.status != _NOT_TAKEN:
                raise
            # Telegram takes no buttons to some addresses, of this machine say; it stands in the
            # text all the same.
            without = {"inline_keyboard": rows}
            message_id = self._api.send_message(**said, reply_markup=without)
        with self._lock:
            self._sent.setdefault(confirmation.id, []).append((chat, message_id, message))
            while len(self._sent) > _MOST_REMEMBERED:
                self._sent.popitem(last=False)

    def _buttons(
        self, chat: int, confirmation: Confirmation, choices: Sequence[Choice]
    ) -> list[list[dict[str, str]]]:
        if self._private_only and chat < 0:  # a group's number is negative
            return []
        return [
            [
                {
                    "text": choice.capitalize(),
                    "callback_data": button_data(self._service.key, confirmation, choice),
                }
                for choice in choices
            ]
        ]

    def _pressed(self, press: Press) -> None:
        """Deal with a press. Every press is answered, whatever comes of it."""
        answer, alert = "It could not be decided here. Open the page.", True
        try:
            answer, alert = self._decided(press)
        finally:
            self._api.answer(press.id, answer, alert=alert)

    def _decided(self, press: Press) -> tuple[str, bool]:
        """What a press comes to: the words for the person, and whether they must be seen."""
        message = press.message
        if self._private_only and (message is None or message.chat.type != "private"):
            return self._nothing(press, "Decide in your own chat with this bot.", "not private")
        name = self._service.approver_of(press.user.id)
        if name is None:
            return self._nothing(press, "You are not known here. Nothing was decided.", "unknown")
        read = _read_data(press.data)
        confirmation = None if read is None else self._service.find(read[1])
        if read is None or confirmation is None:
            return self._nothing(press, "What this button was for is not known here.", "no card")
        choice, _, seal = read
        if not hmac.compare_digest(seal, _seal(self._service.key, confirmation, choice)):
            if confirmation.status != "pending":
                return self._over(press, confirmation)
            changed = "It has changed since this was sent. Nothing was decided: open the page."
            return self._nothing(press, changed, "wrong seal", confirmation.id)
        decided = self._service.decide(confirmation.id, choice, confirmation.digest, name)
        if isinstance(decided, Confirmation):
            if decided.status == "pending":
                return outcome_of(decided), False
            return self._over(press, decided)
        current = self._service.find(confirmation.id) if decided.code in _OVER else None
        return (decided.message, True) if current is None else self._over(press, current)

    def _nothing(
        self, press: Press, words: str, why: str, confirmation: str = ""
    ) -> tuple[str, bool]:
        about = {"channel": self.name, "why": why}
        self._service.refused(f"telegram:{press.user.id}", about, confirmation)
        return words, True

    def _over(self, press: Press, confirmation: Confirmation) -> tuple[str, bool]:
        """Say who decided, and take the buttons of this message away."""
        if press.message is not None:
            message = press.message
            self._stamp(message.chat.id, message.message_id, message.text, confirmation)
        return outcome_of(confirmation), False

    def _stamp(self, chat: int, message_id: int, text: str, confirmation: Confirmation) -> None:
        outcome = outcome_of(confirmation)
        if text.startswith(outcome):
            return
        stamped = f"{outcome}\n\n{text}"
        try:
            self._api.edit_message(
                chat_id=chat,
                message_id=message_id,
                text=stamped,
                link_preview_options={"is_disabled": True},
            )
        except ApiProblem as problem:  # deleted by somebody, or stamped twice: nothing to mend
            logger.info("the end of %s is not shown: %s", confirmation.short_id, problem)


def button_data(key: bytes, confirmation: Confirmation, choice: Choice) -> str:
    """What a button sends back: the choice, which confirmation, and a seal over both and over the
    digest, so that a button decides only on what its message showed.
    """
    seal = _seal(key, confirmation, choice)
    for name in (confirmation.id, confirmation.short_id):
        data = f"v1:{_LETTERS[choice]}:{name}:{seal}"
        if len(data.encode()) <= _LONGEST_DATA:
            break
    return data


def _seal(key: bytes, confirmation: Confirmation, choice: Choice) -> str:
    sealed = "\0".join(("v1", _LETTERS[choice], confirmation.id, confirmation.digest))
    mac = hmac.new(key, sealed.encode(), hashlib.sha256).digest()[:_SEAL_BYTES]
    return base64.urlsafe_b64encode(mac).decode()


def _read_data(data: str) -> tuple[Choice, str, str] | None:
    match data.split(":"):
        case ["v1", "a" | "d" as letter, name, seal] if name and seal.isascii():
            return _CHOICES[letter], name, seal
    return None
