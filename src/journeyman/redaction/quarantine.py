"""The quarantine: text that tries to instruct whoever reads it is kept out of openings. The rules
are rows in `quarantine_rules`, hidden characters are for `invisible`, and `reading` undoes
disguises; here they are tried.
"""

from collections.abc import Iterable

from msgspec import Struct

from journeyman.redaction.invisible import find_invisible
from journeyman.redaction.quarantine_rules import RAW, SENTENCES
from journeyman.redaction.reading import as_shown, pieces, readings

_BEFORE = 20
_EVIDENCE = 120


class Suspicion(Struct, frozen=True, kw_only=True):
    """The rule that a text fell under, and the words that made it."""

    rule: str
    evidence: str


def find_suspicion(texts: Iterable[str], *, requests: Iterable[str] = ()) -> Suspicion | None:
    """The first rule that fits one of the texts. JSON is read as the strings it holds. What people
    asked of their agent goes into `requests`: they may speak to it.
    """
    for text in requests:
        suspicion = _find(text, asked=True)
        if suspicion is not None:
            return suspicion
    for text in texts:
        suspicion = _find(text, asked=False)
        if suspicion is not None:
            return suspicion
    return None


def _find(text: str, *, asked: bool) -> Suspicion | None:
    for piece in pieces(text):
        suspicion = _suspicion(piece, asked=asked)
        if suspicion is not None:
            return suspicion
    return None


def _suspicion(text: str, *, asked: bool) -> Suspicion | None:
    hidden = find_invisible(text)
    if hidden is not None:
        return Suspicion(rule=hidden[0].id, evidence=_excerpt(text, hidden[1]))
    shown = as_shown(text)
    tries = [*((SENTENCES, reading) for reading in readings(shown)), (RAW, shown)]
    for rules, reading in tries:
        found = rules.find(reading, asked=asked)
        if found is not None:
            return Suspicion(rule=found[0].id, evidence=_excerpt(reading, found[1]))
    return None


def _excerpt(text: str, at: int) -> str:
    """What a rule saw and a little before it, with characters that are not shown as escapes."""
    start = max(0, at - _BEFORE)
    piece = text[start : start + _EVIDENCE]
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in piece
    )[:_EVIDENCE]
