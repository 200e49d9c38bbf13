"""One run of a job, from the moment it is claimed to the moment its answer is delivered: what it
needs, its script, the agent's turn, what came of it, the file, the delivery.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from journeyman.agent.agent import Agent
from journeyman.agent.limits import Limits
from journeyman.models.model import Model
from journeyman.records.errors import JobBlocked, JourneymanError, MissingPart, WrongInput
from journeyman.records.job import Job, Run, RunStatus
from journeyman.schedule.backing_off import settled
from journeyman.schedule.delivery import deliver, find_trouble
from journeyman.schedule.job_tools import check_tools, chosen_tools, is_remote
from journeyman.schedule.output import write_output
from journeyman.schedule.preparing import Making, Ready, prepared
from journeyman.schedule.prompt import Runtime, system_block, user_message
from journeyman.schedule.scripts import ScriptRun, check_script_name, run_script
from journeyman.schedule.standing import known_following
from journeyman.schedule.telling import message_of
from journeyman.schedule.watching import Watch

logger = logging.getLogger(__name__)

_REVIEW_S = 60.0
"""How long a review of the run may take before the agent is let go."""
_LOOK_S = 0.2


_AFTER_SCRIPT: dict[str, RunStatus] = {
    "failed": "failed",
    "timed_out": "timed_out",
    "cancelled": "interrupted",
}


class Places(Struct, frozen=True, kw_only=True):
    """Where jobs find and leave things."""

    scripts: Path
    outputs: Path
    environment: Mapping[str, str]


class _Progress(Struct, kw_only=True):
    """A run as far as it has come, and what its file shows besides: filled while it goes on."""

    run: Run
    prompt: str
    script: str = ""


class JobRunner:
    """Runs jobs. `minimum` is the smallest window that a model may have, `turns` how often it is
    asked at most where the job does not say; `terminal` hears what is delivered there.
    """

    def __init__(
        self,
        making: Making,
        places: Places,
        *,
        minimum: int,
        turns: int | None,
        terminal: Callable[[str], None],
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._making, self._places, self._minimum, self._turns = making, places, minimum, turns
        self._terminal, self._clock, self._timer = terminal, clock, timer

    def refuse(self, job: Job) -> None:
        """Raise WrongInput for what can never be right, whatever is put in place later."""
        check_tools(job.tools, self._making.tool_names)
        self._making.route(job)
        if job.script:
            check_script_name(self._places.scripts, job.script)

    def check(self, job: Job) -> tuple[str, ...]:
        """Look at everything that a run begins with, and run nothing; what there is to know about
        it. Raises WrongInput or MissingPart for what would block it.
        """
        ready = self._prepared(job)
        with self._agent(job, ready, lambda _line: None):
            return (*ready.remarks, *find_trouble(job.deliver))

    def work(
        self,
        job: Job,
        run: Run,
        cancelled: Callable[[], bool],
        *,
        is_own: Callable[[], bool] = lambda: True,
        delivers: bool = True,
    ) -> Run:
        """Run a job, keep what came of it and deliver it, if the run `is_own` still then: another
        may have said by now what became of it. Never raises.
        """
        progress = _Progress(run=run, prompt=job.prompt)
        try:
            done = self._done(job, progress, cancelled)
        except JourneymanError as error:
            is_begun = bool(progress.run.session)
            is_wrong = isinstance(error, WrongInput | MissingPart)
            status: RunStatus = "blocked" if is_wrong and not is_begun else "failed"
            done = msgspec.structs.replace(progress.run, status=status, reason=str(error))
        except Exception as error:
            # One job's trouble is not the scheduler's.
            logger.exception("a run ended in a way that it should not")
            reason = f"This should not happen: {type(error).__name__}: {error}"
            done = msgspec.structs.replace(progress.run, status="failed", reason=reason)
        done = msgspec.structs.replace(done, ended_at=max(run.started_at, self._clock()))
        if not is_own():
            return done
        # How the job will stand is said before it stands so: this is the last word on the run.
        then = settled(job, done, now=self._clock(), following=known_following)
        return self._told(then, done, progress, delivers=delivers)

    def announce(self, job: Job, run: Run) -> Run:
        """Keep and deliver what is known of a run that ended in another way; the job stands
        already as it does after it. Never raises.
        """
        return self._told(job, run, _Progress(run=run, prompt=job.prompt), delivers=True)

    def _done(self, job: Job, progress: _Progress, cancelled: Callable[[], bool]) -> Run:
        ready = self._prepared(job)
        for remark in ready.remarks:
            logger.warning("job %s: %s", job.name, remark)
        progress.run = msgspec.structs.replace(
            progress.run,
            model=ready.model.name,
            provider=ready.model.provider,
            remarks=ready.remarks,
        )
        until = None if job.seconds is None else self._timer() + job.seconds
        printed = None
        if ready.script is not None:
            printed = self._run_script(job, ready.script, until, cancelled)
            progress.script = printed.output
            remarks = (*progress.run.remarks, *printed.remarks)
            progress.run = msgspec.structs.replace(progress.run, remarks=remarks)
            if printed.ending != "ok" or not printed.wakes:
                return _without_agent(job, progress.run, printed)
        progress.prompt = user_message(
            job,
            skills=ready.skills,
            script=None if printed is None else printed.output,
            script_remarks=() if printed is None else printed.remarks,
        )
        return self._run_agent(job, progress, ready, until=until, cancelled=cancelled)

    def _prepared(self, job: Job) -> Ready:
        return prepared(job, self._making, scripts=self._places.scripts, minimum=self._minimum)

    def _run_script(
        self, job: Job, script: Path, until: float | None, cancelled: Callable[[], bool]
    ) -> ScriptRun:
        left = job.script_seconds if until is None else until - self._timer()
        return run_script(
            script,
            folder=self._places.scripts,
            workdir=Path(job.workdir),
            job=job.name,
            timeout_s=max(0.0, min(job.script_seconds, left)),
            environment=self._places.environment,
            cancelled=cancelled,
        )

    @contextmanager
    def _agent(
        self, job: Job, ready: Ready, tell: Callable[[str], None], until: float | None = None
    ) -> Iterator[Agent]:
        """The agent of a run. Raises WrongInput when it cannot be had as the job wants it."""

        def choose(available: Sequence[str]) -> Sequence[str]:
            remote = is_remote(ready.base_url, ready.model.provider)
            return chosen_tools(available, job.tools, remote=remote)

        def briefing(model: Model, tools: Sequence[str]) -> str:
            runtime = Runtime(
                model=model.name,
                provider=model.provider,
                context_tokens=model.context_tokens,
                tools=tuple(tools),
            )
            return system_block(job, runtime, now=self._clock())

        limits = Limits(
            turns=self._turns if job.turns is None else job.turns,
            tokens=job.tokens,
            cost_usd=job.cost_usd,
            seconds=None if until is None else max(0.0, round(until - self._timer(), 1)),
        )
        with self._making.agent(
            job,
            ready.model,
            ready.base_url,
            limits=limits,
            choose=choose,
            briefing=briefing,
            tell=tell,
        ) as agent:
            if job.cost_usd is not None and not agent.knows_cost:
                raise JobBlocked(
                    f"The job may cost ${job.cost_usd:g}, but no price is known for "
                    f"{ready.model.name}, so that limit would not hold. Limit its --tokens "
                    "instead, or choose another model."
                )
            yield agent

    def _run_agent(
        self,
        job: Job,
        progress: _Progress,
        ready: Ready,
        *,
        until: float | None,
        cancelled: Callable[[], bool],
    ) -> Run:
        watch, run = Watch(job), progress.run
        try:
            with self._agent(job, ready, watch.tell, until) as agent:
                turn = agent.run_conversation(
                    progress.prompt,
                    on_step=watch.see,
                    cancelled=lambda: cancelled() or watch.is_over,
                )
                patient_until = self._timer() + _REVIEW_S
                while not cancelled() and self._timer() < patient_until:
                    if agent.wait_for_review(_LOOK_S):
                        break
        finally:
            # What was used is known also where the turn ended by an error.
            used = {"session": watch.session, "tokens": watch.tokens}
            progress.run = msgspec.structs.replace(run, **used)
        outcome = watch.outcome(turn)
        odd = (outcome.reason,) if outcome.status == "ok" and outcome.reason else ()
        return msgspec.structs.replace(
            run,
            status=outcome.status,
            reason="" if odd else outcome.reason,
            answer=outcome.answer,
            session=turn.session,
            tokens=turn.tokens,
            cost_usd=turn.cost_usd,
            remarks=(*run.remarks, *odd, *watch.remarks),
        )

    def _told(self, job: Job, run: Run, shown: _Progress, *, delivers: bool) -> Run:
        """The run, kept in its file and delivered. A failure is always delivered."""
        run = self._kept(job, run, shown)
        if not delivers or run.status == "silent":
            return run
        sent = deliver(
            message_of(job, run, job.remark),
            job.deliver,
            terminal=self._terminal,
            job=job.name,
            at=self._clock(),
        )
        run = msgspec.structs.replace(run, delivered=sent.delivered, undelivered=sent.undelivered)
        if sent.undelivered and run.is_good:
            reason = f"It could not be delivered to {'; '.join(sent.undelivered)}"
            run = msgspec.structs.replace(run, status="delivery_failed", reason=reason)
        return self._kept(job, run, shown)

    def _kept(self, job: Job, run: Run, shown: _Progress) -> Run:
        try:
            path = write_output(
                self._places.outputs, job, run, prompt=shown.prompt, script=shown.script
            )
        except JourneymanError as error:
            logger.warning("job %s: %s", job.name, error)
            if str(error) in run.remarks:
                return run
            return msgspec.structs.replace(run, remarks=(*run.remarks, str(error)))
        return msgspec.structs.replace(run, output=str(path))


def _without_agent(job: Job, run: Run, printed: ScriptRun) -> Run:
    """What came of a run that ends with its script."""
    run = msgspec.structs.replace(run, tokens=0, cost_usd=0.0)
    if printed.ending == "ok":
        reason = f"The script {job.script} said that there is nothing to do."
        return msgspec.structs.replace(run, status="silent", reason=reason)
    verb = "was stopped" if printed.ending == "cancelled" else "failed"
    reason = f"The script {job.script} {verb}: {printed.reason}. The agent was not asked."
    return msgspec.structs.replace(run, status=_AFTER_SCRIPT[printed.ending], reason=reason)
