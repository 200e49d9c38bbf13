"""Making a pattern that may be kept, mined or imported: its texts redacted, then cut to head and
tail, because half a secret is not recognised, and text that instructs its reader marked.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from journeyman.records import Pattern, PatternId, PatternKind, Step
from journeyman.redaction.instructions import Suspicion, find_suspicion
from journeyman.redaction.redactor import Redactor
from journeyman.templates.commands import commands_of
from journeyman.templates.tool_translation import file_path, operation_of, shell_command

INTENT_LIMIT = 400
"""Characters of an intent: enough to tell what was wanted."""

_ANSWER_LIMIT = 160
_READ = 4_000
"""How much of what was said is looked at: enough that what is shown of it is whole."""

_THEN = "\x1f"
"""Stands between the two while they are redacted."""

SUMMARY_LIMIT = 500

_WORTH_BOTH_ENDS = 24
"""With less room than this for head and tail together, only the head is shown."""

_CUT_LINE_OR_WORD = re.compile(r"\n[^\n]{0,60}\Z|\s\S{0,24}\Z")
_REST_OF_LINE_OR_WORD = re.compile(r"\A[^\n]{0,60}\n|\A\S{0,24}\s")
"""What an end gives up so that it is cut between lines or words."""

_LAST_WORD, _FIRST_WORD = re.compile(r"\S*\Z"), re.compile(r"\A\S*")

_READ_OF_RESULT = 1_024
"""How much of a long result's head and tail is looked at for secrets before it is cut to a third of
that."""

_JUDGED_OF_RESULT = 2_048
"""How much of them is looked at for text that instructs: the agent has read all of it."""


_COMPARED = 400
"""How much of a text is compared: texts that begin alike for so long are alike."""

_PARTICULAR = re.compile(
    r"<[a-z_]+:\d+>"  # a placeholder of redaction
    r"|[\w.+-]+@[\w-]+\.[\w.]+"
    r"|[^\W_]*(?:_[^\W_]+)*_\d{2,}"  # mia_li_3668, credit_card_4421486
    r"|(?:[^\W\d_]+\d|\d+[^\W\d_])[^\W_]*"  # letters and digits in one word: EHGLP3, 3rk2t9
    r"|\d[\d.,:/-]*"
)
_MAY_BE_PARTICULAR = re.compile(r"[\d@]")
_PATH = re.compile(
    r"(?:~|\.{1,2}|[A-Za-z]:|<[a-z_]+:\d+>)?[/\\]?[\w.@+ -]*(?:[/\\][\w.@+ <>:*-]*)+"
)
_PATH_PARTS = 2
"""How much of the path of a file that is read counts: checkouts are in different places."""

_NOT_A_WORD = re.compile(r"[^\w#]+")


def joined_intent(wanted: str, answer: str = "") -> str:
    """What was said, as one text to be redacted."""
    said = [text[:_READ].replace(_THEN, " ") for text in (wanted, answer) if text.strip()]
    return _THEN.join(said)


def clipped_intent(intent: str) -> str:
    """A redacted intent on one line, no longer than it should be."""
    wanted, _, answer = (" ".join(part.split()) for part in intent.partition(_THEN))
    if not answer:
        return _clip(wanted, INTENT_LIMIT)
    answer = _clip(answer, _ANSWER_LIMIT)
    return f"{_clip(wanted, INTENT_LIMIT - len(answer) - 3)} … {answer}"


def _clip(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    return (cut.rpartition(" ")[0] if " " in cut[limit // 2 :] else cut) + "…"


def summary(text: str, limit: int = SUMMARY_LIMIT, *, unread: int = 0) -> str:
    """The text, or its head and tail; `unread` counts what the caller left out of the middle."""
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


def clean_pattern(
    kind: PatternKind, intent: str, steps: Sequence[Step], *, result_limit: int = SUMMARY_LIMIT
) -> Pattern:
    """A pattern of recorded steps. A tool whose name is secret gets one that no host takes."""
    shown_intent, shown = _redacted(intent, steps)
    shown = tuple(
        msgspec.structs.replace(
            step, result=summary(step.result, result_limit, unread=_unread(raw.result))
        )
        for step, raw in zip(shown, steps, strict=True)
    )
    shown_intent = clipped_intent(shown_intent)
    suspicion = find_pattern_suspicion(intent, steps)
    rule = suspicion.rule if suspicion else ""
    return Pattern(
        id=pattern_id(kind, shown_intent, shown, rule),
        kind=kind,
        intent=shown_intent,
        steps=shown,
        quarantined=rule,
    )


def find_pattern_suspicion(intent: str, steps: Sequence[Step]) -> Suspicion | None:
    """Why a pattern of these steps, as they were recorded, is kept in quarantine."""
    found = (suspicion_of(text) for text in _texts(steps))
    return suspicion_of(intent, is_request=True) or next(filter(None, found), None)


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


@lru_cache(maxsize=512)
def suspicion_of(text: str, *, is_request: bool = False) -> Suspicion | None:
    """Why a text that a session holds may not be shown; a call stands in several patterns."""
    return find_suspicion(() if is_request else (text,), requests=(text,) if is_request else ())


def _read(result: str) -> str:
    """Head and tail of a long result, without the words that the cut has gone through."""
    if not _unread(result):
        return result
    head, tail = result[:_READ_OF_RESULT], result[-_READ_OF_RESULT:]
    return f"{_LAST_WORD.sub('', head)}\n{_FIRST_WORD.sub('', tail)}"


def _unread(result: str) -> int:
    return max(len(result) - 2 * _READ_OF_RESULT - 1, 0)


def _texts(steps: Sequence[Step]) -> Iterator[str]:
    """What may instruct: also what is cut off here, since it may be whole elsewhere."""
    for step in steps:
        result = step.result
        yield from (step.tool, step.arguments, result[:_JUDGED_OF_RESULT])
        yield result[_JUDGED_OF_RESULT:][-_JUDGED_OF_RESULT:]


def _whole(text: str) -> str:
    """The text without half characters, which no encoding has: a result may spell them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def masked(text: str) -> str:
    """A text with what is particular to one case left out: lower case, words only."""
    # Nothing particular has a space in it, and most words have neither a digit nor an @.
    plain = [
        _PARTICULAR.sub("#", word) if _MAY_BE_PARTICULAR.search(word) else word
        for word in text[: 2 * _COMPARED].split()
    ]
    return _NOT_A_WORD.sub(" ", " ".join(plain).casefold()).strip()[:_COMPARED]


def pattern_id(
    kind: PatternKind, intent: str, steps: Sequence[Step], quarantined: str = ""
) -> PatternId:
    """The id for equal work, with what is particular to one case masked: a rule on the text, not a
    distance, so that merging is associative. What is in quarantine takes no sound pattern with it.
    """
    work = [[step.tool, _work(step), step.worked] for step in steps]
    named: list[str | int] = [kind, masked(intent)] if kind == "sequence" else [len(steps)]
    named += [quarantined] if quarantined else []
    content = json.dumps([*named, work], sort_keys=True)
    return PatternId(hashlib.sha256(content.encode()).hexdigest()[:20])


def _work(step: Step) -> Any:
    commands = commands_of(shell_command(step.tool, step.arguments))
    if commands:
        return [[one.name, masked(one.form)] for one in commands]
    path = file_path(step.tool, step.arguments)
    if path and operation_of(step.tool, step.arguments) == "read":
        return "/".join(path.replace("\\", "/").split("/")[-_PATH_PARTS:]).casefold()
    try:
        return _masked_value(json.loads(step.arguments))
    except (ValueError, RecursionError):
        return masked(step.arguments)


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
