"""What works inside Hermes during a run. Hermes loads it as a plugin, for this run only; it uses
the standard library and Hermes' own modules.

It adds the command `hermes journeyman-run`, which is `hermes chat` with the prompt from standard
input. Where the plugin is not loaded there is no such command, and nothing runs without it. Its
standard output has only lines of JSON: sessions, errors of the model, and how a turn ended. What
Hermes prints goes to standard error.
"""

import json
import os
import runpy
import secrets
import sys
import threading
import time
from pathlib import Path
from typing import Any

COMMAND = "journeyman-run"
SETTINGS = "run.json"
_PLUGINS = "HERMES_BUNDLED_PLUGINS"
_REVIEW_THREAD, _SUBAGENT = "bg-review", "subagent"
_READING_TOOLS = (
    *("browser_back", "browser_get_images", "browser_navigate", "browser_scroll"),
    *("browser_snapshot", "browser_vision", "clarify", "delegate_task", "read_file"),
    *("read_terminal", "search_files", "session_search", "skill_view", "skills_list", "todo"),
    *("vision_analyze", "web_extract", "web_search"),
)
"""Tools that change nothing. The calls of a subagent are looked at as well."""
_NO_TOOLS = "Blocked by Journeyman: this run may not use tools. Answer in words."
_ONLY_READING = "Blocked by Journeyman: this run may only read files. Say what should be changed."
_COUNTED = ("_count", "_tokens", "_cost_usd")


def register(ctx: Any) -> None:
    """Register the run. Hermes calls this."""
    run = Run(json.loads(Path(__file__).with_name(SETTINGS).read_text(encoding="utf-8")))
    ctx.register_cli_command(COMMAND, "One run.", lambda _parser: None, run.work)
    ctx.register_middleware("llm_request", run.note_request)
    ctx.register_hook("api_request_error", run.note_error)
    ctx.register_hook("on_session_end", run.note_end)
    ctx.register_hook("pre_llm_call", run.open)
    ctx.register_hook("pre_tool_call", run.decide)
    if plugin := run.settings["plugin"]:
        # No person is asked about calls that are denied in any case.
        runpy.run_path(plugin)["register"](ctx, is_gated=not run.denial)


class Run:
    """One run. Of its settings, `arguments` are for `hermes chat`, and `plugins` is the former
    value of the variable that names the folder of plugins. Calls of tools that are not `allowed`
    are answered with `denial`, if it has one.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.denial = {"read": _ONLY_READING, "none": _NO_TOOLS}.get(settings["access"], "")
        self.allowed = _READING_TOOLS if settings["access"] == "read" else ()
        self._session = ""
        self._output: Any = None

    def work(self, _arguments: Any) -> None:
        """Do the work of the command."""
        self._output = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        os.environ.pop(_PLUGINS, None)  # commands of the agent may run Hermes as well
        if self.settings["plugins"]:
            os.environ[_PLUGINS] = self.settings["plugins"]
        arguments = [*self.settings["arguments"], f"--query={sys.stdin.read()}"]
        if origin := self.settings["fork"]:
            arguments += ["--resume", self._fork(origin)]
        sys.argv[1:] = ["chat", *arguments]
        from hermes_cli.main import main  # type: ignore[import-not-found] # noqa: PLC0415

        main()

    def _fork(self, origin: str) -> str:
        """Copy a session as Hermes' `/branch` does, but with its system prompt and without ending
        the original; return the copy's id.
        """
        from hermes_state import SessionDB  # type: ignore[import-not-found] # noqa: PLC0415

        database = SessionDB()
        original = database.export_session(origin)
        if original is None:
            sys.exit(f"Session not found: {origin}")
        name = f"{time.strftime('%Y%m%d_%H%M%S')}_{secrets.token_hex(3)}"
        config = {**json.loads(original["model_config"] or "{}"), "_branched_from": origin}
        copy = {field: None if field.endswith(_COUNTED) else original[field] for field in original}
        copy |= {"id": name, "parent_session_id": origin, "model_config": config}
        copy |= {"title": None, "started_at": time.time(), "ended_at": None, "end_reason": None}
        done = database.import_sessions([copy])
        if not done["ok"]:
            sys.exit(f"The session {origin} could not be copied: {done['errors']}")
        self._tell(session=name, model=original["model"] or "")
        return name

    def note_request(
        self,
        *,
        request: dict[str, Any],
        session_id: str = "",
        model: str = "",
        platform: str = "",
        **_more: Any,
    ) -> dict[str, Any] | None:
        """Tell in which session a request is made, each time when it is another one."""
        is_aside = platform == _SUBAGENT or threading.current_thread().name == _REVIEW_THREAD
        if session_id not in ("", self._session) and not is_aside:
            self._session = session_id
            self._tell(session=session_id, model=model)
        messages = request.get("messages") or []
        named = with_names(messages)
        if named == messages:
            return None
        request["messages"] = named  # in place: another plugin may change this request too
        return {"request": request}

    def note_error(self, *, error: Any = None, reason: Any = None, **_more: Any) -> None:
        """Tell that a request has failed."""
        self._tell(error=str((error or {}).get("message") or ""), reason=str(reason or ""))

    def note_end(self, *, session_id: str = "", completed: bool = True, **_more: Any) -> None:
        """Tell whether a turn has ended by itself, and not at Hermes' limit of requests."""
        if session_id == self._session:
            self._tell(completed=completed)

    def open(self, **_more: Any) -> dict[str, str] | None:
        """Add the opening to what the user says, once."""
        opening, self.settings["opening"] = self.settings["opening"], ""
        return {"context": opening} if opening else None

    def decide(self, *, tool_name: str = "", **_more: Any) -> dict[str, str] | None:
        """Deny a call that the run may not make."""
        if not self.denial or tool_name in self.allowed:
            return None
        return {"action": "block", "message": self.denial}

    def _tell(self, **line: str | bool) -> None:
        print(json.dumps(line), file=self._output, flush=True)


def with_names(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages with the name of the tool in each result, as Hermes sent them at first. It
    leaves the names out when it has read a session from its database, and the provider's cache of
    the session would be of no use.
    """
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    names = {call.get("id"): (call.get("function") or {}).get("name") for call in calls}

    def named(message: dict[str, Any]) -> dict[str, Any]:
        name = names.get(message.get("tool_call_id"))
        if message.get("role") != "tool" or "name" in message or not name:
            return message
        return {"role": "tool", "name": name, **message}

    return [named(message) for message in messages]
