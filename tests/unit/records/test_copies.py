"""Copies of messages are found whatever surrounds them, at a cost that grows with the number of
messages.
"""

from itertools import product

from journeyman.records.copies import MessageTrace, copies_of_parent


def said(text: int, **more: bool) -> MessageTrace:
    return MessageTrace("user", text, **more)


def called(name: str) -> MessageTrace:
    return MessageTrace("assistant", 0, calls=(name,))


SUMMARY = said(9, is_summary=True)
COUNT = 400
SAME = [said(1) for _ in range(COUNT)]
OTHER = [said(2) for _ in range(COUNT)]


def test_the_longest_end_is_kept() -> None:
    """For every short conversation before a summary, and every short one after it."""
    misses = []
    texts = [some for length in range(5) for some in product((1, 2), repeat=length)]
    for before, after in product(texts, texts):
        child = [SUMMARY, *map(said, after)]
        found = copies_of_parent([*map(said, before)], child, is_branch=False)
        longest = max(
            length
            for length in range(len(before) + 1)
            if before[len(before) - length :] == after[:length]
        )
        start = len(before) - longest
        if found != {1 + at: start + at for at in range(longest)}:
            misses.append((before, after, found))
    assert not misses
