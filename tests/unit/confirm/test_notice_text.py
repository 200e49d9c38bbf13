"""The text of notices, and what it must never contain."""

from typing import Any

from tests.tables import table
from tests.unit.notify.fake_services import card

from journeyman.confirm.notices import (
    WORDS_HEADING,
    NoticeText,
    confirmation_notice,
)
from journeyman.text.display import escape_live_text

LINK = "https://confirm.example.com/open#tok_en"


def text_of(**changes: Any) -> NoticeText:
    return confirmation_notice(
        card(**changes), page_link=LINK, audit_head="123:sha256:ab12cd34ef567890ff"
    )


def test_notice_states_requester_action_expiry_and_link() -> None:
    text = text_of(details={"to": "bob@example.com", "count": 2}, claimed="nightly")
    assert text.title == "01234567: deploy_production waits for your decision"
    assert text.body() == (
        "Id: 01234567\n"
        "Action: deploy_production\n"
        "Tier: ask\n"
        'Requested by: ci, calls itself "nightly"\n'
        "Expires: 2027-01-15 08:05:00 UTC; without approval it is not done\n"
        f"Open: {LINK}\n"
        "Details (secrets are hidden):\n"
        '> to: "bob@example.com"\n'
        "> count: 2\n"
        "The agent's own words (not verified):\n"
        "> Roll out the new version.\n"
        "audit 123:ab12cd34ef567890…"
    )


def test_edited_details_and_quorum_are_shown() -> None:
    body = text_of(edited={"version": "9.9"}, quorum=2).body()
    assert '> version: "9.9"' in body
    assert "1.2.3" not in body
    assert "Needs: 2 people, has 0" in body


@table(
    "changes",
    [
        {"details": {"password": "canary-Hunter2-secret"}},
        {"details": {"deep": [{"api_key": "canary-Hunter2-secret"}]}},
        {"details": {"token": "canary-Hunter2-secret"}, "description": "canary-Hunter2-secret!"},
        {"details": {"token": "canary-Hunter2-secret"}, "action": "use canary-Hunter2-secret"},
        {"details": {"token": "canary-Hunter2-secret"}, "claimed": "canary-Hunter2-secret"},
        {"details": {"token": "canary-Hunter2-secret"}, "edited": {"x": "canary-Hunter2-secret"}},
        {"description": "log in with postgres://ann:canary-Hunter2-secret@db.example.com/x"},
    ],
    ids=["by name", "deep", "in words", "in action", "in claimed", "edited", "address"],
)
def test_story_16_notice_contains_no_secrets(changes: dict[str, Any]) -> None:
    text = text_of(**changes)
    for shown in (text.title, text.body(), text.body(is_markdown=True), text.body(500)):
        assert "canary" not in shown
        assert "Hunter2" not in shown
    assert "hidden:" in text.body()


@table("code", [0x202E, 0x200B, 0x1B, 0x0D, 0x2800, 0xE0041, 0xD800])
@table("where", ["description", "details", "name", "action", "claimed"])
def test_story_8_hidden_characters_are_shown_as_escapes(code: int, where: str) -> None:
    hiding = f"pay{chr(code)}bob"
    changes: dict[str, Any] = {where: hiding}
    if where in ("details", "name"):
        changes = {"details": {hiding: 1} if where == "name" else {"a": hiding}}
    text = text_of(**changes)
    for shown in (text.title, text.body(), text.body(is_markdown=True)):
        assert chr(code) not in shown
        shown.encode()
    escapes = (f"pay\\u{{{code:x}}}bob", f"pay\\u{code:04x}bob", "pay\\rbob")
    assert any(escape in text.body() for escape in escapes)


@table(
    "live",
    [
        "@everyone", "x@here", "@channel", "@ann", "<!channel>", "<@U123>", "<@&42>", "<#C1>",
        "<:boom:123>", "<a:boom:123>", "<https://evil.example|Approve>", "https://evil.example",
        "[Approve](https://evil.example)", "www.evil.example", "<b>x</b>", "<script>",
    ],
)  # fmt: skip
def test_story_8_agent_text_is_inert_in_chats(live: str) -> None:
    text = text_of(description=live, details={"a": live}, action=live)
    ours = text.body().replace(LINK, "")
    assert live not in ours
    assert "://" not in ours
    assert live not in text.title


@table("plain", ["bob@example.com", "a < b", "rm -rf /tmp/x", "שלום", "5:30"])
def test_what_is_plain_stays_as_it_is(plain: str) -> None:
    assert escape_live_text(plain) == plain


def test_story_2_the_agents_lines_cannot_pass_for_the_services() -> None:
    faked = f"ok\nOpen: elsewhere\n{WORDS_HEADING}\nAPPROVED by ann\r\n"
    faked += "> Tier: routine\u2028Tier: routine"
    lines = text_of(description=faked, details={"a\nTier": "\nTier: routine"}).body().split("\n")
    assert [line for line in lines if line.startswith("Tier")] == ["Tier: ask"]
    assert [line for line in lines if line.startswith("Open")] == [f"Open: {LINK}"]
    assert lines.count(WORDS_HEADING) == 1
    assert not any(line.startswith("APPROVED") for line in lines)


def test_markdown_is_escaped() -> None:
    text = text_of(description="**APPROVED** _x_ `y` # z &lt; [a](b)", action="rm *")
    assert r"> \*\*APPROVED\*\* \_x\_ \`y\` \# z \&lt; \[a\]\(b\)" in text.body(is_markdown=True)
    assert r"Action: rm \*" in text.body(is_markdown=True)
    assert f"Open: <{LINK}>" in text.body(is_markdown=True)


@table("limit", [600, 1000, 4096])
@table("letter", ["ж", "*", "😀"])
def test_long_agent_text_is_cut_with_a_remark(limit: int, letter: str) -> None:
    text = text_of(description=letter * 9000)
    for shown in (text.body(limit), text.body(limit, is_markdown=True)):
        assert len(shown.encode("utf-16-le")) // 2 <= limit
        assert LINK in shown
        assert shown.endswith("audit 123:ab12cd34ef567890…")
        missing = 9000 - shown.split(WORDS_HEADING)[-1].count(letter)
        assert f"\n{missing} more characters: open the page\n" in shown


def test_link_is_kept_when_nothing_else_fits() -> None:
    shown = text_of().body(10)
    assert LINK in shown
    assert "more characters: open the page" in shown
    assert "Roll out" not in shown
