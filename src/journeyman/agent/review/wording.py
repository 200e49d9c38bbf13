"""What the review is asked, and how its outcome is told to people."""

from collections.abc import Sequence

from journeyman.records import JournalEntry, Review

INSTRUCTION = (
    "The turn is over. This is a review of it, which the user does not see; do not go on with the "
    "task. Is there something that would help in later sessions: a wish or a fact that the user "
    "stated (memory, target user or memory), or a way of doing this kind of task that was seen to "
    "work here (a skill)? Usually there is nothing, and changing nothing is right: then answer "
    "“Nothing to keep.” Otherwise read what is there (skills_list, skill_view) before you write, "
    "and give as evidence the user's words, quoted, or the id of the call that worked. Do not keep "
    "guesses, passing failures, secrets, or what is kept already. Only memory, skills_list, "
    "skill_view and skill_manage can be used now."
)

ALLOWED = ("memory", "skills_list", "skill_view", "skill_manage")


def denial(tool: str) -> str:
    """The answer to a call that a review may not make."""
    return f"A review may not use {tool}, only {', '.join(ALLOWED)}."


def told(review: Review, entries: Sequence[JournalEntry], *, tells_all: bool = False) -> str:
    """The one line that a person sees; where nothing was kept, only if that `tells_all`."""
    if review.status == "failed":
        return f"The review failed: {review.error}"
    if not entries:
        return "Review: nothing to keep." if tells_all and review.status == "unchanged" else ""
    changes = "; ".join(entry.write.summary for entry in reversed(entries))
    return f"Review: {changes} (undo: journeyman review undo {review.id})"
