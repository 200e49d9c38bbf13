"""What Journeyman does for hosts, as operations that take and return JSON. The resident process and
the one-shot command run the same operations.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from journeyman.experience.moments import Advice
from journeyman.experience.warm_session import warm_session
from journeyman.facade.journeyman import Journeyman
from journeyman.models.embedder import Embedder
from journeyman.plugin import hook_events
from journeyman.plugin.gate import ALLOWED, DecisionWord, GateAnswer, GateCall, HostGate, Question
from journeyman.plugin.hook_events import HookAnswer, HookInput
from journeyman.plugin.imports import ImportSpool, Reported, add_usage
from journeyman.plugin.installation.record import has_part
from journeyman.plugin.openings import (
    LATE,
    LateAnswer,
    OpeningAnswer,
    OpeningRequest,
    SessionOpenings,
)
from journeyman.plugin.review_queue import ENDED_S, IDLE_S, ReviewQueue
from journeyman.records import Usage
from journeyman.records.errors import JourneymanError, ServiceUnavailable, WrongInput
from journeyman.records.host import (
    HOSTS,
    REPORTED_USAGE,
    EventKind,
    HostEvent,
    HostSession,
    source_of,
)
from journeyman.version import __version__

log = logging.getLogger("journeyman.plugin")

_Work = Callable[[], None]
_IMPORT_EVENTS = ("Stop", "SessionEnd")
_MARGIN_S = 0.05
_SAID_ONCE = "This is said once in a session: make the call again if the person wants it now."
"""An answer needs this long to reach its host."""

_NO_TOOLS = "Blocked by Journeyman: this run may not use tools. Answer in words."


class Report(Struct, frozen=True, kw_only=True):
    """A log that has changed, or something that failed on the host's side."""

    session: str = ""
    path: str = ""
    event: str = ""
    reason: str = ""


class SideUsage(Struct, frozen=True, kw_only=True):
    """Tokens of work beside the conversation, which the host's log does not have."""

    session: str
    key: str = ""
    task: str = "background_review"
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None


class ToolCall(Struct, frozen=True, kw_only=True):
    name: str
    arguments: dict[str, Any] = {}


class Exchange(Struct, frozen=True, kw_only=True):
    """One request of a host: who asks, when the answer must be there (by the monotonic clock), and
    whether the host has hung up. `hold` tells the host that a person has to decide. What is done
    after the answer was sent waits no longer than `patience_s` for the database, by default as long
    as anything does.
    """

    host: str
    ends: float
    cancelled: Callable[[], bool] = lambda: False
    hold: _Work = lambda: None
    patience_s: float | None = None
    followers: list[tuple[_Work, _Work]] = []

    def then(self, work: _Work, *, if_lost: _Work | None = None) -> None:
        """Do something after the answer was sent; something else if the host did not receive it."""
        self.followers.append((work, if_lost or work))

    def finish(self, *, is_received: bool) -> None:
        """Do what was left for after the answer. Problems are logged."""
        for work, if_lost in self.followers:
            try:
                (work if is_received else if_lost)()
            except JourneymanError as error:
                log.warning("%s", error)


class RunMode(Struct, frozen=True, kw_only=True):
    """How the process that started a run answers its hooks: all parts, whether or not they are
    installed, but for the import, which it does itself at the end. `question` asks the person who
    started it; without one, confirmations do. A run for a job learns from other jobs. One that may
    use no `tools` is asked nothing: every call is denied. A fork has the opening of its origin, so
    that its requests begin with the same bytes.
    """

    warm: bool = True
    for_job: bool = False
    tools: bool = True
    fork: str = ""
    question: Question | None = None

    def has(self, part: str) -> bool:
        return part == "gate" or (part == "opening" and self.warm)


class HostService:
    """Runs the operations. With `run`, it answers for one run only."""

    def __init__(
        self,
        journeyman: Journeyman,
        *,
        imports: ImportSpool | None = None,
        reviews: ReviewQueue | None = None,
        run: RunMode | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._journeyman = journeyman
        self._run = run
        self._kept = journeyman.host_sessions
        settings = journeyman.settings
        self._imports = imports or ImportSpool(settings.home, settings.database)
        self._reviews = reviews
        self._clock = clock
        self.stopping = threading.Event()
        bots = run is not None and run.for_job
        self.openings = SessionOpenings(journeyman, self._kept, clock, bots=bots)
        self.gate = HostGate(journeyman, self.stopping, run.question if run else None)
        self.parts: dict[str, str] = {}
        """The parts of the resident process, and where each is served."""
        self.on_demand = False
        """Whether a hook started this process."""
        self.answered = 0

    def handle(self, operation: str, body: bytes, exchange: Exchange) -> bytes:
        """Run one operation and return its answer. Raise WrongInput for a request that cannot be
        understood, and what the operation raises.
        """
        run = _OPERATIONS.get(operation)
        if run is None or exchange.host not in HOSTS:
            raise WrongInput(f"There is no operation {operation!r} for {exchange.host!r}.")
        kind, work = run
        try:
            asked = msgspec.json.decode(body or b"{}", type=kind)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise WrongInput(f"The request of {exchange.host} cannot be read: {error}") from error
        self.answered += 1
        answer = work(self, asked, exchange)
        return b"" if answer is None else msgspec.json.encode(answer)

    def opening(self, asked: OpeningRequest, exchange: Exchange) -> Any:
        if self._run is not None and self._run.fork:
            return self.openings.answer(exchange.host, self._run.fork, asked.form)
        if not self._has(exchange, "opening"):
            return OpeningAnswer(reason="openings are not installed in this host")
        began = time.perf_counter()
        session = _checked_id(asked.session)
        before = self.openings.find(exchange.host, session)
        answer = self.openings.opening(exchange.host, asked, exchange.ends - _MARGIN_S)
        if answer.state == "warm":
            self._given(exchange, session, before)
        if before is None:
            given: dict[str, Any] = {"tokens": answer.tokens, "detail": answer.reason}
            self._note(exchange, session, "opening", answer.state, began=began, **given)
        return answer

    def _has(self, exchange: Exchange, part: str) -> bool:
        """Whether a part works in a host: as installed or, in a run, as the run says."""
        if self._run is not None:
            return self._run.has(part)
        return has_part(self._journeyman.settings.home, exchange.host, part)

    def _given(self, exchange: Exchange, session: str, before: HostSession | None) -> None:
        """Note that a session is warm. If the host gave up before the answer, it is as before."""
        host, openings = exchange.host, self.openings
        exchange.then(
            lambda: openings.note(host, session, within_s=exchange.patience_s),
            if_lost=lambda: openings.take_back(host, session, before),
        )

    def decide(self, call: GateCall, exchange: Exchange) -> GateAnswer:
        if self._run is not None and not self._run.tools:
            return GateAnswer(decision="deny", reason=_NO_TOOLS)
        if not self._has(exchange, "gate"):
            return ALLOWED
        began = time.perf_counter()
        answer = self.gate.decide(exchange.host, call, exchange.cancelled, exchange.hold)
        is_settled = answer.decision != "wait"  # a host that asks in slices asks again
        if is_settled and (answer.asked or answer.decision != "allow"):
            detail = f"{call.tool}: {answer.reason}"
            self._note(exchange, call.session, "gate", answer.decision, began=began, detail=detail)
        return answer

    def hook(self, event: HookInput, exchange: Exchange) -> HookAnswer:
        """Answer a hook of Claude Code or Codex. Errors are for the client, which then stays silent
        or denies the call.
        """
        name = event.hook_event_name
        if name == "PreToolUse":
            return self._before_tool(event, exchange)
        if name in _IMPORT_EVENTS and event.transcript_path:
            if self._run is None:
                self._import(event.transcript_path, exchange)
                if name == "SessionEnd" and self._reviews is not None:
                    self._reviews.put(exchange.host, event.session_id, ENDED_S)
            return None
        if not self._has(exchange, "opening"):
            return None
        if event.is_subagent and not self._journeyman.settings.hosts.subagents:
            return None
        began = time.perf_counter()
        session = _checked_id(event.session_id)
        before = self.openings.find(exchange.host, session)
        kind: EventKind = "opening"
        try:
            if name == "SessionStart":
                text = self._session_start(event, exchange)
            elif name == "UserPromptSubmit":
                text = self._prompt(event, exchange, before)
            else:
                kind, text = "hint", self._failure_hint(event, exchange)
        except LateAnswer as error:
            if name == "SessionStart":  # the first prompt makes up for it
                exchange.then(lambda: self.openings.take_back(exchange.host, session, before))
                raise ServiceUnavailable("The opening was not ready in time.") from error
            self._note(exchange, session, "failure", "late", began=began, detail=name)
            return None
        if text:
            self._given(exchange, session, before)
        if text or kind == "opening":
            outcome = "given" if text else "nothing"
            tokens = Embedder().count_tokens(text) if text else 0
            self._note(exchange, session, kind, outcome, began=began, tokens=tokens, detail=name)
        news = self._news(exchange) if name == "SessionStart" and event.is_attended else ""
        return hook_events.with_message(hook_events.added_context(name, text), news)

    def _news(self, exchange: Exchange) -> str:
        """Return what a person is told once, if there is anything."""
        reviews = self._journeyman.reviews
        if news := reviews.news():
            exchange.then(reviews.note_told, if_lost=lambda: None)
        return news

    def _session_start(self, event: HookInput, exchange: Exchange) -> str:
        host, session = exchange.host, event.session_id
        if event.source == "compact":
            log_path = event.transcript_path or ""
            return self.openings.repeated_text(host, session, event.cwd, log_path)
        if event.source in ("resume", "fork"):  # its context is in the conversation already
            self.openings.begun(host, session, event.parent)
            exchange.then(lambda: self.openings.note(host, session, within_s=exchange.patience_s))
            return ""
        return self._project_text(event, exchange)

    def _project_text(self, event: HookInput, exchange: Exchange) -> str:
        has_gate = self._has(exchange, "gate")
        return self.openings.project_text(
            exchange.host,
            event.session_id,
            event.cwd,
            exchange.ends - _MARGIN_S,
            # Codex takes nothing but a denial before a call.
            before_calls=has_gate and exchange.host == "claude-code",
        )

    def _prompt(self, event: HookInput, exchange: Exchange, before: HostSession | None) -> str:
        host, session, ends = exchange.host, event.session_id, exchange.ends - _MARGIN_S
        texts = []
        if before is not None and before.reason == LATE:
            texts.append(self._project_text(event, exchange))
        try:
            if event.is_request:
                texts.append(self.openings.task_text(host, session, event.prompt, event.cwd, ends))
        except LateAnswer:
            if not any(texts):
                raise
        return "\n\n".join(filter(None, texts))

    def _failure_hint(self, event: HookInput, exchange: Exchange) -> str:
        call = event.failed_call(exchange.host)
        if call is None or not self._journeyman.judge(call).is_error:
            return ""
        return self.openings.call_advice(
            exchange.host, event.session_id, call, event.cwd, has_failed=True
        ).text

    def _before_tool(self, event: HookInput, exchange: Exchange) -> HookAnswer:
        is_claude = exchange.host == "claude-code"  # Codex may inherit its variables
        can_defer = is_claude and event.is_headless and self._run is None
        wait_s = float(self._journeyman.settings.hosts.defer_after_s) if can_defer else None
        is_attended = is_claude and event.is_attended
        answer = self.decide(event.gate_call(wait_s, attended=is_attended), exchange)
        advice = Advice(moment="call")
        if answer.decision != "wait":
            # Codex takes any answer but a denial for a failure of the hook.
            passes = answer == ALLOWED
            advice = self._call_advice(event, exchange, only_bans=passes and not is_claude)
            if passes and advice.is_ban:  # what else is said arrives with the result of the call
                word: DecisionWord = "ask" if is_attended else "deny"
                answer = GateAnswer(decision=word, reason=f"{advice.text}\n{_SAID_ONCE}")
                advice = Advice(moment="call")
        printed = hook_events.permission(exchange.host, answer)
        if printed is not None and answer.decision == "ask" and event.tool_name != "Bash":
            printed["systemMessage"] = answer.reason  # its prompt for a file shows no reason
        if printed is None:
            return hook_events.added_context("PreToolUse", advice.text)
        return hook_events.with_reason(printed, advice.text)

    def _call_advice(self, event: HookInput, exchange: Exchange, *, only_bans: bool) -> Advice:
        """Return what is known against a call. The gate never waits for it."""
        silent = Advice(moment="call")
        is_told = not event.is_subagent or self._journeyman.settings.hosts.subagents
        if not is_told or not self._has(exchange, "opening"):
            return silent
        try:
            return self.openings.call_advice(
                exchange.host, event.session_id, event.call, event.cwd, only_bans=only_bans
            )
        except JourneymanError as error:
            log.warning("%s", error)
            return silent

    def report_log(self, report: Report, exchange: Exchange) -> Any:
        if not report.path:
            raise WrongInput("The report of a changed log has no path.")
        if self._has(exchange, "import"):
            self._import(report.path, exchange)
            if report.session and self._reviews is not None:
                self._reviews.put(exchange.host, report.session, IDLE_S)
        return {}

    def _import(self, path: str, exchange: Exchange) -> None:
        self._imports.add(Reported(path=path))
        exchange.then(self._imports.start)

    def usage(self, used: SideUsage, exchange: Exchange) -> Any:
        counts = {
            name: getattr(used, name) for name in used.__struct_fields__ if name.endswith("_tokens")
        }
        now = self._clock()
        key = f"{REPORTED_USAGE}{used.key or f'{used.task}:{now}'}"
        increment = Usage(key=key, model=used.model, task=used.task, at=now, **counts)
        source = source_of(exchange.host)
        reported = Reported(session=used.session, source=source, usage=increment)

        def add() -> None:
            if not add_usage(self._journeyman, reported):
                self._imports.add(reported)  # until the session is imported

        exchange.then(add)
        return {}

    def tool(self, call: ToolCall, _exchange: Exchange) -> Any:
        if call.name != "warm_session":
            raise WrongInput(f"There is no tool {call.name!r}.")
        return {"text": warm_session(self._journeyman, call.arguments)}

    def failure(self, report: Report, exchange: Exchange) -> Any:
        detail = f"{report.event}: {report.reason}"
        self._note(exchange, report.session, "failure", "host", detail=detail)
        return {}

    def status(self, _nothing: dict[str, Any], _exchange: Exchange) -> Any:
        settings = self._journeyman.settings
        return {
            "version": __version__,
            "pid": os.getpid(),
            "home": str(settings.home),
            "parts": self.parts,
            "on_demand": self.on_demand,
            "answered": self.answered,
            "gate_tools": settings.hosts.gate_tools,
            "subagents": settings.hosts.subagents,
        }

    def learned(self, _nothing: dict[str, Any], exchange: Exchange) -> Any:
        exchange.then(self.warm_up)
        return {}

    def warm_up(self) -> None:
        """Load what openings need, and delete events that no report needs any more."""
        self.openings.warm_up()
        self._kept.delete_old_events(self._clock())

    def _note(
        self,
        exchange: Exchange,
        session: str,
        kind: EventKind,
        outcome: str,
        *,
        began: float | None = None,
        tokens: int = 0,
        detail: str = "",
    ) -> None:
        """Store an event for the report, after the answer: no host waits for it."""
        event = HostEvent(
            at=self._clock(),
            host=exchange.host,
            session_id=session,
            kind=kind,
            outcome=outcome,
            ms=0.0 if began is None else round((time.perf_counter() - began) * 1_000, 2),
            tokens=tokens,
            detail=detail[:500],
        )
        exchange.then(lambda: self._kept.add_event(event, within_s=exchange.patience_s))


def _checked_id(session: str) -> str:
    if not session:
        raise WrongInput("The request has no session id.")
    return session


_OPERATIONS: dict[str, tuple[Any, Callable[[HostService, Any, Exchange], Any]]] = {
    "hook": (HookInput, HostService.hook),
    "opening": (OpeningRequest, HostService.opening),
    "gate": (GateCall, HostService.decide),
    "import": (Report, HostService.report_log),
    "usage": (SideUsage, HostService.usage),
    "tool": (ToolCall, HostService.tool),
    "failure": (Report, HostService.failure),
    "learned": (dict[str, Any], HostService.learned),
    "status": (dict[str, Any], HostService.status),
}
OPERATIONS = tuple(_OPERATIONS)
