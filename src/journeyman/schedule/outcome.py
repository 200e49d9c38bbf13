"""What became of a run, from how the agent's turn ended and what it said. What is delivered is
never less than what the agent said; delivering it is left to others.
"""

import re
from collections.abc import Mapping

from msgspec import Struct

from journeyman.agent.limits import Stop
from journeyman.records.job import RunStatus
from journeyman.schedule.admissions import find_failure, outside_fences
from journeyman.schedule.prompt import SILENT

NOTHING_SAID = "The agent said nothing."
NO_REASON = "The agent says that a script failed, and gives no reason."
NOT_ALONE = "The answer had [SILENT] beside other text; the text is delivered."

_ENDS: Mapping[Stop, tuple[RunStatus, str]] = {
    "turns": ("over_budget", "The limit of requests to the model is reached."),
    "tokens": ("over_budget", "The limit of tokens is reached."),
    "cost": ("over_budget", "The limit of cost is reached."),
    "time": ("timed_out", "The time limit is reached."),
    "interrupted": ("interrupted", "It was told to stop."),
    "model_failed": ("failed", "The model gave no answer."),
    "context_full": ("failed", "The conversation does not fit the model's window."),
    "repeating": ("failed", "The agent made the same calls again and again."),
    "cut": ("failed", "The model's reply was cut off."),
    "empty": ("failed", NOTHING_SAID),
}

_BLANKS = " \t\r\n\ufeff\u200b\u2060"
_MARKS = "`'\"*_~“”‘’«»"
_FENCE_WORD = re.compile(r"\A```\w+(?=\n)")
# At the beginning of a line, in a list too, after a word and a colon, or quoted as the first thing
# that is said.
_SCRIPT_FAILED = re.compile(
    r"(?:^[ \t#*_`'\"“-]*(?:\d+[.)][ \t]*)?|(?<=: )|\A>[> \t]*)"
    r"\[\s*SCRIPT[ _-]?FAILED\s*:?(?P<inside>[^\]\n]*)\](?P<rest>[^\n]*)"
    r"(?P<next>(?:\n+[^\n]+)?)",
    re.M | re.IGNORECASE,
)
_REASON = 300


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of a run. `reason` says why it is not ok, or what was odd about one that is;
    `answer` is what is to be delivered.
    """

    status: RunStatus
    reason: str = ""
    answer: str = ""


def outcome_of(*, stop: Stop, answer: str, note: str) -> Outcome:
    """What became of a run whose turn ended so, with this last answer and the turn's note."""
    said = answer.strip(_BLANKS)
    if stop != "done":
        status, usual = _ENDS[stop]
        # Who told it to stop, the agent cannot know: a person, or what runs the program.
        reason = usual if stop == "interrupted" else note.strip() or usual
        return Outcome(status=status, reason=reason, answer=said)
    if not said:
        return Outcome(status="failed", reason=NOTHING_SAID)
    if _is_silent(said):
        return Outcome(status="silent")
    reason = _script_failure(said)
    if reason:
        return Outcome(status="failed", reason=reason, answer=said)
    admitted = find_failure(said)
    if admitted is not None:
        reason = f"The answer says that the job failed: {admitted.reason} ({admitted.id})."
        return Outcome(status="failed", reason=reason, answer=said)
    told = _without_silent(said)
    return Outcome(status="ok", reason=NOT_ALONE if told != said else "", answer=told)


def _script_failure(said: str) -> str:
    """The reason after the mark for a failed script; nothing where there is no such mark."""
    found = _SCRIPT_FAILED.search(outside_fences(said))
    if not found:
        return ""
    for part in ("rest", "inside", "next"):
        reason = found[part].strip(" \t\n*_`'\"“”:：–—-")
        if reason:
            return reason if len(reason) <= _REASON else f"{reason[: _REASON - 1]}…"
    return NO_REASON


def _is_silent(said: str) -> bool:
    """Whether an answer is the mark alone: marks around it and a full stop are no content."""
    if SILENT not in said:
        return False
    return _FENCE_WORD.sub("", said).replace(SILENT, "").strip(_BLANKS + _MARKS + ".") == ""


def _without_silent(said: str) -> str:
    """The answer without the mark, where it stands at either end. Elsewhere it is part of what the
    agent tells. What stood around the mark goes with it, unless it goes around the text too.
    """
    before, mark, after = said.partition(SILENT)
    around = before.strip(_BLANKS)
    if mark and not around.strip(_MARKS):
        after = after.lstrip(_BLANKS)
        bare = after.removeprefix(around)
        said = around + after if around and bare == after else bare.lstrip(_BLANKS + ".:")
    before, mark, after = said.rpartition(SILENT)
    around = after.strip(_BLANKS + ".")
    if mark and not around.strip(_MARKS):
        before = before.rstrip(_BLANKS)
        bare = before.removesuffix(around)
        said = before + around if around and bare == before else bare.rstrip(_BLANKS)
    return said
