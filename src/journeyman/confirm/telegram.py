"""Telegram notices with buttons. A press in a private chat is a person's decision, received by
polling, so that no address of this machine has to be public. The account number identifies the
person, and a seal in the button what was shown. Whether the decision counts is up to the service.
"""

import hmac
import http.client
import json
import logging
import re
import secrets
import threading
import urllib.error
import urllib.request
from contextlib import suppress
from typing import Any, Final

from journeyman.confirm.decisions import decide
from journeyman.confirm.schemas import Ballot
from journeyman.confirm.service import Service
from journeyman.notify.services import DeliveryFailed
from journeyman.records.confirmation import Confirmation, Credential, Refusal, VoteChoice
from journeyman.records.errors import BadSetting
from journeyman.store.ledger import Ledger
from journeyman.text.atomic_write import replace_file

logger = logging.getLogger(__name__)

MAX_LENGTH: Final = 3_800
"""Longest notice in UTF-16 units. Telegram allows 4,096; the rest is for the outcome."""

_API_URL: Final = "https://api.telegram.org"
_POLL: Final = {"timeout": 10, "allowed_updates": ["callback_query"]}
_CALL_LIMIT_S: Final = 20.0
_MAX_PAUSE_S: Final = 60
_MAX_ANSWER_LENGTH: Final = 200
_BUTTON: Final = re.compile(r"(approve|deny):([0-9a-f]{32}):[0-9a-f]{22}")
_URL: Final = re.compile(r"\s*tgram://(?:bot)?(\d+:[\w-]+)((?:/+-?\d{1,19})*)/*(?:\?.*)?\s*")


class TelegramChannel:
    """A bot that notifies people and receives their answers in a thread of its own. Raise
    BadSetting for a URL that cannot be used; `label` names it in errors. Every URL of the API
    contains the bot's token: nothing here logs a URL or puts one into an error.
    """

    name = "telegram"

    def __init__(self, url: str, label: str, service: Service, api_url: str = _API_URL) -> None:
        self._service = service
        match = _URL.fullmatch(url)
        if match is None:
            raise BadSetting(
                f"{label} (tgram://…) cannot be used. Write it as tgram://BOT_TOKEN/CHAT with the "
                "number of a chat, or as tgram://BOT_TOKEN for all approvers known on Telegram."
            )
        chats = [int(chat) for chat in match[2].split("/") if chat]
        self._chats = chats or list(approvers_on_telegram(service))
        self._url = f"{api_url}/bot{match[1]}"
        # The key of the seals is in a file, so that buttons outlive a restart.
        key = service.files / "confirm.key"
        if not key.exists():
            key.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(key, secrets.token_bytes())
        self._key = key.read_bytes()
        self._sent: dict[str, list[dict[str, Any]]] = {}
        """The messages about each confirmation that was not settled when last looked at."""

    def start(self, stopping: threading.Event) -> None:
        """Receive answers until the event. Later presses wait at Telegram for the next start."""
        threading.Thread(
            target=self._listen, args=(stopping,), name="telegram", daemon=True
        ).start()

    def send(self, card: Confirmation, text: str, *, is_complete: bool) -> None:
        """Send a notice to every chat; reaching one is enough. It can be approved there only if it
        `is_complete` and the rule allows it. Raise DeliveryFailed.
        """
        channels = self._service.policy.rule_for(card.action).channels
        choices = ("approve", "deny") if is_complete and self.name in channels else ("deny",)
        buttons = [
            {"text": choice.capitalize(), "callback_data": self._button(card, choice)}
            for choice in choices
        ]
        sent, errors = [], []
        for chat in self._chats:
            # A group, whose number is negative, has no buttons.
            markup = {"inline_keyboard": [buttons] if chat > 0 else []}
            try:
                message = {"chat_id": chat, "text": text, "reply_markup": markup}
                sent.append(self._call("sendMessage", **message))
            except DeliveryFailed as error:
                errors.append(error)
        if not sent:
            raise errors[0]
        self._sent[card.id] = sent

    def _button(self, card: Confirmation, choice: str) -> str:
        """Return what a button sends back. The seal binds it to the digest of what was shown."""
        button = f"{choice}:{card.id}"
        seal = hmac.new(self._key, f"{button}:{card.digest}".encode(), "sha256").hexdigest()
        return f"{button}:{seal[:22]}"

    def _call(self, method: str, **arguments: Any) -> Any:
        """Call a method of the API and return its result. Raise DeliveryFailed."""
        body = json.dumps(arguments).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._url}/{method}", body, headers)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=_CALL_LIMIT_S) as answer:  # noqa: S310
                return json.load(answer)["result"]
        except urllib.error.HTTPError as error:
            error.close()
            raise DeliveryFailed(f"Telegram answered {error.code}") from None
        except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError) as error:
            why = type(getattr(error, "reason", error)).__name__
            raise DeliveryFailed(f"Telegram gave no usable answer ({why})") from None

    def _listen(self, stopping: threading.Event) -> None:
        offset = failures = 0
        while not stopping.is_set():
            try:
                for update in self._call("getUpdates", offset=offset, **_POLL):
                    if stopping.is_set():
                        return
                    offset = update["update_id"] + 1
                    if press := update.get("callback_query"):
                        self._answer(press)
                self._show_outcomes()
                failures = 0
            except Exception as error:  # noqa: BLE001 - one turn must not end the polling
                failures += 1
                if failures == 1:
                    logger.warning("answers from Telegram cannot be processed: %r", error)
                stopping.wait(min(failures, _MAX_PAUSE_S))

    def _answer(self, press: dict[str, Any]) -> None:
        """Act on a press, and tell the person what came of it, even if that failed."""
        text = "The decision could not be recorded here. Open the page."
        try:
            text = self._decide(press)[:_MAX_ANSWER_LENGTH]
        finally:
            with suppress(DeliveryFailed):  # it may be too old to be answered
                about = {"callback_query_id": press["id"], "text": text, "show_alert": True}
                self._call("answerCallbackQuery", **about)

    def _decide(self, press: dict[str, Any]) -> str:
        """Decide as a press says, and return the answer to the person."""
        service, data = self._service, press.get("data", "")
        user, message = press["from"]["id"], press.get("message", {})
        is_private = message.get("chat", {}).get("id") == user
        by = approvers_on_telegram(service).get(user) if is_private else None
        match = _BUTTON.fullmatch(data)
        card = service.confirmations.find(match[2]) if match else None
        if by is None:
            why = "Only an approver can decide, in the private chat with this bot."
            refusal = Refusal("not_allowed", why)
        elif not (match and card and hmac.compare_digest(data, self._button(card, match[1]))):
            why = "This button is not for what waits now. Nothing was decided: open the page."
            refusal = Refusal("digest_differs", why)
        else:
            self._sent.setdefault(card.id, []).append(message)
            choice: VoteChoice = "approve" if match[1] == "approve" else "deny"
            ballot = Ballot(choice=choice, digest=card.digest, channel="telegram")
            decided = service.write(decide, service.policy, card.id, ballot, by)
            return decided.message if isinstance(decided, Refusal) else outcome_line(decided)
        id_ = card.id if card else ""
        service.write(Ledger.refused, f"telegram:{user}", refusal, id_, channel=self.name)
        return refusal.message

    def _show_outcomes(self) -> None:
        """Where a notice was sent that is settled now, replace the buttons by the outcome."""
        for id_ in tuple(self._sent):
            card = self._service.confirmations.find(id_)
            if card is None or card.status == "pending":
                continue
            outcome = outcome_line(card)
            for message in self._sent.pop(id_):
                text = f"{outcome}\n\n{message.get('text', '').removeprefix(outcome).lstrip()}"
                edit = {"chat_id": message["chat"]["id"], "message_id": message["message_id"]}
                with suppress(DeliveryFailed):  # deleted, or edited before
                    self._call("editMessageText", text=text, **edit)


def approvers_on_telegram(service: Service) -> dict[int, Credential]:
    """Return the active approvers by the numbers of their Telegram accounts."""
    approvers = service.confirmations.credentials("approver")
    active = (each for each in approvers if each.revoked_at is None)
    return {each.telegram_id: each for each in active if each.telegram_id is not None}


def outcome_line(card: Confirmation) -> str:
    """Return one line on the state of a confirmation."""
    if card.status == "pending":
        return f"Waiting: {card.approvals} of {card.quorum} approvals"
    if card.status == "expired":
        return "EXPIRED: no decision in time, so it is not done"
    status = "approved" if card.status == "redeemed" else card.status
    return f"{status.upper()} by {card.settled_by}"
