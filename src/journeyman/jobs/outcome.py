"""Determines the outcome of a run from the end of the turn, the `finish` tool and the answer."""

import re
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

from journeyman.agent.tools.tool import Invocation, Result, Tool, worked
from journeyman.agent.turn import StopReason
from journeyman.jobs.prompt import SILENT
from journeyman.records.job import RunStatus
from journeyman.text.truncation import truncate

FINISH = "finish"
NO_ANSWER = "The agent gave no answer."
NO_REASON = "The agent reported a failure without a reason."
ADMITTED_FAILURE = "The answer states that the job failed."
SILENT_WITH_TEXT = "The answer had [SILENT] and other text; the text is delivered."

_STOP_OUTCOMES: Mapping[StopReason, tuple[RunStatus, str]] = {
    "turns": ("over_budget", "The limit on requests to the model was reached."),
    "tokens": ("over_budget", "The token limit was reached."),
    "cost": ("over_budget", "The cost limit was reached."),
    "time": ("timed_out", "The time limit was reached."),
    "interrupted": ("interrupted", "The run was stopped."),
    "model_failed": ("failed", "The model did not respond."),
    "context_full": ("failed", "The conversation does not fit the model's context window."),
    "repeating": ("failed", "The agent kept repeating the same calls."),
    "cut": ("failed", "The model's reply was cut off."),
    "empty": ("failed", NO_ANSWER),
}

_BLANKS = " \t\r\n\ufeff\u200b\u2060"
_MARKUP = "`'\"*_~“”‘’«»"
_FENCE_LANGUAGE = re.compile(r"\A```\w+(?=\n)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
# At the start of a line or a list item, after a word and a colon, or quoted at the start of the
# answer.
_SCRIPT_FAILED = re.compile(
    r"(?:^[ \t#*_`'\"“-]*(?:\d+[.)][ \t]*)?|(?<=: )|\A>[> \t]*)"
    r"\[\s*SCRIPT[ _-]?FAILED\s*:?(?P<inside>[^\]\n]*)\](?P<rest>[^\n]*)"
    r"(?P<next>(?:\n+[^\n]+)?)",
    re.M | re.IGNORECASE,
)
_MAX_REASON = 300
_MAX_SUMMARY = 20_000


class FinishReport(Struct, frozen=True, kw_only=True):
    """The agent's own report on its work."""

    status: Literal["done", "failed", "nothing_to_do"]
    summary: str


def finish_tool(on_finish: Callable[[FinishReport], None]) -> Tool:
    """Return the tool with which the agent reports how the job went to `on_finish`."""

    def run(call: Invocation) -> Result:
        summary = call.arguments["summary"].strip()[:_MAX_SUMMARY]
        on_finish(FinishReport(status=call.arguments["status"], summary=summary))
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
        risk="report",
        teaches=False,
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
_CLAUSE_END = r"(?=[.:;,!]|$)"

_FAILURES = (
    rf"I {_CANNOT} {_DO}",
    rf"(?:unable to|failed to|could not) {_DO} th(?:e|is)\b",
    r"I (?:gave up|had to (?:stop|abort|give up))\b",
    r"I (?:do not|don't) have (?:access to|the tool)",
    r"as an AI\b",
    rf"{_WORK} (?:(?:has )?failed(?: with| because|{_CLAUSE_END})|crashed|timed out|aborted)",
    rf"{_WORK} (?:could not be|was not|has not been|did not|didn't) (?:run|complete|finish)",
    rf"(?:no|the|today's) (?:\w+ )?{_RESULT} (?:could not|could|was not|has not) be",
    r"(?:task|job|run|script|command|status:|(?:script )?execution)"
    rf" (?:failed|aborted|incomplete|not completed){_CLAUSE_END}",
    r"(?:fatal )?error: (?!none\b|no |0\b)",
    r"error (?:running|executing)\b",
    r"Traceback \(most recent call last\):?\W*$",
)
FAILURES = re.compile("|".join(_FAILURES), re.IGNORECASE)
"""Openings of an answer that admit a failure, for agents that do not call the tool. Few and
unambiguous."""

_PREAMBLE = re.compile(
    r"\A(?:[#*_\s]|(?:unfortunately|sadly|regrettably|apologies|(?:I am )?sorry|I am afraid"
    r"|result|note)[,:]? (?:but )?)*",
    re.IGNORECASE,
)
_QUALIFIED = re.compile(
    r"\b(?:at first|but|however|instead|(?:one|some|\d+) of|step|only|others?|else|overnight)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")


class Outcome(Struct, frozen=True, kw_only=True):
    """The outcome of a run. `reason` states why it is not ok; `remarks` note oddities if it is."""

    status: RunStatus
    reason: str = ""
    remarks: tuple[str, ...] = ()
    answer: str = ""


def determine_outcome(
    *, stop: StopReason, answer: str, note: str, report: FinishReport | None = None
) -> Outcome:
    """Return the outcome of a run. `note` comes from the turn, `report` from the agent."""
    answer = answer.strip(_BLANKS)
    if stop != "done" and not (stop == "empty" and report):
        status, default = _STOP_OUTCOMES[stop]
        # The turn does not know whether a person or the operating system stopped it.
        reason = default if stop == "interrupted" else note.strip() or default
        return Outcome(status=status, reason=reason, answer=answer)
    if _is_silent(answer):
        return Outcome(status="silent")
    if reason := _script_failure(answer):
        return Outcome(status="failed", reason=reason, answer=answer)
    if report is not None:
        if report.status == "nothing_to_do":
            return Outcome(status="silent", reason=report.summary, answer=answer)
        if report.status == "failed":
            return Outcome(status="failed", reason=report.summary or NO_REASON, answer=answer)
        # Some models put everything into the summary, and then answer only "Done.".
        answer = max(answer, report.summary, key=len)
    elif admits_failure(answer):
        return Outcome(status="failed", reason=ADMITTED_FAILURE, answer=answer)
    if not answer:
        return Outcome(status="failed", reason=NO_ANSWER)
    text = _without_silent(answer)
    return Outcome(status="ok", remarks=(SILENT_WITH_TEXT,) if text != answer else (), answer=text)


def admits_failure(answer: str) -> bool:
    """Return whether an answer, outside code fences, begins by stating that the job failed."""
    prose = outside_fences(answer).replace("’", "'").replace("I'm ", "I am ")
    first = _SENTENCE_END.split(_PREAMBLE.sub("", prose), maxsplit=1)[0]
    match = FAILURES.match(first)
    return match is not None and not _QUALIFIED.search(first, match.end())


def outside_fences(text: str) -> str:
    """Return a text without its code fences, or their content if there is nothing else. An unclosed
    fence does not count: small models forget to close them and then continue with prose.
    """
    outside: list[str] = []
    fenced: list[str] = []
    opened: list[str] = []
    fence = ""
    for line in text.splitlines():
        marker = _FENCE.match(line)
        if opened and marker and marker[1].startswith(fence) and not marker[2].strip():
            fenced += opened[1:]
            opened = []
        elif marker and not opened:
            fence, opened = marker[1], [line]
        else:
            (opened or outside).append(line)
    prose = "\n".join(outside + opened)
    return prose if prose.strip() else "\n".join(fenced)


def _script_failure(answer: str) -> str:
    """Return the reason after the marker for a failed script, or an empty string without one."""
    match = _SCRIPT_FAILED.search(outside_fences(answer))
    if not match:
        return ""
    for part in ("rest", "inside", "next"):
        reason = match[part].strip(" \t\n*_`'\"“”:：–—-")
        if reason:
            return truncate(reason, _MAX_REASON)
    return NO_REASON


def _is_silent(answer: str) -> bool:
    """Return whether an answer is only the silent marker; markup and a full stop do not count."""
    if SILENT not in answer:
        return False
    return _FENCE_LANGUAGE.sub("", answer).replace(SILENT, "").strip(_BLANKS + _MARKUP + ".") == ""


def _without_silent(answer: str) -> str:
    """Return the answer without a silent marker at either end, and without the markup around it."""
    before, marker, after = answer.partition(SILENT)
    markup = before.strip(_BLANKS)
    if marker and not markup.strip(_MARKUP):
        answer = after.lstrip(_BLANKS).removeprefix(markup).lstrip(_BLANKS + ".:")
    before, marker, after = answer.rpartition(SILENT)
    markup = after.strip(_BLANKS + ".")
    if marker and not markup.strip(_MARKUP):
        answer = before.rstrip(_BLANKS).removesuffix(markup).rstrip(_BLANKS)
    return answer
