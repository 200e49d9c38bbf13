"""When two patterns are the same: equal work with other values. What is particular to one case
(numbers, ids, dates, addresses, placeholders) is masked, and what is left makes the pattern's id.
Of a shell command the programs with their forms count, of a file that is read its name. The request
belongs to the id of a sequence only: one command serves many requests and is one pattern.

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
from journeyman.templates.commands import commands_of
from journeyman.templates.tool_translation import file_path, operation_of, shell_command

_LONGEST = 400
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


def masked(text: str) -> str:
    """A text with what is particular to one case left out: lower case, words only."""
    return _masked_head(text[: 2 * _LONGEST])


@lru_cache(maxsize=4_096)
def _masked_head(text: str) -> str:
    # Nothing particular has a space in it, and most words have neither a digit nor an @.
    plain = [
        _PARTICULAR.sub("#", word) if _MAY_BE_PARTICULAR.search(word) else word
        for word in text.split()
    ]
    return _NOT_A_WORD.sub(" ", " ".join(plain).casefold()).strip()[:_LONGEST]


def pattern_id(
    kind: PatternKind, intent: str, steps: Sequence[Step], quarantined: str = ""
) -> PatternId:
    """The id of a pattern: the same for equal work. What is in quarantine is a pattern of its own,
    so that it takes no sound one with it.
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
    return _masked_arguments(step.arguments)


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
