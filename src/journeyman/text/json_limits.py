"""Limits on untrusted JSON, checked on its bytes before any parser builds values from them. Depth
could exhaust the stack, a long number takes quadratic time, and many small values take far more
memory than their text.
"""

import re
from itertools import accumulate

MAX_DEPTH = 500
"""Maximum nesting of lists and objects in a log. Real logs have a dozen levels."""

MAX_DIGITS = 1000
"""Maximum digits in one number. Python refuses to convert more than 4,300."""

MAX_VALUES = 1_000_000
"""Maximum number of values in one line or element. Each takes about 100 bytes of memory."""

_MAX_MARKS = 2 * MAX_VALUES
"""Maximum number of brackets and commas, also in strings: removing the strings from a text takes
memory for each of them."""

_MIN_BYTES = MAX_DEPTH
_DIGIT_STRIDE = 100
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_SAMPLED_DIGITS = re.compile(rb"[0-9]{%d}" % (MAX_DIGITS // _DIGIT_STRIDE))
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % (MAX_DIGITS + 1))
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = [0] * 256
for _bracket, _step in zip(b"[{]}", (1, 1, -1, -1), strict=True):
    _STEPS[_bracket] = _step


def find_excess(data: bytes) -> str:
    """Return which limit a JSON text exceeds, as a clause that states the problem ("it is nested
    more than 500 levels deep"), or an empty string.

    Most texts are cleared by a few passes of `count`: a text with few brackets and commas cannot
    exceed a limit, and a long number leaves many digits in a sample of every hundredth byte. Only
    the others are stripped of their strings and examined.
    """
    if len(data) < _MIN_BYTES:
        return ""
    brackets = data.count(b"[") + data.count(b"{")
    if (
        brackets <= MAX_DEPTH
        and not _SAMPLED_DIGITS.search(data[::_DIGIT_STRIDE])
        and (len(data) < MAX_VALUES or brackets + data.count(b",") <= MAX_VALUES)
    ):
        return ""
    if len(data) > _MAX_MARKS and brackets + data.count(b",") > _MAX_MARKS:
        return f"it has more than {MAX_VALUES:,} values"
    outside = _STRING.sub(b"", data)
    brackets = outside.count(b"[") + outside.count(b"{")
    if brackets + outside.count(b",") > MAX_VALUES:
        return f"it has more than {MAX_VALUES:,} values"
    if brackets > MAX_DEPTH and _depth(outside) > MAX_DEPTH:
        return f"it is nested more than {MAX_DEPTH} levels deep"
    if _LONG_NUMBER.search(outside):
        return f"it has a number of more than {MAX_DIGITS:,} digits"
    return ""


def _depth(outside: bytes) -> int:
    brackets = outside.translate(None, _NOT_BRACKETS)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)
