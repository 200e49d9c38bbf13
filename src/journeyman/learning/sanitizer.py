"""Turns mined or imported steps into what may be stored: redacts their texts, then cuts them to
head and tail (in that order, because half a secret is not recognised), and recognises text that
instructs its reader.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from journeyman.records import Step
from journeyman.redaction.instructions import Suspicion, find_suspicion
from journeyman.redaction.redactor import Redactor
from journeyman.text.display import replace_surrogates

INTENT_LIMIT = 400
"""Characters of an intent: enough to tell what was requested."""

_ANSWER_LIMIT = 160
_REQUEST_LIMIT = 4_000
"""How much of a request is read: enough for the shown part to be complete."""

_SEPARATOR = "\x1f"
"""Separates the request from the answer while they are redacted."""

SUMMARY_LIMIT = 500

_WORTH_BOTH_ENDS = 24
"""With less room than this for head and tail together, only the head is shown."""

_CUT_LINE_OR_WORD = re.compile(r"\n[^\n]{0,60}\Z|\s\S{0,24}\Z")
_REST_OF_LINE_OR_WORD = re.compile(r"\A[^\n]{0,60}\n|\A\S{0,24}\s")
"""How much head and tail may shrink so that the cut is between lines or words."""

_LAST_WORD, _FIRST_WORD = re.compile(r"\S*\Z"), re.compile(r"\A\S*")

_READ_OF_RESULT = 1_024
"""How much of a long result's head and tail is searched for secrets before it is cut to a third of
that."""

_JUDGED_OF_RESULT = 2_048
"""How much of them is searched for instructions: the agent has read all of it."""


def joined_intent(request: str, answer: str = "") -> str:
    """Return request and answer as one text to be redacted."""
    parts = [
        text[:_REQUEST_LIMIT].replace(_SEPARATOR, " ") for text in (request, answer) if text.strip()
    ]
    return _SEPARATOR.join(parts)


def clipped_intent(intent: str) -> str:
    """Return a redacted intent on one line, cut to its limit."""
    request, _, answer = (" ".join(part.split()) for part in intent.partition(_SEPARATOR))
    if not answer:
        return _clip(request, INTENT_LIMIT)
    answer = _clip(answer, _ANSWER_LIMIT)
    return f"{_clip(request, INTENT_LIMIT - len(answer) - 3)} … {answer}"


def _clip(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    return (cut.rpartition(" ")[0] if " " in cut[limit // 2 :] else cut) + "…"


def summary(text: str, limit: int = SUMMARY_LIMIT, *, unread: int = 0) -> str:
    """Return the text, or its head and tail; `unread` counts what the caller already left out of
    the middle.
    """
    if len(text) <= limit and not unread:
        return text
    mark = "… [{} characters left out] …"
    limit = min(limit, len(text))
    room = limit - len(mark.format(len(text) + unread)) - 2
    if room < _WORTH_BOTH_ENDS:
        return text[: limit - 1].rstrip() + "…" if limit > 0 else ""
    head = _CUT_LINE_OR_WORD.sub("", text[: room * 2 // 3])
    tail = _REST_OF_LINE_OR_WORD.sub("", text[-(room // 3) :])
    between = "\n" if "\n" in text else " "
    marked = mark.format(len(text) - len(head) - len(tail) + unread)
    return f"{head}{between}{marked}{between}{tail}"


class Cleaned(NamedTuple):
    """A request and the calls that served it as they may be stored, and why they may not be shown,
    if so.
    """

    intent: str
    steps: tuple[Step, ...]
    suspicion: Suspicion | None


def cleaned(intent: str, steps: Sequence[Step], *, result_limit: int = SUMMARY_LIMIT) -> Cleaned:
    """Return recorded steps redacted and cut. A tool name that contains a secret becomes one that
    no host accepts.
    """
    clean_intent, clean_steps = _redacted(intent, steps)
    clean_steps = tuple(
        msgspec.structs.replace(
            step, result=summary(step.result, result_limit, unread=_unread(raw.result))
        )
        for step, raw in zip(clean_steps, steps, strict=True)
    )
    suspicions = (suspicion_of(text) for text in _texts(steps))
    suspicion = suspicion_of(intent, is_request=True) or next(filter(None, suspicions), None)
    return Cleaned(clipped_intent(clean_intent), clean_steps, suspicion)


def _redacted(intent: str, steps: Sequence[Step]) -> tuple[str, tuple[Step, ...]]:
    redactor = Redactor()
    clean_intent = replace_surrogates(intent)
    clean_steps = tuple(msgspec.structs.replace(step, result=_read(step.result)) for step in steps)
    for _ in range(2):  # a name that a later text reveals may appear bare in an earlier one
        before = clean_intent, clean_steps
        clean_intent = redactor.text(clean_intent)
        clean_steps = tuple(
            Step(
                tool=redactor.text(replace_surrogates(step.tool)),
                arguments=redactor.text(replace_surrogates(step.arguments)),
                result=redactor.text(replace_surrogates(step.result)),
            )
            for step in clean_steps
        )
        if (clean_intent, clean_steps) == before:
            break
    return clean_intent, clean_steps


@lru_cache(maxsize=4_096)
def redacted_line(text: str) -> str:
    """Return a short text without secrets; cached, because the same texts recur."""
    return replace_surrogates(Redactor().text(text)) if text else ""


@lru_cache(maxsize=512)
def suspicion_of(text: str, *, is_request: bool = False) -> Suspicion | None:
    """Return why a text of a session must not be shown; cached, because patterns share calls."""
    return find_suspicion(() if is_request else (text,), requests=(text,) if is_request else ())


def _read(result: str) -> str:
    """Return head and tail of a long result, without the words that the cut went through."""
    if not _unread(result):
        return result
    head, tail = result[:_READ_OF_RESULT], result[-_READ_OF_RESULT:]
    return f"{_LAST_WORD.sub('', head)}\n{_FIRST_WORD.sub('', tail)}"


def _unread(result: str) -> int:
    return max(len(result) - 2 * _READ_OF_RESULT - 1, 0)


def _texts(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the texts that may instruct, also those cut off here: they may be whole elsewhere."""
    for step in steps:
        result = step.result
        yield from (step.tool, step.arguments, result[:_JUDGED_OF_RESULT])
        yield result[_JUDGED_OF_RESULT:][-_JUDGED_OF_RESULT:]
