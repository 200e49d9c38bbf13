"""What a review may write: small changes whose evidence is in the session."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from journeyman.agent.knowledge.skills import parse_front_matter
from journeyman.agent.review.evidence import Evidence, SessionEvidence
from journeyman.records import Write
from journeyman.records.errors import NotWritten

_MAX_WRITES = 5
"""Writes per review; more than this at once is unlikely to be real learning."""

_MAX_CHANGED_SHARE = 0.3
"""The share of a skill's lines that reviews may change; `_MIN_CHANGED_LINES` are always allowed."""
_MIN_CHANGED_LINES = 8
_DUPLICATE = 0.8
"""Similarity from which two texts count as the same."""


class WriteForbidden(NotWritten):
    """A rule forbids the write; the message says why."""


@dataclass(kw_only=True, eq=False)
class WriteRules:
    """The rules for the writes of one review. `existing_texts` returns the entries or skills of a
    kind; `similarity` compares a text with others, from 0 to 1; `find_risk` returns why the gate
    would not allow a command in a text, or an empty string.
    """

    session_evidence: SessionEvidence
    existing_texts: Callable[[str], Sequence[str]]
    similarity: Callable[[str, Sequence[str]], Sequence[float]]
    find_risk: Callable[[str], str]
    _viewed: set[str] = field(default_factory=set)
    _changed_lines: Counter[str] = field(default_factory=Counter)
    _writes: int = 0

    def note_view(self, path: str) -> None:
        """Note that this review has read a skill."""
        self._viewed.add(path)

    def note_write(self, write: Write) -> None:
        """Note that a write was applied."""
        self._writes += max(len(write.entries), 1)
        self._viewed.add(write.path)
        self._changed_lines[write.path] += write.changed_lines

    def check(self, write: Write, reference: str) -> Evidence:
        """Return the evidence that a reference names. Raise WriteForbidden if the write must not be
        made.
        """
        if self._writes + max(len(write.entries), 1) > _MAX_WRITES:
            raise WriteForbidden(
                f"A review makes at most {_MAX_WRITES} changes; this would be more."
            )
        if write.after is None or any(change.after is None for change in write.entries):
            raise WriteForbidden(
                "A review may add, replace and patch; only a person may remove something."
            )
        evidence = self.session_evidence.find(reference)
        if isinstance(evidence, str):
            raise WriteForbidden(evidence)
        if write.kind == "user" and not evidence.is_from_user:
            raise WriteForbidden("Notes about the user must come from the user: quote the user.")
        if write.kind == "skill":
            self._check_skill(write)
        for index, new in enumerate(write.added):
            if not evidence.shares_words(new):
                raise WriteForbidden("The evidence has nothing to do with the text to be written.")
            known = f"{write.path}\n{write.before or ''}"
            if names := self.session_evidence.unsupported_names(new, existing=known):
                raise WriteForbidden(
                    f"The session does not show {', '.join(names[:3])}: neither the user nor a "
                    "call that worked. Write only what was seen."
                )
            check_commands(new, self.find_risk)
            if write.kind != "skill" or write.action == "create":
                self._check_duplicate(write, new, write.added[:index])
        return evidence

    def _check_skill(self, write: Write) -> None:
        if not self.session_evidence.ended_well:
            raise WriteForbidden(
                "The work did not end with calls that worked, so there is no proven way to keep."
            )
        if write.action == "create":
            return
        if write.path not in self._viewed:
            raise WriteForbidden("Read the skill with skill_view before you change it.")
        old, new = parse_front_matter(write.before or ""), parse_front_matter(write.after or "")
        if old.text != new.text:
            raise WriteForbidden(
                "A review must not change front matter: it decides when a skill is used."
            )
        lines = len((write.before or "").splitlines())
        allowed = max(_MIN_CHANGED_LINES, int(lines * _MAX_CHANGED_SHARE))
        changed = self._changed_lines[write.path] + write.changed_lines
        if changed > allowed:
            raise WriteForbidden(
                f"This would change {changed} of {lines} lines; {allowed} may change. Patch only "
                "what was learned."
            )

    def _check_duplicate(self, write: Write, new: str, written_with: Sequence[str]) -> None:
        replaced = {change.before for change in write.entries}
        others = {*written_with, *self.existing_texts(write.kind)} - replaced
        if write.kind == "skill":
            front = parse_front_matter(new)
            new = f"{front.name} {front.description}"
        texts = sorted(filter(None, others))
        nearness, same = max(zip(self.similarity(new, texts), texts, strict=True), default=(0, ""))
        if nearness >= _DUPLICATE:
            raise WriteForbidden(
                f"Something similar is there already: “{same[:120]}”. Replace or patch that if "
                "there is more to say."
            )


def check_commands(text: str, find_risk: Callable[[str], str]) -> None:
    """Raise WriteForbidden if a text tells its reader to run a command that needs approval."""
    if risk := find_risk(text):
        raise WriteForbidden(f"It tells a later reader to run something risky. {risk}")
