"""The Telegram channel against an HTTP server that imitates the Bot API."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs
from tests.tables import table
from tests.unit.notify.fake_services import (
    CARD,
    TOKEN,
    BotServer,
    card,
    root_log,
)
from tests.waiting import LONGEST_S

from journeyman.confirm.decisions import decide
from journeyman.confirm.notices.dispatch import NoticeChannel, make_channels
from journeyman.confirm.notices.telegram import TelegramChannel, button_data
from journeyman.confirm.notices.text import confirmation_notice
from journeyman.confirm.schemas import Ballot
from journeyman.notify.services import DeliveryFailed
from journeyman.records.confirmation import Confirmation, Credential, Refusal, Vote, VoteChoice
from journeyman.records.errors import BadSetting

KEY = b"k" * 32
LINK = "https://confirm.example.com/open#t"
TEXT = confirmation_notice(CARD, page_link=LINK, audit_head="1:ab")
ANN, BOB, STRANGER = 1001, 1002, 6666


def person(name: str, number: int) -> Credential:
    return Credential(id=name, kind="approver", name=name, telegram_id=number, created_at=0.0)


class Desk:
    """Stands in for the service and its store, with a single confirmation."""

    def __init__(self, *people: Credential) -> None:
        self.people = people
        self.card: Confirmation | None = CARD
        self.decisions: list[tuple[str, str, str, str]] = []
        self.refusals: list[tuple[str, dict[str, Any], str]] = []
        self.refusal: Refusal | None = None
        self.breaks = False
        self.channels = ("telegram",)
        self.signing = SimpleNamespace(button_key=lambda: KEY)
        self.policy = SimpleNamespace(rule_for=lambda _: self)

    def credentials(self, kind: str) -> tuple[Credential, ...]:
        assert kind == "approver"
        return self.people

    def find(self, id_: str) -> Confirmation | None:
        known = self.card is not None and id_ in (self.card.id, self.card.short_id)
        return self.card if known else None

    def write(self, work: Any, *args: Any, **about: Any) -> Any:
        if work is decide:
            return self.decide(*args[1:])
        _kind, actor, confirmation = args
        self.refusals.append((actor, about, confirmation))
        return None

    def decide(self, id_: str, ballot: Ballot, by: Credential) -> Confirmation | Refusal:
        name, choice, digest = by.name, ballot.choice, ballot.digest
        self.decisions.append((id_, choice, digest, name))
        if self.breaks:
            raise RuntimeError("the database is gone")
        assert self.card is not None
        if self.refusal is not None:
            return self.refusal
        if self.card.status != "pending":
            return Refusal(code="already_settled", message="already")
        vote = Vote(approver=name, choice=choice, at=1.0, digest=digest)
        votes = (*self.card.votes, vote)
        enough = choice == "deny" or len(votes) >= self.card.quorum
        settled: Any = {"approve": "approved", "deny": "denied"}[choice] if enough else "pending"
        self.card = structs.replace(
            self.card, votes=votes, status=settled, settled_by=name if enough else ""
        )
        return self.card


@pytest.fixture
def server() -> Iterator[BotServer]:
    with BotServer() as one:
        yield one


@pytest.fixture
def desk() -> Desk:
    return Desk(person("ann", ANN), person("bob", BOB))


def channel_of(server: BotServer, desk: Any, address: str = f"tgram://{TOKEN}/{ANN}") -> Any:
    telegram = partial(TelegramChannel, service=desk, confirmations=desk, api_url=server.api_url)
    (channel,) = make_channels([address], telegram=telegram)
    assert isinstance(channel, TelegramChannel)
    return channel


@contextmanager
def listening(channel: TelegramChannel) -> Iterator[None]:
    """Run the channel's listener."""
    channel.start()
    yield
    channel.stop()


@pytest.fixture
def bot(server: BotServer, desk: Desk) -> Iterator[TelegramChannel]:
    channel = channel_of(server, desk)
    with listening(channel):
        yield channel


def buttons(message: dict[str, Any]) -> dict[str, str]:
    rows = message["reply_markup"]["inline_keyboard"]
    return {one["text"]: one.get("callback_data") or one["url"] for row in rows for one in row}


def data(choice: VoteChoice = "approve", confirmation: Confirmation = CARD) -> str:
    return button_data(KEY, confirmation, choice)


def test_notice_has_buttons(server: BotServer, bot: NoticeChannel) -> None:
    bot.send(TEXT, CARD)
    (message,) = server.named("sendMessage")
    assert message["chat_id"] == ANN
    assert message["text"] == f"{TEXT.title}\n{TEXT.body()}"
    assert "parse_mode" not in message
    assert message["link_preview_options"] == {"is_disabled": True}
    assert buttons(message) == {"Approve": data(), "Deny": data("deny")}
    assert all(len(sent.encode()) <= 64 for sent in (data(), data("deny")))


def test_long_notice_leaves_room_for_the_outcome(server: BotServer, bot: NoticeChannel) -> None:
    long = card(description="😀" * 5000)
    bot.send(confirmation_notice(long, page_link=LINK, audit_head="1:ab"), long)
    text = server.named("sendMessage")[0]["text"]
    assert len(text.encode("utf-16-le")) // 2 <= 4096 - 400
    assert "more characters: open the page" in text


def test_approve_is_only_offered_where_the_rule_allows_it(
    server: BotServer, bot: NoticeChannel, desk: Desk
) -> None:
    desk.channels = ()
    bot.send(TEXT, CARD)
    assert list(buttons(server.named("sendMessage")[0])) == ["Deny"]


@table(("choice", "outcome"), [("approve", "APPROVED by ann"), ("deny", "DENIED by ann")])
def test_a_press_decides_and_the_message_says_so(
    server: BotServer, bot: NoticeChannel, desk: Desk, choice: VoteChoice, outcome: str
) -> None:
    message = {"approve": 55, "deny": 56}[choice]
    desk.card = CARD
    bot.send(TEXT, CARD)
    answer = server.press(data(choice), user=ANN, message_id=message, text="the notice")
    assert desk.decisions.pop() == (CARD.id, choice, CARD.digest, "ann")
    assert not desk.decisions
    assert (answer["text"], answer["show_alert"]) == (outcome, False)
    edited = server.wait_for("editMessageText", message_id=message)
    assert edited["chat_id"] == ANN
    assert edited["text"] == f"{outcome}\n\nthe notice"
    assert "reply_markup" not in edited


@pytest.mark.usefixtures("bot")
def test_story_5_unknown_user_cannot_decide(server: BotServer, desk: Desk) -> None:
    answer = server.press(data(), user=STRANGER)
    assert answer["text"] == "You are not an approver. Nothing was decided."
    assert answer["show_alert"] is True
    assert not desk.decisions
    assert desk.refusals == [("telegram:6666", {"channel": "telegram", "why": "unknown"}, "")]


@pytest.mark.usefixtures("bot")
@table("chat", ["group", "supergroup", "channel"])
def test_decisions_are_accepted_only_in_private_chats(
    server: BotServer, desk: Desk, chat: str
) -> None:
    answer = server.press(data(), user=ANN, chat=chat)
    assert answer["text"] == "Decide in your own chat with this bot."
    assert not desk.decisions


@pytest.mark.usefixtures("bot")
def test_story_14_second_press_shows_who_decided(server: BotServer, desk: Desk) -> None:
    server.press(data("deny"), user=ANN, message_id=61)
    answer = server.press(data(), user=BOB, message_id=62, text="bob's notice")
    assert answer["text"] == "DENIED by ann"
    assert desk.card is not None
    assert desk.card.status == "denied"
    assert server.wait_for("editMessageText", message_id=62)["text"].startswith("DENIED by ann")


@pytest.mark.usefixtures("bot")
@table(
    "pressed",
    [
        data("deny").replace("v1:d:", "v1:a:"),
        data()[:-1] + ("A" if data()[-1] != "A" else "B"),
        button_data(b"another key", CARD, "approve"),
        button_data(KEY, card(digest="sha256:bb"), "approve"),
        data() + "é",
    ],
    ids=["other choice", "other seal", "other key", "other digest", "not ascii"],
)
def test_forged_or_outdated_buttons_are_refused(
    server: BotServer, desk: Desk, pressed: str
) -> None:
    answer = server.press(pressed, user=ANN)
    assert answer["show_alert"] is True
    assert not desk.decisions
    assert desk.refusals.pop()
    assert not desk.refusals


@pytest.mark.usefixtures("bot")
@table("pressed", ["", "v1:a", "v2:a:x:y", "v1:x:y:z", "v1:a:nobody:seal"])
def test_malformed_button_data_is_answered(server: BotServer, desk: Desk, pressed: str) -> None:
    answer = server.press(pressed, user=ANN)
    assert answer["text"] == "The confirmation of this button is unknown."
    assert not desk.decisions


@pytest.mark.usefixtures("bot")
def test_edited_and_decided_confirmation_shows_its_outcome(server: BotServer, desk: Desk) -> None:
    desk.card = card(digest="sha256:bb", status="approved", settled_by="bob")
    assert server.press(data(), user=ANN)["text"] == "APPROVED by bob"
    assert not desk.decisions


@pytest.mark.usefixtures("bot")
def test_refusal_is_shown_and_the_buttons_remain(server: BotServer, desk: Desk) -> None:
    desk.refusal = Refusal(
        code="channel_not_allowed", message="Open the page for this: " + "x" * 300
    )
    answer = server.press(data(), user=ANN, message_id=71)
    assert answer["text"].startswith("Open the page for this")
    assert len(answer["text"]) == 200
    assert answer["show_alert"] is True
    assert not [one for one in server.named("editMessageText") if one["message_id"] == 71]


@pytest.mark.usefixtures("bot")
def test_first_approval_of_a_quorum_shows_progress(server: BotServer, desk: Desk) -> None:
    desk.card = card(quorum=2)
    assert server.press(data(), user=ANN)["text"] == "Waiting: 1 of 2 approvals"
    assert not server.named("editMessageText")
    assert server.press(data(), user=BOB)["text"] == "APPROVED by bob"


@pytest.mark.usefixtures("bot")
def test_failed_press_is_answered_and_the_next_one_works(server: BotServer, desk: Desk) -> None:
    desk.breaks = True
    assert (
        server.press(data(), user=ANN)["text"]
        == "The decision could not be recorded here. Open the page."
    )
    desk.breaks = False
    server.hand_out({"callback_query": {"id": 7, "from": "odd"}})
    server.hand_out({"message": {"text": "/start"}})
    assert server.press(data(), user=ANN)["text"] == "APPROVED by ann"
    asked = [one["offset"] for one in server.named("getUpdates")]
    assert asked == sorted(asked)
    assert server.named("getUpdates")[0]["allowed_updates"] == ["callback_query"]


def test_buttons_are_removed_in_all_chats_when_settled_elsewhere(
    server: BotServer, desk: Desk
) -> None:
    channel = channel_of(server, desk, f"tgram://{TOKEN}")
    channel.send(TEXT, CARD)
    assert [one["chat_id"] for one in server.named("sendMessage")] == [ANN, BOB]
    channel.show_outcome(card(status="expired"))
    channel.show_outcome(card(status="expired"))
    edits = server.named("editMessageText")
    assert [one["chat_id"] for one in edits] == [ANN, BOB]
    for edit in edits:
        assert edit["text"].startswith("EXPIRED: no decision in time")
        assert TEXT.title in edit["text"]
        assert "reply_markup" not in edit
    channel.stop()


@table(
    ("failures", "reason"),
    [
        ([(403, {"ok": False})], "Telegram answered 403"),
        ([(400, {"ok": False})] * 2, "Telegram answered 400"),
        ([(502, "no object")], "Telegram answered 502"),
    ],
    ids=["blocked", "no such chat", "broken"],
)
def test_story_17_failure_is_reported_without_the_token(
    server: BotServer, desk: Desk, failures: list[tuple[int, Any]], reason: str
) -> None:
    server.failing["sendMessage"] = list(failures)
    channel = channel_of(server, desk)
    with root_log() as logged, pytest.raises(DeliveryFailed) as failed:
        channel.send(TEXT, CARD)
    channel.stop()
    assert str(failed.value) == reason
    assert TOKEN not in "".join(logged)


def test_unreachable_telegram_is_reported(desk: Desk) -> None:
    with BotServer() as gone:
        pass
    channel = channel_of(gone, desk)
    with pytest.raises(
        DeliveryFailed, match=r"^Telegram could not be reached \(ConnectionRefusedError\)$"
    ):
        channel.send(TEXT, CARD)
    channel.stop()


def test_listening_continues_after_errors_without_logging_the_token(
    server: BotServer, desk: Desk
) -> None:
    too_many = {"ok": False, "parameters": {"retry_after": 0.1}}
    server.failing["getUpdates"] = [(429, too_many)]
    channel = channel_of(server, desk)
    with root_log() as logged, listening(channel):
        assert server.press(data(), user=ANN)["text"] == "APPROVED by ann"
    assert "answers from Telegram cannot be received: Telegram answered 429" in logged
    assert TOKEN not in "".join(logged)


@table(
    ("address", "problem"),
    [
        ("tgram://canary/12", "Write it as tgram://BOT_TOKEN/CHAT"),
        (f"tgram://{TOKEN}/@canary", "Write it as tgram://BOT_TOKEN/CHAT"),
        (f"tgram://{TOKEN}", "an approver needs a Telegram number"),
    ],
    ids=["token", "name", "nobody"],
)
def test_unusable_url_is_refused(server: BotServer, address: str, problem: str) -> None:
    with pytest.raises(BadSetting, match=problem) as refused:
        channel_of(server, Desk(), address)
    assert "canary" not in str(refused.value)


def test_presses_are_ignored_after_stop(server: BotServer, desk: Desk) -> None:
    channel = channel_of(server, desk)
    with listening(channel):
        server.wait_for("getUpdates")
    server.hand_out({"callback_query": {"id": "q", "from": {"id": ANN}, "data": data()}})
    for thread in threading.enumerate():
        if thread.name == "telegram":
            thread.join(timeout=LONGEST_S)
    assert not desk.refusals
    assert not server.named("answerCallbackQuery")


def test_group_gets_the_link_but_no_buttons(server: BotServer, desk: Desk) -> None:
    channel = channel_of(server, desk, f"tgram://{TOKEN}/-100200300")
    channel.send(TEXT, CARD)
    assert buttons(server.named("sendMessage")[0]) == {}
    channel.stop()
