"""Looks in an agent's answer for words by which it admits that its job failed, in its own prose
only: what it quotes, lists or puts into a fence is what it reports on. The words themselves are in
`failure_phrases`.
"""

import re
from collections.abc import Sequence

from journeyman.schedule.failure_phrases import EXCUSES, PHRASES, Place, Row

_EARLY, _LATE = 3, 2
_SENTENCE = 500
_TITLE = 3
"""So few words are a title or a greeting: what comes next still counts as the first sentence."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_NOT_PROSE = re.compile(r"^[ \t]*(?:>|\||[-*+•] |\d+[.)] ).*$", re.M)
_QUOTED = re.compile(r"`[^`\n]+`|\"[^\"\n]{2,300}\"|“[^”\n]{2,300}”|(?<!\w)'[^'\n]{3,300}'(?!\w)")
_MARKS = re.compile(r"\*+|__+|^[ \t]*#+[ \t]*", re.M)
_BREAK = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n(?=[A-Z])")


def outside_fences(text: str) -> str:
    """A text without its code fences; where nothing else is in it, what they hold."""
    outside: list[str] = []
    fenced: list[str] = []
    opened: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if not fence:
            fence = mark[1] if mark else ""
            (opened if mark else outside).append(line)
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fenced += opened[1:]
            opened, fence = [], ""
        else:
            opened.append(line)
    # A fence that nothing closes is none: small models forget to, and then go on to talk.
    outside += opened
    bare = "\n".join(outside)
    return bare if bare.strip() else "\n".join(fenced)


def find_failure(answer: str) -> Row | None:
    """The row by whose words an answer admits that the job failed."""
    sentences = _sentences(answer)
    said = 0
    for number, sentence in enumerate(sentences):
        places = _places(said, len(sentences) - number)
        said += len(sentence.split()) > _TITLE or sentence.endswith(".")
        for row in PHRASES:
            found = row.pattern.search(sentence) if row.place in places else None
            if found and not _is_excused(sentences, number, sentence[: found.end()]):
                return row
    return None


def _is_excused(sentences: Sequence[str], number: int, lead: str) -> bool:
    texts = {
        "lead": lead,
        "sentence": sentences[number],
        "after": "\n".join(sentences[number + 1 : number + 3]),
        "before": "\n".join(sentences[max(0, number - 3) : number]),
    }
    return any(one.pattern.search(texts[where]) for one in EXCUSES for where in one.where)


def _places(said: int, left: int) -> tuple[Place, ...]:
    if said == 0:
        return ("first", "early", "ends")
    if said < _EARLY:
        return ("early", "ends")
    return ("ends",) if left <= _LATE else ()


def _sentences(answer: str) -> Sequence[str]:
    """The sentences of an answer's own prose: no fences, quotes, lists or tables."""
    prose = _NOT_PROSE.sub("", outside_fences(answer.replace("’", "'")))
    prose = (
        _MARKS.sub("", _QUOTED.sub("‹›", prose))
        .replace("I'm ", "I am ")
        .replace("I've ", "I have ")
    )
    pieces = (" ".join(piece.split()) for piece in _BREAK.split(prose))
    return [piece[:_SENTENCE] for piece in pieces if piece]
