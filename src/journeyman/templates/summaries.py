"""Long texts cut to their head and tail, with the cut marked. A text is cut between lines or words
where that costs little. Whoever redacts does so before the cut: half a secret is not recognised.
"""

import unicodedata

SUMMARY_LIMIT = 500

_WORTH_BOTH_ENDS = 24
"""With less room than this for head and tail together, only the head is shown."""
_FOR_A_LINE = 0.2
"""What share of an end may be given up to cut between lines."""
_FOR_A_WORD = 24
_LONGEST_CLUSTER = 16
"""How many marks may hang on one letter before they are cut off anyway."""
_JOINER = "\u200d"


def summary(text: str, limit: int = SUMMARY_LIMIT, *, unread: int = 0) -> str:
    """The text if it is short enough, otherwise its head and tail; never longer than the limit.
    `unread` counts what the caller has left out of the middle already.
    """
    if len(text) <= limit and not unread:
        return text
    limit = min(limit, len(text))
    room = limit - len(_mark(len(text) + unread)) - 2
    if room < _WORTH_BOTH_ENDS:
        return text[: _head_end(text, limit - 1)] + "…" if limit > 0 else ""
    end = _head_end(text, room * 2 // 3)
    start = _tail_start(text, len(text) - room // 3)
    before = "\n" if text[end] in "\r\n" else " "
    after = "\n" if text[start - 1] in "\r\n" else " "
    return f"{text[:end]}{before}{_mark(start - end + unread)}{after}{text[start:]}"


def _mark(count: int) -> str:
    return f"… [{count} characters left out] …"


def _head_end(text: str, most: int) -> int:
    """Where the head ends: after a line, after a word, or after a whole character."""
    end = text.rfind("\n", most - int(most * _FOR_A_LINE), most + 1)
    if end < 0:
        end = text.rfind(" ", max(0, most - _FOR_A_WORD), most + 1)
    if end < 0:
        end = most
        while end > max(0, most - _LONGEST_CLUSTER) and _hangs_on(text[end - 1], text[end]):
            end -= 1
    return len(text[:end].rstrip())


def _tail_start(text: str, least: int) -> int:
    """Where the tail starts, in the same way."""
    most = len(text) - least
    start = text.find("\n", least - 1, least + int(most * _FOR_A_LINE)) + 1
    if not start:
        start = text.find(" ", least - 1, least + min(_FOR_A_WORD, most // 2)) + 1
    if not start:
        start = least
        while start < least + min(_LONGEST_CLUSTER, most) and _hangs_on(
            text[start - 1], text[start]
        ):
            start += 1
    # An indented first line keeps its indent.
    return start if text[start - 1] == "\n" else len(text) - len(text[start:].lstrip())


def _hangs_on(before: str, letter: str) -> bool:
    """Whether a character is shown as one with that before it: marks, joined pictures, the second
    half of a surrogate pair.
    """
    return (
        unicodedata.category(letter)[0] == "M"
        or _JOINER in (letter, before)
        or "\U0001f3fb" <= letter <= "\U0001f3ff"
        or "\udc00" <= letter <= "\udfff"
        or (before == "\r" and letter == "\n")
    )
