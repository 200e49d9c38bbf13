"""Notices sent over real HTTP: order, visible failures, and never blocking the caller."""

import io
import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from tests.unit.notify.fake_services import CARD, PostBox, card, root_log
from tests.waiting import LONGEST_S

from journeyman.confirm.notices.channels import NoticeChannel
from journeyman.confirm.notices.dispatch import NoticeQueue, make_channels
from journeyman.confirm.notices.text import NoticeText, confirmation_notice
from journeyman.records.confirmation import Confirmation, ConfirmationId, Notice

LINK = "http://127.0.0.1:6080/open#t"
TEXT = confirmation_notice(CARD, page_link=LINK, audit_head="1:ab")


@pytest.fixture(scope="module")
def box() -> Iterator[PostBox]:
    with PostBox() as one:
        yield one


class Sender:
    """A queue of notices, with what it reports."""

    def __init__(self, channels: Sequence[NoticeChannel], **how: object) -> None:
        self.terminal = io.StringIO()
        self.reports: queue.Queue[tuple[ConfirmationId, Notice]] = queue.Queue()
        self.queue = NoticeQueue(
            channels,
            lambda id_, notice: self.reports.put((id_, notice)),
            terminal=self.terminal,
            **how,  # type: ignore[arg-type]
        )

    def sent(self, confirmation: Confirmation = CARD) -> Notice:
        self.queue.send(confirmation, lambda: TEXT)
        id_, notice = self.reports.get(timeout=LONGEST_S)
        assert id_ == confirmation.id
        return notice


@contextmanager
def sending(channels: Sequence[NoticeChannel], **how: object) -> Iterator[Sender]:
    one = Sender(channels, **how)
    one.queue.start()
    try:
        yield one
    finally:
        one.queue.stop()


class BrokenChannel(NoticeChannel):
    """A channel that raises an unexpected exception."""

    name = "breaks"

    def send(self, text: NoticeText, confirmation: Confirmation) -> None:
        raise ZeroDivisionError("https://user:canary-secret@example.com")


class SlowChannel(NoticeChannel):
    """A channel that blocks until released, and records the order of its calls."""

    name = "waits"
    shows_outcomes = True

    def __init__(self) -> None:
        self.go = threading.Event()
        self.asked = threading.Semaphore(0)
        self.order: list[str] = []

    def send(self, text: NoticeText, confirmation: Confirmation) -> None:
        self.asked.release()
        self.go.wait()
        self.order.append(f"send {confirmation.id}")

    def show_outcome(self, confirmation: Confirmation) -> None:
        self.order.append(f"settled {confirmation.id}")
        self.asked.release()


def test_only_the_first_working_channel_is_used(box: PostBox) -> None:
    urls = [box.url("ok/first"), box.url("ok/second")]
    with sending(make_channels(urls)) as one:
        assert one.sent() == Notice(status="sent", channel="JSON")
    assert len(box.bodies("ok/first")) == 1
    assert not box.bodies("ok/second")
    assert not one.terminal.getvalue()


def test_story_17_failed_channel_falls_back_to_the_next(
    box: PostBox,
) -> None:
    channels = [BrokenChannel(), *make_channels([box.url("500/a"), box.url("ok/b")])]
    with root_log() as logged, sending(channels) as one:
        assert one.sent() == Notice(status="sent", channel="JSON")
    assert len(box.bodies("500/a")) == 1
    assert len(box.bodies("ok/b")) == 1
    assert logged == [
        "the notice of 01234567 failed on breaks: it failed unexpectedly (ZeroDivisionError)",
        "the notice of 01234567 failed on JSON: the service answered 500",
    ]


def test_story_17_failure_of_all_channels_is_reported_on_the_terminal(box: PostBox) -> None:
    with PostBox() as gone:
        closed = gone.url("ok")
    urls = [box.url("403/canary-path?optional=yes"), closed, box.url("hangs")]
    with sending([*make_channels(urls), BrokenChannel()]) as one:
        notice = one.sent()
    assert notice == Notice(
        status="failed",
        channel="terminal",
        error="JSON: the service answered 403; JSON: the service could not be reached; "
        "JSON: the service could not be reached; "
        "breaks: it failed unexpectedly (ZeroDivisionError)",
    )
    assert one.terminal.getvalue() == (
        f"01234567: deploy_production waits for your decision. Open: {LINK}\n"
    )


def test_without_a_terminal_it_has_failed() -> None:
    with sending([BrokenChannel()]) as one:
        one.terminal.close()
        assert (one.sent().status, one.sent().channel) == ("failed", "")


def test_sending_never_blocks_and_a_full_queue_is_reported() -> None:
    slow = SlowChannel()
    with sending([slow], max_queued=1) as one:
        one.queue.send(CARD, lambda: TEXT)
        slow.asked.acquire()
        one.queue.send(CARD, lambda: TEXT)  # waits in the queue
        one.queue.send(CARD, lambda: TEXT)  # has no place in it
        notice = one.reports.get_nowait()[1]
        assert notice == Notice(status="failed", error="too many notices are waiting to be sent")
        slow.go.set()
        sent = [one.reports.get(timeout=LONGEST_S)[1].status for _ in range(2)]
        assert sent == ["sent", "sent"]


def test_a_notice_is_sent_before_its_outcome() -> None:
    slow = SlowChannel()
    cards = [card(id=ConfirmationId(f"{number:032x}")) for number in range(6)]
    with sending([slow]) as one:
        for each in cards:
            one.queue.send(each, lambda: TEXT)
            one.queue.show_outcome(each)
        slow.go.set()
        for _ in range(12):
            assert slow.asked.acquire(timeout=LONGEST_S)
        for each in cards:
            assert slow.order.index(f"send {each.id}") < slow.order.index(f"settled {each.id}")


def test_failing_report_does_not_stop_later_reports(caplog: pytest.LogCaptureFixture) -> None:
    reports: queue.Queue[Notice] = queue.Queue()

    def report(id_: ConfirmationId, notice: Notice) -> None:
        reports.put(notice)
        raise RuntimeError("the loop is closed")

    one = NoticeQueue([BrokenChannel()], report, terminal=io.StringIO())
    one.start()
    try:
        for _ in range(2):
            one.send(CARD, lambda: TEXT)
            assert reports.get(timeout=LONGEST_S).status == "failed"
    finally:
        one.stop()
    assert "could not be processed" in caplog.text


def test_story_16_urls_appear_in_no_report_or_log(
    box: PostBox, capfd: pytest.CaptureFixture[str]
) -> None:
    urls = [
        f"json://canary-user:canary-pass@127.0.0.1:{box.port}/500/canary-path",
        "json://canary-host.invalid/x",
        f"xml://127.0.0.1:{box.port}/404/canary-path",
    ]
    with root_log() as logged, sending(make_channels(urls)) as one:
        notice = one.sent()
    assert notice.status == "failed"
    assert len(logged) == len(urls)
    out = capfd.readouterr()
    assert "canary" not in f"{notice}{logged}{one.terminal.getvalue()}{out.out}{out.err}"
