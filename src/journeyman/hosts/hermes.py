"""Hermes as a host (seen with 0.19.0).

- `hermes chat -Q -q` works through one prompt. It prints nothing but the answer, so a run is read
  from Hermes' database as it grows.
- For one run, Hermes loads a plugin that needs no change of the person's settings: its own plugins
  are links in a folder that HERMES_BUNDLED_PLUGINS names, and `hermes_plugin.py` stands beside
  them. The tools in a request stay the same, whatever the run may do.
- Hermes' approvals hold beside the gate, but with full access. Without a terminal it denies what it
  would have to ask about, after a minute. What it denies to everybody stays denied.
- A fork is a copy of the session, as its `/branch` makes one.
"""

import json
import re
import shutil
import time
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from journeyman.hosts.hermes_plugin import COMMAND, SETTINGS
from journeyman.hosts.host import (
    HostPage,
    Launch,
    Login,
    Plug,
    Reading,
    end_of,
    has_row,
    run_program,
)
from journeyman.hosts.interpreter import find_interpreter
from journeyman.hosts.runner import (
    DeniedCall,
    RunBegan,
    RunCall,
    RunRequest,
    RunResult,
    RunStatus,
    RunStep,
    RunText,
)
from journeyman.logs.fields import json_value, only_object, only_text
from journeyman.logs.hermes import read_session
from journeyman.logs.log_file import LogFile
from journeyman.records import Call, Message, Tokens, Usage, join_calls
from journeyman.records.errors import LogUnreadable, WrongInput

_READING_TOOLS = (
    *("browser_back", "browser_get_images", "browser_navigate", "browser_scroll"),
    *("browser_snapshot", "browser_vision", "clarify", "delegate_task", "read_file"),
    *("read_terminal", "search_files", "session_search", "skill_view", "skills_list", "todo"),
    *("vision_analyze", "web_extract", "web_search"),
)
"""Tools that change nothing. The calls of a subagent are looked at as well."""
_NO_TOOLS = "Blocked by Journeyman: this run may not use tools. Answer in words."
_ONLY_READING = "Blocked by Journeyman: this run may only read files. Say what should be changed."

_STATUS_BY_REASON: Mapping[str, RunStatus] = {
    "auth": "not_logged_in",
    "auth_permanent": "not_logged_in",
    "billing": "rate_limited",
    "rate_limit": "rate_limited",
    "upstream_rate_limit": "rate_limited",
    "context_overflow": "context_full",
    "payload_too_large": "context_full",
}
"""Hermes' reasons of a failed request; all others are errors of the model."""
_NO_PROVIDER = re.compile(r"isn't configured yet|No inference provider|hermes (?:setup|model)\b")
_NO_COMMAND = f"invalid choice: '{COMMAND}'"
_TOO_OLD = "This Hermes does not load the plugin of a run. Update it: hermes update"
_PLUGIN_FOLDER = f"plugins/{COMMAND}"
_MANIFEST = f"name: {COMMAND}\nversion: '1'\nkind: backend\n"
"""Hermes loads a plugin of this kind, in its own folder, without a setting."""
_TICK_NS = 50_000_000
_FIND_PLUGINS = (
    "import importlib.util, pathlib; "
    "print(pathlib.Path(importlib.util.find_spec('hermes_cli').origin).parents[1] / 'plugins')"
)


class Hermes(HostPage):
    """What we know of Hermes."""

    name = "hermes"
    title = "Hermes"
    program = "hermes"
    variable = "HERMES_HOME"
    folder = ".hermes"
    file = "config.yaml"
    nested = (
        "HERMES_INTERACTIVE",
        "HERMES_QUIET",
        "HERMES_SESSION_ID",
        "HERMES_SESSION_SOURCE",
        "HERMES_YOLO_MODE",
        "TERMINAL_CWD",
    )
    is_always_plugged = True
    install = "pip install hermes-agent"
    log_in = "hermes setup"

    def launch(self, request: RunRequest, plug: Plug, environ: Mapping[str, str]) -> Launch:
        bundled = self._plugins(environ)
        arguments = ["-Q", "--no-restore-cwd"]
        if request.resume:
            arguments += ["--resume", request.resume]
        if request.model:
            arguments += ["--model", request.model]
        if request.limits.turns is not None:
            arguments += ["--max-turns", str(request.limits.turns)]
        denial = _ONLY_READING if request.access == "read" else ""
        run = {
            "arguments": arguments,
            "fork": request.fork,
            "opening": request.opening,
            "denial": denial if request.tools else _NO_TOOLS,
            "allowed": _READING_TOOLS if request.tools else (),
            "plugin": plug.plugin,
            "plugins": environ.get("HERMES_BUNDLED_PLUGINS", ""),
        }
        source = resources.files("journeyman.hosts").joinpath("hermes_plugin.py")
        return Launch(
            arguments=(COMMAND,),
            stdin=request.prompt,
            variables={
                "HERMES_BUNDLED_PLUGINS": "{folder}/plugins",
                "HERMES_YOLO_MODE": "1" if request.access == "all" else None,
            },
            files={
                f"{_PLUGIN_FOLDER}/__init__.py": source.read_text(encoding="utf-8"),
                f"{_PLUGIN_FOLDER}/{SETTINGS}": json.dumps(run),
                f"{_PLUGIN_FOLDER}/plugin.yaml": _MANIFEST,
            },
            links={f"plugins/{path.name}": str(path) for path in bundled.iterdir()},
        )

    def _plugins(self, environ: Mapping[str, str]) -> Path:
        """Return the folder of the plugins that come with Hermes."""
        if named := environ.get("HERMES_BUNDLED_PLUGINS"):
            return Path(named)
        program = shutil.which(self.program, path=environ.get("PATH")) or ""
        python = find_interpreter(Path(program), environ)
        done = run_program((python, "-c", _FIND_PLUGINS), environ) if python else None
        folder = Path(done.stdout.strip() if done and done.returncode == 0 else "")
        if not folder.is_absolute() or not folder.is_dir():
            raise WrongInput(f"The Python environment of {program} was not found.")
        return folder

    def reading(self, request: RunRequest, environ: Mapping[str, str]) -> Reading:
        return HermesReading(self, request, environ)

    def login(self, program: str, environ: Mapping[str, str]) -> Login:
        """Keys and endpoints in Hermes' settings are not listed, so without a listed credential
        nothing is known.
        """
        done = run_program((program, "auth", "list"), environ)
        return "yes" if done and done.returncode == 0 and done.stdout.strip() else "unknown"

    def find_log(self, session: str, environ: Mapping[str, str]) -> Path | None:
        path = self.settings_folder(environ) / "state.db"
        is_there = path.exists() and has_row(path, "SELECT 1 FROM sessions WHERE id = ?", session)
        return path if is_there else None


class HermesReading(Reading):
    """Reads the session of a run from the database while it grows, as an import would, and from
    the output which session that is. After a compression the conversation may go on in another one.
    Of a session that was there before, only what is new counts.
    """

    def __init__(self, page: Hermes, request: RunRequest, environ: Mapping[str, str]) -> None:
        super().__init__(request)
        self._page, self._environ = page, environ
        self._path: Path | None = None
        self._is_complete = True
        self._written: tuple[int, ...] = ()
        self._error = self._reason = self._answer = self._finish = ""
        self._messages: dict[str, Message] = {}
        self._seen: set[str] = set()
        self._usage: dict[str, Usage] = {}
        self._earlier: dict[str, Usage] = {}

    def steps(self, line: str) -> Iterable[RunStep]:
        event = only_object(json_value(line))
        if session := only_text(event.get("session")):
            yield from self.look()
            has_content = bool(self.session or self.request.resume or self.request.fork)
            is_first, self.session = not self.session, session
            self.model = only_text(event.get("model")) or self.model
            if has_content:
                self._read()
                self._seen |= self._messages.keys()
                self._earlier |= self._usage_of(session)
                self._count()
            if is_first:
                yield RunBegan(session=session, model=self.model)
        elif "completed" in event:
            self._is_complete = bool(event["completed"])
        elif "error" in event:
            self._error, self._reason = only_text(event["error"]), only_text(event.get("reason"))

    def look(self) -> Iterable[RunStep]:
        if not self._read():
            return
        self._count()
        calls = {call.answered_key: call for call in join_calls(self._messages.values())}
        for message in sorted(self._messages.values(), key=lambda message: message.position):
            if message.key in self._seen:
                continue
            self._seen.add(message.key)
            if message.role == "assistant" and message.text:
                self._answer, self._finish = message.text, message.finish_reason
                yield RunText(text=message.text)
            elif call := calls.get(message.key):
                yield self.ended(call)

    def ended(self, call: Call) -> RunCall:
        step = super().ended(call)
        if step.denied and (said := only_object(json_value(call.result or "")).get("error")):
            self.denied[-1] = DeniedCall(tool=call.tool, reason=only_text(said))
        return step

    def _read(self) -> bool:
        """Read the session if the database was written to; return whether it was."""
        self._path = self._path or self._page.find_log(self.session, self._environ)
        if self._path is None:
            return False
        files = (self._path, Path(f"{self._path}-wal"))
        written = tuple(path.stat().st_mtime_ns for path in files if path.exists())
        if written == self._written:
            return False
        try:
            found = [*read_session(LogFile(self._path), self.session)]
        except LogUnreadable:  # locked: it is read again soon
            return False
        # A write within the same tick of the clock would not show.
        if max(written) < time.time_ns() - _TICK_NS:
            self._written = written
        for fragment in found:
            self._messages |= {message.key: message for message in fragment.messages}
            self._usage |= {f"{self.session}/{usage.key}": usage for usage in fragment.usage}
        return True

    def _usage_of(self, session: str) -> dict[str, Usage]:
        return {key: usage for key, usage in self._usage.items() if key.startswith(f"{session}/")}

    def _count(self) -> None:
        def total(name: str, rows: Iterable[Usage]) -> Any:
            known = [count for row in rows if (count := getattr(row, name)) is not None]
            return sum(known) if known else None

        def added(name: str) -> Any:
            now, before = (total(name, rows.values()) for rows in (self._usage, self._earlier))
            return None if now is None else now - (before or 0)

        self.turns = sum(usage.api_calls for usage in self._usage.values() if not usage.task)
        self.turns -= sum(usage.api_calls for usage in self._earlier.values() if not usage.task)
        self.tokens = Tokens(**{name: added(name) for name in Tokens.__struct_fields__})

    def result(self, exit_code: int, errors: str) -> RunResult:
        if exit_code == 0 and not self._is_complete:
            return self.report("turns", reason=self._answer or "Hermes' limit was reached.")
        if exit_code == 0 and self._answer.strip():
            return self.report("cut" if self._finish == "length" else "done", text=self._answer)
        if exit_code == 0:
            return self.report("empty", reason="The last reply had no text.")
        if self._error:
            failed = _STATUS_BY_REASON.get(self._reason, "model_failed")
            return self.report(failed, reason=self._error)
        if _NO_COMMAND in errors:
            return self.report("failed", reason=_TOO_OLD)
        has_provider = _NO_PROVIDER.search(errors) is None
        status: RunStatus = "failed" if has_provider else "not_logged_in"
        return self.report(status, reason=end_of(errors, exit_code))
