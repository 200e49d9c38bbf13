"""One run of a job: preparation, script, agent, outcome, output file and delivery."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from journeyman.agent.agent import Agent
from journeyman.agent.factory import AgentFactory, AgentOptions
from journeyman.agent.turn import Turn
from journeyman.hosts.runner import RunBegan, RunCall, RunLimits, RunStep
from journeyman.jobs.delivery import deliver, run_message
from journeyman.jobs.guard import (
    ModelRoute,
    check_tools,
    check_window,
    is_remote,
    is_simple,
    select_tools,
)
from journeyman.jobs.lifecycle import apply_result
from journeyman.jobs.outcome import FINISH, FinishReport, Outcome, determine_outcome, finish_tool
from journeyman.jobs.output import write_output
from journeyman.jobs.prompt import system_block, user_message
from journeyman.jobs.scripts import check_script_name, resolve_script, run_script
from journeyman.models.factory import endpoint, make_model
from journeyman.models.model import Model
from journeyman.records.errors import JobBlocked, JourneymanError, MissingPart, WrongInput
from journeyman.records.job import Job, Run
from journeyman.settings import Settings

logger = logging.getLogger(__name__)

MAX_ANSWER = 100_000
_MAX_REVIEW_S = 60.0
"""How long to wait for the review of a run before the agent is closed."""
_POLL_S = 0.2


class _RunProgress(Struct, kw_only=True):
    """A run in progress, and the texts that its output file adds. Updated during the run."""

    run: Run
    prompt: str
    script: str = ""

    def update(self, **fields: object) -> None:
        self.run = replace(self.run, **fields)


class PreparedRun(Struct, frozen=True, kw_only=True):
    """What a run needs. `base_url` is the model's address, `skills` are names and texts."""

    model: Model
    base_url: str
    skills: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(kw_only=True, eq=False)
class JobRunner:
    """Runs jobs. `models` supplies the caller's own models; `terminal` receives deliveries."""

    settings: Settings
    agents: AgentFactory
    experience: Any
    environment: Mapping[str, str]
    models: Callable[[ModelRoute], Model] | None = None
    terminal: Callable[[str], None] = lambda _text: None
    clock: Callable[[], float] = time.time
    timer: Callable[[], float] = time.monotonic

    @property
    def _scripts_folder(self) -> Path:
        return self.settings.home / "scripts"

    def check_definition(self, job: Job) -> None:
        """Raise WrongInput or BadSetting for a definition that can never be valid."""
        check_tools(job.tools, self.agents.builtin_tools())
        self.route(job)
        if job.script:
            check_script_name(self._scripts_folder, job.script)

    def route(self, job: Job) -> ModelRoute:
        """Return the model of a job: its own, the one for simple prompts, or the default."""
        default, options = endpoint(self.settings, job.provider).name, self.settings.jobs
        if job.model or job.provider:
            return ModelRoute(model=job.model or default, provider=job.provider)
        if options.simple_model and is_simple(job, options.simple_words):
            return ModelRoute(model=options.simple_model, provider=options.simple_provider)
        return ModelRoute(model=default, provider="")

    def prepare(self, job: Job) -> PreparedRun:
        """Find and check everything a run needs. Raise WrongInput, BadSetting or MissingPart."""
        if job.warm not in ("auto", "off"):
            self.experience.templates.get(job.warm)
        if not Path(job.workdir).is_dir():
            raise JobBlocked(
                f"The job works in {job.workdir}, which is not a folder. Create it, or change the "
                "job with --replace --workspace FOLDER."
            )
        if job.script:
            resolve_script(self._scripts_folder, job.script)
        skills = tuple((name, self.agents.knowledge.skills.view(name)) for name in job.skills)
        route = self.route(job)
        settings = endpoint(self.settings, route.provider)
        model = make_model(settings, route.model) if self.models is None else self.models(route)
        table = f"providers.{route.provider}" if route.provider else "model"
        setting, minimum = f"{table}.context_length", self.settings.jobs.min_context
        remarks = check_window(model, minimum=minimum, setting=setting)
        return PreparedRun(model=model, base_url=settings.base_url, skills=skills, remarks=remarks)

    def check(self, job: Job) -> tuple[str, ...]:
        """Return remarks on a run that would start now. Raise WrongInput or MissingPart if it is
        blocked.
        """
        prepared = self.prepare(job)
        with self._agent(job, prepared, _TurnMonitor(job)):
            return prepared.remarks

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
        prepared = self.prepare(job)
        model, remarks, script = prepared.model, prepared.remarks, None
        for remark in remarks:
            logger.warning("job %s: %s", job.name, remark)
        progress.update(model=model.name, provider=model.provider, remarks=remarks)
        deadline = None if job.seconds is None else self.timer() + job.seconds
        if job.script:
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
            if script.status != "ok":
                note = "" if script.status == "silent" else " The agent did not run."
                reason = f"The script {job.script} {script.reason}.{note}"
                progress.update(status=script.status, reason=reason, tokens=0, cost_usd=0.0)
                return
        progress.prompt = user_message(job, skills=prepared.skills, script=script)
        self._run_agent(job, progress, prepared, deadline=deadline, cancelled=cancelled)

    @contextmanager
    def _agent(
        self,
        job: Job,
        prepared: PreparedRun,
        monitor: "_TurnMonitor",
        deadline: float | None = None,
    ) -> Iterator[Agent]:
        """Provide the agent of a run, with no person to ask for approval. Raise WrongInput if it
        cannot be created.
        """
        model, remote = prepared.model, is_remote(prepared.base_url, prepared.model.provider)
        tools = select_tools(self.agents.builtin_tools(), job.tools, remote=remote)
        limits = RunLimits(
            turns=self.settings.agent.turns if job.turns is None else job.turns,
            tokens=job.tokens,
            cost_usd=job.cost_usd,
            seconds=None if deadline is None else max(0.0, round(deadline - self.timer(), 1)),
        )
        options = AgentOptions(
            model=model,
            workspace=Path(job.workdir),
            warm=job.warm,
            limits=limits,
            tell=monitor.notices.append,
            platform="job",
            tags=("job", f"job:{job.name}"),
            base_url=prepared.base_url,
            only=tools,
            more_tools=(finish_tool(monitor.on_finish),),
            briefing=system_block(job, model, tools, now=self.clock()),
            about=job.prompt,
        )
        with self.agents.agent(options) as agent:
            if job.cost_usd is not None and not agent.knows_cost:
                raise JobBlocked(
                    f"The job has a cost limit of ${job.cost_usd:g}, but the price of "
                    f"{model.name} is unknown, so the limit cannot be enforced. Limit its "
                    "--tokens instead, or choose another model."
                )
            yield agent

    def _run_agent(
        self,
        job: Job,
        progress: _RunProgress,
        prepared: PreparedRun,
        *,
        deadline: float | None,
        cancelled: Callable[[], bool],
    ) -> None:
        monitor, remarks = _TurnMonitor(job), progress.run.remarks
        try:
            with self._agent(job, prepared, monitor, deadline) as agent:
                turn = agent.run_conversation(
                    progress.prompt,
                    on_step=monitor.on_step,
                    cancelled=cancelled,
                )
                review_deadline = self.timer() + _MAX_REVIEW_S
                while not cancelled() and self.timer() < review_deadline:
                    if agent.wait_for_review(_POLL_S):
                        break
        finally:
            # The session is known even if the turn raised an error.
            progress.update(session=monitor.session)
        outcome = monitor.outcome(turn)
        progress.update(
            **asdict(outcome),
            session=turn.session,
            tokens=turn.tokens.total,
            cost_usd=turn.tokens.cost_usd,
        )
        progress.update(remarks=(*remarks, *outcome.remarks, *monitor.remarks))

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


class _TurnMonitor:
    """Monitors one turn of a job's agent."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.session = ""
        self._report: FinishReport | None = None
        self._last_tool = ""
        self.notices: list[str] = []
        self._refused_calls = 0

    def on_finish(self, report: FinishReport) -> None:
        """Store the agent's report on its work; the last one counts."""
        self._report = report

    def on_step(self, step: RunStep) -> None:
        if isinstance(step, RunBegan):
            self.session = step.session
        elif isinstance(step, RunCall):
            self._last_tool = step.call.tool
            self._refused_calls += step.denied

    @property
    def remarks(self) -> tuple[str, ...]:
        calls = "1 call was" if self._refused_calls == 1 else f"{self._refused_calls} calls were"
        return (
            *dict.fromkeys(self.notices),
            *((f"{calls} refused.",) if self._refused_calls else ()),
        )

    def outcome(self, turn: Turn) -> Outcome:
        """Return the outcome of the turn. An excessively long answer is cut; the session has it
        all.
        """
        stop, note, answer = turn.status, turn.reason, turn.text
        if len(answer) > MAX_ANSWER:
            cut = f"[… cut here: the answer has {len(answer):,} characters …]"
            answer = f"{answer[:MAX_ANSWER]}\n{cut}"
        has_finished = self._report is not None and self._last_tool == FINISH
        if has_finished and stop in ("turns", "tokens", "cost"):
            stop = "done"  # only the closing message was missing
        elif stop == "time" and self._job.seconds is not None:
            note = f"The time limit of {self._job.seconds:g} seconds was reached."
        return determine_outcome(stop=stop, answer=answer, note=note, report=self._report)
