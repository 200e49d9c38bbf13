"""Runs a task with the agent of a host. The process that starts a run answers its hooks itself, so
that it starts warm and passes the gate, whether or not Journeyman is installed in the host.
"""

import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from msgspec.structs import replace

from journeyman.experience.opening import Opening
from journeyman.facade.journeyman import Journeyman
from journeyman.gate.decision import ApprovalRequest, Approver, Notify
from journeyman.hosts.host import HostPage, Plug
from journeyman.hosts.pages import PAGES
from journeyman.hosts.process import HostRunner
from journeyman.hosts.runner import RunBegan, RunOpening, RunRequest, RunResult, RunStep
from journeyman.plugin.client import run_path
from journeyman.plugin.engines import ENGINES, choose_engine
from journeyman.plugin.installation.installer import Installer
from journeyman.plugin.installation.record import read_record
from journeyman.plugin.opening_parts import stored_openings
from journeyman.plugin.server import HookServer
from journeyman.plugin.service import HostService, RunMode
from journeyman.records.errors import JourneymanError, OutsideProblem, WrongInput
from journeyman.records.host import source_of
from journeyman.records.session import JOB, RUN
from journeyman.undo.undo import writing_times

if TYPE_CHECKING:
    from journeyman.jobs.jobs import Jobs

_PARTS = ("opening", "gate")


class Questions:
    """Questions from the threads that answer hooks, for a person whom the main thread asks."""

    def __init__(self, approver: Approver) -> None:
        self._approver = approver
        self._waiting: SimpleQueue[tuple[ApprovalRequest, Future[bool | None]]] = SimpleQueue()

    def put(self, request: ApprovalRequest) -> "Future[bool | None]":
        answer: Future[bool | None] = Future()
        self._waiting.put((request, answer))
        return answer

    def ask(self) -> None:
        """Ask what is waiting."""
        while True:
            try:
                request, answer = self._waiting.get_nowait()
            except Empty:
                return
            answer.set_result(self._approver(request))


class HostRun:
    """A runner for one host. `owner` is whom its session belongs to: `run`, `job:NAME` or
    `review:SESSION`. `approver` decides on risky calls, on the thread that runs; without one, they
    are held for the confirmation service. `notify` receives lines for the person.
    """

    def __init__(
        self,
        journeyman: Journeyman,
        name: str,
        *,
        owner: str = RUN,
        warm: bool = True,
        approver: Approver | None = None,
        notify: Notify = lambda _line: None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        if name not in PAGES:
            raise WrongInput(f"There is no agent {name!r}. Choose from: {', '.join(ENGINES)}.")
        self.page: HostPage = next(page for page in PAGES.values() if page.name == name)
        self.name = name
        self._journeyman, self._environ = journeyman, environ
        self._owner, self._warm, self._approver = owner, warm, approver
        self._notify = notify

    def run(
        self,
        request: RunRequest,
        *,
        on_step: Callable[[RunStep], None] = lambda _step: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> RunResult:
        """Run a task, and import its session."""
        questions = None if self._approver is None else Questions(self._approver)
        mode = RunMode(
            warm=self._warm,
            for_job=self._owner.startswith(JOB),
            tools=request.tools,
            fork=request.fork,
            question=None if questions is None else questions.put,
        )
        service = HostService(self._journeyman, run=mode)
        began: list[RunBegan] = []

        def begin(*, is_working: bool) -> None:
            """Report the session, once it is known what it started with or when it works."""
            if began and (is_working or self._is_known(began[0].session)):
                first = began.pop()
                on_step(replace(first, opening=self._opening(request, first.session)))

        def report(step: RunStep) -> None:
            if isinstance(step, RunBegan):
                began[:] = [step]
                self._note_session(step.session)
                return
            begin(is_working=True)
            on_step(step)

        def must_stop() -> bool:
            begin(is_working=False)
            if questions is not None:
                questions.ask()
            return cancelled()

        before = self._begin_undo(request)
        with self._served(service) as plug:
            runner = HostRunner(self.page, plug=plug, environ=self._environ)
            result = runner.run(request, on_step=report, cancelled=must_stop)
        if not result.session:
            return result
        self._note_session(result.session)
        self._import(result.session)
        return replace(result, changed_files=self._end_undo(request, before, result.session))

    def _begin_undo(self, request: RunRequest) -> str:
        """Store the state of the folder; empty if it is not needed or cannot be done."""
        if request.access == "read" or not (request.tools and self._journeyman.settings.agent.undo):
            return ""
        try:
            return self._journeyman.work_tree(request.folder).begin()
        except (OutsideProblem, OSError) as error:
            self._notify(f"Undo is not available: {str(error).rstrip('.')}.")
            return ""

    def _end_undo(self, request: RunRequest, before: str, session: str) -> bool:
        """Store the state after the run; return whether undo has something to do."""
        if not before:
            return False
        try:
            calls = self._journeyman.sessions.calls(session)
            self._journeyman.work_tree(request.folder).end(before, session, writing_times(calls))
            return bool(self._journeyman.undo(session, dry_run=True).changes)
        except (JourneymanError, OSError) as error:
            self._notify(f"Undo is not available: {str(error).rstrip('.')}.")
            return False

    @property
    def _installed_parts(self) -> tuple[str, ...]:
        record = read_record(self._journeyman.settings.home, self.name)
        return () if record is None else record.parts

    @contextmanager
    def _served(self, service: HostService) -> Iterator[Plug]:
        """Answer the hooks of the run, and yield what the host needs to ask."""
        run, home = secrets.token_hex(6), self._journeyman.settings.home
        # Hooks that ask a second time, beside installed ones, are told nothing new.
        is_sure = not (self.page.needs_trust or self.page.is_always_plugged)
        installed = self._installed_parts if is_sure else ()
        missing = [part for part in _PARTS if part not in installed]
        installer = Installer(self._journeyman, self._environ)
        try:
            with (
                HookServer(service, home, run_path(run)),
                tempfile.TemporaryDirectory(prefix="journeyman-run-") as folder,
            ):
                yield installer.plug(self.name, missing, run, Path(folder))
        finally:
            Path(f"{run_path(run)}.lock").unlink(missing_ok=True)

    def _note_session(self, session: str) -> None:
        source = source_of(self.name)
        self._journeyman.sessions.note_owner(session, self._owner, source=source)

    def _is_known(self, session: str) -> bool:
        return self._journeyman.host_sessions.find(self.name, session) is not None

    def _opening(self, request: RunRequest, session: str) -> RunOpening | None:
        """Return what a session started with."""
        if request.resume:
            return None
        record = self._journeyman.host_sessions.find(self.name, session)
        if not self._warm:
            return RunOpening(note="as requested")
        if record is None or record.state != "warm":
            return RunOpening(note=record.reason if record else "its hooks did not run")
        facts = (fact for opening in stored_openings(record) for fact in opening.facts)
        told = Opening(task="", facts=tuple(facts), tokens=record.tokens)
        return RunOpening(id=record.opening, summary=told.summary)

    def _import(self, session: str) -> None:
        log = self.page.find_log(session, self._environ)
        if log is None:
            return
        subagents = log.with_suffix("")
        paths = [log, *([subagents] if subagents.is_dir() else [])]
        self._journeyman.import_logs(paths)


class HostRuns:
    """The runners of hosts for jobs and others that work with nobody there."""

    def __init__(self, journeyman: Journeyman, environ: Mapping[str, str] = os.environ) -> None:
        self._journeyman, self._environ = journeyman, environ

    def choose(self, folder: Path) -> str:
        return choose_engine(self._journeyman, folder, self._environ)

    def make(self, name: str, *, owner: str, warm: bool, holds: bool, notify: Notify) -> HostRun:
        return HostRun(
            self._journeyman,
            name,
            owner=owner,
            warm=warm,
            approver=None if holds else lambda _request: None,
            notify=notify,
            environ=self._environ,
        )


def host_jobs(journeyman: Journeyman) -> "Jobs":
    """Return the jobs of a home, which also work with the agents of hosts."""
    return journeyman.jobs_with(hosts=HostRuns(journeyman))
