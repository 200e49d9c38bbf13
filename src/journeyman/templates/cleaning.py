"""Making a pattern that may be kept: its texts redacted, results cut to head and tail, and text
that instructs its reader marked. Every pattern comes through here, mined or imported.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

from journeyman.records import Pattern, PatternId, PatternKind, Step
from journeyman.redaction.quarantine import find_suspicion
from journeyman.redaction.redactor import Redactor
from journeyman.templates.intents import clipped
from journeyman.templates.likeness import pattern_id
from journeyman.templates.summaries import SUMMARY_LIMIT, summary

_LAST_WORD, _FIRST_WORD = re.compile(r"\S*\Z"), re.compile(r"\A\S*")

_READ_OF_RESULT = 16_384
"""How much of a long result's head and tail is looked at for secrets before it is cut."""


def clean_pattern(
    kind: PatternKind, intent: str, steps: Sequence[Step], *, result_limit: int = SUMMARY_LIMIT
) -> Pattern:
    """A pattern of these steps, which hold text as it was recorded. A tool whose name gives
    something away gets one that no host takes, so that the pattern is never shown.
    """
    redactor = Redactor()
    shown_intent, shown = intent, tuple(steps)
    for _ in range(2):  # a name that a later text gives away may stand bare in an earlier one
        shown_intent = _whole(redactor.text(shown_intent))
        shown = tuple(
            Step(
                tool=_whole(redactor.text(step.tool)),
                arguments=_whole(redactor.arguments(step.arguments)),
                result=_whole(redactor.text(_read(step.result))),
                worked=step.worked,
            )
            for step in shown
        )
    shown = tuple(
        msgspec.structs.replace(
            step, result=summary(step.result, result_limit, unread=_unread(raw.result))
        )
        for step, raw in zip(shown, steps, strict=True)
    )
    shown_intent = clipped(shown_intent)
    suspicion = find_suspicion(_texts(steps), requests=(intent,))
    rule = "" if suspicion is None else suspicion.rule
    return Pattern(
        id=PatternId(pattern_id(kind, shown_intent, shown, rule)),
        kind=kind,
        intent=shown_intent,
        steps=shown,
        quarantined=rule,
    )


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
        yield step.result[:_READ_OF_RESULT]
        yield step.result[_READ_OF_RESULT:][-_READ_OF_RESULT:]


def _whole(text: str) -> str:
    """The text without half characters, which no encoding has: a result may spell them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
