"""When two patterns are the same: equal work with other values. What is particular to one case
(numbers, ids, dates, addresses, placeholders) is masked, and what is left makes the pattern's id.

A rule on the text and not a distance between texts, so that merging is associative: whatever the
order in which sessions are learned, and on whichever machine, the same patterns come together.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from journeyman.records import PatternId, PatternKind, Step

_LONGEST = 400
"""How much of a text is compared: texts that begin alike for so long are alike."""

_PARTICULAR = re.compile(
    r"<[a-z_]+:\d+>"  # a placeholder of redaction
    r"|[\w.+-]+@[\w-]+\.[\w.]+"
    r"|[^\W_]*(?:_[^\W_]+)*_\d{2,}"  # mia_li_3668, credit_card_4421486
    r"|(?:[^\W\d_]+\d|\d+[^\W\d_])[^\W_]*"  # letters and digits in one word: EHGLP3, 3rk2t9
    r"|\d[\d.,:/-]*"
)
_PATH = re.compile(
    r"(?:~|\.{1,2}|[A-Za-z]:|<[a-z_]+:\d+>)?[/\\]?[\w.@+ -]*(?:[/\\][\w.@+ <>:*-]*)+"
)
_NOT_A_WORD = re.compile(r"[^\w#]+")


def masked(text: str) -> str:
    """A text with what is particular to one case left out: lower case, words only."""
    return _masked_head(text[: 2 * _LONGEST])


@lru_cache(maxsize=16_384)
def _masked_head(text: str) -> str:
    plain = _PARTICULAR.sub("#", text)
    return _NOT_A_WORD.sub(" ", plain.casefold()).strip()[:_LONGEST]


def pattern_id(kind: PatternKind, intent: str, steps: Sequence[Step]) -> PatternId:
    """The id of a pattern: the same for equal work."""
    work = [[step.tool, _masked_arguments(step.arguments), step.worked] for step in steps]
    content = json.dumps([kind, masked(intent), work], sort_keys=True)
    return PatternId(hashlib.sha256(content.encode()).hexdigest()[:20])


def _masked_arguments(arguments: str) -> Any:
    try:
        return _masked_value(json.loads(arguments))
    except (ValueError, RecursionError):
        return masked(arguments)


def _masked_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _masked_value(one) for key, one in value.items()}
    if isinstance(value, list):
        # How many passengers there are is particular; what is said about each is not.
        each = [_masked_value(one) for one in value]
        return list(dict(sorted((json.dumps(one, sort_keys=True), one) for one in each)).values())
    if isinstance(value, str):
        # Which file was read is particular; that one was read is not.
        return "#" if _PATH.fullmatch(value) else masked(value)
    return value if isinstance(value, bool) or value is None else "#"
