"""`Journeyman`, the one public entry point: the everyday verbs. Everything else is an attribute
named by a noun (`jm.sessions`, `jm.templates`, `jm.jobs`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from journeyman.facade.experience import ExperienceFacade
from journeyman.records.errors import MissingPart
from journeyman.version import __version__

if TYPE_CHECKING:
    from journeyman.agent.agent import Agent
    from journeyman.agent.factory import AgentFactory
    from journeyman.agent.review.journal import Journal
    from journeyman.agent.review.reviewer import ReviewResult
    from journeyman.agent.turn import Turn
    from journeyman.facade.finding import Finding
    from journeyman.hosts.runner import HostRunners
    from journeyman.jobs.guard import ModelRoute
    from journeyman.jobs.jobs import Jobs
    from journeyman.models.model import Model
    from journeyman.undo.history import WorkTreeHistory
    from journeyman.undo.undo import Undo


class Journeyman(ExperienceFacade):
    """Experience for agents, kept in one home.

    `Journeyman()` uses the home and database of the settings; `home` and `database` override
    them. The database is opened on first use. Use it as a context manager, or `close` it. If
    `tolerant`, settings that cannot be used have their defaults, and `diagnose` reports them.
    """

    @cached_property
    def _agents(self) -> "AgentFactory":
        with _extra("agent", "An agent needs"):
            from journeyman.agent.factory import AgentFactory
        from journeyman.confirm.factory import service_approver

        return AgentFactory(
            settings=self.settings,
            store=self._store,
            experience=self,
            approver=partial(service_approver, self.settings),
            clock=self._clock,
            timer=self._timer,
        )

    @cached_property
    def reviews(self) -> "Journal":
        """What reviews and agents wrote to memory and skills, and what reviews in hosts drafted:
        list, get, writes, accept, refuse, undo.
        """
        from journeyman.agent.review.journal import Journal

        store = self._store
        return Journal(store.reviews, store.facts, self._agents.knowledge, self._clock)

    @cached_property
    def jobs(self) -> "Jobs":
        """Agents on a schedule: add, list, show, pause, resume, remove, run, scheduler."""
        return self.jobs_with()

    def jobs_with(
        self,
        models: "Callable[[ModelRoute], Model] | None" = None,
        *,
        hosts: "HostRunners | None" = None,
    ) -> "Jobs":
        """Return the same jobs, run with models or runners of hosts that the caller supplies."""
        agents = self._agents
        with _extra("jobs", "Jobs need"):
            from journeyman.jobs.jobs import Jobs
            from journeyman.jobs.runner import JobRunner
        runner = JobRunner(
            settings=self.settings,
            agents=agents,
            experience=self,
            environment=self._environ,
            models=models,
            hosts=hosts,
            clock=self._clock,
            timer=self._timer,
        )
        return Jobs(self._store, runner)

    def agent(self, **options: Any) -> "Agent":
        """Return an agent that works in a folder. The options are the fields of
        `journeyman.agent.factory.AgentOptions`: `model`, `workspace`, `warm`, `ask`, `limits`,
        `tools` and others. Close the agent, or use it as a context manager.
        """
        agents = self._agents
        from journeyman.agent.factory import AgentOptions

        return agents.agent(AgentOptions(**options))

    def run(self, task: str, **options: Any) -> "Turn":
        """Have an agent do a task in one turn; the options are those of `agent`."""
        with self.agent(**options) as agent:
            turn = agent.run_conversation(task)
            agent.wait_for_review()
            return turn

    def review(
        self,
        session_id: str,
        *,
        model: "Model | str" = "",
        cancelled: Callable[[], bool] = lambda: False,
        platform: str = "library",
    ) -> "ReviewResult":
        """Review a session now, and save to memory and skills what it teaches, if anything."""
        return self._agents.review(session_id, model, cancelled=cancelled, platform=platform)

    def undo(self, session_id: str, *, dry_run: bool = False) -> "Undo":
        """Undo what a session changed in its workspace; `dry_run` only reports it."""
        from journeyman.undo.undo import undo

        session = self.sessions.get(session_id).session
        calls = self.sessions.calls(session.id)
        return undo(self.work_tree(Path(session.cwd)), session, calls, dry_run=dry_run)

    def work_tree(self, folder: Path) -> "WorkTreeHistory":
        """The states of a folder before and after runs, for undo."""
        return self._agents.history(folder.resolve())

    def diagnose(self) -> "list[Finding]":
        """Check this installation: what is there, what works and what to fix."""
        from journeyman.facade.diagnosis import diagnose

        return diagnose(
            self.configuration,
            self._readers,
            self.places(),
            version=__version__,
            now=self._clock(),
        )

    def __enter__(self) -> "Journeyman":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


@contextmanager
def _extra(name: str, who_needs: str) -> Iterator[None]:
    """Wrap imports of optional dependencies; raise MissingPart if one is not installed."""
    try:
        yield
    except ImportError as error:
        raise MissingPart(
            f"{who_needs} packages that are not installed ({error}). Install them with: "
            f"pip install 'journeyman[{name}]'"
        ) from error
