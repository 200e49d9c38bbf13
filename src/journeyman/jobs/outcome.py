"""Determines the outcome of a run from how its runner ended, the `finish` tool and the answer."""

import re
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

from journeyman.agent.tools.tool import Invocation, Result, Tool, worked
from journeyman.hosts.pages import PAGES
from journeyman.hosts.runner import RunResult
from journeyman.hosts.runner import RunStatus as StopReason
from journeyman.jobs.prompt import SILENT
from journeyman.records.job import RunStatus
from journeyman.text.truncation import truncate

FINISH = "finish"
NO_ANSWER = "The agent gave no answer."
NO_REASON = "The agent reported a failure without a reason."
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
    "failed": ("failed", "The agent's program failed."),
    "not_logged_in": ("failed", "The agent's program is not logged in."),
    "rate_limited": ("failed", "The model's provider refused more requests for now."),
    "not_installed": ("failed", "The agent's program is not installed."),
}

_BLANKS = " \t\r\n\ufeff\u200b\u2060"
_MARKUP = "`'\"*_~“”‘’«»"
_FENCE_LANGUAGE = re.compile(r"\A```\w+(?=\n)")
_SCRIPT_FAILED = re.compile(
    r"^[ \t#*_`'\"“-]*\[\s*SCRIPT[ _-]?FAILED\s*:?(?P<inside>[^\]\n]*)\](?P<rest>[^\n]*)"
    r"(?P<next>(?:\n+[^\n]+)?)",
    re.MULTILINE | re.IGNORECASE,
)
"""At the beginning of a line."""
_MAX_REASON = 300
_MAX_SUMMARY = 20_000
_MAX_ANSWER = 100_000


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


class Outcome(Struct, frozen=True, kw_only=True):
    """The outcome of a run. `reason` states why it is not ok; `remarks` note oddities if it is."""

    status: RunStatus
    reason: str = ""
    remarks: tuple[str, ...] = ()
    answer: str = ""


def determine_outcome(result: RunResult, report: FinishReport | None = None) -> Outcome:
    """Return the outcome of a run from the result of its runner and the agent's own report. An
    excessively long answer is cut; the session has it all.
    """
    stop, answer = result.status, result.text.strip(_BLANKS)
    if len(answer) > _MAX_ANSWER:
        cut = f"[… cut here: the answer has {len(answer):,} characters …]"
        answer = f"{answer[:_MAX_ANSWER]}\n{cut}"
    if stop != "done" and not (stop == "empty" and report):
        return Outcome(status=_STOP_OUTCOMES[stop][0], reason=_stop_reason(result), answer=answer)
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
    if not answer:
        return Outcome(status="failed", reason=NO_ANSWER)
    text = _without_silent(answer)
    return Outcome(status="ok", remarks=(SILENT_WITH_TEXT,) if text != answer else (), answer=text)


def _stop_reason(result: RunResult) -> str:
    """Return why a run was not done: the runner's own words, and of a host also what to do."""
    default, said = _STOP_OUTCOMES[result.status][1], result.reason.strip()
    if result.status == "interrupted" or not said:
        return default  # the runner does not know whether a person or the system stopped it
    page = next((page for page in PAGES.values() if page.name == result.runner), None)
    if page is None or result.status == "not_installed":
        return said
    if result.status == "not_logged_in":
        return f"{page.title} is not logged in: {said} To log in: {page.log_in}"
    if result.status == "rate_limited":
        return f"{page.title} has to wait: {said} The job runs again when it is next due."
    return f"{page.title}: {said}" if _STOP_OUTCOMES[result.status][0] == "failed" else said


def _script_failure(answer: str) -> str:
    """Return the reason after the marker for a failed script, or an empty string without one."""
    match = _SCRIPT_FAILED.search(answer)
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
