"""Prepares a run: chooses what does the work, and checks everything before anything is spent."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from journeyman.agent.agent import Agent
from journeyman.agent.dispatch import no_approver
from journeyman.agent.factory import AgentFactory, AgentOptions
from journeyman.agent.runner import AgentRunner
from journeyman.hosts.pages import PAGES
from journeyman.hosts.runner import HostRunners, Runner, RunRequest
from journeyman.jobs.guard import (
    ModelRoute,
    check_tools,
    check_window,
    is_remote,
    is_simple,
    select_tools,
)
from journeyman.jobs.outcome import RunMonitor, finish_tool
from journeyman.jobs.prompt import Runtime, runtime_block
from journeyman.jobs.scripts import check_script_name, resolve_script
from journeyman.jobs.time_zones import get_zone
from journeyman.models.factory import endpoint, make_model
from journeyman.models.model import Model
from journeyman.records.errors import JobBlocked, WrongInput
from journeyman.records.job import OWN_RUNNER, Job
from journeyman.settings import EMBEDDED, Settings

_WARM = ("auto", "off")


class PreparedRun(Struct, frozen=True, kw_only=True):
    """What a run needs: what does the work, what it really runs on, and the texts of its skills.
    `check` looks further than a run has to, and returns what would go wrong.
    """

    runner: Runner
    runtime: Runtime
    check: Callable[[], tuple[str, ...]]
    skills: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(kw_only=True, eq=False)
class RunPreparer:
    """Prepares runs. `models` supplies the caller's own models, and `hosts` the runners of hosts,
    without which only the small loop works.
    """

    settings: Settings
    agents: AgentFactory
    experience: Any
    environment: Mapping[str, str]
    models: Callable[[ModelRoute], Model] | None = None
    hosts: HostRunners | None = None
    clock: Callable[[], float]
    timer: Callable[[], float]

    @property
    def _scripts_folder(self) -> Path:
        return self.settings.home / "scripts"

    def choose_runner(self, job: Job) -> str:
        """Return the runner of a job that names none: the small loop if an option is only for it,
        else what `run` would choose. Raise BadSetting if there is none.
        """
        if self.hosts is None or _has_own_options(job) or job.model == EMBEDDED:
            return OWN_RUNNER
        return self.hosts.choose(Path(job.workdir))

    def check_definition(self, job: Job) -> None:
        """Raise WrongInput or BadSetting for a definition that can never be valid."""
        if job.runner == OWN_RUNNER:
            if job.access != "edit":
                raise WrongInput(
                    f"--access is for the agents of hosts; choose the tools of {OWN_RUNNER} with "
                    "--tool."
                )
            check_tools(job.tools, self.agents.builtin_tools())
            self.route(job)
        elif job.runner not in PAGES:
            names = ", ".join((*PAGES, OWN_RUNNER))
            raise WrongInput(f"There is no agent {job.runner!r}. Choose from: {names}.")
        elif _has_own_options(job):
            raise WrongInput(
                f"Providers, tools and templates are chosen for --with {OWN_RUNNER}; {job.runner} "
                "has its own settings, and starts with --warm auto or off."
            )
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

    def prepare(self, job: Job, monitor: RunMonitor) -> PreparedRun:
        """Find and check everything a run needs. Raise WrongInput, BadSetting or MissingPart."""
        get_zone(job.schedule.timezone)  # it may be unknown to this machine
        if not Path(job.workdir).is_dir():
            raise JobBlocked(
                f"The job works in {job.workdir}, which is not a folder. Create it, or change the "
                "job with --replace --workspace FOLDER."
            )
        if job.script:
            resolve_script(self._scripts_folder, job.script)
        skills = tuple((name, self.agents.knowledge.skills.view(name)) for name in job.skills)
        prepare = self._own if job.runner == OWN_RUNNER else self._host
        return msgspec.structs.replace(prepare(job, monitor), skills=skills)

    def _host(self, job: Job, monitor: RunMonitor) -> PreparedRun:
        if self.hosts is None:
            raise WrongInput(
                f"The job works with {job.runner}, which this process cannot start: use the "
                "program's `jobs` commands, or the jobs of journeyman.plugin.runs.host_jobs."
            )
        page = next(page for page in PAGES.values() if page.name == job.runner)
        request = RunRequest(prompt=job.prompt, folder=Path(job.workdir), model=job.model)
        window = page.window(request, self.environment)
        model = f"{job.model} in {page.title}" if job.model else f"{page.title}'s model"
        place = f"it in the settings of {page.title}"
        remarks = check_window(
            window, minimum=self.settings.jobs.min_context, model=model, place=place
        )
        runner = self.hosts.make(
            job.runner,
            owner=f"job:{job.name}",
            warm=job.warm != "off",
            holds=job.risky == "hold",
            notify=monitor.notices.append,
        )

        def check() -> tuple[str, ...]:
            program = shutil.which(page.program, path=self.environment.get("PATH"))
            if program is None:
                return (f"{page.title} is not installed. To install it: {page.install}",)
            has_login = page.login(program, self.environment) != "no"
            return () if has_login else (f"{page.title} has no login. Log in: {page.log_in}",)

        return PreparedRun(
            runner=runner,
            runtime=Runtime(
                model=job.model or f"as chosen in {page.title}",
                provider=page.title,
                window=window,
                tools=(f"as {page.title} has them",),
                finishes=False,
            ),
            remarks=remarks,
            check=check,
        )

    def _own(self, job: Job, monitor: RunMonitor) -> PreparedRun:
        if job.warm not in _WARM:
            self.experience.templates.get(job.warm)
        route = self.route(job)
        settings = endpoint(self.settings, route.provider)
        model = make_model(settings, route.model) if self.models is None else self.models(route)
        table = f"providers.{route.provider}" if route.provider else "model"
        remarks = check_window(
            model.context_tokens,
            minimum=self.settings.jobs.min_context,
            model=f"{model.name} ({model.provider})" if model.provider else model.name,
            place=f"{table}.context_length in config.toml",
        )
        remote = is_remote(settings.base_url, model.provider)
        tools = select_tools(self.agents.builtin_tools(), job.tools, remote=remote)
        runtime = Runtime(
            model=model.name, provider=model.provider, window=model.context_tokens, tools=tools
        )

        def build(request: RunRequest) -> Agent:
            options = AgentOptions(
                model=model,
                workspace=request.folder,
                warm=job.warm,
                # None asks the confirmation service.
                ask=None if job.risky == "hold" else no_approver,
                limits=request.limits,
                tell=monitor.notices.append,
                platform="job",
                tags=("job", f"job:{job.name}"),
                base_url=settings.base_url,
                only=tools,
                tools=(finish_tool(monitor.on_finish),),
                briefing=runtime_block(job, runtime, now=self.clock()),
                about=job.prompt,
            )
            agent = self.agents.agent(options)
            if job.cost_usd is None or agent.knows_cost:
                return agent
            agent.close()
            raise JobBlocked(
                f"The job has a cost limit of ${job.cost_usd:g}, but the price of {model.name} is "
                "unknown, so the limit cannot be enforced. Limit its --tokens instead, or choose "
                "another model."
            )

        def check() -> tuple[str, ...]:
            with build(RunRequest(prompt=job.prompt, folder=Path(job.workdir))):
                return ()

        after = partial(monitor.wait_for_review, timer=self.timer)
        runner = AgentRunner(build=build, after=after)
        return PreparedRun(runner=runner, runtime=runtime, remarks=remarks, check=check)


def _has_own_options(job: Job) -> bool:
    """Return whether a job has options that only the small loop knows."""
    return bool(job.provider) or job.tools is not None or job.warm not in _WARM
