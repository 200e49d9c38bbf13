"""Watches a run of a job's agent, and determines its outcome from how its runner ended, the tool
`finish` and the answer.
"""

import re
from collections.abc import Callable, Mapping
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from journeyman.agent.agent import Agent
from journeyman.agent.tools.tool import Invocation, Result, Tool, parameters, text, worked
from journeyman.hosts.pages import PAGES
from journeyman.hosts.runner import RunBegan, RunCall, RunResult, RunStep
from journeyman.hosts.runner import RunStatus as StopReason
from journeyman.jobs.prompt import SILENT
from journeyman.records.job import Job, RunStatus
from journeyman.text.truncation import truncate

FINISH = "finish"
NO_ANSWER = "The agent gave no answer."
NO_REASON = "The agent reported a failure without a reason."
SILENT_WITH_TEXT = "The answer had [SILENT] and other text; the text is delivered."

_STATUSES: Mapping[StopReason, RunStatus] = {
    "turns": "over_budget",
    "tokens": "over_budget",
    "cost": "over_budget",
    "time": "timed_out",
    "interrupted": "interrupted",
}
"""Of a run that was not done; all others failed."""

_BLANKS = " \t\r\n\ufeff\u200b\u2060"
_MARKUP = "`'\"*_~“”‘’«»"
_FENCE_LANGUAGE = re.compile(r"\A```\w+(?=\n)")
_SCRIPT_FAILED = re.compile(
    r"^[ \t#*_`'\"“-]*\[\s*SCRIPT[ _-]?FAILED\b", re.MULTILINE | re.IGNORECASE
)
"""At the beginning of a line."""
_MAX_REASON = 300
_MAX_SUMMARY = 20_000
_MAX_ANSWER = 100_000
_MAX_REVIEW_S = 60.0
"""How long to wait for the review of a run before the agent is closed."""
_POLL_S = 0.2


FinishStatus = Literal["done", "failed", "nothing_to_do"]


class FinishReport(Struct, frozen=True, kw_only=True):
    """The agent's own report on its work."""

    status: FinishStatus
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
        parameters=parameters(
            *("status", "summary"),
            status=text(
                "done: the job is done. failed: it is not, or something that it needs did not "
                "work. nothing_to_do: there is nothing new to report; nothing is delivered.",
                *get_args(FinishStatus),
            ),
            summary=text("What was done or found; if it failed, why, in one line."),
        ),
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
        status = _STATUSES.get(stop, "failed")
        return Outcome(status=status, reason=_stop_reason(result), answer=answer)
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
    told = answer.removeprefix(SILENT).removesuffix(SILENT).strip(_BLANKS)
    return Outcome(status="ok", remarks=(SILENT_WITH_TEXT,) if told != answer else (), answer=told)


def _stop_reason(result: RunResult) -> str:
    """Return why a run was not done: the runner's own words, and of a host also what to do."""
    status, said = result.status, result.reason.strip()
    if status == "interrupted":
        return "The run was stopped."  # the runner does not know whether a person stopped it
    if not said:
        return NO_ANSWER if status == "empty" else f"The run ended: {status.replace('_', ' ')}."
    page = next((page for page in PAGES.values() if page.name == result.runner), None)
    if page is None or status in ("not_installed", *_STATUSES):
        return said
    if status == "not_logged_in":
        return f"{page.title} is not logged in: {said}"
    if status == "rate_limited":
        return f"{page.title} has to wait: {said.rstrip('.')}. The job runs when it is next due."
    return f"{page.title}: {said}"


def _script_failure(answer: str) -> str:
    """Return the reason after the marker for a failed script, or an empty string without one."""
    match = _SCRIPT_FAILED.search(answer)
    if not match:
        return ""
    lines = (line.strip(_MARKUP + " \t[]:：–—-") for line in answer[match.end() :].splitlines())
    return truncate(next(filter(None, lines), NO_REASON), _MAX_REASON)


def _is_silent(answer: str) -> bool:
    """Return whether an answer is only the silent marker; markup and a full stop do not count."""
    if SILENT not in answer:
        return False
    return _FENCE_LANGUAGE.sub("", answer).replace(SILENT, "").strip(_BLANKS + _MARKUP + ".") == ""


class RunMonitor:
    """Monitors one run. `notices` receives lines for people."""

    def __init__(self, cancelled: Callable[[], bool] = lambda: False) -> None:
        self.session = ""
        self.notices: list[str] = []
        self._cancelled = cancelled
        self._report: FinishReport | None = None
        self._last_tool = ""

    def on_finish(self, report: FinishReport) -> None:
        """Store the agent's report on its work; the last one counts."""
        self._report = report

    def on_step(self, step: RunStep) -> None:
        if isinstance(step, RunBegan):
            self.session = step.session
        elif isinstance(step, RunCall):
            self._last_tool = step.call.tool

    def wait_for_review(self, agent: Agent, timer: Callable[[], float]) -> None:
        """Wait until the agent's review of the run is over, unless the run is cancelled."""
        deadline = timer() + _MAX_REVIEW_S
        while not self._cancelled() and timer() < deadline:
            if agent.wait_for_review(_POLL_S):
                return

    def outcome(self, job: Job, result: RunResult) -> Outcome:
        """Return the outcome of the run, with remarks on what happened in it."""
        has_finished = self._report is not None and self._last_tool == FINISH
        if has_finished and result.status in ("turns", "tokens", "cost"):
            result = replace(result, status="done")  # only the closing message was missing
        elif result.status == "time" and job.seconds is not None:
            reason = f"The time limit of {job.seconds:g} seconds was reached."
            result = replace(result, reason=reason)
        outcome = determine_outcome(result, self._report)
        notes = list(dict.fromkeys(self.notices))
        if result.denied:
            calls = "1 call was" if len(result.denied) == 1 else f"{len(result.denied)} calls were"
            notes.append(f"{calls} refused.")
        if job.cost_usd is not None and result.tokens.cost_usd is None and result.turns:
            notes.append(
                f"What the run cost is not known, so its limit of ${job.cost_usd:g} could not be "
                "kept. Limit --tokens instead."
            )
        return replace(outcome, remarks=(*outcome.remarks, *notes))
