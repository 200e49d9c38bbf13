"""Keys and tokens that are known by their form wherever they stand: the tables of services and the
search for their rows. Secrets known only by their place are for `places`.
"""

import re
from functools import cache

from journeyman.redaction.cloud_tokens import CLOUD_TOKENS
from journeyman.redaction.model_tokens import MODEL_TOKENS
from journeyman.redaction.placeholders import Placeholders
from journeyman.redaction.service_tokens import SERVICE_TOKENS
from journeyman.redaction.token_row import Token

TOKENS: tuple[Token, ...] = (*MODEL_TOKENS, *CLOUD_TOKENS, *SERVICE_TOKENS)

# Not inside a longer word; but behind an escaped line break, a percent code or a colour code.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-F]{2})|(?<=\dm))"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(f"{_START}(?:{pattern})")


_SHORTEST = 12
"""No row fits anything shorter, up to the next space."""


# By a character that all rows of a group need, so that a text without it skips the group.
_GROUPS = tuple(
    (joint, tuple(row for row in TOKENS if joint == next((j for j in "_-." if j in row.gate), "")))
    for joint in ("_", "-", ".", "")
)


def without_tokens(text: str, placeholders: Placeholders) -> str:
    """The text with every token of the tables replaced; of a row with a group only the group."""
    long_words = " ".join([word for word in text.split() if len(word) >= _SHORTEST])
    there = [
        row
        for joint, rows in _GROUPS
        if joint in long_words
        for row in rows
        if row[1] in long_words and (not row.hint or re.search(row.hint, long_words))
    ]
    for row in there:

        def replaced(found: re.Match[str], family: str = row.family) -> str:
            secret = found.lastindex or 0
            start, end = (place - found.start() for place in found.span(secret))
            return found[0][:start] + placeholders.put(family, found[secret]) + found[0][end:]

        text = _compiled(row.pattern).sub(replaced, text)
    return text
