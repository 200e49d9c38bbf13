"""The resident process: hooks, confirmations, the page and jobs in one process. Hooks answer first;
a part that cannot be served does not keep the others from it.
"""

import logging
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from journeyman.configuration import read_configuration
from journeyman.facade.journeyman import Journeyman
from journeyman.plugin.client import PROGRAM, Unanswered, request
from journeyman.plugin.gate import HostGate
from journeyman.plugin.imports import ImportSpool, start_detached
from journeyman.plugin.installation.record import installed_python
from journeyman.plugin.review_queue import ReviewQueue
from journeyman.plugin.runs import host_jobs
from journeyman.plugin.server import HookServer, is_locked
from journeyman.plugin.service import Exchange, HostService
from journeyman.records.errors import BadSetting, JourneymanError
from journeyman.records.host import HOSTS
from journeyman.settings import Settings

if TYPE_CHECKING:
    from journeyman.confirm.administration import ServiceInfo

log = logging.getLogger("journeyman.plugin")

IDLE_S = 3_600.0
"""A process that a hook started ends after this long without a request."""

_TICK_S = 0.5
_ASK_S = 2.0
_HANDOVER_S = 10.0
_LONGEST_CALL_S = 3_600.0
_PATIENCE_S = 0.5
"""How long one operation waits for the database after its answer: its caller waits for its end."""


class ServedParts(Struct, frozen=True, kw_only=True):
    """Which parts to serve beside hooks. A process that a hook started (`on_demand`) ends when it
    is idle, and runs no jobs, because they need a process that stays.
    """

    confirmations: bool = True
    jobs: bool = True
    on_demand: bool = False


class _RunningProcess(Struct, frozen=True):
    """What another resident process says about itself."""

    pid: int
    on_demand: bool = False


class Resident:
    """One resident process. `parts` says where each part is served, `problems` what could not be,
    and `service` is the confirmation service, with the first approver's login if it was created.
    `is_outdated` says that the settings have changed, so that another should take its place.
    """

    def __init__(
        self,
        journeyman: Journeyman,
        wanted: ServedParts,
        *,
        tell: Callable[[str], None] = print,
    ) -> None:
        self._journeyman = journeyman
        self._wanted = wanted
        self._tell = tell
        self.parts: dict[str, str] = {}
        self.problems: list[str] = []
        self.service: ServiceInfo | None = None
        self._gate: HostGate
        self._settings = journeyman.settings
        self._is_working: Callable[[], bool] = lambda: False
        self._settings = self._read_settings()
        self.is_outdated = False

    def run(self, stopping: threading.Event, on_started: Callable[[], None] = lambda: None) -> None:
        """Serve until `stopping` is set, until the settings have changed or, on demand, until idle.
        `on_started` is called when all parts answer. Raise ServiceUnavailable if another process
        serves this home's hooks.
        """
        with ExitStack() as stack:
            server = stack.enter_context(self._hooks())
            if self._wanted.confirmations:
                self._try(stack, "confirmations", self._confirmations)
                if self.service is None:
                    self._gate.unavailable = self.problems[-1]
            if self._wanted.jobs and not self._wanted.on_demand:
                self._try(stack, "jobs", lambda: self._jobs(stopping))
            on_started()
            while not stopping.wait(_TICK_S):
                idle_s = server.idle_s
                if self._wanted.on_demand and idle_s > IDLE_S:
                    break
                if idle_s and not self._is_working() and self._read_settings() != self._settings:
                    self.is_outdated = True
                    break
            stopping.set()
            server.stop()  # while confirmations are still served

    def _read_settings(self) -> Settings:
        """Return the settings as they are now; those in use if what is there cannot be used."""
        home = self._journeyman.settings.home
        found = read_configuration(os.environ, Path.home(), home=home)
        return self._settings if found.problems or not home.is_dir() else found.settings

    def _try(self, stack: ExitStack, name: str, part: Callable[[], "Iterator[None]"]) -> None:
        try:
            stack.enter_context(contextmanager(part)())
        except JourneymanError as error:
            self.problems.append(f"{name.capitalize()} are not served: {error}")

    @contextmanager
    def _hooks(self) -> Iterator[HookServer]:
        settings = self._journeyman.settings
        imports = ImportSpool(settings.home, settings.database)
        reviews = ReviewQueue(settings.home, settings.database)
        is_on = settings.hosts.review != "off"
        service = HostService(self._journeyman, imports=imports, reviews=reviews if is_on else None)
        service.parts, service.on_demand = self.parts, self._wanted.on_demand
        self._gate = service.gate
        if not self._wanted.on_demand:
            _end_on_demand(settings.home)
        with HookServer(service, settings.home) as server:
            imports.start()  # what an earlier process left behind
            self.parts["hooks"] = server.path
            threading.Thread(target=_warm_up, args=(service,), name="warm-up", daemon=True).start()
            try:
                yield server
            finally:
                reviews.stop()

    def _confirmations(self) -> Iterator[None]:
        administration = self._journeyman.confirmations
        with administration.served(with_login=not self._wanted.on_demand) as started:
            self.service = started
            self._gate.service_url = started.agents_url
            self.parts["confirmations"] = started.agents_url
            self.parts["page"] = started.page_url
            yield

    def _jobs(self, stopping: threading.Event) -> Iterator[None]:
        jobs = host_jobs(self._journeyman)
        scheduler = jobs.scheduler(terminal=self._tell, tell=self._tell)
        self._is_working = lambda: not scheduler.is_idle
        thread = threading.Thread(target=scheduler.serve, args=(stopping,), name="jobs")
        thread.start()
        count = sum(job.next_run_at is not None for job in jobs.list())
        self.parts["jobs"] = f"{count} scheduled"
        try:
            yield
        finally:
            stopping.set()
            thread.join()


def _end_on_demand(home: Path) -> None:
    """End a resident process that a hook started, because one that stays takes its place."""
    try:
        answer = request(str(home), "status", HOSTS[0], b"{}", timeout_s=_ASK_S)
        status = msgspec.json.decode(answer, type=_RunningProcess)
    except (Unanswered, msgspec.DecodeError):
        return
    if not status.on_demand:
        return
    with suppress(OSError):
        os.kill(status.pid, signal.SIGTERM)
    ends = time.monotonic() + _HANDOVER_S
    while is_locked(home) and time.monotonic() < ends:
        time.sleep(_TICK_S / 10)


def _warm_up(service: HostService) -> None:
    """Load what openings need, without which the first one is slower."""
    try:
        service.warm_up()
    except JourneymanError as error:
        log.warning("%s", error)


def run_operation(
    journeyman: Journeyman,
    operation: str,
    host: str,
    body: bytes,
    send: Callable[[bytes], None],
    *,
    until: float | None = None,
) -> None:
    """Run an operation and send its answer; start a resident process for the next one if the
    settings allow it. The caller waits `until` this time, and no longer than it lives.
    """
    settings = journeyman.settings
    if not settings.home.is_dir():
        raise BadSetting(
            f"There is no folder {settings.home}: a hook does not create Journeyman's home. Remove "
            "the hook with `journeyman hosts remove`, or install it again."
        )
    if settings.hosts.start == "on-demand" and not is_locked(settings.home):
        words = (installed_python(settings.home), *PROGRAM[1:], "--home", str(settings.home))
        start_detached(settings.home, "serve", (*words, "serve", "--on-demand"), settings.database)
    caller = os.getppid()
    left_s = _LONGEST_CALL_S if until is None or math.isnan(until) else until - time.time()
    exchange = Exchange(
        host=host,
        ends=time.monotonic() + min(left_s, _LONGEST_CALL_S),
        cancelled=lambda: os.getppid() != caller,
        patience_s=_PATIENCE_S,
    )
    answer = HostService(journeyman).handle(operation, body, exchange)
    send(answer)
    exchange.finish(is_received=True)
