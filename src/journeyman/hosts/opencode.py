"""opencode as a host.

`opencode run --format json` prints steps, texts, calls and errors as they end, one JSON object a
line. The prompt comes on standard input: opencode puts quotes around one that is an argument. The
settings of a run are in OPENCODE_CONFIG_CONTENT, which is merged into the person's own; their rules
that deny something hold in every run.

What settings cannot say is in a small plugin for the run: which tools may run (a denied permission
would remove the tool from the requests, and with it the cached prefix of a session that is forked),
and what opencode does not copy into a fork.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from journeyman.hosts.host import (
    RUN_VARIABLE,
    STATUS_BY_CODE,
    HostPage,
    Launch,
    Login,
    Plug,
    Reading,
    end_of,
    has_row,
    read_json,
    run_program,
)
from journeyman.hosts.runner import (
    RunBegan,
    RunCall,
    RunRequest,
    RunResult,
    RunStatus,
    RunStep,
    RunText,
)
from journeyman.logs.fields import as_json, as_text, json_value, only_object, only_text
from journeyman.logs.opencode import recorded_flags
from journeyman.models.context_windows import known_context_tokens
from journeyman.records import Call, Tokens

_READING_TOOLS = (
    *("codesearch", "glob", "grep", "invalid", "list", "lsp", "read", "skill", "task"),
    *("todoread", "todowrite", "webfetch", "websearch"),
)
"""Tools that change nothing. The calls of a subagent, which `task` starts, are looked at as well;
`invalid` answers a call of a tool that does not exist."""

_NO_TOOLS = "Blocked by Journeyman: this run may not use tools. Answer in words."
_ONLY_READING = "Blocked by Journeyman: this run may only read files. Say what should be changed."

_PLUGIN = """\
const RUN = %s;

// What the person wants to be asked about is allowed, except for files in other folders.
const unasked = (rules) =>
  rules === "ask" ? "allow" : typeof rules !== "object" ? rules : Object.fromEntries(
    Object.entries(rules).map(([name, rule]) =>
      [name, name === "external_directory" ? rule : unasked(rule)]));

const permit = (settings) => {
  const rules = settings?.permission;
  if (!rules) return;
  const elsewhere = rules.external_directory ?? rules["*"] ?? rules;
  settings.permission = unasked(rules);
  if (elsewhere !== "ask") return;
  const others = typeof rules === "string" ? { "*": "allow" } : settings.permission;
  settings.permission = { ...others, external_directory: "ask" };
};

let forked = RUN.fork;

export const JourneymanRun = async ({ client }) => ({
  config: async (settings) => {
    if (!RUN.unasked) return;
    [settings, ...Object.values(settings.agent ?? {})].forEach(permit);
  },

  // A fork lacks the permissions and the agent of its origin, so it would have other tools.
  "chat.message": async ({ sessionID }, output) => {
    if (!forked) return;
    const { data: origin } = await client.session.get({ path: { id: forked } });
    forked = "";
    const { permission, agent } = origin;
    if (permission) await client.session.update({ path: { id: sessionID }, body: { permission } });
    if (agent) output.message.agent = agent;
  },

  "tool.execute.before": async ({ tool }) => {
    if (RUN.tools && !RUN.tools.includes(tool)) throw new Error(RUN.reason);
  },
});
"""

_FINISHED: Mapping[str, RunStatus] = {"stop": "done", "length": "cut"}
_STATUS_BY_ERROR: Mapping[str, RunStatus] = {
    "ContextOverflowError": "context_full",
    "MessageAbortedError": "interrupted",
    "MessageOutputLengthError": "cut",
    "ProviderAuthError": "not_logged_in",
}
_LOGGED = re.compile(r'level=ERROR .*? error="([^"\n]+)"')
_SAID = re.compile(r"Error: (?:\x1b\[[0-9;]*m)*(.+)")
_COUNTED = re.compile(r"(\d+) (?:credentials?|environment variables?)")


class OpenCode(HostPage):
    """What we know of opencode."""

    name = "opencode"
    title = "opencode"
    program = "opencode"
    variable = "XDG_CONFIG_HOME"
    folder = ".config"
    file = "opencode/plugin/journeyman.js"
    # It only sets the first two. With the third, no plugin would be loaded.
    nested = ("OPENCODE", "OPENCODE_PID", "OPENCODE_PURE")
    install = "npm install -g opencode-ai"
    log_in = "opencode auth login"

    def launch(self, request: RunRequest, plug: Plug, environ: Mapping[str, str]) -> Launch:
        arguments = ["run", "--format", "json", "--print-logs", "--log-level", "ERROR"]
        if request.access == "all":
            arguments += ["--auto"]
        if request.model:
            arguments += ["--model", request.model]
        if session := request.fork or request.resume:
            arguments += ["--session", session]
        else:
            arguments += ["--title", ""]  # the beginning of the prompt: the model is not asked
        if request.fork:
            arguments += ["--fork"]
        run: dict[str, Any] = {"fork": request.fork, "unasked": request.access == "edit"}
        if not request.tools:
            run |= {"tools": [], "reason": _NO_TOOLS}
        elif request.access == "read":
            run |= {"tools": _READING_TOOLS, "reason": _ONLY_READING}
        files = {"run.js": _PLUGIN % json.dumps(run)}
        plugins = [plug.plugin, "{folder}/run.js"]
        settings: dict[str, Any] = {
            "plugin": [f"file://{path}" for path in plugins if path],
            # A call that is not permitted would end the session without an answer.
            "experimental": {"continue_loop_on_deny": True},
        }
        if request.opening:
            files["opening.md"] = request.opening
            settings["instructions"] = ["{folder}/opening.md"]
        given = json_value(environ.get("OPENCODE_CONFIG_CONTENT", ""))
        if isinstance(given, dict) and RUN_VARIABLE not in environ:  # it is not of another run
            plugins = [*given.get("plugin", ()), *settings["plugin"]]
            settings = {**given, **settings, "plugin": plugins}
        return Launch(
            arguments=tuple(arguments),
            stdin=request.prompt,
            variables={"OPENCODE_CONFIG_CONTENT": json.dumps(settings)},
            files=files,
        )

    def reading(self, request: RunRequest, environ: Mapping[str, str]) -> "OpenCodeReading":
        del environ
        return OpenCodeReading(request)

    def skills_folder(self, environ: Mapping[str, str]) -> Path:
        return self.settings_folder(environ) / "opencode"

    def login(self, program: str, environ: Mapping[str, str]) -> Login:
        """A provider of the person's own settings is not counted, and opencode has models that need
        no login: without a credential nothing is known.
        """
        done = run_program([program, "auth", "list"], environ)
        counts = _COUNTED.findall(done.stdout) if done else []
        return "yes" if any(map(int, counts)) else "unknown"

    def find_log(self, session: str, environ: Mapping[str, str]) -> Path | None:
        home = Path(environ.get("HOME") or Path.home())
        data = Path(environ.get("XDG_DATA_HOME") or home / ".local/share", "opencode")
        chosen = environ.get("OPENCODE_DB")
        # The name of the file depends on how opencode was built.
        for path in [data / chosen] if chosen else sorted(data.glob("opencode*.db")):
            if has_row(path, "SELECT 1 FROM session WHERE id = ?", session):
                return path
        return None

    def window(self, request: RunRequest, environ: Mapping[str, str]) -> int | None:
        given = only_object(json_value(environ.get("OPENCODE_CONFIG_CONTENT", "")))
        settings = [given, *map(read_json, self._settings_files(request.folder, environ))]
        named = (only_text(one.get("model")) for one in settings)
        name = request.model or next(filter(None, named), "")
        provider, _, model = name.partition("/")
        for one in settings:
            found: Any = one
            for key in ("provider", provider, "models", model, "limit"):
                found = only_object(found.get(key))
            if isinstance(found.get("context"), int):
                return int(found["context"])
        return known_context_tokens(model)

    def _settings_files(self, folder: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        """Yield the files of settings that count for a folder, the most important one first."""
        user = self.settings_folder(environ) / "opencode"
        for place in (folder, *folder.parents):
            yield place / "opencode.json"
        if chosen := environ.get("OPENCODE_CONFIG"):
            yield Path(chosen)
        yield from (user / name for name in ("opencode.json", "config.json"))


class OpenCodeReading(Reading):
    """Reads the events of `opencode run --format json`."""

    def __init__(self, request: RunRequest) -> None:
        super().__init__(request)
        self.model = request.model
        self._text = self._finish = ""
        self._error: dict[str, Any] = {}

    def steps(self, line: str) -> Iterable[RunStep]:
        try:
            event = json.loads(line)
        except ValueError:
            return
        if not isinstance(event, dict) or "sessionID" not in event:
            return
        if not self.session:
            self.session = event["sessionID"]
            yield RunBegan(session=self.session, model=self.model)
        kind, part = event.get("type"), event.get("part") or {}
        if kind == "step_start":
            self.turns += 1
            self._finish, self._error = "", {}
        elif kind == "text":
            self._text = part["text"]
            yield RunText(text=self._text)
        elif kind == "tool_use":
            yield self._call(part)
        elif kind == "step_finish":
            self._finish = part["reason"]
            self._count(part)
        elif kind == "error":
            self._error = event["error"]

    def _call(self, part: Mapping[str, Any]) -> RunCall:
        """Return a call as the reader of opencode's log would, so that it is judged alike."""
        tool, state = only_text(part.get("tool")), only_object(part.get("state"))
        recorded, arguments = recorded_flags(tool, state), only_object(state.get("input"))
        if tool == "invalid" and only_text(arguments.get("tool")):
            tool, arguments = arguments["tool"], {}
        has_failed = state.get("status") == "error"
        return self.ended(
            Call(
                id=only_text(part.get("callID")),
                tool=tool,
                arguments=as_json(arguments),
                result=as_text(state.get("error" if has_failed else "output")),
                recorded=recorded,
                index=self.calls,
            )
        )

    def _count(self, part: Mapping[str, Any]) -> None:
        used, had = part["tokens"], self.tokens
        # A price that opencode does not know is 0.
        cost = (had.cost_usd or 0.0) + (part.get("cost") or 0.0)
        self.tokens = Tokens(
            input_tokens=(had.input_tokens or 0) + used["input"],
            output_tokens=(had.output_tokens or 0) + used["output"] + used["reasoning"],
            cache_read_tokens=(had.cache_read_tokens or 0) + used["cache"]["read"],
            cache_write_tokens=(had.cache_write_tokens or 0) + used["cache"]["write"],
            reasoning_tokens=(had.reasoning_tokens or 0) + used["reasoning"],
            cost_usd=cost or None,
        )

    def result(self, exit_code: int, errors: str) -> RunResult:
        status, reason = self._status(exit_code, errors)
        return self.report(status, text=self._text, reason=reason)

    def _status(self, exit_code: int, errors: str) -> tuple[RunStatus, str]:
        if not self._error:
            status = _FINISHED.get(self._finish, "failed")
            if status == "done":
                return ("done", "") if self._text else ("empty", "The last reply was empty.")
            said = _SAID.findall(errors) or _LOGGED.findall(errors)
            return status, said[-1].strip() if said else end_of(errors, exit_code)
        name, data = self._error.get("name", ""), self._error.get("data") or {}
        reason = str(data.get("message") or name)
        if name == "UnknownError" and (logged := _LOGGED.findall(errors)):
            reason = logged[-1]
        if name in _STATUS_BY_ERROR:
            return _STATUS_BY_ERROR[name], reason
        otherwise: RunStatus = "model_failed" if name == "APIError" else "failed"
        return STATUS_BY_CODE.get(data.get("statusCode", 0), otherwise), reason
