"""Turns mined or imported steps into what may be stored: leaves out what results say, redacts the
rest, and recognises text that instructs its reader.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from journeyman.records import Step
from journeyman.redaction.instructions import Suspicion, find_suspicion
from journeyman.redaction.redactor import Redactor
from journeyman.text.display import replace_surrogates
from journeyman.text.truncation import truncate

INTENT_LIMIT = 400
"""Characters of an intent: enough to tell what was requested."""

_ANSWER_LIMIT = 160
_REQUEST_LIMIT = 4_000
"""How much of a request is read: enough for the shown part to be complete."""

_SEPARATOR = "\x1f"
"""Separates the request from the answer while they are redacted."""

_VALUE = re.compile(r"[\w.,:;%+\"'{}()\[\]=*# -]{1,60}", re.ASCII)
_WORD, _MOST_WORDS_OF_RESULT = re.compile(r"[A-Za-z]{2,}"), 2

_JUDGED_OF_RESULT = 2_048
"""How much of a result's head and tail is searched for instructions: the agent has read it."""


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
        return truncate(request, INTENT_LIMIT)
    answer = truncate(answer, _ANSWER_LIMIT)
    return f"{truncate(request, INTENT_LIMIT - len(answer) - 3)} … {answer}"


def shown_result(result: str) -> str:
    """Return a result that is a single value, and of any other only how long it is: anyone may have
    written it, for whoever reads it.
    """
    text = result.strip()
    most = _MOST_WORDS_OF_RESULT if any(map(str.isdigit, text)) else 1
    if _VALUE.fullmatch(text) and len(_WORD.findall(text)) <= most:
        return text
    lines = text.count("\n") + 1
    return "(1 line)" if lines == 1 else f"({lines:,} lines)"


def cleaned(intent: str, steps: Sequence[Step]) -> tuple[str, tuple[Step, ...], Suspicion | None]:
    """Return a request and the calls that served it, redacted and with what may be shown of their
    results, and why they may not be shown, if so. A tool name that contains a secret becomes one
    that no host accepts.
    """
    suspicions = (suspicion_of(text) for step in steps for text in _texts(step))
    suspicion = suspicion_of(intent, is_request=True) or next(filter(None, suspicions), None)
    texts = [replace_surrogates(intent)]
    for step in steps:
        shown = (step.tool, step.arguments, shown_result(step.result))
        texts += map(replace_surrogates, shown)
    redactor = Redactor()
    for _ in range(2):  # a name that a later text reveals may appear bare in an earlier one
        before, texts = texts, [redactor.text(text) for text in texts]
        if texts == before:
            break
    request, *rest = texts
    clean = zip(rest[::3], rest[1::3], rest[2::3], strict=True)
    clean_steps = tuple(Step(tool=one, arguments=two, result=three) for one, two, three in clean)
    return clipped_intent(request), clean_steps, suspicion


@lru_cache(maxsize=4_096)
def redacted_line(text: str) -> str:
    """Return a short text without secrets; cached, because the same texts recur."""
    return replace_surrogates(Redactor().text(text)) if text else ""


@lru_cache(maxsize=512)
def suspicion_of(text: str, *, is_request: bool = False) -> Suspicion | None:
    """Return why a text of a session must not be shown; cached, because patterns share calls."""
    return find_suspicion(() if is_request else (text,), requests=(text,) if is_request else ())


def _texts(step: Step) -> tuple[str, ...]:
    """Return the texts that may instruct, also those cut off here: they may be whole elsewhere."""
    head, rest = step.result[:_JUDGED_OF_RESULT], step.result[_JUDGED_OF_RESULT:]
    return step.tool, step.arguments, head, rest[-_JUDGED_OF_RESULT:]
