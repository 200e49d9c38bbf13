"""Builds agents and reviewers from the settings: model, tools, gate, memory, opening, review."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from journeyman.agent.agent import SOURCE, Agent, OpeningFor, system_prompt
from journeyman.agent.conversation import Prices
from journeyman.agent.dispatch import Decide, no_approver, request_confirmation_tool
from journeyman.agent.function_tool import function_tool
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
from journeyman.agent.turn import FinishedTurn
from journeyman.experience.opening import Opening
from journeyman.experience.warm_session import SCHEMA, warm_session
from journeyman.gate.decision import Approver, Decision, Notify
from journeyman.gate.gate import Gate
from journeyman.hosts.runner import RunLimits
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

DEFAULT_LIMITS = ToolLimits()
_SMALL_WINDOW_TOKENS = 16_000
_SMALL_WINDOW_LIMITS = ToolLimits(output_characters=3_000, read_lines=120, read_characters=4_000)
"""Limits on tool results for models with a small context window."""

_MAX_UNREVIEWED = 200
"""How many recent sessions are counted to find out whether a review is due."""


class AgentOptions(Struct, frozen=True, kw_only=True):
    """The options of one agent.

    `model` is a model, or the name of one: `embedded`, or a model at the configured endpoint.
    `warm` is `auto`, `off` or the name of a template. `ask` decides on risky calls; without it the
    configured confirmation service does, and without one they are refused. `tell` receives lines
    for the user. `network` gives commands network access regardless of the settings. `tools` are
    your own, beside the built-in ones: functions with type hints and a docstring, or `Tool`
    records; `only` names the built-in tools it has, by default all. `base_url` is the endpoint that
    prices are looked up for, if not the default one. `briefing` extends the system prompt. `about`
    is the task that the opening must fit, if that is not the whole user message.
    """

    workspace: Path | str = "."
    model: Model | str = ""
    warm: str = "auto"
    ask: Approver | None = None
    limits: RunLimits | None = None
    review: bool | None = None
    network: bool = False
    tell: Notify = lambda _line: None
    platform: str = "library"
    tags: Iterable[str] = ()
    tools: Sequence[Tool | Callable[..., Any]] = ()
    only: Sequence[str] | None = None
    base_url: str | None = None
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
        if options.warm not in ("auto", "off"):
            self._experience.templates.get(options.warm)  # report an unknown name early
        own = [tool if isinstance(tool, Tool) else function_tool(tool) for tool in options.tools]
        settings, knowledge = self._settings.agent, self.knowledge
        model, workspace = self._model(options.model), self._workspace(options)
        prices = self._prices(model, options.base_url)
        ask = options.ask
        if ask is None:
            has_service = bool(self._settings.confirm.token)
            ask = self._approver(str(workspace.root), options.tell) if has_service else no_approver
        if workspace.unconfined:
            why = f"Nothing confines commands here: {workspace.unconfined}."
            options.tell(f"{why} They need approval.")
        gate = Gate(workspace.root, home=Path.home(), network=workspace.network)
        working, snapshots = workspace_tools(workspace, _tool_limits(model)), None
        if settings.undo:
            snapshots = TurnSnapshots(self.history(workspace.root), options.tell)
            working = tuple(map(snapshots.guarded, working))
        tools = [
            tool
            for tool in (*working, *self._stored_tools(gate, ask))
            if options.only is None or tool.name in options.only
        ]
        tools += own
        reviewer = self._reviewer(model, tools, gate, options.platform, prices)
        return Agent(
            store=self._store,
            model=model,
            toolbox=Toolbox(tools),
            system_prompt=lambda: system_prompt(
                workspace.root, knowledge.system_text(), options.briefing
            ),
            opening=self._opening_for(options, model, workspace.root),
            facts={
                "platform": options.platform,
                "cwd": str(workspace.root),
                "project": self._experience.find_project(workspace.root),
                "tags": (options.tags,) if isinstance(options.tags, str) else (*options.tags,),
            },
            decide=decide_by_risk(gate, workspace.unconfined),
            ask=ask,
            limits=options.limits or msgspec.convert(settings, RunLimits, from_attributes=True),
            prices=prices,
            background_review=self._background_review(reviewer, options),
            snapshots=snapshots,
            clock=self._clock,
            timer=self._timer,
            on_close=workspace.close,
        )

    def builtin_tools(self, limits: ToolLimits = DEFAULT_LIMITS) -> tuple[Tool, ...]:
        """The tools of an agent, for their descriptions; those for a workspace cannot run."""
        described = workspace_tools(None, limits)
        return (*described, *self._stored_tools(Gate(self._settings.home), no_approver))

    def review(
        self,
        session_id: str,
        model: Model | str,
        *,
        cancelled: Callable[[], bool],
        platform: str,
    ) -> ReviewResult:
        """Review a stored session, with the tools that an agent would have."""
        model = self._model(model)
        session = self._store.sessions.get(session_id).session
        lead = session.details.get("lead", 0)
        gate = Gate(Path(session.cwd or self._settings.home), home=Path.home())
        tools = self.builtin_tools(_tool_limits(model))
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
        database = sqlite_path(self._settings.database)
        own = [self._settings.home, self.knowledge.folder, *([database] if database else [])]
        return Workspace(
            Path(options.workspace),
            confine=settings.confine,
            hidden=own,
            network="on" if options.network else settings.network,
            resources=msgspec.convert(settings, Resources, from_attributes=True),
        )

    def _model(self, model: Model | str) -> Model:
        return make_model(self._settings.model, model) if isinstance(model, str) else model

    def _background_review(
        self, reviewer: Reviewer, options: AgentOptions
    ) -> BackgroundReview | None:
        reviews = self._settings.review
        is_reviewed = reviews.enabled if options.review is None else options.review
        if not is_reviewed or not any(tool.risk == "knowledge" for tool in reviewer.tools):
            return None
        # Earlier agents, which ran in other processes, may have left turns and calls unreviewed.
        last = self._store.reviews.list(limit=1)
        since = last[0].started_at if last else None
        recent = self._store.sessions.list(source=SOURCE, since=since, limit=_MAX_UNREVIEWED)
        done = [overview for overview in recent if overview.session.end_reason == "agent_stop"]
        return BackgroundReview(
            reviewer,
            every_turns=1 if options.review else reviews.every_turns,
            every_calls=reviews.every_calls,
            notify=options.tell,
            reports_all=bool(options.review),
            unreviewed=(len(done), sum(overview.calls for overview in done)),
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
            decide=decide_by_risk(gate),
            similarity=Embedder().similarity,
            find_risk=partial(_find_risk, gate),
            prices=prices,
            clock=self._clock,
            platform=platform,
            left_alone=tuple(target for target, is_on in targets.items() if not is_on),
        )

    def _prices(self, model: Model, base_url: str | None = None) -> Prices:
        """The prices of requests to a model; a model that runs in this process costs nothing."""
        if model.provider == EMBEDDED:
            return lambda _model, _tokens: 0.0
        address = self._settings.model.base_url if base_url is None else base_url
        return lambda name, tokens: estimated_cost(name, tokens, base_url=address)

    def _stored_tools(self, gate: Gate, ask: Approver) -> tuple[Tool, ...]:
        """The tools that do not work in a workspace."""

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

        return (
            session_search_tool(search),
            *knowledge_tools(self.knowledge, keep=record, check=check),
            Tool(**SCHEMA, run=run_warm_session, risk="templates", teaches=False),
            request_confirmation_tool(ask),
        )

    def _opening_for(self, options: AgentOptions, model: Model, workspace: Path) -> OpeningFor:
        window = model.context_tokens or BUDGET_TOKENS * _OPENINGS_PER_WINDOW

        def opening(task: str, tools: Sequence[JsonObject]) -> Opening:
            if options.warm == "off":
                return Opening(task=task)
            shown: Opening = self._experience.opening(
                options.about or task,
                project=workspace,
                tools=tools,
                model=model.name,
                small=_has_small_window(model) or None,
                budget_tokens=min(BUDGET_TOKENS, window // _OPENINGS_PER_WINDOW),
                template=None if options.warm == "auto" else options.warm,
            )
            return shown

        return opening


def decide_by_risk(gate: Gate, unconfined: str = "") -> Decide:
    """Decide on calls by the risk of their tool. Where nothing confines commands, for the reason
    `unconfined`, those that the gate allows need approval as well.
    """

    def decide(tool: Tool, arguments: dict[str, object]) -> Decision:
        decision = gate.decide(tool.risk, arguments)
        if not unconfined or not tool.runs_commands or decision.answer != "allow":
            return decision
        reason = f"Nothing confines commands here: {unconfined}."
        return Decision(answer="ask", rule="unconfined", reason=reason)

    return decide


def _tool_limits(model: Model) -> ToolLimits:
    return _SMALL_WINDOW_LIMITS if _has_small_window(model) else DEFAULT_LIMITS


def _find_risk(gate: Gate, text: str) -> str:
    """Why the gate would not simply allow a command in a text; empty if there is none."""
    return getattr(gate.find_risky_command(text), "reason", "")


def _has_small_window(model: Model) -> bool:
    return model.context_tokens is not None and model.context_tokens < _SMALL_WINDOW_TOKENS
