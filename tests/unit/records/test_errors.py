"""Recognising errors that follow an interruption."""

import pytest

from journeyman.records.errors import follows_interrupt


def fail_after_interrupt() -> None:
    try:
        raise KeyboardInterrupt
    finally:
        raise AssertionError


def test_errors_after_an_interruption() -> None:
    # An error raised while handling an interruption.
    with pytest.raises(AssertionError) as caught:
        fail_after_interrupt()
    assert follows_interrupt(caught.value)

    # An unrelated error.
    assert not follows_interrupt(AssertionError())
    assert not follows_interrupt(None)
