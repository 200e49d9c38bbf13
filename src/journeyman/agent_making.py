"""An agent put together from the settings: model, tools, gate, memory, opening and review."""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from journeyman.agent.agent import SOURCE, Agent, Warm, system_prompt
from journeyman.agent.conversation import Prices
from journeyman.agent.dispatch import Ask, Decide, ask_unconfined, nobody, request_confirmation_tool
from journeyman.agent.knowledge.knowledge import Knowledge
from journeyman.agent.review.journal import journal_entry
from journeyman.agent.review.reviewer import BackgroundReview, Reviewed, Reviewer
from journeyman.agent.review.rules import check_commands
from journeyman.agent.snapshots import Snapshots
from journeyman.agent.tools.knowledge_tools import KNOWLEDGE_TOOLS, knowledge_tools
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
from journeyman.agent.turn import Finished, Limits
from journeyman.agent.undo import TurnSnapshots
from journeyman.confirm_making import asking_service
from journeyman.embeddings.embedder import Embedder
from journeyman.gate.gate import Gate
from journeyman.models.model import JsonObject, Model
from journeyman.models.prices import estimated_cost
from journeyman.records import SearchHit, Write
from journeyman.records.errors import BadSetting, MissingPart
from journeyman.redaction.redactor import Redactor
from journeyman.settings import EMBEDDED, ModelSettings, Settings
from journeyman.store.sqlite_file import sqlite_path
from journeyman.store.store import Store
from journeyman.templates.defaults import BUDGET_TOKENS, MOST_PATTERNS, SMALL_MODEL_EXAMPLES
from journeyman.templates.shown.opening import Opening
from journeyman.warm_session import SCHEMA, Experience, warm_session

OPENAI = "https://api.openai.com/v1"

_OPENING_SHARE = 4
"""An opening takes at most this part of the window: one in four."""

_SMALL_WINDOW = 16_000
_SMALL_LIMITS = ToolLimits(output_characters=3_000, read_lines=120, read_characters=4_000)
"""For a model with a small window, results have to be small too."""

_LOOKED_AT = 200

TOOL_NAMES = (
    *("terminal", "execute_code", "read_file", "write_file", "patch", "search_files"),
    *("session_search", "memory", "skills_list", "skill_view", "skill_manage", "warm_session"),
    "request_confirmation",
)
"""The tools of an agent, as a test holds against those that are made."""


def endpoint(settings: Settings, provider: str = "") -> ModelSettings:
    """The model and address of a provider; the usual ones without. Raises BadSetting."""
    usual = settings.model
    if not provider or (provider == EMBEDDED and not usual.base_url and not usual.name):
        return usual
    if provider == EMBEDDED:
        return ModelSettings(name=EMBEDDED)
    if provider not in settings.providers:
        known = ", ".join((EMBEDDED, *settings.providers))
        raise BadSetting(
            f"The provider {provider!r} is not known. Known are: {known}. Write [providers."
            f"{provider}] with base_url and api_key into config.toml, or name another."
        )
    return settings.providers[provider]


def make_model(settings: ModelSettings, name: str = "") -> Model:
    """The model of this name, or the one that the settings name, or the embedded one."""
    wanted = name or settings.name
    if not wanted and settings.base_url:
        raise BadSetting(
            f"model.base_url is {settings.base_url}, but no model is named. Set model.name, or "
            "give --model."
        )
    is_file = wanted.endswith(".gguf") and not settings.base_url
    if wanted in ("", EMBEDDED) or is_file:
        from journeyman.models.embedded import EmbeddedModel  # noqa: PLC0415

        path = Path(wanted).expanduser() if is_file else None
        window = {"context_tokens": settings.context_length} if settings.context_length else {}
        longest = {"max_tokens": settings.max_tokens} if settings.max_tokens else {}
        return EmbeddedModel(path=path, **window, **longest)
    if not settings.base_url and not settings.api_key:
        raise BadSetting(
            f"The model {wanted} is to be asked. Without model.base_url that means OpenAI's, and "
            "neither model.api_key nor OPENAI_API_KEY is set. Set one of them, or model.base_url; "
            "`--model embedded` needs neither."
        )
    try:
        from journeyman.models.remote import RemoteModel  # noqa: PLC0415
    except ImportError as error:
        raise MissingPart(
            f"A model at an endpoint needs a part that is not installed here ({error}). Install it "
            "with: pip install 'journeyman[agent]'"
        ) from error
    return RemoteModel(
        name=wanted,
        base_url=settings.base_url or OPENAI,
        api_key=settings.api_key,
        context_tokens=settings.context_length,
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
    )


class AgentMaking:
    """Makes agents and reviewers over one store. `experience` is the facade."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        experience: Experience,
        clock: Callable[[], float],
        timer: Callable[[], float],
    ) -> None:
        self._settings, self._store = settings, store
        self._experience, self._clock, self._timer = experience, clock, timer

    @property
    def knowledge(self) -> Knowledge:
        """Memory and skills, in the folder of the settings."""
        folder = self._settings.agent.knowledge
        return Knowledge(Path(folder).expanduser() if folder else self._settings.home)

    def agent(
        self,
        model: Model | str,
        *,
        workspace: Path,
        warm: str,
        ask: Ask | None,
        limits: Limits | None,
        review: bool | None,
        tell: Callable[[str], None],
        platform: str,
        tags: tuple[str, ...],
        base_url: str | None = None,
        network: bool = False,
        only: Sequence[str] = TOOL_NAMES,
        more_tools: Sequence[Tool] = (),
        briefing: str = "",
        about: str = "",
    ) -> Agent:
        """An agent in a workspace. `warm` is `auto`, `off` or the name of a template; `tell` gets
        lines for people. `base_url` is where the model is asked, if not at the usual place.
        `network` gives commands the network, whatever the settings say. `only` are the names of
        the tools it has, beside `more_tools`; `briefing` is what it is told besides; `about` is the
        task that examples must fit, where that is not all that the user says.
        """
        given, knowledge = self._settings.agent, self.knowledge
        # What is ours is out of reach for the agent's tools: keys, sessions, memory.
        ours = (self._settings.home, knowledge.folder, sqlite_path(self._settings.database))
        place = Workspace(
            workspace,
            confine=given.confine,
            hidden=[one for one in ours if one is not None],
            network="on" if network else given.network,
            resources=msgspec.convert(given, Resources, from_attributes=True),
        )
        asked_model = model if isinstance(model, str) else ""
        model = self._model(model)
        prices = self._prices(model, base_url)
        if ask is None:
            # A confirmation service that is configured is asked; otherwise nobody can be.
            service = self._settings.confirm.token
            ask = asking_service(self._settings, str(place.root), tell) if service else nobody
        gate = Gate(place.root, home=Path.home(), network=place.network)
        decide: Decide = gate.decide
        if place.unconfined:
            tell(
                f"Nothing confines commands here: {place.unconfined}. Each one that is not "
                "harmless (agent.harmless) is asked about."
            )
            decide = ask_unconfined(decide, place.unconfined, given.harmless)
        snapshots = TurnSnapshots(self.snapshots(place.root), tell) if given.undo else None
        available = self._tools(place, gate, model, ask, snapshots)
        tools = (*(tool for tool in available if tool.name in only), *more_tools)
        reviewing, chosen = None, self._settings.review
        can_write = any(name in KNOWLEDGE_TOOLS for name in only)
        if can_write and (review or (review is None and chosen.enabled)):
            reviewing = BackgroundReview(
                self._reviewer(model, tools, gate, platform, prices),
                # Who asks for a review of this agent's work means every turn of it.
                every_turns=1 if review else chosen.every_turns,
                every_calls=chosen.every_calls,
                tell=tell,
                tells_all=bool(review),
                since=self._unreviewed(),
            )

        def close() -> None:
            if reviewing is not None:
                reviewing.cancel()
            place.close()

        return Agent(
            store=self._store,
            model=model,
            toolbox=Toolbox(tools),
            decide=decide,
            system=lambda: system_prompt(place.root, knowledge.system_text(), briefing),
            ask=ask,
            warm=self._warm(warm, model, about, place.root),
            limits=limits or msgspec.convert(given, Limits, from_attributes=True),
            prices=prices,
            reviewing=reviewing,
            snapshots=snapshots,
            platform=platform,
            workspace=str(place.root),
            tags=tags,
            asked_model=asked_model,
            clock=self._clock,
            timer=self._timer,
            on_close=close,
        )

    def review(
        self, session_id: str, model: Model | str, *, cancelled: Callable[[], bool], platform: str
    ) -> Reviewed:
        """Review a session that is in the store, with the tools that an agent would have."""
        model = self._model(model)
        session = self._store.sessions.get(session_id).session
        lead = session.details.get("lead", 0)
        # Nothing runs in it: a review may only read and write memory and skills.
        with tempfile.TemporaryDirectory() as folder, Workspace(Path(folder)) as place:
            gate = Gate(place.root, home=Path.home())
            tools = self._tools(place, gate, model, nobody)
            finished = Finished(
                session=session,
                messages=tuple(self._store.sessions.messages(session.id)),
                lead=lead if isinstance(lead, int) else 0,
                tools=tuple(Toolbox(tools).definitions),
            )
            reviewer = self._reviewer(model, tools, gate, platform, self._prices(model))
            return reviewer.review(finished, cancelled)

    def _reviewer(
        self, model: Model, tools: Sequence[Tool], gate: Gate, platform: str, prices: Prices
    ) -> Reviewer:
        return Reviewer(
            store=self._store,
            model=model,
            knowledge=self.knowledge,
            tools=tools,
            decide=gate.decide,
            similarity=Embedder().similarity,
            find_risky=partial(_risk, gate),
            prices=prices,
            clock=self._clock,
            platform=platform,
        )

    def _unreviewed(self) -> tuple[int, int]:
        """The turns and calls since the last review; the earlier ones ran in other processes."""
        last = next(iter(self._store.reviews.list(limit=1)), None)
        since = None if last is None else last.started_at
        found = self._store.sessions.list(source=SOURCE, since=since, limit=_LOOKED_AT)
        done = [one for one in found if one.session.end_reason == "agent_stop"]
        return len(done), sum(one.calls for one in done)

    def _prices(self, model: Model, base_url: str | None = None) -> Prices:
        """What requests to this model cost: nothing, where it runs in this process."""
        if model.provider == EMBEDDED:
            return lambda _model, _tokens: 0.0
        address = self._settings.model.base_url if base_url is None else base_url
        return lambda name, tokens: estimated_cost(name, tokens, base_url=address)

    def _model(self, model: Model | str) -> Model:
        return make_model(self._settings.model, model) if isinstance(model, str) else model

    def snapshots(self, workspace: Path) -> Snapshots:
        """The snapshots of a workspace, for undo."""
        chosen = self._settings.agent
        return Snapshots(
            self._settings.home / "undo",
            workspace,
            most_bytes=chosen.undo_mb * 2**20,
            days=chosen.undo_days,
            clock=self._clock,
        )

    def _tools(
        self,
        place: Workspace,
        gate: Gate,
        model: Model,
        ask: Ask,
        snapshots: TurnSnapshots | None = None,
    ) -> tuple[Tool, ...]:
        limits = _SMALL_LIMITS if _is_small(model) else ToolLimits()

        def search(query: str, limit: int, source: str | None) -> Sequence[SearchHit]:
            clean = Redactor().text
            return self._store.sessions.search(query, limit=limit, source=source, clean=clean)

        def keep(write: Write, invocation: Invocation) -> None:
            entry = journal_entry(write, invocation, self.knowledge, self._clock())
            self._store.reviews.add_write(entry)

        def check(write: Write, _invocation: Invocation) -> None:
            check_commands("\n".join(write.added), partial(_risk, gate))

        def warm(invocation: Invocation) -> Result:
            answer = msgspec.json.decode(warm_session(self._experience, invocation.arguments))
            error = answer.pop("error", None)
            return worked(**answer) if error is None else failed(error, **answer)

        in_workspace = workspace_tools(place, limits)
        if snapshots is not None:
            in_workspace = tuple(map(snapshots.guarded, in_workspace))
        return (
            *in_workspace,
            session_search_tool(search),
            *knowledge_tools(self.knowledge, keep=keep, check=check),
            Tool(**SCHEMA, run=warm),
            request_confirmation_tool(ask),
        )

    def _warm(self, warm: str, model: Model, about: str, workspace: Path) -> Warm:
        if warm == "off":
            return lambda task, _tools: Opening(task=task)
        window = model.context_tokens
        budget = BUDGET_TOKENS if window is None else min(BUDGET_TOKENS, window // _OPENING_SHARE)
        is_small = _is_small(model)

        def make(task: str, tools: Sequence[JsonObject]) -> Opening:
            return self._experience.opening(
                about or task,
                project=workspace,
                tools=tools,
                model=model.name,
                budget_tokens=budget,
                max_patterns=SMALL_MODEL_EXAMPLES if is_small else MOST_PATTERNS,
                alike=is_small,
                template=None if warm == "auto" else warm,
            )

        return make


def _risk(gate: Gate, text: str) -> str:
    """Why the gate would not simply allow a command that a text tells to run; nothing if none."""
    return getattr(gate.find_risky_command(text), "reason", "")


def _is_small(model: Model) -> bool:
    return model.context_tokens is not None and model.context_tokens < _SMALL_WINDOW
