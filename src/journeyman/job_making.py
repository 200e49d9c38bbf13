"""Jobs put together from the settings: which model a job asks, the agent it gets, where its script
and its output are. What jobs do, the room `schedule` knows.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from journeyman.agent.agent import Agent
from journeyman.agent.limits import Limits
from journeyman.agent_making import TOOL_NAMES, AgentMaking, endpoint, make_model
from journeyman.models.model import Model
from journeyman.records.job import Job
from journeyman.schedule.jobs import Jobs, Usual
from journeyman.schedule.routing import Route, route
from journeyman.schedule.running import JobRunner, Places
from journeyman.schedule.timing.zones import machine_zone
from journeyman.settings import Settings
from journeyman.store.store import Store
from journeyman.warm_session.experience import Experience


class JobMaking:
    """What a run needs that the settings decide. `models` makes a model in another way than the
    settings have it, for programs that bring their own.
    """

    def __init__(
        self,
        settings: Settings,
        agents: AgentMaking,
        experience: Experience,
        models: Callable[[Route], Model] | None = None,
    ) -> None:
        self._settings, self._agents, self._experience = settings, agents, experience
        self._models = models

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The tools that an agent can have."""
        return TOOL_NAMES

    def route(self, job: Job) -> Route:
        """Which model the job asks, decided on its own prompt."""
        given = self._settings.jobs
        return route(
            job,
            usual_model=endpoint(self._settings, job.provider).name,
            simple_model=given.simple_model,
            simple_provider=given.simple_provider,
            simple_words=given.simple_words,
        )

    def model(self, route: Route) -> tuple[Model, str]:
        """That model, and the address at which it is asked."""
        given = endpoint(self._settings, route.provider)
        if self._models is not None:
            return self._models(route), given.base_url
        return make_model(given, route.model), given.base_url

    def skill(self, name: str) -> str:
        """The text of a skill."""
        return self._agents.knowledge.skills.view(name)

    def check_warm(self, warm: str) -> None:
        """Raises WrongInput when the examples are to come from a template that is not there."""
        if warm not in ("auto", "off"):
            self._experience.templates.get(warm)

    def agent(
        self,
        job: Job,
        model: Model,
        base_url: str,
        *,
        limits: Limits,
        choose: Callable[[Sequence[str]], Sequence[str]],
        briefing: Callable[[Model, Sequence[str]], str],
        tell: Callable[[str], None],
    ) -> Agent:
        """The agent of a run. Risky calls are asked about where a confirmation service is
        configured, and refused otherwise.
        """
        return self._agents.agent(
            model,
            workspace=Path(job.workdir),
            warm=job.warm,
            ask=None,
            limits=limits,
            review=None,
            tell=tell,
            platform="job",
            tags=("job", f"job:{job.name}"),
            base_url=base_url,
            choose=choose,
            briefing=briefing,
            about=job.prompt,
        )


def make_jobs(
    settings: Settings,
    store: Store,
    making: JobMaking,
    *,
    environment: Mapping[str, str],
    clock: Callable[[], float],
    timer: Callable[[], float],
) -> Jobs:
    """The jobs of the settings' home."""
    given = settings.jobs
    places = Places(
        scripts=settings.home / "scripts",
        outputs=settings.home / "jobs",
        environment=environment,
    )

    def runner(terminal: Callable[[str], None]) -> JobRunner:
        return JobRunner(
            making,
            places,
            minimum=given.min_context,
            turns=settings.agent.turns,
            terminal=terminal,
            clock=clock,
            timer=timer,
        )

    usual = Usual(
        timezone=given.timezone or machine_zone(environment),
        deliver=given.deliver or ("terminal",),
        workers=given.workers,
    )
    return Jobs(store.jobs, store.job_claims, runner, usual, clock=clock, timer=timer)
