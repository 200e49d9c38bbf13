"""What goes into a template: which patterns in which order, of what type, and the words a person
wrote about it.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import get_args

import msgspec

from journeyman.records import JudgedSession, Pattern, PatternType
from journeyman.records.errors import BadTemplate, WrongInput
from journeyman.redaction.instructions import find_suspicion
from journeyman.redaction.redactor import Redactor
from journeyman.reliability.task_types import task_type
from journeyman.templates.names import checked_tag

_FIRST = {"sequence": 0, "recovery": 1, "final": 2, "first_try": 3}
"""Which kinds teach most when all else is equal."""


def arranged(patterns: Sequence[Pattern]) -> list[Pattern]:
    """Patterns in the order in which a template shows them: those seen most first, but of each
    tool one before there is a second of any. What was seen in one session only comes last, unless
    all patterns are of one session.
    """
    ranked = sorted(
        patterns,
        key=lambda one: (-one.session_count, -one.times, _FIRST[one.kind], *one.age, one.id),
    )
    by_tools: defaultdict[tuple[str, ...], int] = defaultdict(int)
    rounds = []
    for number, pattern in enumerate(ranked):
        rounds.append((pattern.session_count < 2, by_tools[pattern.tools], number))
        by_tools[pattern.tools] += 1
    return [ranked[number] for *_, number in sorted(rounds)]


def type_of(judged: Sequence[JudgedSession]) -> PatternType:
    found = task_type(call for one in judged for call in one.calls)
    return "mixed" if found == "none" else found


def checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    given = (tags,) if isinstance(tags, str) else tags
    return tuple(dict.fromkeys(checked_tag(tag) for tag in given))


def checked_type(name: str | None) -> PatternType | None:
    """The type of this name, if one is named. Raises WrongInput."""
    if name is None:
        return None
    try:
        found: PatternType = msgspec.convert(name, PatternType)
    except msgspec.ValidationError:
        raise WrongInput(
            f"There is no task type {name!r}. The types are: {', '.join(get_args(PatternType))}."
        ) from None
    return found


def sound_texts(description: str, addendum: str, *, others: Iterable[str] = ()) -> tuple[str, str]:
    """What a person wrote about a template, redacted. An addendum goes to models as it is, so it
    must not be one that fools its reader.
    """
    suspicion = find_suspicion((description, addendum, *others))
    redactor = Redactor()
    if suspicion is not None:
        raise BadTemplate(
            f"The template's own text looks like an instruction that fools its reader "
            f"({suspicion.rule}: {redactor.text(suspicion.evidence)}). Nothing was kept; reword it."
        )
    return redactor.text(description), redactor.text(addendum)
