"""The quarantine: text that tries to instruct whoever reads it is kept out of openings. The rules
are rows in `quarantine_rules`, hidden characters are for `invisible`; here they are tried.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from journeyman.redaction.encoded import Json, find_base64, may_hold_base64, open_json
from journeyman.redaction.invisible import as_read, find_invisible, with_latin_letters
from journeyman.redaction.quarantine_rules import COMPILED, may_fit

_BEFORE = 20
_EVIDENCE = 120
_LONGEST = 200_000


class Suspicion(Struct, frozen=True, kw_only=True):
    """The rule that a text fell under, and the words that made it."""

    rule: str
    evidence: str


def find_suspicion(texts: Iterable[str]) -> Suspicion | None:
    """The first rule that fits one of the texts. JSON is read as the strings it holds."""
    for text in texts:
        for piece in _pieces(text):
            suspicion = _suspicion(piece)
            if suspicion is not None:
                return suspicion
    return None


def _pieces(text: str) -> Iterator[str]:
    """What there is to read in a text: itself or its strings, and what is coded in base64."""
    opened = open_json(text)
    read = text if opened is None else "\n".join(_strings(opened.value))
    yield read
    if may_hold_base64(read):
        yield from (run.text for run in find_base64(read[:_LONGEST]))


def _strings(value: Json) -> Iterator[str]:
    rest: list[Json] = [value]
    while rest:
        one = rest.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            rest += one.values()
            yield from one
        elif isinstance(one, list):
            rest += one


def _suspicion(text: str) -> Suspicion | None:
    hidden = find_invisible(text)
    if hidden is not None:
        return Suspicion(rule=hidden[0].id, evidence=_excerpt(text, hidden[1]))
    read = as_read(text)
    readings = [read] if read.isascii() else [read, with_latin_letters(read)]
    for row, pattern in COMPILED:
        for reading in [text] if row.raw else readings:
            if may_fit(row, reading) and (found := pattern.search(reading)):
                return Suspicion(rule=row.id, evidence=_excerpt(reading, found.start()))
    return None


def _excerpt(text: str, at: int) -> str:
    """What a rule saw and a little before it, with characters that are not shown as escapes."""
    start = max(0, at - _BEFORE)
    piece = text[start : start + _EVIDENCE]
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in piece
    )
