"""Decisions by buttons in Telegram: a real service, and an HTTP server that acts as the Bot API."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.confirm_server import ConfirmServer, confirm_server
from tests.tables import table
from tests.unit.notify.fake_services import TOKEN, BotServer, root_log
from tests.waiting import LONGEST_S

from journeyman.confirm.notices import confirmation_notice, open_channels, send_notice
from journeyman.confirm.telegram import MAX_LENGTH, TelegramChannel
from journeyman.notify.services import DeliveryFailed
from journeyman.records.confirmation import Confirmation
from journeyman.records.errors import BadSetting

ANN, BOB, STRANGER = 1001, 1002, 6666
POLICY = """
requester_limit = 100000

[[rules]]
action = "hire"
tier = "ask"
quorum = 2

[[rules]]
action = "write"
tier = "ask"
edits = true

[[rules]]
action = "pay"
tier = "ask"
channels = ["page", "api"]
"""


class Open:
    """Opens a channel that receives answers until it is stopped, or the next one is opened."""

    def __init__(self, server: ConfirmServer, bot: BotServer) -> None:
        self._server = server
        self._bot = bot
        self._stopping = threading.Event()

    def __call__(self, chats: str = "") -> TelegramChannel:
        self.stop()
        self._bot.calls.clear()
        self._stopping = threading.Event()
        url = f"tgram://{TOKEN}{chats}"
        channel = TelegramChannel(url, "x", self._server.service, self._bot.api_url)
        channel.start(self._stopping)
        return channel

    def stop(self) -> None:
        self._stopping.set()


def wait_for_the_end() -> None:
    for thread in threading.enumerate():
        if thread.name == "telegram":
            thread.join(timeout=LONGEST_S)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfirmServer]:
    home = tmp_path_factory.mktemp("telegram")
    with confirm_server(home, policy=POLICY, rate_limit=100_000) as running:
        running.approver("ann", telegram_id=ANN)
        running.approver("bob", telegram_id=BOB)
        running.approver("cleo")
        yield running


@pytest.fixture
def bot() -> Iterator[BotServer]:
    with BotServer() as one:
        yield one
    wait_for_the_end()


@pytest.fixture
def opened(server: ConfirmServer, bot: BotServer) -> Iterator[Open]:
    opening = Open(server, bot)
    yield opening
    opening.stop()


def ask(server: ConfirmServer, **asked: Any) -> Confirmation:
    body = {"description": f"Number {len(server.audit())}.", **asked}
    return server.card(server.submit(**body)["id"])


def notify(channel: TelegramChannel, card: Confirmation) -> str:
    text = confirmation_notice(card, page_link="https://confirm.example/x", audit_head="1:ab")
    send_notice(channel, text, card)
    return f"{text.title}\n{text.body()}"


def buttons(message: dict[str, Any]) -> dict[str, str]:
    rows = message["reply_markup"]["inline_keyboard"]
    return {button["text"]: button["callback_data"] for row in rows for button in row}


def sent_buttons(bot: BotServer, channel: TelegramChannel, card: Confirmation) -> dict[str, str]:
    notify(channel, card)
    return buttons(bot.named("sendMessage")[-1])


def test_notice_has_buttons_for_every_approver_on_telegram(
    server: ConfirmServer, bot: BotServer, opened: Open
) -> None:
    text = notify(opened(), ask(server, details={"to": "bob"}))
    messages = bot.named("sendMessage")
    assert [message["chat_id"] for message in messages] == [BOB, ANN]
    for message in messages:
        assert message["text"] == text
        assert list(buttons(message)) == ["Approve", "Deny"]
        assert all(len(data.encode()) <= 64 for data in buttons(message).values())


def test_group_gets_the_link_but_no_buttons(
    server: ConfirmServer, bot: BotServer, opened: Open
) -> None:
    assert sent_buttons(bot, opened("/-100200300"), ask(server)) == {}


@table(
    "asked",
    [
        {"details": {"note": "x" * 5_000}},
        {"description": "😀" * 2_000},
        {"details": {"password": "rm -rf /"}},
        {"description": "with postgres://ann:Hunter2-secret@db.example.com/x"},
        {"action": "a" + "\x07" * 99},
        {"action": "delete_data"},
        {"action": "pay"},
    ],
    ids=["cut", "cut words", "hidden", "hidden word", "cut action", "critical", "by rule"],
)
def test_what_is_not_shown_in_full_or_not_allowed_has_no_approve_button(
    server: ConfirmServer, bot: BotServer, opened: Open, asked: dict[str, Any]
) -> None:
    card = ask(server, **asked)
    found = sent_buttons(bot, opened(f"/{ANN}"), card)
    assert list(found) == ["Deny"]
    text = bot.named("sendMessage")[0]["text"]
    assert len(text.encode("utf-16-le")) // 2 <= MAX_LENGTH
    forged = found["Deny"].replace("deny", "approve")
    assert "Nothing was decided" in bot.press(forged, user=ANN)
    assert server.card(card.id).status == "pending"
    assert bot.press(found["Deny"], user=ANN) == "DENIED by ann"


@table("choice", ["Approve", "Deny"])
def test_press_decides_once_in_the_name_of_its_person(
    server: ConfirmServer, bot: BotServer, opened: Open, choice: str
) -> None:
    card, channel = ask(server), opened()
    outcome = {"Approve": "APPROVED by ann", "Deny": "DENIED by ann"}[choice]
    found = sent_buttons(bot, channel, card)
    assert bot.press(found[choice], user=ANN) == outcome
    for chat in (ANN, BOB):
        edited = bot.wait_for("editMessageText", chat_id=chat)
        assert edited["text"].startswith(f"{outcome}\n\n{card.short_id}: send_mail waits")
        assert "reply_markup" not in edited
    settled = server.card(card.id)
    for late in found.values():
        assert "by ann" in bot.press(late, user=BOB)
    assert server.card(card.id) == settled
    assert settled.votes[0].channel == "telegram"
    (entry,) = server.audit(settled.status, card.id)
    assert entry.actor == "approver:ann"
    assert entry.about["channel"] == "telegram"
    assert entry.about["digest"] == card.digest


@table(
    ("user", "chat"),
    [(STRANGER, STRANGER), (ANN, -100200300), (STRANGER, ANN)],
    ids=["stranger", "in a group", "in another's chat"],
)
def test_only_an_approver_in_the_own_chat_can_decide(
    server: ConfirmServer, bot: BotServer, opened: Open, user: int, chat: int
) -> None:
    card = ask(server)
    for data in sent_buttons(bot, opened(), card).values():
        assert bot.press(data, user=user, chat=chat).startswith("Only an approver can decide")
    assert server.card(card.id).status == "pending"
    refused = server.audit("refused", card.id)
    assert [entry.actor for entry in refused] == [f"telegram:{user}"] * 2


def test_revoked_approver_cannot_decide(
    server: ConfirmServer, bot: BotServer, opened: Open
) -> None:
    server.approver("dan", telegram_id=1003)
    card = ask(server)
    found = sent_buttons(bot, opened(), card)
    server.revoke("dan")
    assert bot.press(found["Approve"], user=1003).startswith("Only an approver can decide")
    assert server.card(card.id).status == "pending"


def test_own_request_cannot_be_approved(
    server: ConfirmServer, bot: BotServer, opened: Open
) -> None:
    token = server.agent("anns", owner="ann")
    card = server.card(server.submit(token)["id"])
    found = sent_buttons(bot, opened(), card)
    assert "your own request" in bot.press(found["Approve"], user=ANN)
    assert bot.press(found["Approve"], user=BOB) == "APPROVED by bob"


def test_button_decides_only_on_what_was_shown(
    server: ConfirmServer, bot: BotServer, opened: Open
) -> None:
    card = ask(server, action="write", details={"to": "bob"})
    other = ask(server, action="hire")
    channel = opened()
    found = sent_buttons(bot, channel, card)
    body = {"digest": card.digest, "details": {"to": "eve"}}
    path, key = f"/confirm/{other.id}/approve", server.approver("cleo")
    assert server.post(path, key, {"digest": other.digest}).json()["status"] == "pending"
    stolen = found["Approve"].replace(card.id, other.id)
    assert "Nothing was decided" in bot.press(stolen, user=ANN)
    path = f"/confirm/{card.id}/approve"
    assert server.post(path, key, body).json()["status"] == "approved"
    assert "Nothing was decided" in bot.press(found["Deny"], user=ANN)
    assert server.card(card.id).votes[-1].approver == "cleo"
    assert [vote.approver for vote in server.card(other.id).votes] == ["cleo"]


def test_quorum_needs_several_people(server: ConfirmServer, bot: BotServer, opened: Open) -> None:
    found = sent_buttons(bot, opened(), ask(server, action="hire"))
    assert bot.press(found["Approve"], user=ANN) == "Waiting: 1 of 2 approvals"
    assert bot.press(found["Approve"], user=ANN).startswith("You already approved this")
    assert bot.press(found["Approve"], user=BOB) == "APPROVED by bob"


def test_buttons_are_removed_when_decided_elsewhere(
    server: ConfirmServer, bot: BotServer, opened: Open
) -> None:
    card = ask(server)
    notify(opened(), card)
    server.post(f"/confirm/{card.id}/deny", server.approver("cleo"))
    bot.hand_out({"message": {"text": "/start"}})
    for chat in (ANN, BOB):
        edited = bot.wait_for("editMessageText", chat_id=chat)
        assert edited["text"].startswith("DENIED by cleo\n\n")


def test_buttons_outlive_a_restart_and_presses_wait_for_it(
    server: ConfirmServer, bot: BotServer, opened: Open
) -> None:
    card = ask(server)
    data = sent_buttons(bot, opened(), card)["Approve"]
    opened.stop()
    press = {"id": "q", "from": {"id": ANN}, "data": data}
    press["message"] = {"message_id": 9, "chat": {"id": ANN}, "text": "the notice"}
    bot.hand_out({"callback_query": press})
    wait_for_the_end()
    assert server.card(card.id).status == "pending"
    opened()
    edited = bot.wait_for("editMessageText", message_id=9)
    assert edited["text"] == "APPROVED by ann\n\nthe notice"


def test_answers_arrive_after_an_outage_without_the_token_in_the_log(
    server: ConfirmServer, bot: BotServer, opened: Open
) -> None:
    bot.failing["getUpdates"] = [(429, {"ok": False}), (200, b"no JSON")]
    with root_log() as logged:
        channel = opened()
        data = sent_buttons(bot, channel, ask(server))["Approve"]
        assert bot.press(data, user=ANN) == "APPROVED by ann"
    lines = "".join(logged)
    assert "answers from Telegram cannot be processed" in lines
    assert "Telegram answered 429" in lines
    assert TOKEN not in lines


def test_malformed_press_is_answered_and_the_next_one_works(
    server: ConfirmServer, bot: BotServer, opened: Open
) -> None:
    found = sent_buttons(bot, opened(), ask(server))
    bot.hand_out({"callback_query": {"id": "odd"}})
    assert "Open the page" in bot.wait_for("answerCallbackQuery", callback_query_id="odd")["text"]
    for data in ("", "approve", "deny:x:y", f"approve:{'0' * 32}:{'0' * 22}", "é"):
        assert "Nothing was decided" in bot.press(data, user=ANN)
    assert bot.press(found["Deny"], user=ANN) == "DENIED by ann"


@table("status", [400, 403, 502])
def test_failed_delivery_is_reported_without_the_token(
    server: ConfirmServer, bot: BotServer, opened: Open, status: int
) -> None:
    channel = opened()
    bot.failing["sendMessage"] = [(status, {"ok": False})] * 2
    with root_log() as logged, pytest.raises(DeliveryFailed) as failed:
        notify(channel, ask(server))
    assert str(failed.value) == f"Telegram answered {status}"
    assert TOKEN not in "".join(logged)


def test_unreachable_telegram_is_reported(server: ConfirmServer) -> None:
    with BotServer() as gone:
        pass
    channel = TelegramChannel(f"tgram://{TOKEN}", "x", server.service, gone.api_url)
    with pytest.raises(DeliveryFailed, match=r"no usable answer \(ConnectionRefusedError\)$"):
        notify(channel, ask(server))


@table("url", ["tgram://canary/12", f"tgram://{TOKEN}/@canary"], ids=["token", "name"])
def test_unusable_url_is_refused_at_startup(server: ConfirmServer, url: str) -> None:
    with pytest.raises(BadSetting, match=r"number 1 .*tgram://BOT_TOKEN/CHAT") as refused:
        open_channels([url], server.service)
    assert "canary" not in str(refused.value)


def test_telegram_has_buttons_if_an_approver_is_known_there(
    server: ConfirmServer, tmp_path: Path
) -> None:
    url = f"tgram://{'1' * 9}:{'A' * 35}/1001"
    (channel,) = open_channels([url], server.service)
    assert isinstance(channel, TelegramChannel)
    with confirm_server(tmp_path) as other:
        (channel,) = open_channels([url], other.service)
    assert channel.name == "Telegram"
