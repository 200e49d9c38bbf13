"""Truncating long texts in the middle."""

import re

from hypothesis import given
from hypothesis import strategies as st

from journeyman.learning.sanitizer import summary

MARK = re.compile(r"… \[(\d+) characters left out\] …")


def parts(text: str, limit: int = 500) -> tuple[str, int, str]:
    """Return head, number of omitted characters, and tail."""
    cut = summary(text, limit)
    found = MARK.search(cut)
    assert found is not None, cut
    return cut[: found.start() - 1], int(found[1]), cut[found.end() + 1 :]


def test_head_and_tail_are_kept() -> None:
    # Head and tail are kept, and omitted characters are counted.
    text = "H" + "x" * 5000 + "T"
    head, count, tail = parts(text)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + count + len(tail) == len(text)
    assert len(head) > len(tail) > 100

    # Most of the limit is used.
    assert len(summary("x" * 5000)) >= 495

    # Characters omitted earlier are included.
    text = "x" * 2000
    _, count, _ = parts(text)
    assert f"[{count + 7_000} characters left out]" in summary(text, unread=7_000)


def test_cut_falls_on_boundaries() -> None:
    # Lines stay whole where that costs little.
    lines = [f"line {number} with some words in it" for number in range(200)]
    cut = summary("\n".join(lines))
    kept = [line for line in cut.split("\n") if not MARK.fullmatch(line)]
    assert set(kept) <= set(lines)
    assert MARK.search(cut) is not None
    assert kept[0] == lines[0]
    assert kept[-1] == lines[-1]

    # Words stay whole in one long line.
    head, _, tail = parts("word-and-word " * 400)
    assert head.endswith("word-and-word")
    assert tail.startswith("word-and-word")

    # Placeholders stay whole.
    for shift in range(14):
        cut = summary("x" * shift + " " + "<email:1> " * 200)
        assert not re.search(r"<(?!email:1>)|(?<!<email:1)>", cut)


@given(
    st.text(st.sampled_from("ab \n\r\u0301\u200d👍🏽"), max_size=400),
    st.integers(0, 200),
)
def test_summary_never_exceeds_the_limit(text: str, limit: int) -> None:
    cut = summary(text, limit)
    assert len(cut) <= limit or cut == text == ""
    assert summary(cut, limit) == cut
    if found := MARK.search(cut):
        assert int(found[1]) + len(cut) - len(found[0]) - 2 == len(text)
