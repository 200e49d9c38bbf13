"""Delivery to the terminal, to files, and to services that a local HTTP server stands in for."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.tables import table
from tests.unit.notify.fake_services import PostBox, root_log

from journeyman.jobs.delivery import (
    DeliveryReport,
    RunMessage,
    check_destinations,
    deliver,
    destination_label,
)
from journeyman.records.errors import WrongInput

AT = 1_800_000_000.0
GOOD = RunMessage(title="news: ok", body="Nothing broke.\nAll of it: /out/1.md", is_good=True)
MATTERMOST = "abcdefghijklmnopqrstuvwxyz"


class RecoveringPostBox(PostBox):
    """Answers `bad_answers` requests with 500, then succeeds."""

    def __init__(self) -> None:
        super().__init__()
        self.bad_answers = 0

    def answer(self, path: str, body: Any) -> tuple[int, Any] | None:
        status = super().answer(path, body)
        if self.bad_answers:
            self.bad_answers -= 1
            return 500, b"not now"
        return status


@pytest.fixture
def box() -> Iterator[RecoveringPostBox]:
    with RecoveringPostBox() as one:
        yield one


def delivered(
    *places: str, message: RunMessage = GOOD, shown: list[str] | None = None, **how: Any
) -> DeliveryReport:
    terminal = ([] if shown is None else shown).append
    options = {"pause_s": 0.0, **how}
    return deliver(message, places, terminal=terminal, job="news", at=AT, **options)


def closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_a_service_gets_it(box: RecoveringPostBox) -> None:
    assert delivered(box.url("ok")) == DeliveryReport(delivered=("json (…)",), undelivered=())
    arrived = box.received[0][1]
    assert (arrived["title"], arrived["message"]) == (GOOD.title, GOOD.body)
    assert arrived["type"] == "success"
    failed = RunMessage(title="news: failed", body="exit code 3", is_good=False)
    delivered(box.url("ok"), message=failed)
    assert box.received[1][1]["type"] == "failure"


def test_secrets_are_masked_for_services_only(box: RecoveringPostBox, tmp_path: Path) -> None:
    key = "ghp_" + "A1b2" * 9
    told = RunMessage(title="news: ok", body=f"bob@corp.example has {key}.", is_good=True)
    file = tmp_path / "answers.md"
    delivered(box.url("ok"), f"file:{file}", message=told)
    arrived = box.received[0][1]["message"]
    assert key not in arrived
    assert "bob@corp.example has [hidden: 40 characters]." in arrived
    assert key in file.read_text()


def test_failed_delivery_is_retried(box: RecoveringPostBox) -> None:
    box.bad_answers = 2
    assert delivered(box.url("ok")).delivered == ("json (…)",)
    assert len(box.received) == 3


def test_retries_are_limited(box: RecoveringPostBox) -> None:
    box.bad_answers = 9
    outcome = delivered(box.url("ok"), attempts=2)
    assert outcome == DeliveryReport(
        delivered=(), undelivered=("json (…): the service answered 500",)
    )
    assert len(box.received) == 2


def test_hanging_service_times_out(box: RecoveringPostBox) -> None:
    outcome = delivered(box.url("hangs"), "terminal", limit_s=2)
    assert outcome == DeliveryReport(
        delivered=("terminal",), undelivered=("json (…): no answer within 2 s",)
    )


def test_failing_place_does_not_affect_the_others(box: RecoveringPostBox, tmp_path: Path) -> None:
    shown: list[str] = []
    answers = tmp_path / "answers.md"
    outcome = delivered(
        f"json://127.0.0.1:{closed_port()}/",
        f"file:{tmp_path}/gone/a.md",
        "nosuch://canary",
        "terminal",
        f"file:{answers}",
        box.url("ok"),
        shown=shown,
    )
    assert outcome.delivered == ("terminal", f"file:{answers}", "json (…)")
    failed = outcome.undelivered
    assert failed[0] == "json (…): the service could not be reached"
    assert failed[1] == f"file:{tmp_path}/gone/a.md: No such file or directory"
    assert failed[2].startswith("nosuch (…): The delivery address number 3 (nosuch://…)")
    assert len(failed) == 3
    assert "Nothing broke." in shown[0]


def test_long_answer_keeps_its_beginning_and_last_line(box: RecoveringPostBox) -> None:
    body = f"Begins here. {'wörd😀 ' * 3000}\nAll of it: /out/1.md\n"
    message = RunMessage(title="news", body=body, is_good=True)
    delivered(f"mmost://127.0.0.1:{box.port}/{MATTERMOST}", message=message)
    text = box.received[0][1]["text"]
    assert "Begins here. wörd😀" in text
    assert "characters are too long for this service" in text
    assert text.endswith("\nAll of it: /out/1.md")
    assert 3500 < len(text.encode("utf-16-le")) // 2 <= 4000


@table(
    ("written", "sent"),
    [
        ("@everyone look", "@ everyone look"),
        ("x@here", "x@ here"),
        ("@Channel, @all @**all**", "@ Channel, @ all @ **all**"),
        ("<!channel> <!here|here> <!subteam^S1>", "< !channel> < !here|here> < !subteam^S1>"),
        ("<@&42> <users/all>", "< @&42> < users/all>"),
        ('<at user_id="all">', '< at user_id="all">'),
        ("see https://example.com/@team?a=b#c", "see https://example.com/@team?a=b#c"),
        ("ann@team.example, **x** [a](https://b.c)", "ann@team.example, **x** [a](https://b.c)"),
        ("a\x1b[2Jb\u202ec\0", "a␛[2Jb�c␀"),
        ("<!-- note --> @alliance ⚠️", "<!-- note --> @alliance ⚠️"),
    ],
    ids=[
        *("everyone", "within a word", "channel", "slack", "roles", "lark", "a link"),
        *("mail and Markdown", "control", "harmless"),
    ],
)
def test_mentions_are_disabled_and_links_preserved(
    box: RecoveringPostBox, written: str, sent: str
) -> None:
    delivered(box.url("ok"), message=RunMessage(title=written, body=written, is_good=True))
    arrived = box.received[-1][1]
    assert (arrived["title"], arrived["message"]) == (sent, sent)


def test_urls_stay_secret(
    box: RecoveringPostBox, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    urls = [
        f"json://user:canary@127.0.0.1:{box.port}/404/canary",
        f"json://127.0.0.1:{closed_port()}/canary",
        "slack://canary",
        "canary",
    ]
    with root_log() as logged:
        outcome = delivered(*urls, attempts=1)
        for url in urls[2:]:
            with pytest.raises(WrongInput) as refused:
                check_destinations([url])
            logged.append(str(refused.value))
    assert len(outcome.undelivered) == 4
    out = capfd.readouterr()
    assert "canary" not in f"{outcome}{logged}{out.out}{out.err}{[*map(destination_label, urls)]}"


def test_terminal_output_has_a_heading_and_no_control_characters() -> None:
    shown: list[str] = []
    message = RunMessage(title="news:\nok", body="a\x1b]0;x\x07b @everyone", is_good=True)
    assert delivered("terminal", message=message, shown=shown).delivered == ("terminal",)
    assert shown == ["## news: ok\n2027-01-15 08:00:00 UTC, job news\n\na␛]0;x␇b @everyone\n\n"]


def test_answers_are_appended_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "answers.md"
    for body in ("one", "two\ud800"):
        message = RunMessage(title="news: ok", body=body, is_good=True)
        assert delivered(f"file:{path}", message=message).delivered == (f"file:{path}",)
    head = "## news: ok\n2027-01-15 08:00:00 UTC, job news\n\n"
    assert path.read_text() == f"{head}one\n\n{head}two�\n\n"
    assert path.stat().st_mode & 0o777 == 0o600


@table(
    ("name", "said"),
    [
        ("file:answers.md", "absolute path"),
        ("file:~/answers.md", "absolute path"),
        ("file:", "absolute path"),
        ("file://host/answers.md", "absolute path"),
        ("file:{}/folder/", "absolute path"),
        ("file:{}/folder", "plain file"),
        ("file:{}/link", "not a link"),
        ("file:{}/dangling", "not a link"),
        ("file:{}/pipe", "plain file"),
        ("Terminal", "number 1 is not valid"),
        ("", "number 1 is not valid"),
    ],
    ids=[
        *("relative", "tilde", "no path", "host", "trailing slash", "folder", "link"),
        *("dangling", "pipe", "unknown", "empty"),
    ],
)
def test_invalid_places_are_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, said: str
) -> None:
    folder = tmp_path_factory.mktemp("places")
    (folder / "folder").mkdir()
    (folder / "file").touch()
    (folder / "link").symlink_to("file")
    (folder / "dangling").symlink_to("nothing")
    os.mkfifo(folder / "pipe")
    place = name.format(folder)
    with pytest.raises(WrongInput, match=said):
        check_destinations([place])
    assert not delivered(place).delivered
    assert (folder / "file").read_text() == ""


def test_places_as_shown_in_lists() -> None:
    places = ["terminal", "file:/a/b.md", " NTFY://topic", "secret"]
    assert [*map(destination_label, places)] == [
        *("terminal", "file:/a/b.md", "ntfy (…)", "an address (…)")
    ]
