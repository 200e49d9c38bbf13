"""One run of a job: preparation, script, agent, outcome, output file and delivery."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, replace

from journeyman.hosts.runner import RunLimits, RunRequest
from journeyman.jobs.delivery import deliver, run_message
from journeyman.jobs.lifecycle import apply_result
from journeyman.jobs.outcome import RunMonitor
from journeyman.jobs.output import write_output
from journeyman.jobs.preparation import RunPreparer
from journeyman.jobs.prompt import runtime_block, user_message
from journeyman.jobs.scripts import ScriptRun, run_script
from journeyman.records.errors import JourneymanError, MissingPart, WrongInput
from journeyman.records.job import OWN_RUNNER, Job, Run

logger = logging.getLogger(__name__)


class _RunProgress(Struct, kw_only=True):
    """A run in progress, and the texts that its output file adds. Updated during the run."""

    run: Run
    prompt: str
    script: str = ""

    def update(self, **fields: object) -> None:
        self.run = replace(self.run, **fields)


@dataclass(kw_only=True, eq=False)
class JobRunner(RunPreparer):
    """Runs jobs; `terminal` receives deliveries."""

    terminal: Callable[[str], None] = lambda _text: None

    def check(self, job: Job) -> tuple[str, ...]:
        """Return remarks on a run that would start now. Raise WrongInput or MissingPart if it is
        blocked.
        """
        prepared = self.prepare(job, RunMonitor())
        return (*prepared.remarks, *prepared.check())

    def work(
        self,
        job: Job,
        run: Run,
        cancelled: Callable[[], bool],
        *,
        is_own: Callable[[], bool] = lambda: True,
        delivers: bool = True,
    ) -> Run:
        """Run a job, then record and deliver the result if this process still owns the run
        (`is_own`). Never raises.
        """
        progress = _RunProgress(run=run, prompt=job.prompt)
        try:
            self._run(job, progress, cancelled)
        except JourneymanError as error:
            is_early = isinstance(error, WrongInput | MissingPart) and not progress.run.session
            progress.update(status="blocked" if is_early else "failed", reason=str(error))
        except Exception as error:
            # A failing job must not stop the scheduler.
            logger.exception("a run failed unexpectedly")
            reason = f"Unexpected error: {type(error).__name__}: {error}"
            progress.update(status="failed", reason=reason)
        progress.update(ended_at=max(run.started_at, self.clock()))
        if is_own():
            # Delivered before it is stored: if this process is killed now, the run is "crashed".
            self._announce(
                apply_result(job, progress.run, self.clock()), progress, delivers=delivers
            )
        return progress.run

    def announce(self, job: Job, run: Run) -> Run:
        """Record and deliver a run that was ended from outside. Never raises."""
        progress = _RunProgress(run=run, prompt=job.prompt)
        self._announce(job, progress, delivers=True)
        return progress.run

    def _run(self, job: Job, progress: _RunProgress, cancelled: Callable[[], bool]) -> None:
        monitor = RunMonitor(cancelled)
        prepared = self.prepare(job, monitor)
        for remark in prepared.remarks:
            logger.warning("job %s: %s", job.name, remark)
        runtime = prepared.runtime
        progress.update(model=runtime.model, provider=runtime.provider, remarks=prepared.remarks)
        deadline = None if job.seconds is None else self.timer() + job.seconds
        script = self._run_script(job, progress, deadline, cancelled) if job.script else None
        if script is not None and script.status != "ok":
            note = "" if script.status == "silent" else " The agent did not run."
            reason = f"The script {job.script} {script.reason}.{note}"
            progress.update(status=script.status, reason=reason, tokens=0, cost_usd=0.0)
            return
        progress.prompt = user_message(job, skills=prepared.skills, script=script)
        if not runtime.finishes:
            # After the task, so that the session is known by the task, and learned from as such.
            progress.prompt += f"\n\n{runtime_block(job, runtime, now=self.clock())}"
        turns = self.settings.agent.turns if job.runner == OWN_RUNNER else None
        limits = RunLimits(
            turns=job.turns or turns,
            tokens=job.tokens,
            cost_usd=job.cost_usd,
            seconds=None if deadline is None else max(0.0, round(deadline - self.timer(), 1)),
        )
        request = RunRequest(
            prompt=progress.prompt,
            folder=Path(job.workdir),
            access=job.access,
            limits=limits,
            model=job.model,
        )
        try:
            result = prepared.runner.run(request, on_step=monitor.on_step, cancelled=cancelled)
        finally:
            # The session is known even if the run raised an error.
            progress.update(session=monitor.session)
        outcome = monitor.outcome(job, result)
        progress.update(
            **asdict(outcome),
            session=result.session,
            model=result.model or progress.run.model,
            tokens=result.tokens.total,
            cost_usd=result.tokens.cost_usd,
        )
        progress.update(remarks=(*prepared.remarks, *outcome.remarks))

    def _run_script(
        self,
        job: Job,
        progress: _RunProgress,
        deadline: float | None,
        cancelled: Callable[[], bool],
    ) -> ScriptRun:
        remaining = job.script_seconds if deadline is None else deadline - self.timer()
        script = run_script(
            self._scripts_folder,
            job.script,
            workdir=Path(job.workdir),
            job=job.name,
            timeout_s=max(0.0, min(job.script_seconds, remaining)),
            environment=self.environment,
            cancelled=cancelled,
        )
        progress.script = script.output
        return script

    def _announce(self, job: Job, progress: _RunProgress, *, delivers: bool) -> None:
        """Write the output file of a run and deliver the result. Failures are always delivered."""
        try:
            texts = {"prompt": progress.prompt, "script": progress.script}
            path = write_output(self.settings.home / "jobs", job, progress.run, **texts)
            progress.update(output=str(path))
        except JourneymanError as error:
            logger.warning("job %s: %s", job.name, error)
            progress.update(remarks=(*progress.run.remarks, str(error)))
        if not delivers or progress.run.status == "silent":
            return
        message, now = run_message(job, progress.run), self.clock()
        sent = deliver(message, job.deliver, terminal=self.terminal, job=job.name, at=now)
        progress.update(**asdict(sent))
        if sent.undelivered and progress.run.is_good:
            reason = f"The result could not be delivered to {'; '.join(sent.undelivered)}"
            progress.update(status="delivery_failed", reason=reason)
