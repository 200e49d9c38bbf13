"""What became of a run, from the end of the agent's turn, its `finish` tool and its answer."""

import re
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

from journeyman.agent.tools.tool import Invocation, Result, Tool, worked
from journeyman.agent.turn import Stop
from journeyman.jobs.prompt import SILENT
from journeyman.records.job import RunStatus

FINISH = "finish"
NOTHING_SAID = "The agent said nothing."
NO_REASON = "The agent says that it failed, and gives no reason."
ADMITTED = "The answer says that the job failed."
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
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
# At the beginning of a line, in a list too, after a word and a colon, or quoted as the first thing
# that is said.
_SCRIPT_FAILED = re.compile(
    r"(?:^[ \t#*_`'\"“-]*(?:\d+[.)][ \t]*)?|(?<=: )|\A>[> \t]*)"
    r"\[\s*SCRIPT[ _-]?FAILED\s*:?(?P<inside>[^\]\n]*)\](?P<rest>[^\n]*)"
    r"(?P<next>(?:\n+[^\n]+)?)",
    re.M | re.IGNORECASE,
)
_REASON = 300
_LONGEST_SUMMARY = 20_000


class Finished(Struct, frozen=True, kw_only=True):
    """What the agent says of its own work."""

    status: Literal["done", "failed", "nothing_to_do"]
    summary: str


def finish_tool(keep: Callable[[Finished], None]) -> Tool:
    """The tool by which the agent says how the job went; `keep` hears it."""

    def run(call: Invocation) -> Result:
        summary = call.arguments["summary"].strip()[:_LONGEST_SUMMARY]
        keep(Finished(status=call.arguments["status"], summary=summary))
        return worked(noted=True, next="Write your final answer; it is delivered. Then stop.")

    return Tool(
        name=FINISH,
        description="Say how the job went. Call it once, when all the work is over.",
        parameters={
            "type": "object",
            "properties": {
                "status": {
                    "type": "string",
                    "enum": ["done", "failed", "nothing_to_do"],
                    "description": "done: the job is done. failed: it is not, or something that "
                    "it needs did not work. nothing_to_do: there is nothing new to report, and "
                    "nothing is delivered.",
                },
                "summary": {
                    "type": "string",
                    "description": "What was done or found; if it failed, why, in one line.",
                },
            },
            "required": ["status", "summary"],
            "additionalProperties": False,
        },
        run=run,
    )


_CANNOT = (
    r"(?:could not|couldn't|cannot|can't|failed to|wasn't able to"
    r"|(?:was|am|have been) (?:unable|not able) to)"
)
_DO = (
    r"(?:complete|finish|carry out|perform|run|execute|do|help|proceed|produce|generate|create|make"
    r"|write|access|reach|connect|read|fetch|retrieve|log in)\b"
)
_WORK = r"(?:the|this) (?:[\w-]+ ){0,2}(?:task|job|run|script|command)"
_RESULT = r"(?:report|summary|digest|overview|list|analysis|statistics)"
_ENDS_HERE = r"(?=[.:;,!]|$)"

_FAILURES = (
    rf"I {_CANNOT} {_DO}",
    rf"(?:unable to|failed to|could not) {_DO} th(?:e|is)\b",
    r"I (?:gave up|had to (?:stop|abort|give up))\b",
    r"I (?:do not|don't) have (?:access to|the tool)",
    r"as an AI\b",
    rf"{_WORK} (?:(?:has )?failed(?: with| because|{_ENDS_HERE})|crashed|timed out|aborted)",
    rf"{_WORK} (?:could not be|was not|has not been|did not|didn't) (?:run|complete|finish)",
    rf"(?:no|the|today's) (?:\w+ )?{_RESULT} (?:could not|could|was not|has not) be",
    r"(?:task|job|run|script|command|status:|(?:script )?execution)"
    rf" (?:failed|aborted|incomplete|not completed){_ENDS_HERE}",
    r"(?:fatal )?error: (?!none\b|no |0\b)",
    r"error (?:running|executing)\b",
    r"Traceback \(most recent call last\):?\W*$",
)
FAILURES = re.compile("|".join(_FAILURES), re.IGNORECASE)
"""Beginnings of an answer that admit a failure; few and strong, for agents that do not use the
tool."""

_LEAD = re.compile(
    r"\A(?:[#*_\s]|(?:unfortunately|sadly|regrettably|apologies|(?:I am )?sorry|I am afraid"
    r"|result|note)[,:]? (?:but )?)*",
    re.IGNORECASE,
)
_MENDED = re.compile(
    r"\b(?:at first|but|however|instead|(?:one|some|\d+) of|step|only|others?|else|overnight)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of a run. `reason` says why it is not ok, `remarks` what was odd if it is."""

    status: RunStatus
    reason: str = ""
    remarks: tuple[str, ...] = ()
    answer: str = ""


def outcome_of(*, stop: Stop, answer: str, note: str, finished: Finished | None = None) -> Outcome:
    """What became of a run; `note` is the turn's own, `finished` what the agent said of it."""
    said = answer.strip(_BLANKS)
    if stop != "done" and not (stop == "empty" and finished):
        status, usual = _ENDS[stop]
        # Who told it to stop, the agent cannot know: a person, or what runs the program.
        reason = usual if stop == "interrupted" else note.strip() or usual
        return Outcome(status=status, reason=reason, answer=said)
    if _is_silent(said):
        return Outcome(status="silent")
    if reason := _script_failure(said):
        return Outcome(status="failed", reason=reason, answer=said)
    if finished is not None:
        if finished.status == "nothing_to_do":
            return Outcome(status="silent", reason=finished.summary, answer=said)
        if finished.status == "failed":
            return Outcome(status="failed", reason=finished.summary or NO_REASON, answer=said)
        # Some models put all they have to say into the summary, and then add no more than "Done.".
        said = max(said, finished.summary, key=len)
    elif admits_failure(said):
        return Outcome(status="failed", reason=ADMITTED, answer=said)
    if not said:
        return Outcome(status="failed", reason=NOTHING_SAID)
    told = _without_silent(said)
    return Outcome(status="ok", remarks=(NOT_ALONE,) if told != said else (), answer=told)


def admits_failure(answer: str) -> bool:
    """Whether an answer begins, outside of fences, by saying that the job failed."""
    prose = outside_fences(answer).replace("’", "'").replace("I'm ", "I am ")
    first = _SENTENCE_END.split(_LEAD.sub("", prose), maxsplit=1)[0]
    found = FAILURES.match(first)
    return found is not None and not _MENDED.search(first, found.end())


def outside_fences(text: str) -> str:
    """A text without its code fences; where nothing else is in it, what they hold. One that
    nothing closes is none: small models forget to, and then go on to talk.
    """
    outside: list[str] = []
    fenced: list[str] = []
    opened: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if opened and mark and mark[1].startswith(fence) and not mark[2].strip():
            fenced += opened[1:]
            opened = []
        elif mark and not opened:
            fence, opened = mark[1], [line]
        else:
            (opened or outside).append(line)
    bare = "\n".join(outside + opened)
    return bare if bare.strip() else "\n".join(fenced)


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
    """The answer without the mark, and what is around it, where it is at either end."""
    before, mark, after = said.partition(SILENT)
    around = before.strip(_BLANKS)
    if mark and not around.strip(_MARKS):
        said = after.lstrip(_BLANKS).removeprefix(around).lstrip(_BLANKS + ".:")
    before, mark, after = said.rpartition(SILENT)
    around = after.strip(_BLANKS + ".")
    if mark and not around.strip(_MARKS):
        said = before.rstrip(_BLANKS).removesuffix(around).rstrip(_BLANKS)
    return said
