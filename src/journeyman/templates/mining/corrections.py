"""How people reject what an agent has just done. The next words after an episode decide whether it
may teach: work that was undone or corrected never does.
"""

import re
from typing import NamedTuple


class Correction(NamedTuple):
    """A row: a way to say that the work before was not what was wanted. `within` says how many
    characters of lead-in it may have.
    """

    id: str
    within: int
    patterns: tuple[str, ...]
    example: str


_IT = r"(?:that|this|it|them|those|these)"
_NOT = r"(?:n'?t| not)"

CORRECTIONS: tuple[Correction, ...] = (
    Correction(
        "undo",
        40,
        (
            r"(?:undo|revert|discard|scrap|roll(?:ing)? ?back)"
            rf"(?= *(?:[.!,?]|$|(?:{_IT}|all|everything|what|your|my|the last)\b"
            r"|the (?:chang|edit)))",
            r"(?:undo|revert|reverse|back out) (?:the|that|this|your|my) (?:\w+ )?"
            r"(?:commit|change|edit|merge|version|file|last|rename|move)",
            rf"(?:roll|back|take) {_IT} (?:back )?(?:out|back)\b",
            rf"(?:scratch|forget) {_IT}\b(?! (?:\w+ ){{0,2}}(?:for|in|from))",
            r"go back (?:to|$)|go back[.!]*$",
            r"cancel (?:that|this)[.!]*$",
            r"bring (?:\w+ ){1,4}back\b",
            rf"drop (?:{_IT}(?= *(?:[.!,?]|$))|what you\b|your\b|everything\b|the chang)",
            rf"throw {_IT} away\b",
            r"put (?:\w+ ){1,4}back\b",
            r"restore (?:what|it|my|the (?:old|previous|original|deleted|file|code|version))\b",
            rf"get rid of (?:{_IT}|what you)\b",
            r"(?:remove|delete) (?:that|what you|everything you|your)\b",
            r"(?:remove|delete) the (?:code|changes?|files?|tests?) you\b",
        ),
        "please undo that",
    ),
    Correction(
        "no",
        0,
        (
            r"(?:no|nope|nah|nein|wrong|stop|wait)\b"
            r"(?:\s*[,.!:;*–—-][\s,.!:;*–—-]*|\s+(?=(?:that|this|it|we|you|i|revert|undo|wait|do|don'?t|not"
            r"|please|use|put|go|leave|keep|stop|way|wrong)\b))(?=\w)"
            r"(?!(?:thanks?|problem|worries|rush|go ahead|(?:it|that)'?s (?:fine|good|ok)"
            r"|looks? good))",
        ),
        "No, that is not the file I meant",
    ),
    Correction(
        "bare_no",
        0,
        (r"(?:no|nope|nah|wrong|stop|undo|revert)\W*\Z",),
        "Nope.",
    ),
    Correction(
        "unwanted",
        60,
        (
            r"(?:that|this|it)(?:'?s not| is not| was not| isn'?t| wasn'?t| not) "
            r"(?:what|how|where|the|right|correct|it\b)",
            r"not like (?:that|this)\b",
            r"not what i (?:asked|wanted|meant|said)\b",
            rf"(?:i )?did{_NOT} (?:ask|want|mean|say|tell)\b",
            rf"you (?:should{_NOT}|were(?:n'?t| not) supposed)\b",
            rf"i (?:never|do{_NOT}) (?:ask|want)(?:ed)? (?:you|{_IT})\b",
            r"nobody asked\b",
        ),
        "that's not what I asked for",
    ),
    Correction(
        "wrong",
        60,
        (
            r"(?:that|this|it|which)(?:'?s| is| was| looks?| seems?)? (?:\w+ )?"
            r"(?:wrong|incorrect|broken|a mistake|bad idea|worse)\b",
            r"you (?:broke|misunderstood|made a mistake|missed the point|messed|ignored|deleted my"
            r"|overwrote|removed my)\b",
            r"(?:change|edit|commit|fix|patch|code)s? (?:you made |of yours )?"
            r"(?:broke|is wrong|are wrong)",
            r"(?:your|the) last (?:\w+ )?(?:change|edit|commit|fix) (?:broke|is wrong|was wrong)",
            r"now (?:the|all|some) \w+ (?:fail|break|are failing|is broken|are broken)",
            r"(?:this|that) is (?:terrible|awful|nonsense|useless)\b",
            r"you got (?:it|that|this) wrong\b",
            rf"(?:still|now) (?:broken|wrong|fail(?:s|ing)|does{_NOT} work)\b",
            rf"(?:that|this|it) (?:did{_NOT}|does{_NOT}) (?:work|help|fix)\b",
            r"wrong (?:file|branch|place|folder|directory|one|approach|way|test|function)\b",
        ),
        "you broke the build",
    ),
    Correction(
        "forbidden",
        0,
        (
            rf"(?:please |hey,? )?(?:do{_NOT}|never|stop) (?:do(?:ing)? (?:that|this|it)|touch"
            r"|chang|edit|delet|commit|push|add|creat|writ|remov|us)\w*\b",
        ),
        "Don't do that again",
    ),
    Correction(
        "again",
        40,
        (
            r"(?:try again|start over)\b",
            r"(?:redo|do) (?:it|this|that) (?:again|over)?(?= *(?:[.,!]|$|but\b|this time\b))",
        ),
        "try again, this time without the mock",
    ),
    Correction(
        "rather",
        0,
        (
            r"(?:actually|instead|rather|hmm*|ugh|argh|wtf|sigh|oops|hold on|wait)[\s,.!…-]+"
            rf"(?:no|undo|revert|let'?s not|do{_NOT}|not)\b",
        ),
        "Actually, let's not do it that way",
    ),
)

_CORRECTION = re.compile(
    "|".join(
        f"(?P<{row.id}>(?:.{{0,{row.within}}}\\b)?(?:{'|'.join(row.patterns)}))"
        if row.within
        else f"(?P<{row.id}>{'|'.join(row.patterns)})"
        for row in CORRECTIONS
    ),
    re.IGNORECASE,
)
_ENDS_THE_WORK = frozenset(("undo", "bare_no", "forbidden"))
_ANSWERS = frozenset(("no", "bare_no", "rather", "again"))
_BETTER = re.compile(
    r"\b(?:use|using|instead|should|must|needs?|only|rather|with|without|keep|make|add|call|want"
    r"|meant|it'?s (?:in|on|at|the)|put it (?:in|on|at))\b",
    re.IGNORECASE,
)
_FIRST_WORD = re.compile(r"[^\W_]+")
_SHORT = 12
_LEAD = re.compile(r"[\W_]*")
_LOOKED_AT = 200
"""A rejection stands at the beginning; later words are about something else."""


def find_correction(text: str, *, answering: bool = False) -> str:
    """The id of the row by which a person's words reject what was done before; empty if none. Where
    they are `answering` a question, a no is an answer, and what follows it decides.
    """
    said = _LEAD.sub("", " ".join(text[:_LOOKED_AT].split()), count=1)
    found = _CORRECTION.match(said)
    if found and answering and is_an_answer(found.lastgroup or ""):
        rest = _LEAD.sub("", _FIRST_WORD.sub("", said, count=1), count=1)
        found = _CORRECTION.match(rest)
        return found.lastgroup or "" if found and not is_an_answer(found.lastgroup or "") else ""
    return found.lastgroup or "" if found else ""


def ends_the_work(correction: str, text: str) -> bool:
    """Whether a correction only takes back, or says no more than that it was wrong: what the agent
    does then is no way to do the work. With words on how to do it better, it is.
    """
    if correction in _ENDS_THE_WORK:
        return True
    return len(text.split()) <= _SHORT and _BETTER.search(text) is None


def is_an_answer(correction: str) -> bool:
    """Whether the same words are a plain answer where the agent has just asked something."""
    return correction in _ANSWERS
