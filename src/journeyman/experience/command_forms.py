"""How a project's commands are usually written."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from journeyman.learning.commands import subject_of
from journeyman.records import SessionId

CONFIRMED = 2
"""The minimum number of sessions behind a fact."""

_TYPICAL, _TYPICAL_IF_PARTICULAR = 0.2, 0.5
"""The share of the sessions with a command from which a form counts as the usual one; higher for a
form that names a file or a number."""

_PARTICULAR = re.compile(r"[^\s|-]*(?:/|\.\w{1,5}$|\d{2,}|[a-z][A-Z])[^\s|]*|[^\s|]{25,}|\d+")
_PIPE = " | "


def usual_form(uses: Iterable[tuple[SessionId, str]]) -> str:
    """Return how a command is usually written, by sessions. If no form is usual, omit what is
    particular to each use. A form of a single session is not shown: that several sessions use a
    command does not vouch for what one of them added.
    """
    forms: defaultdict[str, set[SessionId]] = defaultdict(set)
    for session, written in uses:
        forms[written.partition(_PIPE)[0].removesuffix("2>&1").rstrip()].add(session)
    total = len(set().union(*forms.values()))
    form = _most_used(forms)
    share = _TYPICAL if generalised(form) == form else _TYPICAL_IF_PARTICULAR
    if len(forms[form]) < max(CONFIRMED, share * total) and len(forms) > 1:
        general: defaultdict[str, set[SessionId]] = defaultdict(set)
        for specific, sessions in forms.items():
            general[generalised(specific)] |= sessions
        forms, form = general, _most_used(general)
    return form if len(forms[form]) >= CONFIRMED else ""


def _most_used(forms: Mapping[str, set[SessionId]]) -> str:
    return min(forms, key=lambda form: (-len(forms[form]), form))


def generalised(form: str) -> str:
    """Return a form without what names a file, a number or a value of its own."""
    words: list[str] = []
    for number, word in enumerate(form.split(" ")):
        is_program = number == 0 or (number == 1 and subject_of(form) != form)
        shown = "…" if not is_program and _PARTICULAR.fullmatch(word) else word
        if not (shown == "…" and words and words[-1] == "…"):
            words.append(shown)
    return " ".join(words)
