"""Errors that are only the echo of an interruption."""

import pytest

from journeyman.records.errors import follows_interrupt


def trip() -> None:
    try:
        raise KeyboardInterrupt
    finally:
        raise AssertionError


def test_an_error_while_an_interruption_was_dealt_with() -> None:
    with pytest.raises(AssertionError) as caught:
        trip()
    assert follows_interrupt(caught.value)


def test_an_error_of_its_own() -> None:
    assert not follows_interrupt(AssertionError())
    assert not follows_interrupt(None)
