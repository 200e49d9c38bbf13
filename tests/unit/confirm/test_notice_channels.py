"""Notices sent to services: what reaches them, and which addresses are refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.databases import database
from tests.tables import table
from tests.unit.notify.fake_services import PostBox, card, root_log

from journeyman.confirm.notices import NoticeText, confirmation_notice, open_channels
from journeyman.confirm.policy import Policy
from journeyman.confirm.service import Service
from journeyman.notify.apprise_service import AppriseService
from journeyman.notify.services import NotificationService, open_service
from journeyman.records.errors import BadSetting
from journeyman.store.store import Store

LINK = "https://confirm.example.com/open#tok_en"


@pytest.fixture(scope="module")
def box() -> Iterator[PostBox]:
    with PostBox() as one:
        yield one


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    home = tmp_path_factory.mktemp("home")
    with Store(database(home)) as store:
        yield Service(store.confirmations, home, Policy)


def text_of(**changes: Any) -> NoticeText:
    return confirmation_notice(card(**changes), page_link=LINK, audit_head="7:abcdef")


def channel_at(url: str) -> NotificationService:
    return open_service(url, label="The address", about="confirmations", extra="confirm")


def sent(box: PostBox, url: str, text: NoticeText) -> Any:
    """Send a text to a URL, and return what arrives."""
    box.received.clear()
    channel_at(url).send(text.title, text.body, "warning")
    assert len(box.received) == 1
    return box.received[0][1]


def test_text_arrives_unchanged(box: PostBox) -> None:
    text = text_of(description="a \\n b :smile: *x* {y} &amp;")
    arrived = sent(box, box.url("ok?emojis=yes"), text)
    assert arrived["title"] == text.title
    assert arrived["message"] == text.body()
    assert arrived["attachments"] == []


def test_html_is_escaped(box: PostBox) -> None:
    arrived = sent(box, box.url("ok?format=html"), text_of(description="a > b & c"))
    assert "a &gt; b &amp; c" in arrived["message"].replace("&nbsp;", " ")


def test_markdown_is_escaped(box: PostBox) -> None:
    arrived = sent(box, box.url("ok?format=markdown"), text_of(description="**APPROVED** # x"))
    assert r"\*\*APPROVED\*\* \# x" in arrived["message"]
    assert f"<{LINK}>" in arrived["message"]


def test_story_8_mattermost_mentions_are_disabled(box: PostBox) -> None:
    url = f"mmost://127.0.0.1:{box.port}/abcdefghijklmnopqrstuvwxyz"
    arrived = json.dumps(sent(box, url, text_of(description="@channel <!here> [a](https://evil)")))
    assert "@channel" not in arrived
    assert "<!here" not in arrived
    assert arrived.count("://") == arrived.count(LINK)


def test_text_is_shortened_to_the_limit_of_the_service(box: PostBox) -> None:
    url = f"mmost://127.0.0.1:{box.port}/abcdefghijklmnopqrstuvwxyz"
    assert channel_at(url).name == "Mattermost"
    arrived = sent(box, url, text_of(description="x" * 20_000))
    assert len(arrived["text"]) <= 4000
    assert "more characters: open the page" in arrived["text"]
    assert LINK in arrived["text"]


@table(
    ("url", "shown"),
    [
        ("nosuch://canary-secret/x", "number 2 (nosuch://…)"),
        ("slack://canary-secret", "number 2 (slack://…)"),
        ("canary-secret", "number 2 (without a service"),
        ("", "number 2 (without a service"),
        ("tgram://canary-secret/12", "number 2 (tgram://…)"),
    ],
    ids=["unknown", "incomplete", "no scheme", "empty", "telegram"],
)
def test_unusable_url_is_refused_at_startup(
    service: Service, url: str, shown: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with root_log() as logged, pytest.raises(BadSetting) as refused:
        open_channels(["json://127.0.0.1:1/x", url], service)
    assert shown in str(refused.value)
    out = capfd.readouterr()
    assert "canary" not in f"{refused.value}{logged}{out.out}{out.err}"


def test_url_cannot_name_a_template_file(tmp_path: Path) -> None:
    layout = tmp_path / "layout.json"
    layout.write_text('{"content": "{{app_body}}"}')
    with pytest.raises(BadSetting, match="template file"):
        channel_at(f"discord://{'1' * 18}/{'a' * 68}?template={layout}")


ATTACK = "@everyone <@&42> <!channel> **APPROVED** [Approve](https://evil.example) :boom:"


def test_story_8_discord_calls_nobody_and_draws_nothing(box: PostBox) -> None:
    service = AppriseService(f"discord://{'1' * 18}/{'a' * 68}", label="x", about="y")
    service.plugin.notify_url = f"http://127.0.0.1:{box.port}/ok"
    box.received.clear()
    text = text_of(description=ATTACK)
    service.send(text.title, text.body, "warning")
    content = box.received[0][1]["content"]
    assert "@everyone" not in content
    assert "<@" not in content
    assert "<!" not in content
    assert r"\*\*APPROVED\*\*" in content
    assert content.count("://") == 1
    assert f"<{LINK}>" in content
    assert "avatar_url" not in box.received[0][1]


def test_story_8_slack_calls_nobody(box: PostBox) -> None:
    url = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#ops"
    service = AppriseService(url, label="x", about="y")
    service.plugin.webhook_url = f"http://127.0.0.1:{box.port}/ok"
    box.received.clear()
    text = text_of(description=ATTACK)
    service.send(text.title, text.body, "warning")
    sent_text = json.dumps(box.received[0][1])
    assert "<!channel" not in sent_text
    assert "<@" not in sent_text
    assert sent_text.count("://") == 1
    assert LINK in sent_text
    assert box.received[0][1]["mrkdwn"] is False
