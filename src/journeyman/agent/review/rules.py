"""What a review may write: each rule is here because reviews without it have spoilt skills."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from journeyman.agent.knowledge.skills import FOLDERS
from journeyman.agent.review.evidence import Ground, Grounds, shares_words
from journeyman.records import Write
from journeyman.records.errors import NotWritten
from journeyman.records.knowledge import EntryChange


class Forbidden(NotWritten):
    """A rule forbids the write; the text says why."""


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

MOST_WRITES = 5
"""In one review: who has learned more than that at once has learned nothing."""

MOST_CHANGED = 0.3
"""How much of a skill's lines one review may change, and so many lines in any case."""
FEW_LINES = 8

LARGEST_NEW_SKILL = 8_000
_LOOKED_AT = 400

TOO_SIMILAR = 0.8
RELATED = 0.15

_NEAR_ENOUGH = 0.3
"""How similar a text and a sentence of its evidence are, where they share no word."""

_ONLY_ADD = "A review may add, replace and patch; what is to go, a person takes away."

Similarity = Callable[[str, Sequence[str]], Sequence[float]]
"""How similar a text is to each of others, from 0 to 1."""


@dataclass(kw_only=True, eq=False)
class Rules:
    """The rules for the writes of one review. `find_risky` says why the gate would not allow a
    command in a text; `texts` are the entries or skills there are, by kind; `changed_lines` counts
    the lines of a file that reviews have changed lately.
    """

    grounds: Grounds
    texts: Callable[[str], Sequence[str]]
    changed_lines: Callable[[str], int]
    similarity: Similarity
    find_risky: Callable[[str], str]
    _viewed: set[str] = field(default_factory=set)
    _written: int = 0
    _changed_lines: dict[str, int] = field(default_factory=dict)

    def viewed(self, path: str) -> None:
        """A skill was read in this review."""
        self._viewed.add(path)

    def written(self, write: Write) -> None:
        """A write was made."""
        self._written += max(len(write.entries), 1)
        self._changed_lines[write.path] = self._lines_with(write)
        self._viewed.add(write.path)

    def check(self, write: Write, evidence: str) -> None:
        """Raise Forbidden when the write must not be made; entries are looked at one by one."""
        if self._written + max(len(write.entries), 1) > MOST_WRITES:
            raise Forbidden(f"A review makes at most {MOST_WRITES} changes; this would be more.")
        if write.after is None or any(change.after is None for change in write.entries):
            raise Forbidden(_ONLY_ADD)
        if write.kind == "skill" and write.action != "create":
            self._check_skill(write)
        ground = self.grounds.find(evidence)
        if isinstance(ground, str):
            raise Forbidden(ground)
        news = write.added
        for number, new in enumerate(news):
            self._check_shown(write, new, ground)
            self._check_new(write, new, news[:number])
        for change in write.entries:
            self._check_replaced(change, ground)

    def _check_skill(self, write: Write) -> None:
        main = f"{_folder(write.path)}/SKILL.md"
        if not self._viewed.intersection((write.path, main)):
            raise Forbidden("Read the skill with skill_view before you change it.")
        if "/scripts/" in write.path:
            raise Forbidden("A review writes no scripts: what runs, a person puts there.")
        if write.path.endswith("SKILL.md") and _front(write.before) != _front(write.after):
            raise Forbidden("A review changes no front matter: it decides when a skill is used.")
        lines = len((write.before or "").splitlines())
        most = max(FEW_LINES, int(lines * MOST_CHANGED))
        changed = self._lines_with(write)
        if changed > most:
            raise Forbidden(
                f"This would change {changed} lines of {lines}, with what reviews changed lately; "
                f"{most} may change. Patch only what was learned."
            )

    def _lines_with(self, write: Write) -> int:
        lately = self._changed_lines.get(write.path, self.changed_lines(write.path))
        return lately + write.changed_lines

    def _check_shown(self, write: Write, new: str, ground: Ground) -> None:
        self._check_wording(write, new, ground)
        if unseen := self.grounds.unseen(new, known=write.before or ""):
            raise Forbidden(
                f"The session does not show {', '.join(unseen[:3])}: neither the user nor a call "
                "that worked. Write only what was seen."
            )
        check_commands(new, self.find_risky)
        if write.kind == "skill" and not self.grounds.ended_well:
            raise Forbidden("The work did not end with calls that worked: there is no way yet.")
        if write.kind == "skill" and write.before is None and len(new) > LARGEST_NEW_SKILL:
            raise Forbidden(f"A new skill has at most {LARGEST_NEW_SKILL:,} characters.")

    def _check_wording(self, write: Write, new: str, ground: Ground) -> None:
        if write.kind == "user" and not ground.said:
            raise Forbidden("What is noted about the user, the user has said: quote the user.")
        for wording in WORDINGS:
            if wording.pattern.search(new) and not (wording.user_may and ground.said):
                raise Forbidden(wording.reason)
        sentences = [one for one in _SENTENCE.split(ground.text) if one.strip()]
        told = sentences[:_LOOKED_AT] or [ground.text]
        likeness = list(self.similarity(new, told))
        if not shares_words(new, ground.text) and max(likeness) < _NEAR_ENOUGH:
            raise Forbidden("The evidence has nothing to do with what is to be written.")
        nearest = told[likeness.index(max(likeness))]
        if ground.said and _is_negated(nearest) != _is_negated(new):
            raise Forbidden(f"The user said it the other way round: “{nearest.strip()[:120]}”")

    def _check_new(self, write: Write, new: str, with_it: Sequence[str]) -> None:
        if write.kind == "skill" and write.action != "create":
            name = _folder(write.path).rpartition("/")[2]
            about = [one for one in self.texts("skill") if one.split(" ")[0] == name]
            if self.similarity(new, ["\n".join([*about, write.before or ""])])[0] < RELATED:
                raise Forbidden("This has nothing to do with the skill that it would be put into.")
            return
        old = {change.before for change in write.entries}
        others = [*with_it, *(text for text in self.texts(write.kind) if text not in old)]
        subject = _head(new) if write.kind == "skill" else new
        likeness = self.similarity(subject, others) if others else []
        if likeness and max(likeness) >= TOO_SIMILAR:
            same = others[list(likeness).index(max(likeness))]
            raise Forbidden(
                f"Something like it is there already: “{same[:120]}”. Replace or patch that, if "
                "there is more to say."
            )

    def _check_replaced(self, change: EntryChange, ground: Ground) -> None:
        if change.before is None or change.after is None:
            return
        if _is_negated(change.before) != _is_negated(change.after) and not ground.said:
            raise Forbidden("This would turn the entry round, and only the user may do that.")
        if self.similarity(change.after, [change.before])[0] < RELATED:
            raise Forbidden(
                "The new entry has nothing to do with the one it would replace. Add it instead."
            )


def check_commands(text: str, find_risky: Callable[[str], str]) -> None:
    """Raises Forbidden when a text tells its reader to run what the gate would ask about."""
    if risky := find_risky(text):
        raise Forbidden(f"It tells a later reader to run something risky. {risky}")


def _folder(path: str) -> str:
    """The folder of the skill that a file belongs to; support files stand one level deeper."""
    parts = path.split("/")
    inside = [place for place, part in enumerate(parts) if part in FOLDERS]
    return "/".join(parts[: inside[-1] if inside else -1])


def _front(text: str | None) -> str:
    """The front matter of a skill."""
    parts = (text or "").split("---", 2)
    return parts[1] if len(parts) == 3 and not parts[0].strip() else ""


def _head(skill: str) -> str:
    """Name and description, as the list of skills has them."""
    found = [line.partition(":")[2] for line in skill.splitlines() if _HEAD.match(line)]
    return " ".join(part.strip() for part in found) or skill[:200]


_HEAD = re.compile(r"(?:name|description):")


def _is_negated(sentence: str) -> bool:
    return _NEGATION.search(_CONTRAST.sub("", sentence)) is not None
