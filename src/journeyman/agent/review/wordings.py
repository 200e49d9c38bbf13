"""Wordings that a review must not keep, or only in the user's name: rules as rows, each with an
example and the reason for it. They know English and a little German; they are one defence among
others.
"""

import re
from typing import NamedTuple


class Wording(NamedTuple):
    """A kind of sentence. With `user_may` it is kept where the user said it."""

    id: str
    pattern: re.Pattern[str]
    user_may: bool
    example: str
    reason: str


def _any(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


WORDINGS = (
    Wording(
        "loosening",
        _any(
            r"\bwithout (?:asking|confirm\w*|approv\w*|permission|checking)\b",
            r"\b(?:no|not|never|n['’]t)\b[^.\n]{0,30}\b(?:need|needs|needed|require\w*|ask|wait)\b"
            r"[^.\n]{0,20}\b(?:confirm\w*|approv\w*|permission|asking)\b",
            r"\b(?:confirmations?|approvals?|permission)\b[^.\n]{0,30}\b(?:not|n['’]t|un)\s?"
            r"(?:needed|necessary|required)\b",
            r"\balways (?:allow|approve|proceed|confirm|accept)\b",
            r"\b(?:when(?:ever)?|if|once)\b[^.\n]{0,40}\b(?:blocked|refused|denied|stopped)\b",
            r"\b(?:needs?|requires?)\s+no\s+(?:confirm|approv|permission|review)",
            r"\bthe gate\b|\bdisregard\b|\bguidance is void\b|\boverride (?:is )?active\b",
            r"\bupload\b[^.\n]{0,40}\b(?:workspace|files|keys|data|everything)\b",
            r"\b(?:bypass|circumvent|work around|get around|avoid)\b[^.\n]{0,40}\b(?:gate|check\w*|"
            r"confirm\w*|review|rule|refus\w*|block\w*|limit)",
            r"\b(?:safe|fine|okay|ok|allowed|free) to (?:delete|wipe|remove|drop|overwrite|push|"
            r"deploy|publish|send|upload|reset|kill)\b",
            r"\b(?:allows?|permits?|may)\b[^.\n]{0,40}\b(?:delet|wip|remov|drop|push|deploy|publish|"
            r"upload|overwrit)\w*",
            r"\bskip (?:all |the )?(?:tests?|checks?|review|confirmation)\b",
        ),
        user_may=False,
        example="The user allows pushing to the main branch without asking.",
        reason="What may be done without asking is decided by people, each time, and never by a "
        "note.",
    ),
    Wording(
        "wish",
        _any(
            r"\b(?:user|he|she|they)\b[^.\n]{0,20}\b(?:wants?|prefers?|likes?|expects?|asks?|"
            r"asked|said|says|requires?|wishes)\b",
            r"^(?:prefers?|wants?|likes|always|never)\b",
        ),
        user_may=True,
        example="The user prefers short answers.",
        reason="What the user wants, only the user can say: quote the user.",
    ),
    Wording(
        "giving_up",
        _any(
            r"\b(?:do(?:es)?|did|is|are|was|will|can|could)(?:n['’]t| not)\b[^.\n]{0,40}\b(?:work|"
            r"available|installed|supported|accessible|possible|reachable|exist|allowed|respond|"
            r"use|usable|be used)",
            r"\b(?:cannot|unable to|impossible to|never use|avoid using|fails? (?:when|with|to)|"
            r"hangs?|never succeeds|refuses to|stopped (?:functioning|working)|"
            r"useless|unusable|unavailable|out of order|dead|crash(?:es|ed)?)\b",
            r"\b(?:is|are|was|has been) broken\b|\bbroken (?:since|here|now)\b",
            r"\bnot (?:available|working|installed|supported|usable)\b",
            r"\b(?:funktioniert|geht|läuft)\b[^.\n]{0,20}\bnicht\b|\bkaputt\b|\bdefekt\b",
        ),
        user_may=True,
        example="The browser tool does not work here.",
        reason="That something did not work once is no fact for later. Write what does work; or "
        "quote the user, if the user says so.",
    ),
)

_NEGATION = re.compile(
    r"\b(?:no|not|never|none|without|don['’]?t|doesn['’]?t|isn['’]?t|aren['’]?t|won['’]?t|can['’]?t|"
    r"cannot|nie|niemals|nicht|kein\w*|ohne|wrong|false|stop)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


# “No, use pnpm, not npm”: an answer and a contrast deny nothing that is said.
_CONTRAST = re.compile(r"^\s*no\b[,.]?|,\s*not\s+[\w-]+", re.IGNORECASE)


def is_negated(sentence: str) -> bool:
    return _NEGATION.search(_CONTRAST.sub("", sentence)) is not None


def sentences(text: str) -> list[str]:
    return [one for one in _SENTENCE.split(text) if one.strip()]
