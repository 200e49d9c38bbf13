"""Truncating an output that arrives in pieces."""

from hypothesis import given
from hypothesis import strategies as st

from journeyman.text.truncation import TruncatedText


@given(st.text(), st.integers(min_value=1, max_value=7))
def test_text_within_the_limit_is_unchanged(text, size):
    data = text.encode(errors="replace")
    kept = TruncatedText(2 * max(1, len(data)))
    for start in range(0, len(data), size):
        kept.add(data[start : start + size])
    assert kept.text == data.decode()


@given(st.text(min_size=21, alphabet="aä€😀"), st.integers(min_value=1, max_value=7))
def test_text_beyond_the_limit_keeps_both_ends(text, size):
    data = text.encode()
    kept = TruncatedText(20)
    for start in range(0, len(data), size):
        kept.add(data[start : start + size])
    head, note, tail = kept.text.split("\n")
    assert note == f"[… {len(data) - 20} bytes left out …]"
    assert text.startswith(head)
    assert text.endswith(tail)
    assert min(len(head.encode()), len(tail.encode())) > 10 - len("😀".encode())
