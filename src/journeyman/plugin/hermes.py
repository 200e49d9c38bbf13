"""The plugin for Hermes Agent, which finds it by the entry point `hermes_agent.plugins`. Sessions
start with what was learned, risky calls wait for a person, and sessions are imported after each
turn.

Hermes loads this whenever it starts, so it imports little; everything else is done by the resident
process. It never opens Hermes' database: closing that file here would drop Hermes' own locks on it.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Collection
from typing import Any

from journeyman.plugin import hermes_openings
from journeyman.plugin.client import Unanswered
from journeyman.plugin.hermes_gate import UNAVAILABLE, ToolGate
from journeyman.plugin.hermes_link import Link, PluginSettings, Recent, home_folder
from journeyman.plugin.hermes_openings import Origin, RequestOpenings

_PARTS = ("opening", "gate", "import")
_TOOL = "warm_session"
_TOOL_S = 60.0
_REVIEW_THREAD = "bg-review"
_SUBAGENT = "subagent"
_TERMINAL = "cli"
_COUNTERS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_AGENT_COMMANDS = ("chat", "gateway", "acp", "serve", "dashboard", "--resume", "--continue", "-c")
"""The commands of Hermes that run an agent a little later; without a command it is the chat."""


_served: set[str] = set()
"""The parts that a run has brought to this process. The installed plugin leaves them out."""


def register(ctx: Any) -> None:
    """Register the plugin's callbacks and tool. Hermes calls this."""
    plugin = HermesPlugin(Link(home_folder()))
    plugin.register(ctx, without=_served)
    if _served:
        return
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in _AGENT_COMMANDS:
        start = plugin.safe("start", plugin.link.start_resident)
        threading.Thread(target=start, name="journeyman-start", daemon=True).start()


def register_run(ctx: Any, *, gate_tools: tuple[str, ...], subagents: bool, is_gated: bool) -> None:
    """Register the callbacks for one run. Without a gate, another plugin decides on each call."""
    link = Link(home_folder(), PluginSettings(gate_tools=gate_tools, subagents=subagents))
    _served.update(("opening", "gate"))
    others = ("import", _TOOL) if is_gated else ("import", _TOOL, "gate")
    HermesPlugin(link).register(ctx, without=others)


class HermesPlugin:
    """The callbacks. Each catches its own errors: a session must never fail because of them."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._openings = RequestOpenings(link, _database)
        self._gate = ToolGate(link, self._session_of, self._is_main)
        self._tasks: Recent[str, str] = Recent()
        """The session of each task, for calls that only name their task."""
        self._sessions: Recent[str, str] = Recent()
        """The platform of each main session."""
        self._reviews: Recent[str, str] = Recent()
        """The turns that are background reviews."""

    def register(self, ctx: Any, *, without: Collection[str] = ()) -> None:
        """Register what is installed, and what goes with it, but these parts."""
        hooks: dict[str, Callable[..., Any]] = {}
        middleware: dict[str, Callable[..., Any]] = {}
        parts = {part for part in _PARTS if part not in without and self.link.serves(part)}
        if "opening" in parts:
            middleware["llm_request"] = self.llm_request
            hooks["pre_llm_call"] = self.pre_llm_call
            hooks["on_session_start"] = hooks["on_session_reset"] = self.on_session_start
        if "gate" in parts:
            middleware["tool_request"] = self.tool_request
            hooks["on_session_start"] = self.on_session_start
            ctx.register_hook("pre_tool_call", self.pre_tool_call)
        if "import" in parts:
            hooks["on_session_end"] = hooks["on_session_finalize"] = self.on_session_end
            hooks["post_api_request"] = self.post_api_request
        for event, work in hooks.items():
            ctx.register_hook(event, self.safe(event, work))
        for kind, work in middleware.items():
            ctx.register_middleware(kind, self.safe(kind, work))
        if _TOOL not in without:
            ctx.register_tool(
                _TOOL, "journeyman", _tool_schema(), self.warm_session, description="Warm sessions"
            )

    def safe(self, event: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return a callback that reports what goes wrong in it."""

        def callback(*arguments: Any, **named: Any) -> Any:
            try:
                return work(*arguments, **named)
            except Exception as error:  # noqa: BLE001 - a plugin must not break its host
                reason = f"{type(error).__name__}: {error}"
                self.link.fail(str(named.get("session_id") or ""), event, reason)
                return None

        return callback

    def llm_request(
        self,
        *,
        request: dict[str, Any],
        session_id: str = "",
        turn_id: str = "",
        task_id: str = "",
        platform: str = "",
        model: str = "",
        api_mode: str = "",
        api_call_count: int = 0,
        **_more: Any,
    ) -> dict[str, Any] | None:
        """Put the session's opening into a request."""
        form = hermes_openings.FORMS.get(api_mode)
        if not (form and session_id and request.get("tools")):
            return None
        messages = hermes_openings.messages_of(request, form)
        is_review = _is_review_thread() or hermes_openings.is_review(messages)
        if is_review:
            self._reviews[turn_id] = session_id
        elif platform == _SUBAGENT:
            if not self.link.settings().subagents:
                return None
        else:
            self._sessions[session_id] = platform
        self._tasks[task_id] = session_id
        origin = Origin(session_id, turn_id, model, platform, api_call_count)
        given = self._openings.add(request, form, origin)
        if not given.id:
            return None
        return {"request": request, "source": "journeyman", "reason": f"opening {given.id}"}

    def pre_llm_call(
        self,
        *,
        session_id: str = "",
        user_message: object = "",
        is_first_turn: bool = False,
        **_more: Any,
    ) -> None:
        """Note what the user asks for."""
        if session_id and not _is_review_thread():
            self._openings.note_turn(session_id, user_message, is_first=bool(is_first_turn))

    def tool_request(
        self,
        *,
        tool_name: str,
        args: dict[str, Any],
        session_id: str = "",
        task_id: str = "",
        tool_call_id: str = "",
        **_more: Any,
    ) -> dict[str, Any] | None:
        """Ask the gate about a call, and apply the arguments that a person changed."""
        # A review may use few tools; Hermes denies it the others after this.
        if _is_review_thread() or not self._gate.is_gated(tool_name):
            return None
        edited = self._gate.request(
            tool_name, args, session=session_id, task=task_id, call=tool_call_id
        )
        if edited is None:
            return None
        return {"args": edited, "source": "journeyman", "reason": "a person changed the arguments"}

    def pre_tool_call(
        self,
        *,
        tool_name: str = "",
        args: dict[str, Any] | None = None,
        session_id: str = "",
        task_id: str = "",
        tool_call_id: str = "",
        **_more: Any,
    ) -> dict[str, str] | None:
        """Block a call that was not allowed, and one that could not be asked about; have Hermes ask
        the person at its terminal.
        """
        try:
            if not self._gate.is_gated(tool_name):
                return None
            return self._gate.check(
                tool_name, args or {}, session=session_id, task=task_id, call=tool_call_id
            )
        except Exception as error:  # noqa: BLE001 - what cannot be asked about must not run
            self.link.fail(session_id, "pre_tool_call", f"{type(error).__name__}: {error}")
            return {"action": "block", "message": UNAVAILABLE}

    def post_api_request(
        self,
        *,
        session_id: str = "",
        turn_id: str = "",
        api_request_id: str = "",
        model: str = "",
        usage: object = None,
        **_more: Any,
    ) -> None:
        """Report the tokens of a background review, which are in none of Hermes' tables."""
        is_review = _is_review_thread() or turn_id in self._reviews
        if not is_review or not session_id or not isinstance(usage, dict):
            return
        counts = {name: usage[name] for name in _COUNTERS if isinstance(usage.get(name), int)}
        body = {"session": session_id, "task": "background_review", "model": model, **counts}
        self.link.inform("usage", {**body, "key": f"background_review:{api_request_id}"})

    def on_session_start(self, session_id: str = "", platform: str = "", **_more: Any) -> None:
        """Note which session is the newest."""
        if session_id and platform != _SUBAGENT and not _is_review_thread():
            self._sessions[session_id] = platform

    def on_session_end(self, session_id: str = "", **_more: Any) -> None:
        """Have the session imported: after every turn, and when it is closed."""
        if session_id and not _is_review_thread():
            self.link.inform("import", {"session": session_id, "path": _database()})

    def warm_session(self, arguments: dict[str, Any] | None = None, **_more: Any) -> str:
        """Run the tool `warm_session`, and return JSON."""
        try:
            call = {"name": _TOOL, "arguments": arguments or {}}
            return str(self.link.ask("tool", call, timeout_s=_TOOL_S)["text"])
        except (Unanswered, KeyError) as error:
            self.link.fail("", _TOOL, str(error))
            return json.dumps({"success": False, "error": f"Journeyman did not answer: {error}"})

    def _session_of(self, task: str) -> str:
        return self._tasks.get(task, "")

    def _is_main(self, session: str) -> bool:
        return self._sessions.get(session) == _TERMINAL


def _is_review_thread() -> bool:
    return threading.current_thread().name == _REVIEW_THREAD


def _database() -> str:
    """Return the path of Hermes' database, which only other processes may open."""
    find_home = getattr(sys.modules.get("hermes_constants"), "get_hermes_home", None)
    folder = find_home() if find_home else os.environ.get("HERMES_HOME") or "~/.hermes"
    return os.path.join(os.path.expanduser(str(folder)), "state.db")  # noqa: PTH111, PTH118


def _tool_schema() -> dict[str, Any]:
    """Return the definition of the tool, from a copy that needs no imports."""
    path = os.path.join(os.path.dirname(__file__), "warm_session.json")  # noqa: PTH118, PTH120
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        schema: dict[str, Any] = json.load(file)
    return schema
