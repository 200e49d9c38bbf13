"""Notification services: URL schemes, time limits, and failure messages without secrets."""

import subprocess
import sys
import threading

import pytest
from tests.waiting import LONGEST_S

from journeyman.notify.services import DeliveryFailed, call_within, url_scheme


def test_url_scheme() -> None:
    assert url_scheme(" NTFY://topic") == "ntfy"
    assert url_scheme("topic") == ""


def test_failures_are_reported_without_secrets() -> None:
    def refused() -> None:
        raise DeliveryFailed("the service answered 500")

    def broken() -> None:
        raise RuntimeError("https://user:canary@example.com")

    call_within(10, lambda: None)
    with pytest.raises(DeliveryFailed, match=r"^the service answered 500$"):
        call_within(10, refused)
    with pytest.raises(DeliveryFailed, match=r"^it failed unexpectedly$"):
        call_within(10, broken)


def test_call_beyond_its_time_limit_is_abandoned() -> None:
    end = threading.Event()
    with pytest.raises(DeliveryFailed, match=r"^no answer within 0\.05 s$"):
        call_within(0.05, lambda: end.wait(LONGEST_S) and None)
    end.set()


def test_missing_apprise_error_names_the_extra() -> None:
    program = """
import sys
sys.modules["apprise"] = None
from journeyman.notify.services import open_service
from journeyman.records.errors import MissingPart
try:
    open_service("ntfy://topic", label="x", about="y", extra="confirm")
except MissingPart as missing:
    print(missing)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "pip install 'journeyman[confirm]'" in done.stdout
