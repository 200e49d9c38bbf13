"""Errors that are only the echo of an interruption."""

import pytest

from journeyman.records.errors import follows_interrupt


def trip() -> None:
    try:
        raise KeyboardInterrupt
    finally:
        raise AssertionError


def test_whose_error_it_is() -> None:
    # An error while an interruption was dealt with.
    with pytest.raises(AssertionError) as caught:
        trip()
    assert follows_interrupt(caught.value)

    # An error of its own.
    assert not follows_interrupt(AssertionError())
    assert not follows_interrupt(None)
