"""Builds agents and reviewers from the settings: model, tools, gate, memory, opening, review."""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from journeyman.agent.agent import SOURCE, Agent, OpeningFor, SessionSetup, system_prompt
from journeyman.agent.conversation import Prices
from journeyman.agent.dispatch import (
    Decide,
    ask_when_unconfined,
    no_approver,
    request_confirmation_tool,
)
from journeyman.agent.knowledge.knowledge import Knowledge, Target
from journeyman.agent.review.journal import journal_entry
from journeyman.agent.review.reviewer import BackgroundReview, Reviewer, ReviewResult
from journeyman.agent.review.rules import check_commands
from journeyman.agent.snapshots import TurnSnapshots
from journeyman.agent.tools.knowledge_tools import knowledge_tools
from journeyman.agent.tools.search_tools import session_search_tool
from journeyman.agent.tools.tool import (
    Invocation,
    Resources,
    Result,
    Tool,
    ToolLimits,
    failed,
    worked,
)
from journeyman.agent.tools.toolbox import Toolbox, workspace_tools
from journeyman.agent.tools.workspace import Workspace
from journeyman.agent.turn import FinishedTurn, Limits
from journeyman.experience.opening import Opening
from journeyman.experience.warm_session import SCHEMA, warm_session
from journeyman.gate.decision import Approver, Notify
from journeyman.gate.gate import Gate
from journeyman.models.embedder import Embedder
from journeyman.models.factory import make_model
from journeyman.models.model import JsonObject, Model
from journeyman.models.prices import estimated_cost
from journeyman.records import SearchHit, Write
from journeyman.records.defaults import BUDGET_TOKENS
from journeyman.settings import EMBEDDED, Settings, sqlite_path
from journeyman.store.store import Store
from journeyman.undo.history import WorkTreeHistory

_OPENINGS_PER_WINDOW = 4
"""An opening takes at most the context window divided by this number."""

_SMALL_WINDOW_TOKENS = 16_000
_SMALL_WINDOW_LIMITS = ToolLimits(output_characters=3_000, read_lines=120, read_characters=4_000)
"""Limits on tool results for models with a small context window."""

_MAX_UNREVIEWED = 200
"""How many recent sessions are counted to find out whether a review is due."""


class AgentOptions(Struct, frozen=True, kw_only=True):
    """The options of one agent.

    `warm` is `auto`, `off` or the name of a template. `ask` decides on risky calls; without it the
    configured confirmation service does, and without one they are refused. `tell` receives lines
    for the user. `base_url` is the endpoint that prices are looked up for, if not the default one.
    `network` gives commands network access regardless of the settings. `only` names the built-in
    tools it has, by default all, in addition to `more_tools`. `briefing` extends the system prompt.
    `about` is the task that the opening must fit, if that is not the whole user message.
    """

    workspace: Path
    model: Model | str = ""
    warm: str = "auto"
    ask: Approver | None = None
    limits: Limits | None = None
    review: bool | None = None
    network: bool = False
    tell: Notify = lambda _line: None
    platform: str = "library"
    tags: tuple[str, ...] = ()
    base_url: str | None = None
    only: Sequence[str] | None = None
    more_tools: Sequence[Tool] = ()
    briefing: str = ""
    about: str = ""


class AgentFactory:
    """Builds agents and reviewers on one store. `experience` provides the openings."""

    def __init__(
        self,
        *,
        settings: Settings,
        store: Store,
        experience: Any,
        approver: Callable[[str, Notify], Approver],
        clock: Callable[[], float],
        timer: Callable[[], float],
    ) -> None:
        self._settings, self._store, self._approver = settings, store, approver
        self._experience, self._clock, self._timer = experience, clock, timer

    @property
    def knowledge(self) -> Knowledge:
        """Memory and skills, in the configured folder."""
        folder = self._settings.agent.knowledge
        return Knowledge(Path(folder).expanduser() if folder else self._settings.home)

    def agent(self, options: AgentOptions) -> Agent:
        """Build an agent that works in `options.workspace`."""
        settings, notify = self._settings.agent, options.tell
        workspace = self._workspace(options)
        model = options.model
        if isinstance(model, str):
            model = make_model(self._settings.model, model)
        prices = self._prices(model, options.base_url)
        ask = options.ask
        if ask is None:
            has_service = bool(self._settings.confirm.token)
            ask = self._approver(str(workspace.root), notify) if has_service else no_approver
        gate = Gate(workspace.root, home=Path.home(), network=workspace.network)
        decide = _by_risk(gate)
        if workspace.unconfined:
            notify(f"Nothing confines commands here: {workspace.unconfined}. They need approval.")
            decide = ask_when_unconfined(decide, workspace.unconfined)
        snapshots = None
        if settings.undo:
            snapshots = TurnSnapshots(self.history(workspace.root), notify)
        tools = self._tools(workspace, gate, _tool_limits(model), ask, snapshots)
        if options.only is not None:
            tools = tuple(tool for tool in tools if tool.name in options.only)
        tools += tuple(options.more_tools)
        background_review = None
        reviews = self._settings.review
        is_reviewed = reviews.enabled if options.review is None else options.review
        if is_reviewed and any(tool.risk == "knowledge" for tool in tools):
            background_review = BackgroundReview(
                self._reviewer(model, tools, gate, options.platform, prices),
                every_turns=1 if options.review else reviews.every_turns,
                every_calls=reviews.every_calls,
                notify=notify,
                reports_all=bool(options.review),
                unreviewed=self._unreviewed(),
            )

        def close() -> None:
            if background_review is not None:
                background_review.cancel()
            workspace.close()

        return Agent(
            store=self._store,
            model=model,
            toolbox=Toolbox(tools),
            setup=self._session_setup(options, model, workspace.root),
            decide=decide,
            ask=ask,
            limits=options.limits or msgspec.convert(settings, Limits, from_attributes=True),
            prices=prices,
            background_review=background_review,
            snapshots=snapshots,
            clock=self._clock,
            timer=self._timer,
            on_close=close,
        )

    def review(
        self,
        session_id: str,
        model: Model | str,
        *,
        cancelled: Callable[[], bool],
        platform: str,
    ) -> ReviewResult:
        """Review a stored session, with the tools that an agent would have."""
        if isinstance(model, str):
            model = make_model(self._settings.model, model)
        session = self._store.sessions.get(session_id).session
        lead = session.details.get("lead", 0)
        # No command runs in this folder: a review can only read and write memory and skills.
        with tempfile.TemporaryDirectory() as folder, Workspace(Path(folder)) as workspace:
            gate = Gate(workspace.root, home=Path.home())
            tools = self._tools(workspace, gate, _tool_limits(model), no_approver)
            turn = FinishedTurn(
                session=session,
                messages=tuple(self._store.sessions.messages(session.id)),
                lead=lead if isinstance(lead, int) else 0,
                tools=tuple(Toolbox(tools).definitions),
            )
            reviewer = self._reviewer(model, tools, gate, platform, self._prices(model))
            return reviewer.review(turn, cancelled)

    def history(self, workspace: Path) -> WorkTreeHistory:
        """The states of a workspace, for undo."""
        settings = self._settings.agent
        return WorkTreeHistory(
            self._settings.home / "undo",
            workspace,
            most_bytes=settings.undo_mb * 2**20,
            days=settings.undo_days,
            clock=self._clock,
        )

    def _workspace(self, options: AgentOptions) -> Workspace:
        settings = self._settings.agent
        # The agent's tools must not reach Journeyman's own files: keys, sessions, memory.
        own = (
            self._settings.home,
            self.knowledge.folder,
            sqlite_path(self._settings.database),
        )
        return Workspace(
            options.workspace,
            confine=settings.confine,
            hidden=[path for path in own if path is not None],
            network="on" if options.network else settings.network,
            resources=msgspec.convert(settings, Resources, from_attributes=True),
        )

    def _session_setup(self, options: AgentOptions, model: Model, workspace: Path) -> SessionSetup:
        knowledge = self.knowledge
        return SessionSetup(
            system_prompt=lambda: system_prompt(
                workspace, knowledge.system_text(), options.briefing
            ),
            opening=self._opening_for(options, model, workspace),
            platform=options.platform,
            workspace=str(workspace),
            project=self._experience.find_project(workspace),
            tags=options.tags,
        )

    def _reviewer(
        self, model: Model, tools: Sequence[Tool], gate: Gate, platform: str, prices: Prices
    ) -> Reviewer:
        switches = self._settings.review
        targets: dict[Target, bool] = {"memory": switches.memory, "user": switches.user_profile}
        return Reviewer(
            store=self._store,
            model=model,
            knowledge=self.knowledge,
            tools=tools,
            decide=_by_risk(gate),
            similarity=Embedder().similarity,
            find_risk=partial(_find_risk, gate),
            prices=prices,
            clock=self._clock,
            platform=platform,
            left_alone=tuple(target for target, is_on in targets.items() if not is_on),
        )

    def _unreviewed(self) -> tuple[int, int]:
        """The number of turns and calls since the last review, which ran in other processes."""
        last = next(iter(self._store.reviews.list(limit=1)), None)
        since = None if last is None else last.started_at
        recent = self._store.sessions.list(source=SOURCE, since=since, limit=_MAX_UNREVIEWED)
        done = [overview for overview in recent if overview.session.end_reason == "agent_stop"]
        return len(done), sum(overview.calls for overview in done)

    def _prices(self, model: Model, base_url: str | None = None) -> Prices:
        """The prices of requests to a model; a model that runs in this process costs nothing."""
        if model.provider == EMBEDDED:
            return lambda _model, _tokens: 0.0
        address = self._settings.model.base_url if base_url is None else base_url
        return lambda name, tokens: estimated_cost(name, tokens, base_url=address)

    def builtin_tools(self) -> tuple[Tool, ...]:
        """The tools of an agent, for their names and attributes; they cannot run."""
        with tempfile.TemporaryDirectory() as folder, Workspace(Path(folder)) as workspace:
            gate = Gate(workspace.root, home=Path.home())
            return self._tools(workspace, gate, ToolLimits(), no_approver)

    def _tools(
        self,
        workspace: Workspace,
        gate: Gate,
        limits: ToolLimits,
        ask: Approver,
        snapshots: TurnSnapshots | None = None,
    ) -> tuple[Tool, ...]:
        def search(query: str, limit: int) -> Sequence[SearchHit]:
            return self._store.sessions.search(query, limit=limit, redacted=True)

        def record(write: Write, invocation: Invocation) -> None:
            entry = journal_entry(write, invocation, self.knowledge, self._clock())
            self._store.reviews.add_write(entry)

        def check(write: Write, _invocation: Invocation) -> None:
            check_commands("\n".join(write.added), partial(_find_risk, gate))

        def run_warm_session(invocation: Invocation) -> Result:
            answer = msgspec.json.decode(warm_session(self._experience, invocation.arguments))
            error = answer.pop("error", None)
            return worked(**answer) if error is None else failed(error, **answer)

        in_workspace = workspace_tools(workspace, limits)
        if snapshots is not None:
            in_workspace = tuple(map(snapshots.guarded, in_workspace))
        return (
            *in_workspace,
            session_search_tool(search),
            *knowledge_tools(self.knowledge, keep=record, check=check),
            Tool(**SCHEMA, run=run_warm_session, risk="templates", teaches=False),
            request_confirmation_tool(ask),
        )

    def _opening_for(self, options: AgentOptions, model: Model, workspace: Path) -> OpeningFor:
        if options.warm == "off":
            return lambda task, _tools: Opening(task=task)
        budget, window = BUDGET_TOKENS, model.context_tokens
        if window is not None:
            budget = min(budget, window // _OPENINGS_PER_WINDOW)
        is_small = _has_small_window(model)

        def opening(task: str, tools: Sequence[JsonObject]) -> Opening:
            shown: Opening = self._experience.opening(
                options.about or task,
                project=workspace,
                tools=tools,
                model=model.name,
                small=is_small or None,
                budget_tokens=budget,
                template=None if options.warm == "auto" else options.warm,
            )
            return shown

        return opening


def _by_risk(gate: Gate) -> Decide:
    return lambda tool, arguments: gate.decide(tool.risk, arguments)


def _tool_limits(model: Model) -> ToolLimits:
    return _SMALL_WINDOW_LIMITS if _has_small_window(model) else ToolLimits()


def _find_risk(gate: Gate, text: str) -> str:
    """Why the gate would not simply allow a command in a text; empty if there is none."""
    return getattr(gate.find_risky_command(text), "reason", "")


def _has_small_window(model: Model) -> bool:
    return model.context_tokens is not None and model.context_tokens < _SMALL_WINDOW_TOKENS
