"""What a review may write: only what the session shows, only after reading, only a little at a
time, and nothing twice. Each rule is here because reviews without it have spoilt memories and
skills.
"""

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from journeyman.agent.review.grounds import Ground, Grounds, shares_words
from journeyman.agent.review.wordings import WORDINGS, is_negated, sentences
from journeyman.records import Write
from journeyman.records.errors import NotWritten
from journeyman.records.knowledge import EntryChange

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


class Already(Protocol):
    """What is there before a review begins."""

    def texts(self, kind: str) -> Sequence[str]:
        """What is written already: entries of memory, or names and descriptions of skills."""
        ...

    def changed_lines(self, path: str) -> int:
        """How many lines of a file reviews have changed lately."""
        ...


class Rules:
    """The rules for the writes of one review. `find_risky` finds a command in a text that the gate
    would not simply allow, and says why.
    """

    def __init__(
        self,
        grounds: Grounds,
        already: Already,
        similarity: Similarity,
        find_risky: Callable[[str], str],
    ) -> None:
        self._grounds = grounds
        self._already = already
        self._similarity = similarity
        self._find_risky = find_risky
        self._viewed: set[str] = set()
        self._written = 0
        self._changed_lines: dict[str, int] = {}

    def viewed(self, path: str) -> None:
        """A skill was read in this review."""
        self._viewed.add(path)

    def written(self, write: Write) -> None:
        """A write was made."""
        self._written += max(len(write.entries), 1)
        self._changed_lines[write.path] = self._lines_with(write)
        self._viewed.add(write.path)

    def check(self, write: Write, evidence: str) -> None:
        """Raises NotWritten with the reason when the write must not be made. What changes several
        entries is looked at entry by entry.
        """
        if self._written + max(len(write.entries), 1) > MOST_WRITES:
            raise NotWritten(f"A review makes at most {MOST_WRITES} changes; this would be more.")
        if write.after is None or any(change.after is None for change in write.entries):
            raise NotWritten(_ONLY_ADD)
        if write.kind == "skill" and write.action != "create":
            self._check_read(write)
            self._check_part(write)
            self._check_size(write)
        ground = self._grounds.find(evidence)
        if isinstance(ground, str):
            raise NotWritten(ground)
        news = write.added
        for number, new in enumerate(news):
            self._check_shown(write, new, ground)
            self._check_new(write, new, news[:number])
        for change in write.entries:
            self._check_replaced(change, ground)

    def _check_read(self, write: Write) -> None:
        main = f"{_folder(write.path)}/SKILL.md"
        if not self._viewed.intersection((write.path, main)):
            raise NotWritten("Read the skill with skill_view before you change it.")

    def _check_part(self, write: Write) -> None:
        if "/scripts/" in write.path:
            raise NotWritten("A review writes no scripts: what runs, a person puts there.")
        if write.path.endswith("SKILL.md") and _front(write.before) != _front(write.after):
            raise NotWritten("A review changes no front matter: it decides when a skill is used.")

    def _check_size(self, write: Write) -> None:
        lines = len((write.before or "").splitlines())
        most = max(FEW_LINES, int(lines * MOST_CHANGED))
        changed = self._lines_with(write)
        if changed > most:
            raise NotWritten(
                f"This would change {changed} lines of {lines}, with what reviews changed lately; "
                f"{most} may change. Patch only what was learned."
            )

    def _lines_with(self, write: Write) -> int:
        lately = self._changed_lines.get(write.path, self._already.changed_lines(write.path))
        return lately + write.changed_lines

    def _check_shown(self, write: Write, new: str, ground: Ground) -> None:
        self._check_wording(write, new, ground)
        if unseen := self._grounds.unseen(new, known=write.before or ""):
            raise NotWritten(
                f"The session does not show {', '.join(unseen[:3])}: neither the user nor a call "
                "that worked. Write only what was seen."
            )
        check_commands(new, self._find_risky)
        if write.kind == "skill" and not self._grounds.ended_well:
            raise NotWritten("The work did not end with calls that worked: there is no way yet.")
        if write.kind == "skill" and write.before is None and len(new) > LARGEST_NEW_SKILL:
            raise NotWritten(f"A new skill has at most {LARGEST_NEW_SKILL:,} characters.")

    def _check_wording(self, write: Write, new: str, ground: Ground) -> None:
        if write.kind == "user" and not ground.said:
            raise NotWritten("What is noted about the user, the user has said: quote the user.")
        for wording in WORDINGS:
            if wording.pattern.search(new) and not (wording.user_may and ground.said):
                raise NotWritten(wording.reason)
        told = sentences(ground.text)[:_LOOKED_AT] or [ground.text]
        likeness = list(self._similarity(new, told))
        if not shares_words(new, ground.text) and max(likeness) < _NEAR_ENOUGH:
            raise NotWritten("The evidence has nothing to do with what is to be written.")
        nearest = told[likeness.index(max(likeness))]
        if ground.said and is_negated(nearest) != is_negated(new):
            raise NotWritten(f"The user said it the other way round: “{nearest.strip()[:120]}”")

    def _check_new(self, write: Write, new: str, with_it: Sequence[str]) -> None:
        if write.kind == "skill" and write.action != "create":
            name = _folder(write.path).rpartition("/")[2]
            about = [one for one in self._already.texts("skill") if one.split(" ")[0] == name]
            if self._similarity(new, ["\n".join([*about, write.before or ""])])[0] < RELATED:
                raise NotWritten("This has nothing to do with the skill that it would be put into.")
            return
        old = {change.before for change in write.entries}
        others = [*with_it, *(text for text in self._already.texts(write.kind) if text not in old)]
        subject = _head(new) if write.kind == "skill" else new
        likeness = self._similarity(subject, others) if others else []
        if likeness and max(likeness) >= TOO_SIMILAR:
            same = others[list(likeness).index(max(likeness))]
            raise NotWritten(
                f"Something like it is there already: “{same[:120]}”. Replace or patch that, if "
                "there is more to say."
            )

    def _check_replaced(self, change: EntryChange, ground: Ground) -> None:
        if change.before is None or change.after is None:
            return
        if is_negated(change.before) != is_negated(change.after) and not ground.said:
            raise NotWritten("This would turn the entry round, and only the user may do that.")
        if self._similarity(change.after, [change.before])[0] < RELATED:
            raise NotWritten(
                "The new entry has nothing to do with the one it would replace. Add it instead."
            )


def check_commands(text: str, find_risky: Callable[[str], str]) -> None:
    """Raises NotWritten when a text tells its reader to run what the gate would ask about."""
    if risky := find_risky(text):
        raise NotWritten(f"It tells a later reader to run something risky. {risky}")


def _folder(path: str) -> str:
    """The folder of the skill that a file belongs to; support files stand one level deeper."""
    parts = path.split("/")
    inside = [place for place, part in enumerate(parts) if part in _SUPPORT]
    return "/".join(parts[: inside[-1] if inside else -1])


def _front(text: str | None) -> str:
    """The front matter of a skill."""
    parts = (text or "").split("---", 2)
    return parts[1] if len(parts) == 3 and not parts[0].strip() else ""


def _head(skill: str) -> str:
    """Name and description, as the list of skills has them."""
    found = [line.partition(":")[2] for line in skill.splitlines() if _HEAD.match(line)]
    return " ".join(part.strip() for part in found) or skill[:200]


_SUPPORT = ("references", "templates", "scripts", "assets")
_HEAD = re.compile(r"(?:name|description):")
