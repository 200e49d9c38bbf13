"""Hermes as a host (seen with 0.19.0).

- `hermes chat -Q -q` prints nothing but the answer: a run is read from the database as it grows.
- For one run, Hermes loads a plugin that needs no change of the person's settings: its own plugins
  are links in a folder that HERMES_BUNDLED_PLUGINS names, and `hermes_plugin.py` stands beside
  them. The tools in a request stay the same, whatever the run may do.
- Hermes' approvals hold beside the gate, but with full access. Without a terminal it denies what it
  would have to ask about, after a minute. What it denies to everybody stays denied.
- A fork is a copy of the session, as `/branch` makes one. The plugin keeps its requests, and those
  of a session that is resumed, as they were: the provider's cache is of use.
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
from journeyman.hosts.interpreter import find_package
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
from journeyman.models.context_windows import known_context_tokens
from journeyman.records import Call, Message, Tokens, Usage, join_calls
from journeyman.records.errors import LogUnreadable, WrongInput

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
_TOO_OLD = "This Hermes does not load the plugin of a run. Update it: hermes update"
_MANIFEST = f"name: {COMMAND}\nversion: '1'\nkind: backend\n"
"""Hermes loads a plugin of this kind, in its own folder, without a setting."""
_TICK_NS = 50_000_000
_LAST_LOOKS, _LAST_LOOK_S = 10, 0.2
_CONTEXT_LENGTH = re.compile(
    r"^model:[ \t]*\n(?:[ \t]+.*\n)*?[ \t]+context_length:[ \t]*(\d+)", re.MULTILINE
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
        *("HERMES_INTERACTIVE", "HERMES_QUIET", "HERMES_SESSION_ID", "HERMES_SESSION_SOURCE"),
        *("HERMES_YOLO_MODE", "TERMINAL_CWD"),
    )
    is_always_plugged = True
    install = "pip install hermes-agent"
    log_in = "hermes setup"

    def window(self, request: RunRequest, environ: Mapping[str, str]) -> int | None:
        try:
            settings = (self.settings_folder(environ) / self.file).read_text("utf-8")
        except (OSError, ValueError):
            settings = ""
        stated = _CONTEXT_LENGTH.search(settings)
        return int(stated[1]) if stated else known_context_tokens(request.model)

    def launch(self, request: RunRequest, plug: Plug, environ: Mapping[str, str]) -> Launch:
        arguments = ["-Q", "--no-restore-cwd"]
        if request.resume:
            arguments += ["--resume", request.resume]
        if request.model:
            arguments += ["--model", request.model]
        if request.limits.turns is not None:
            arguments += ["--max-turns", str(request.limits.turns)]
        run = {
            "arguments": arguments,
            "fork": request.fork,
            "opening": request.opening,
            "access": request.access if request.tools else "none",
            "plugin": plug.plugin,
            "plugins": environ.get("HERMES_BUNDLED_PLUGINS", ""),
        }
        source = resources.files("journeyman.hosts").joinpath("hermes_plugin.py")
        place = f"plugins/{COMMAND}"
        return Launch(
            arguments=(COMMAND,),
            stdin=request.prompt,
            variables={
                "HERMES_BUNDLED_PLUGINS": "{folder}/plugins",
                "HERMES_YOLO_MODE": "1" if request.access == "all" else None,
            },
            files={
                f"{place}/__init__.py": source.read_text(encoding="utf-8"),
                f"{place}/{SETTINGS}": json.dumps(run),
                f"{place}/plugin.yaml": _MANIFEST,
            },
            links={f"plugins/{path.name}": str(path) for path in self._plugins(environ).iterdir()},
        )

    def _plugins(self, environ: Mapping[str, str]) -> Path:
        """Return the folder of the plugins that come with Hermes."""
        if named := environ.get("HERMES_BUNDLED_PLUGINS"):
            return Path(named)
        program = shutil.which(self.program, path=environ.get("PATH")) or ""
        package = find_package("hermes_cli", Path(program), environ)
        if package is None:
            raise WrongInput(f"The Python environment of {program} was not found.")
        return package.parent / "plugins"

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
        return path if has_row(path, "SELECT 1 FROM sessions WHERE id = ?", session) else None


class HermesReading(Reading):
    """Reads the session of a run from the database, as an import would, and from the output which
    session that is: after a compression it may be another one. Only what is new counts.
    """

    def __init__(self, page: Hermes, request: RunRequest, environ: Mapping[str, str]) -> None:
        super().__init__(request)
        self._page, self._environ = page, environ
        self._path: Path | None = None
        self._written: tuple[int, ...] = ()
        self._is_read = False
        self._is_complete = True
        self._error = self._reason = self._answer = self._finish = ""
        self._messages: dict[str, Message] = {}
        self._seen: set[str] = set()
        self._usage: dict[str, Usage] = {}
        self._earlier: dict[str, Usage] = {}

    def steps(self, line: str) -> Iterable[RunStep]:
        event = only_object(json_value(line))
        if session := only_text(event.get("session")):
            yield from self.look()
            is_first, self.session = not self.session, session
            self.model, self._written = only_text(event.get("model")) or self.model, ()
            if self.request.resume or self.request.fork or not is_first:
                self._read()
                self._seen |= self._messages.keys()
            if is_first:
                self._earlier = {**self._usage}
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
        written = tuple(map(_written_ns, (self._path, Path(f"{self._path}-wal"))))
        if written == self._written:
            return False
        try:
            found = [*read_session(LogFile(self._path), self.session)]
            self._is_read = True
        except LogUnreadable:  # locked: it is read again soon
            self._is_read = False
            return False
        # A write within the same tick of the clock would not show.
        if max(written) < time.time_ns() - _TICK_NS:
            self._written = written
        for fragment in found:
            self._messages |= {message.key: message for message in fragment.messages}
            self._usage |= {f"{self.session}/{usage.key}": usage for usage in fragment.usage}
        return True

    def _count(self) -> None:
        def added(name: str, rows: Mapping[str, Usage]) -> Any:
            pairs = [(getattr(row, name), self._earlier.get(key)) for key, row in rows.items()]
            known = [now - (getattr(was, name, 0) or 0) for now, was in pairs if now is not None]
            return sum(known) if known else None

        main = {key: row for key, row in self._usage.items() if not row.task}
        self.turns = added("api_calls", main) or 0
        counts = {name: added(name, self._usage) for name in Tokens.__struct_fields__}
        self.tokens = Tokens(**counts)

    def _read_to_the_end(self) -> None:
        """Read the session once more after the run: it may have been locked at the last look."""
        for _ in range(_LAST_LOOKS):
            self._written = ()
            for _step in self.look():
                pass
            if self._is_read or self._path is None:
                return
            time.sleep(_LAST_LOOK_S)

    def result(self, exit_code: int, errors: str) -> RunResult:
        self._read_to_the_end()
        if exit_code == 0 and not self._is_complete:
            return self.report("turns", reason="Hermes' limit of requests was reached.")
        if exit_code == 0 and self._answer.strip():
            return self.report("cut" if self._finish == "length" else "done", text=self._answer)
        if exit_code == 0:
            return self.report("empty", reason="The last reply had no text.")
        if self._error:
            status = _STATUS_BY_REASON.get(self._reason, "model_failed")
            return self.report(status, reason=self._error)
        if f"invalid choice: '{COMMAND}'" in errors:
            return self.report("failed", reason=_TOO_OLD)
        status = "not_logged_in" if _NO_PROVIDER.search(errors) else "failed"
        return self.report(status, reason=end_of(errors, exit_code))


def _written_ns(path: Path) -> int:
    """Return when a file was last written to; 0 if there is none."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
