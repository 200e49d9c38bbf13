"""One run of a job: preparation, script, agent, outcome, output file and delivery."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, replace

from journeyman.agent.agent import Agent
from journeyman.agent.turn import Begun, Called, Limits, Replied, Step, Turn
from journeyman.agent_making import TOOL_NAMES, AgentMaking, endpoint, make_model
from journeyman.jobs.delivery import deliver, find_trouble, message_of
from journeyman.jobs.guard import (
    Route,
    check_tools,
    check_window,
    chosen_tools,
    is_remote,
    is_simple,
)
from journeyman.jobs.lifecycle import settled
from journeyman.jobs.outcome import FINISH, Finished, Outcome, finish_tool, outcome_of
from journeyman.jobs.output import write_output
from journeyman.jobs.prompt import system_block, user_message
from journeyman.jobs.scripts import check_script_name, find_script, run_script
from journeyman.models.model import Model
from journeyman.records.errors import JobBlocked, JourneymanError, MissingPart, WrongInput
from journeyman.records.job import Job, Run
from journeyman.settings import Settings
from journeyman.warm_session import Experience

logger = logging.getLogger(__name__)

LONGEST_ANSWER = 100_000
NO_USAGE = (
    "The model's server does not tell what it uses, so the limit on tokens or cost cannot hold. It "
    "was stopped after the first request; limit the job's --turns and --seconds instead."
)
_REVIEW_S = 60.0
"""How long a review of the run may take before the agent is let go."""
_LOOK_S = 0.2


class _Progress(Struct, kw_only=True):
    """A run as far as it has come, and what its file shows besides: filled while it goes on."""

    run: Run
    prompt: str
    script: str = ""

    def note(self, **known: object) -> None:
        self.run = replace(self.run, **known)


class Prepared(Struct, frozen=True, kw_only=True):
    """What a run begins with. `base_url` is the model's address, `skills` are names and texts."""

    model: Model
    base_url: str
    skills: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(kw_only=True, eq=False)
class JobRunner:
    """Runs jobs. `models` makes models of the caller's own, `terminal` hears what is delivered."""

    settings: Settings
    agents: AgentMaking
    experience: Experience
    environment: Mapping[str, str]
    models: Callable[[Route], Model] | None = None
    terminal: Callable[[str], None] = lambda _text: None
    clock: Callable[[], float] = time.time
    timer: Callable[[], float] = time.monotonic

    @property
    def _scripts(self) -> Path:
        return self.settings.home / "scripts"

    def check_definition(self, job: Job) -> None:
        """Raise WrongInput or BadSetting for what can never be right, whatever is put in place."""
        check_tools(job.tools, TOOL_NAMES)
        self.route(job)
        if job.script:
            check_script_name(self._scripts, job.script)

    def route(self, job: Job) -> Route:
        """The model that a job asks: its own, the one for simple prompts, or the usual one."""
        usual, given = endpoint(self.settings, job.provider).name, self.settings.jobs
        if job.model or job.provider:
            return Route(model=job.model or usual, provider=job.provider)
        if given.simple_model and is_simple(job, given.simple_words):
            return Route(model=given.simple_model, provider=given.simple_provider)
        return Route(model=usual, provider="")

    def prepare(self, job: Job) -> Prepared:
        """Find and check all that a run needs. Raises WrongInput, BadSetting and MissingPart."""
        if job.warm not in ("auto", "off"):
            self.experience.templates.get(job.warm)
        if not Path(job.workdir).is_dir():
            raise JobBlocked(
                f"The job works in {job.workdir}, which is not a folder. Make it, or change the "
                "job with --replace --workdir FOLDER."
            )
        if job.script:
            find_script(self._scripts, job.script)
        skills = tuple((name, self.agents.knowledge.skills.view(name)) for name in job.skills)
        route = self.route(job)
        given = endpoint(self.settings, route.provider)
        model = make_model(given, route.model) if self.models is None else self.models(route)
        table = f"providers.{route.provider}" if route.provider else "model"
        setting, minimum = f"{table}.context_length", self.settings.jobs.min_context
        remarks = check_window(model, minimum=minimum, setting=setting)
        return Prepared(model=model, base_url=given.base_url, skills=skills, remarks=remarks)

    def check(self, job: Job) -> tuple[str, ...]:
        """Remarks on what a run would begin with. Raises WrongInput or MissingPart if blocked."""
        prepared = self.prepare(job)
        with self._agent(job, prepared, _Watch(job)):
            return (*prepared.remarks, *find_trouble(job.deliver))

    def work(
        self,
        job: Job,
        run: Run,
        cancelled: Callable[[], bool],
        *,
        is_own: Callable[[], bool] = lambda: True,
        delivers: bool = True,
    ) -> Run:
        """Run a job, keep and deliver what came of it if the run `is_own` still. Never raises."""
        progress = _Progress(run=run, prompt=job.prompt)
        try:
            self._run(job, progress, cancelled)
        except JourneymanError as error:
            is_early = isinstance(error, WrongInput | MissingPart) and not progress.run.session
            progress.note(status="blocked" if is_early else "failed", reason=str(error))
        except Exception as error:
            # One job's trouble is not the scheduler's.
            logger.exception("a run ended in a way that it should not")
            reason = f"This should not happen: {type(error).__name__}: {error}"
            progress.note(status="failed", reason=reason)
        progress.note(ended_at=max(run.started_at, self.clock()))
        if is_own():
            # Said before it is kept: a program that is killed now has the run marked as crashed.
            self._announce(settled(job, progress.run, self.clock()), progress, delivers=delivers)
        return progress.run

    def announce(self, job: Job, run: Run) -> Run:
        """Keep and deliver what is known of a run that ended in another way. Never raises."""
        progress = _Progress(run=run, prompt=job.prompt)
        self._announce(job, progress, delivers=True)
        return progress.run

    def _run(self, job: Job, progress: _Progress, cancelled: Callable[[], bool]) -> None:
        prepared = self.prepare(job)
        model, remarks, script = prepared.model, prepared.remarks, None
        for remark in remarks:
            logger.warning("job %s: %s", job.name, remark)
        progress.note(model=model.name, provider=model.provider, remarks=remarks)
        until = None if job.seconds is None else self.timer() + job.seconds
        if job.script:
            left = job.script_seconds if until is None else until - self.timer()
            script = run_script(
                self._scripts,
                job.script,
                workdir=Path(job.workdir),
                job=job.name,
                timeout_s=max(0.0, min(job.script_seconds, left)),
                environment=self.environment,
                cancelled=cancelled,
            )
            progress.script = script.output
            progress.note(remarks=(*remarks, *script.remarks))
            if script.status != "ok":
                after = "" if script.status == "silent" else " The agent was not asked."
                reason = f"The script {job.script} {script.reason}.{after}"
                progress.note(status=script.status, reason=reason, tokens=0, cost_usd=0.0)
                return
        progress.prompt = user_message(job, skills=prepared.skills, script=script)
        self._run_agent(job, progress, prepared, until=until, cancelled=cancelled)

    @contextmanager
    def _agent(
        self, job: Job, prepared: Prepared, watch: "_Watch", until: float | None = None
    ) -> Iterator[Agent]:
        """The agent of a run, without a person to ask. Raises WrongInput when it cannot be had."""
        model, remote = prepared.model, is_remote(prepared.base_url, prepared.model.provider)
        tools = chosen_tools(TOOL_NAMES, job.tools, remote=remote)
        limits = Limits(
            turns=self.settings.agent.turns if job.turns is None else job.turns,
            tokens=job.tokens,
            cost_usd=job.cost_usd,
            seconds=None if until is None else max(0.0, round(until - self.timer(), 1)),
        )
        with self.agents.agent(
            model,
            workspace=Path(job.workdir),
            warm=job.warm,
            ask=None,
            limits=limits,
            review=None,
            tell=watch.told.append,
            platform="job",
            tags=("job", f"job:{job.name}"),
            base_url=prepared.base_url,
            only=tools,
            more_tools=(finish_tool(watch.finish),),
            briefing=system_block(job, model, tools, now=self.clock()),
            about=job.prompt,
        ) as agent:
            if job.cost_usd is not None and not agent.knows_cost:
                raise JobBlocked(
                    f"The job may cost ${job.cost_usd:g}, but no price is known for "
                    f"{model.name}, so that limit would not hold. Limit its --tokens "
                    "instead, or choose another model."
                )
            yield agent

    def _run_agent(
        self,
        job: Job,
        progress: _Progress,
        prepared: Prepared,
        *,
        until: float | None,
        cancelled: Callable[[], bool],
    ) -> None:
        watch, remarks = _Watch(job), progress.run.remarks
        try:
            with self._agent(job, prepared, watch, until) as agent:
                turn = agent.run_conversation(
                    progress.prompt,
                    on_step=watch.see,
                    cancelled=lambda: cancelled() or watch.is_over,
                )
                patient_until = self.timer() + _REVIEW_S
                while not cancelled() and self.timer() < patient_until:
                    if agent.wait_for_review(_LOOK_S):
                        break
        finally:
            # What was used is known also where the turn ended by an error.
            progress.note(session=watch.session, tokens=watch.tokens)
        outcome = watch.outcome(turn)
        progress.note(
            **asdict(outcome),
            session=turn.session,
            tokens=turn.tokens,
            cost_usd=turn.cost_usd,
        )
        progress.note(remarks=(*remarks, *outcome.remarks, *watch.remarks))

    def _announce(self, job: Job, progress: _Progress, *, delivers: bool) -> None:
        """Keep the run in its file, and then deliver it. A failure is always delivered."""
        try:
            shown = {"prompt": progress.prompt, "script": progress.script}
            path = write_output(self.settings.home / "jobs", job, progress.run, **shown)
            progress.note(output=str(path))
        except JourneymanError as error:
            logger.warning("job %s: %s", job.name, error)
            progress.note(remarks=(*progress.run.remarks, str(error)))
        if not delivers or progress.run.status == "silent":
            return
        message, now = message_of(job, progress.run), self.clock()
        sent = deliver(message, job.deliver, terminal=self.terminal, job=job.name, at=now)
        progress.note(**asdict(sent))
        if sent.undelivered and progress.run.is_good:
            reason = f"It could not be delivered to {'; '.join(sent.undelivered)}"
            progress.note(status="delivery_failed", reason=reason)


class _Watch:
    """Watches one turn of a job's agent. `is_over` says that it must not go on."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._limits_use = job.tokens is not None or job.cost_usd is not None
        self.session = ""
        self.tokens: int | None = None
        self.is_over = False
        self._finished: Finished | None = None
        self._last_tool = ""
        self.told: list[str] = []
        self._refused = 0

    def finish(self, finished: Finished) -> None:
        """Hear what the agent says of its work; its last word counts."""
        self._finished = finished

    def see(self, step: Step) -> None:
        """See a step of the turn."""
        if isinstance(step, Begun):
            self.session = step.session
        elif isinstance(step, Replied):
            used = step.reply.tokens.total
            if used is not None:
                self.tokens = (self.tokens or 0) + used
            elif self._limits_use:
                self.is_over = True
        elif isinstance(step, Called):
            self._last_tool = step.call.name
            self._refused += step.result.recorded.status == "blocked"

    @property
    def remarks(self) -> tuple[str, ...]:
        calls = "1 call was" if self._refused == 1 else f"{self._refused} calls were"
        return (*dict.fromkeys(self.told), *((f"{calls} refused.",) if self._refused else ()))

    def outcome(self, turn: Turn) -> Outcome:
        """What came of the turn. An answer of absurd length is cut; the session has all of it."""
        stop, note, answer = turn.stop, turn.note, turn.final_response
        if len(answer) > LONGEST_ANSWER:
            cut = f"[… cut here: the answer has {len(answer):,} characters …]"
            answer = f"{answer[:LONGEST_ANSWER]}\n{cut}"
        has_finished = self._finished is not None and self._last_tool == FINISH
        if has_finished and stop in ("turns", "tokens", "cost"):
            stop = "done"  # no more than a last word was left to say
        elif self.is_over and stop == "interrupted":
            stop, note = "tokens", NO_USAGE
        elif stop == "time" and self._job.seconds is not None:
            note = f"Its time of {self._job.seconds:g} seconds is over."
        return outcome_of(stop=stop, answer=answer, note=note, finished=self._finished)
