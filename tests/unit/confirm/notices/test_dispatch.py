"""Telling people through real HTTP: order, failures that are seen, and never in anybody's way."""

import io
import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from tests.unit.confirm.notices.outside import CARD, PostBox, card, everybodys_log

from journeyman.confirm.notices.dispatch import Telling, make_channels
from journeyman.confirm.notices.text import NoticeChannel, NoticeText, notice_of
from journeyman.records.confirmation import Confirmation, ConfirmationId, Notice

LINK = "http://127.0.0.1:6080/open#t"
TEXT = notice_of(CARD, page_link=LINK, audit_head="1:ab")


@pytest.fixture(scope="module")
def box() -> Iterator[PostBox]:
    with PostBox() as one:
        yield one


class Telltale:
    """Telling people, with what it reports."""

    def __init__(self, channels: Sequence[NoticeChannel], **how: object) -> None:
        self.terminal = io.StringIO()
        self.reports: queue.Queue[tuple[ConfirmationId, Notice]] = queue.Queue()
        self.telling = Telling(
            channels,
            lambda id_, notice: self.reports.put((id_, notice)),
            terminal=self.terminal,
            **how,  # type: ignore[arg-type]
        )

    def told(self, confirmation: Confirmation = CARD) -> Notice:
        self.telling.tell(confirmation, lambda: TEXT)
        id_, notice = self.reports.get(timeout=30)
        assert id_ == confirmation.id
        return notice


@contextmanager
def telling(channels: Sequence[NoticeChannel], **how: object) -> Iterator[Telltale]:
    one = Telltale(channels, **how)
    one.telling.start()
    try:
        yield one
    finally:
        one.telling.stop()


class Breaks(NoticeChannel):
    """A channel whose library breaks in an unforeseen way."""

    name = "breaks"

    def send(self, text: NoticeText, confirmation: Confirmation) -> None:
        raise ZeroDivisionError("https://user:canary-secret@example.com")


class Waits(NoticeChannel):
    """A channel that takes its time, and keeps what it was asked in order."""

    name = "waits"
    follows_up = True

    def __init__(self) -> None:
        self.go = threading.Event()
        self.asked = threading.Semaphore(0)
        self.order: list[str] = []

    def send(self, text: NoticeText, confirmation: Confirmation) -> None:
        self.asked.release()
        self.go.wait()
        self.order.append(f"send {confirmation.id}")

    def settled(self, confirmation: Confirmation) -> None:
        self.order.append(f"settled {confirmation.id}")
        self.asked.release()


def test_the_first_channel_that_works_is_the_only_one_used(box: PostBox) -> None:
    urls = [box.url("ok/first"), box.url("ok/second")]
    with telling(make_channels(urls)) as one:
        assert one.told() == Notice(status="sent", channel="JSON")
    assert len(box.bodies("ok/first")) == 1
    assert not box.bodies("ok/second")
    assert not one.terminal.getvalue()


def test_story_17_a_channel_that_fails_is_followed_by_the_next(
    box: PostBox,
) -> None:
    channels = [Breaks(), *make_channels([box.url("500/a"), box.url("ok/b")])]
    with everybodys_log() as logged, telling(channels) as one:
        assert one.told() == Notice(status="sent", channel="JSON")
    assert len(box.bodies("500/a")) == 1
    assert len(box.bodies("ok/b")) == 1
    assert logged == [
        "the notice of 01234567 failed on breaks: it broke off (ZeroDivisionError)",
        "the notice of 01234567 failed on JSON: the service answered 500",
    ]


def test_story_17_when_all_fail_the_waiter_and_the_terminal_know(box: PostBox) -> None:
    with PostBox() as gone:
        closed = gone.url("ok")
    urls = [box.url("403/canary-path?optional=yes"), closed, box.url("hangs")]
    with telling([*make_channels(urls), Breaks()]) as one:
        notice = one.told()
    assert notice == Notice(
        status="failed",
        channel="terminal",
        error="JSON: the service answered 403; JSON: the service could not be reached; "
        "JSON: the service could not be reached; breaks: it broke off (ZeroDivisionError)",
    )
    assert one.terminal.getvalue() == (
        f"01234567: deploy_production waits for your decision. Open: {LINK}\n"
    )


def test_without_a_terminal_it_has_failed() -> None:
    with telling([Breaks()]) as one:
        one.terminal.close()
        assert (one.told().status, one.told().channel) == ("failed", "")


def test_telling_never_waits_and_a_full_queue_is_reported() -> None:
    slow = Waits()
    with telling([slow], most_waiting=1) as one:
        one.telling.tell(CARD, lambda: TEXT)
        slow.asked.acquire()
        one.telling.tell(CARD, lambda: TEXT)  # waits in the queue
        one.telling.tell(CARD, lambda: TEXT)  # has no place in it
        notice = one.reports.get_nowait()[1]
        assert notice == Notice(status="failed", error="too many notices wait to be sent")
        slow.go.set()
        sent = [one.reports.get(timeout=30)[1].status for _ in range(2)]
        assert sent == ["sent", "sent"]


def test_a_matter_is_told_before_it_is_settled() -> None:
    slow = Waits()
    cards = [card(id=ConfirmationId(f"{number:032x}")) for number in range(6)]
    with telling([slow]) as one:
        for each in cards:
            one.telling.tell(each, lambda: TEXT)
            one.telling.settled(each)
        slow.go.set()
        for _ in range(12):
            assert slow.asked.acquire(timeout=30)
        for each in cards:
            assert slow.order.index(f"send {each.id}") < slow.order.index(f"settled {each.id}")


def test_a_report_that_fails_does_not_silence_the_next(caplog: pytest.LogCaptureFixture) -> None:
    reports: queue.Queue[Notice] = queue.Queue()

    def report(id_: ConfirmationId, notice: Notice) -> None:
        reports.put(notice)
        raise RuntimeError("the loop is closed")

    one = Telling([Breaks()], report, terminal=io.StringIO())
    one.start()
    try:
        for _ in range(2):
            one.tell(CARD, lambda: TEXT)
            assert reports.get(timeout=30).status == "failed"
    finally:
        one.stop()
    assert "could not be dealt with" in caplog.text


def test_story_16_no_address_is_in_a_report_or_a_log(
    box: PostBox, capfd: pytest.CaptureFixture[str]
) -> None:
    urls = [
        f"json://canary-user:canary-pass@127.0.0.1:{box.port}/500/canary-path",
        "json://canary-host.invalid/x",
        f"xml://127.0.0.1:{box.port}/404/canary-path",
    ]
    with everybodys_log() as logged, telling(make_channels(urls)) as one:
        notice = one.told()
    assert notice.status == "failed"
    assert len(logged) == len(urls)
    out = capfd.readouterr()
    assert "canary" not in f"{notice}{logged}{one.terminal.getvalue()}{out.out}{out.err}"
