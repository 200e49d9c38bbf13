"""Watches one run of a job's agent: its session, its report on its work, and what people should
know of it.
"""

from collections.abc import Callable

from msgspec.structs import replace

from journeyman.agent.agent import Agent
from journeyman.hosts.runner import RunBegan, RunCall, RunResult, RunStep
from journeyman.jobs.outcome import FINISH, FinishReport, Outcome, determine_outcome
from journeyman.records.job import Job

_MAX_REVIEW_S = 60.0
"""How long to wait for the review of a run before the agent is closed."""
_POLL_S = 0.2


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
