"""What a review may write. Each rule exists because reviews without it have damaged skills."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import Struct

from journeyman.agent.knowledge.skills import FOLDERS
from journeyman.agent.review.evidence import Evidence, SessionEvidence, shares_words
from journeyman.records import Write
from journeyman.records.errors import NotWritten
from journeyman.records.knowledge import EntryChange


class WriteForbidden(NotWritten):
    """A rule forbids the write; the message says why."""


class Wording(NamedTuple):
    """A kind of sentence that is forbidden; with `user_may`, it is allowed if the user said it."""

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
        reason="Only a person decides what may be done without asking in each case; a note never "
        "does.",
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
        reason="Only the user can say what the user wants: quote the user.",
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
        reason="A single failure is not a lasting fact. Write what does work, or quote the user if "
        "the user says so.",
    ),
)

_NEGATION = re.compile(
    r"\b(?:no|not|never|none|without|don['’]?t|doesn['’]?t|isn['’]?t|aren['’]?t|won['’]?t|can['’]?t|"
    r"cannot|nie|niemals|nicht|kein\w*|ohne|wrong|false|stop)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")

# “No, use pnpm, not npm”: an answer or a contrast does not negate the statement.
_CONTRAST = re.compile(r"^\s*no\b[,.]?|,\s*not\s+[\w-]+", re.IGNORECASE)

_MAX_WRITES = 5
"""Writes per review; more than this at once is unlikely to be real learning."""

_MAX_CHANGED_SHARE = 0.3
"""The share of a skill's lines that reviews may change; `_MIN_CHANGED_LINES` are always allowed."""
_MIN_CHANGED_LINES = 8

_MAX_NEW_SKILL_CHARACTERS = 8_000
_MAX_SENTENCES = 400

_DUPLICATE = 0.8
"""Similarity from which two texts count as the same."""
_RELATED = 0.15
"""Similarity from which two texts count as related."""
_SUPPORTED = 0.3
"""Similarity that a text and a sentence of its evidence need if they share no word."""

_ONLY_ADD = "A review may add, replace and patch; only a person may remove something."

Similarity = Callable[[str, Sequence[str]], Sequence[float]]
"""Returns how similar a text is to each of the others, from 0 to 1."""


class TextChecks(Struct, frozen=True, kw_only=True):
    """Checks on new text. `find_risk` returns why the gate would not allow a command in a text, or
    an empty string.
    """

    similarity: Similarity
    find_risk: Callable[[str], str]


@dataclass(kw_only=True, eq=False)
class WriteRules:
    """The rules for the writes of one review. `existing_texts` returns the entries or skills of a
    kind; `recently_changed_lines` counts the lines of a file that recent reviews changed.
    """

    session_evidence: SessionEvidence
    existing_texts: Callable[[str], Sequence[str]]
    recently_changed_lines: Callable[[str], int]
    text_checks: TextChecks
    _viewed: set[str] = field(default_factory=set)
    _writes: int = 0
    _changed_lines: dict[str, int] = field(default_factory=dict)

    def note_view(self, path: str) -> None:
        """Note that this review has read a skill."""
        self._viewed.add(path)

    def note_write(self, write: Write) -> None:
        """Note that a write was applied."""
        self._writes += max(len(write.entries), 1)
        self._changed_lines[write.path] = self._changed_lines_with(write)
        self._viewed.add(write.path)

    def check(self, write: Write, reference: str) -> None:
        """Raise WriteForbidden if the write must not be made. `reference` names its evidence; each
        entry is checked on its own.
        """
        if self._writes + max(len(write.entries), 1) > _MAX_WRITES:
            raise WriteForbidden(
                f"A review makes at most {_MAX_WRITES} changes; this would be more."
            )
        if write.after is None or any(change.after is None for change in write.entries):
            raise WriteForbidden(_ONLY_ADD)
        if write.kind == "skill" and write.action != "create":
            self._check_skill_change(write)
        evidence = self.session_evidence.find(reference)
        if isinstance(evidence, str):
            raise WriteForbidden(evidence)
        new_texts = write.added
        for index, new in enumerate(new_texts):
            self._check_supported(write, new, evidence)
            self._check_placement(write, new, new_texts[:index])
        for change in write.entries:
            self._check_replacement(change, evidence)

    def _check_skill_change(self, write: Write) -> None:
        main = f"{_skill_folder(write.path)}/SKILL.md"
        if not self._viewed.intersection((write.path, main)):
            raise WriteForbidden("Read the skill with skill_view before you change it.")
        if "/scripts/" in write.path:
            raise WriteForbidden(
                "A review must not write scripts; only a person may add code that runs."
            )
        if write.path.endswith("SKILL.md") and _front_matter(write.before) != _front_matter(
            write.after
        ):
            raise WriteForbidden(
                "A review must not change front matter: it decides when a skill is used."
            )
        lines = len((write.before or "").splitlines())
        allowed = max(_MIN_CHANGED_LINES, int(lines * _MAX_CHANGED_SHARE))
        changed = self._changed_lines_with(write)
        if changed > allowed:
            raise WriteForbidden(
                f"Together with recent reviews, this would change {changed} of {lines} lines; "
                f"{allowed} may change. Patch only what was learned."
            )

    def _changed_lines_with(self, write: Write) -> int:
        """The lines of a file that recent reviews and this write change."""
        before = self._changed_lines.get(write.path, self.recently_changed_lines(write.path))
        return before + write.changed_lines

    def _check_supported(self, write: Write, new: str, evidence: Evidence) -> None:
        self._check_wording(write, new, evidence)
        self._check_agreement(new, evidence)
        if names := self.session_evidence.unsupported_names(new, existing=write.before or ""):
            raise WriteForbidden(
                f"The session does not show {', '.join(names[:3])}: neither the user nor a call "
                "that worked. Write only what was seen."
            )
        check_commands(new, self.text_checks.find_risk)
        if write.kind == "skill" and not self.session_evidence.ended_well:
            raise WriteForbidden(
                "The work did not end with calls that worked, so there is no proven way to keep."
            )
        is_new_skill = write.kind == "skill" and write.before is None
        if is_new_skill and len(new) > _MAX_NEW_SKILL_CHARACTERS:
            raise WriteForbidden(
                f"A new skill has at most {_MAX_NEW_SKILL_CHARACTERS:,} characters."
            )

    def _check_wording(self, write: Write, new: str, evidence: Evidence) -> None:
        if write.kind == "user" and not evidence.is_from_user:
            raise WriteForbidden("Notes about the user must come from the user: quote the user.")
        for wording in WORDINGS:
            if wording.pattern.search(new) and not (wording.user_may and evidence.is_from_user):
                raise WriteForbidden(wording.reason)

    def _check_agreement(self, new: str, evidence: Evidence) -> None:
        """Raise WriteForbidden if the evidence is unrelated to the text or contradicts it."""
        sentences = [text for text in _SENTENCE.split(evidence.text) if text.strip()]
        sentences = sentences[:_MAX_SENTENCES] or [evidence.text]
        similarities = list(self.text_checks.similarity(new, sentences))
        if not shares_words(new, evidence.text) and max(similarities) < _SUPPORTED:
            raise WriteForbidden("The evidence has nothing to do with the text to be written.")
        nearest = sentences[similarities.index(max(similarities))]
        if evidence.is_from_user and _is_negated(nearest) != _is_negated(new):
            raise WriteForbidden(f"The user said the opposite: “{nearest.strip()[:120]}”")

    def _check_placement(self, write: Write, new: str, written_with: Sequence[str]) -> None:
        """Raise WriteForbidden if a text does not fit its skill, or repeats what exists."""
        similarity = self.text_checks.similarity
        if write.kind == "skill" and write.action != "create":
            name = _skill_folder(write.path).rpartition("/")[2]
            about = [text for text in self.existing_texts("skill") if text.split(" ")[0] == name]
            if similarity(new, ["\n".join([*about, write.before or ""])])[0] < _RELATED:
                raise WriteForbidden("This has nothing to do with the skill it would be added to.")
            return
        replaced = {change.before for change in write.entries}
        existing = [text for text in self.existing_texts(write.kind) if text not in replaced]
        others = [*written_with, *existing]
        subject = _name_and_description(new) if write.kind == "skill" else new
        similarities = similarity(subject, others) if others else []
        if similarities and max(similarities) >= _DUPLICATE:
            same = others[list(similarities).index(max(similarities))]
            raise WriteForbidden(
                f"Something similar is there already: “{same[:120]}”. Replace or patch that if "
                "there is more to say."
            )

    def _check_replacement(self, change: EntryChange, evidence: Evidence) -> None:
        if change.before is None or change.after is None:
            return
        is_reversed = _is_negated(change.before) != _is_negated(change.after)
        if is_reversed and not evidence.is_from_user:
            raise WriteForbidden("This would reverse the entry, and only the user may do that.")
        if self.text_checks.similarity(change.after, [change.before])[0] < _RELATED:
            raise WriteForbidden(
                "The new entry has nothing to do with the one it would replace. Add it instead."
            )


def check_commands(text: str, find_risk: Callable[[str], str]) -> None:
    """Raise WriteForbidden if a text tells its reader to run a command that needs approval."""
    if risk := find_risk(text):
        raise WriteForbidden(f"It tells a later reader to run something risky. {risk}")


def _skill_folder(path: str) -> str:
    """The folder of the skill that a file belongs to; support files are one level deeper."""
    parts = path.split("/")
    inside = [index for index, part in enumerate(parts) if part in FOLDERS]
    return "/".join(parts[: inside[-1] if inside else -1])


def _front_matter(text: str | None) -> str:
    parts = (text or "").split("---", 2)
    return parts[1] if len(parts) == 3 and not parts[0].strip() else ""


_NAME_OR_DESCRIPTION = re.compile(r"(?:name|description):")


def _name_and_description(skill: str) -> str:
    """Name and description, in the form of the skill list."""
    lines = [line for line in skill.splitlines() if _NAME_OR_DESCRIPTION.match(line)]
    return " ".join(line.partition(":")[2].strip() for line in lines) or skill[:200]


def _is_negated(sentence: str) -> bool:
    return _NEGATION.search(_CONTRAST.sub("", sentence)) is not None
