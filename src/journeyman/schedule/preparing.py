"""Everything that a job needs, found and checked before anything is spent: the model it is routed
to, room enough in its window, the script, the skills, the folder.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from journeyman.agent.agent import Agent
from journeyman.agent.limits import Limits
from journeyman.models.model import Model
from journeyman.records.errors import JobBlocked
from journeyman.records.job import Job
from journeyman.schedule.guard import check_window
from journeyman.schedule.routing import Route
from journeyman.schedule.scripts import find_script


class Making(Protocol):
    """What a run needs that the settings decide."""

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The tools that an agent can have."""
        ...

    def route(self, job: Job) -> Route:
        """Which model the job asks, decided on its own prompt. Raises BadSetting."""
        ...

    def model(self, route: Route) -> tuple[Model, str]:
        """That model, and the address at which it is asked. Raises BadSetting, MissingPart."""
        ...

    def skill(self, name: str) -> str:
        """The text of a skill. Raises WrongInput."""
        ...

    def check_warm(self, warm: str) -> None:
        """Raises WrongInput when the examples are to come from a template that is not there."""
        ...

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
    ) -> Agent: ...


class Ready(Struct, frozen=True, kw_only=True):
    """What a run begins with. `remarks` are what there is to know about it."""

    model: Model
    base_url: str
    skills: tuple[tuple[str, str], ...]
    script: Path | None
    remarks: tuple[str, ...] = ()


def prepared(job: Job, making: Making, *, scripts: Path, minimum: int) -> Ready:
    """What a job needs. Raises WrongInput or MissingPart for what is not there."""
    making.check_warm(job.warm)
    workdir = Path(job.workdir)
    if not workdir.is_dir():
        raise JobBlocked(
            f"The job works in {workdir}, which is not a folder. Make it, or change the job with "
            "--replace --workdir FOLDER."
        )
    script = find_script(scripts, job.script) if job.script else None
    skills = tuple((name, making.skill(name)) for name in job.skills)
    route = making.route(job)
    model, base_url = making.model(route)
    table = f"providers.{route.provider}" if route.provider else "model"
    warning = check_window(
        model.name,
        model.provider,
        model.context_tokens,
        minimum=minimum,
        setting=f"{table}.context_length",
    )
    return Ready(
        model=model,
        base_url=base_url,
        skills=skills,
        script=script,
        remarks=(warning,) if warning else (),
    )
