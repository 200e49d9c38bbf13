"""Jobs for tests: real parts around a scripted model.

    with desk(tmp_path, says("All is well.")) as jobs:
        run = jobs.run("Look at the disks.")
        assert run.status == "ok"
        assert "MODEL: scripted" in jobs.system

Replies delivered to the terminal are in `jobs.heard`.
"""

import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.databases import database

from journeyman import Journeyman
from journeyman.jobs.guard import ModelRoute
from journeyman.models.model import Model
from journeyman.records.job import Run
from journeyman.testing import ScriptedModel
from journeyman.testing.scripted_model import Line

NOW = 1_798_000_000.0
"""Wed 2026-12-23 04:26:40 UTC."""
ROOM = 128_000


class Clock:
    """The test's clock, which advances only when set."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Desk:
    """The jobs of one home, and the requests to their model."""

    def __init__(self, folder: Path, lines: tuple[Line, ...], window: int | None, **more: str):
        self.home, self.workdir = folder / "home", folder / "work"
        self.scripts = self.home / "scripts"
        for made in (self.scripts, self.workdir):
            made.mkdir(parents=True, mode=0o700, exist_ok=True)
        database(self.home)
        self.clock = Clock()
        self.journeyman = Journeyman(
            home=self.home, environ={"HOME": str(folder), **more}, clock=self.clock
        )
        self.lines, self.window = lines, window
        self.models: list[ScriptedModel] = []
        self.routes: list[ModelRoute] = []
        self.heard: list[str] = []
        self.jobs = self.journeyman.jobs_with(self._model)
        self.jobs._heartbeat_wait_s = 0.0

    def _model(self, route: ModelRoute) -> Model:
        self.routes.append(route)
        name = route.model or "scripted"
        self.models.append(ScriptedModel(self.lines, name=name, context_tokens=self.window))
        return self.models[-1]

    def script(self, name: str, text: str) -> None:
        path = self.scripts / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def add(
        self, prompt: str = "Look around.", schedule: str = "every day 09:00", **more: Any
    ) -> str:
        """Add a job and return its name."""
        given = {"workdir": self.workdir, "timezone": "UTC", "name": "watch", **more}
        return self.jobs.add(schedule, prompt, **given).job.name

    def run(self, prompt: str = "Look around.", **more: Any) -> Run:
        """Add a job, run it, and return the run."""
        return self.jobs.run(self.add(prompt, **more), terminal=self.heard.append)

    def tick(self) -> list[Run]:
        """Start the runs that a scheduler would start now, and finish them in this thread."""
        scheduler = self.jobs.scheduler(terminal=self.heard.append)
        scheduler.start = lambda work: work()
        scheduler.tick()
        scheduler.stop()
        return [run for job in self.jobs.list() for run in self.jobs.show(job.id, limit=1).runs]

    @property
    def asked(self) -> list[Any]:
        """The requests to all models."""
        return [request for model in self.models for request in model.requests]

    @property
    def system(self) -> str:
        """The system prompt of the first request."""
        first = self.asked[0].messages[0]
        assert first["role"] == "system"
        return str(first["content"])

    @property
    def said(self) -> str:
        """The last user message of the first request."""
        return str([one for one in self.asked[0].messages if one["role"] == "user"][-1]["content"])

    @property
    def tools(self) -> set[str]:
        return {one["function"]["name"] for one in self.asked[0].tools}


@contextmanager
def desk(folder: Path, *lines: Line, window: int | None = ROOM, **more: str) -> Iterator[Desk]:
    made = Desk(folder, lines, window, **more)
    with made.journeyman:
        yield made
    assert not [one for one in threading.enumerate() if one.name == "journeyman-job"]
