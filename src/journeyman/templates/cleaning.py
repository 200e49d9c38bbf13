"""Making a pattern that may be kept: its texts redacted, results cut to head and tail, and text
that instructs its reader marked. Every pattern comes through here, mined or imported.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec

from journeyman.records import Pattern, PatternId, PatternKind, Step
from journeyman.redaction.instructions import Suspicion, find_suspicion
from journeyman.redaction.redactor import Redactor
from journeyman.templates.intents import clipped
from journeyman.templates.likeness import pattern_id
from journeyman.templates.summaries import SUMMARY_LIMIT, summary

_LAST_WORD, _FIRST_WORD = re.compile(r"\S*\Z"), re.compile(r"\A\S*")

_READ_OF_RESULT = 1_024
"""How much of a long result's head and tail is looked at for secrets before it is cut to a third of
that."""

_REMEMBERED = 8_192
_JUDGED_OF_RESULT = 2_048
"""How much of them is looked at for text that instructs: the agent has read all of it."""


def clean_pattern(
    kind: PatternKind, intent: str, steps: Sequence[Step], *, result_limit: int = SUMMARY_LIMIT
) -> Pattern:
    """A pattern of these steps, which hold text as it was recorded. A tool whose name gives
    something away gets one that no host takes, so that the pattern is never shown.
    """
    shown_intent, shown = _redacted(intent, steps)
    shown = tuple(
        msgspec.structs.replace(
            step, result=summary(step.result, result_limit, unread=_unread(raw.result))
        )
        for step, raw in zip(shown, steps, strict=True)
    )
    shown_intent = clipped(shown_intent)
    suspicion = find_pattern_suspicion(intent, steps)
    rule = "" if suspicion is None else suspicion.rule
    return Pattern(
        id=PatternId(pattern_id(kind, shown_intent, shown, rule)),
        kind=kind,
        intent=shown_intent,
        steps=shown,
        quarantined=rule,
    )


def find_pattern_suspicion(intent: str, steps: Sequence[Step]) -> Suspicion | None:
    """Why a pattern of these steps, as they were recorded, is kept in quarantine."""
    return _asked_suspicion(intent) or next(filter(None, map(suspicion_of, _texts(steps))), None)


def _redacted(intent: str, steps: Sequence[Step]) -> tuple[str, tuple[Step, ...]]:
    redactor = Redactor()
    shown_intent = _whole(intent)
    shown = tuple(msgspec.structs.replace(step, result=_read(step.result)) for step in steps)
    for _ in range(2):  # a name that a later text gives away may stand bare in an earlier one
        before = shown_intent, shown
        shown_intent = redactor.text(shown_intent)
        shown = tuple(
            Step(
                tool=redactor.text(_whole(step.tool)),
                arguments=redactor.text(_whole(step.arguments)),
                result=redactor.text(_whole(step.result)),
                worked=step.worked,
            )
            for step in shown
        )
        if (shown_intent, shown) == before:
            break
    return shown_intent, shown


@lru_cache(maxsize=4_096)
def redacted_line(text: str) -> str:
    """A short text without secrets; the same text comes often."""
    return _whole(Redactor().text(text)) if text else ""


def suspicion_of(text: str) -> Suspicion | None:
    """Why a text that a session holds may not be shown. Texts of the length of most are remembered:
    a call stands in several patterns.
    """
    return _suspicion_of(text) if len(text) <= _REMEMBERED else find_suspicion((text,))


@lru_cache(maxsize=1_024)
def _suspicion_of(text: str) -> Suspicion | None:
    return find_suspicion((text,))


@lru_cache(maxsize=256)
def _asked_suspicion(intent: str) -> Suspicion | None:
    return find_suspicion((), requests=(intent,))


def _read(result: str) -> str:
    """Head and tail of a long result, without the words that the cut has gone through: half a
    secret is not known as one any more.
    """
    if not _unread(result):
        return result
    head, tail = result[:_READ_OF_RESULT], result[-_READ_OF_RESULT:]
    return f"{_LAST_WORD.sub('', head)}\n{_FIRST_WORD.sub('', tail)}"


def _unread(result: str) -> int:
    return max(len(result) - 2 * _READ_OF_RESULT - 1, 0)


def _texts(steps: Sequence[Step]) -> Iterator[str]:
    """What may instruct: also what is cut off here, since it may be whole elsewhere."""
    for step in steps:
        yield step.tool
        yield step.arguments
        yield step.result[:_JUDGED_OF_RESULT]
        yield step.result[_JUDGED_OF_RESULT:][-_JUDGED_OF_RESULT:]


def _whole(text: str) -> str:
    """The text without half characters, which no encoding has: a result may spell them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
