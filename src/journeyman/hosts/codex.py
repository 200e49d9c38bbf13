"""Codex as a host (seen with 0.169.0).

- `codex exec` works through one prompt. What it prints names neither requests nor denied calls, and
  counts the tokens of the whole session, so a run is read from the session's log as it grows; the
  output tells how the run ended.
- It never asks: what the sandbox does not permit fails. The sandbox needs bubblewrap and user
  namespaces, and a CODEX_HOME outside the folder for temporary files; without them each command
  fails, and the agent is told so. Commands in it have no network.
- Hooks of a run come on top of the person's own. A hook runs only if its hash is trusted, and is
  otherwise skipped without a word. Hashes of a run's own hooks are given with them. The flag that
  trusts everything would also run what the person has not looked at.
- Hooks can deny every tool but `write_stdin`, which needs a command that runs already.
- The definition of the web search differs with full access to the machine, and nothing else in a
  request depends on what the run may do.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from journeyman.hosts.host import HostPage, Launch, Login, Plug, Reading, end_of, run_program
from journeyman.hosts.run_hooks import HookGroups, run_hooks
from journeyman.hosts.runner import (
    Access,
    RunBegan,
    RunRequest,
    RunResult,
    RunStatus,
    RunStep,
    RunText,
)
from journeyman.logs.codex import CodexReader
from journeyman.logs.fields import json_value, only_object, only_text
from journeyman.logs.log_file import LogFile
from journeyman.models.context_windows import known_context_tokens
from journeyman.records import Fragment, LogState, Mark, Message, Tokens, Usage, join_calls

_SANDBOX: Mapping[Access, str] = {
    "read": "read-only",
    "edit": "workspace-write",
    "all": "danger-full-access",
}
_HOOKS_FILE = "/<session-flags>/config.toml"
"""Where Codex says that the hooks of its command line stand."""
_HOOK_DEFAULTS = {"async": False, "timeout": 600}
_WORDS: tuple[tuple[RunStatus, re.Pattern[str]], ...] = (
    ("not_logged_in", re.compile(r"\b401 Unauthorized|Missing environment variable|log ?in again")),
    ("rate_limited", re.compile(r"\b429 Too Many Requests|usage limit|Quota exceeded")),
    ("context_full", re.compile(r"context window")),
)
"""How Codex words the failures that are no fault of the model."""
_KEYS = ("CODEX_API_KEY", "OPENAI_API_KEY")
_WINDOW = 272_000
"""The smallest window of the models that Codex takes by itself."""


class Codex(HostPage):
    """What we know of Codex."""

    name = "codex"
    title = "Codex"
    program = "codex"
    variable = "CODEX_HOME"
    folder = ".codex"
    file = "hooks.json"
    nested = (
        "CODEX_APPLY_PATCH_PRESERVE_LINE_ENDINGS",
        "CODEX_CI",
        "CODEX_MANAGED_BY_NPM",
        "CODEX_MANAGED_PACKAGE_ROOT",
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED",
        "CODEX_SESSION_ID",
        "CODEX_THREAD_ID",
        "CODEX_TOOL_CALL_ID",
        "CODEX_VERSION",
    )
    needs_trust = True
    install = "npm install -g @openai/codex"
    log_in = "codex login"

    def launch(self, request: RunRequest, plug: Plug, environ: Mapping[str, str]) -> Launch:
        sandbox = _SANDBOX[request.access if request.tools else "read"]
        arguments = ["exec", "--json", "--sandbox", sandbox, "--skip-git-repo-check"]
        if request.model:
            arguments += ["--model", request.model]
        for name, value in _hook_settings(run_hooks(request, plug)).items():
            arguments += ["-c", f"hooks.{name}={value}"]
        original = self.find_log(request.resume or request.fork, environ)
        if original and "web_search" not in self._settings(environ):
            had_all = _sandbox_of(original) == _SANDBOX["all"]
            if had_all != (sandbox == _SANDBOX["all"]):
                # The same definition of the tool as before, so that the cached prefix is of use.
                arguments += ["-c", f"web_search={json.dumps('live' if had_all else 'cached')}"]
        if request.resume:
            arguments += ["resume", request.resume]
        elif request.fork:
            arguments += ["fork", request.fork]
        return Launch(arguments=(*arguments, "-"), stdin=request.prompt)

    def reading(self, request: RunRequest, environ: Mapping[str, str]) -> Reading:
        return CodexReading(self, request, environ)

    def login(self, program: str, environ: Mapping[str, str]) -> Login:
        done = run_program((program, "login", "status"), environ)
        said = f"{done.stdout}{done.stderr}" if done else ""
        if "Logged in" in said:
            return "yes"
        # A key in a variable or a provider of one's own may do as well.
        has_other = any(map(environ.get, _KEYS)) or "model_provider" in self._settings(environ)
        return "no" if "Not logged in" in said and not has_other else "unknown"

    def find_log(self, session: str, environ: Mapping[str, str]) -> Path | None:
        if not session.replace("-", "").isalnum():
            return None
        sessions = self.settings_folder(environ) / "sessions"
        return next(sessions.glob(f"*/*/*/rollout-*-{session}.jsonl"), None)

    def window(self, request: RunRequest, environ: Mapping[str, str]) -> int | None:
        settings = self._settings(environ)
        profiles = only_object(settings.get("profiles"))
        settings = {**settings, **only_object(profiles.get(only_text(settings.get("profile"))))}
        stated = settings.get("model_context_window")
        if isinstance(stated, int):
            return stated
        name = request.model or only_text(settings.get("model"))
        if not name and "model_provider" not in settings:
            return _WINDOW
        return known_context_tokens(name)

    def _settings(self, environ: Mapping[str, str]) -> Mapping[str, Any]:
        with suppress(OSError, ValueError):
            return tomllib.loads((self.settings_folder(environ) / "config.toml").read_text("utf-8"))
        return {}


def _sandbox_of(log: Path) -> str:
    """Return the sandbox that the last turn of a session had."""
    policy: Any = {}
    with log.open("rb") as lines:
        for line in lines:
            if b'"turn_context"' in line[:100]:
                context = only_object(only_object(json_value(line.decode())).get("payload"))
                policy = only_object(context.get("sandbox_policy"))
    return only_text(policy.get("type"))


def _hook_settings(groups: HookGroups) -> Mapping[str, str]:
    """Return the settings below `hooks`, as TOML: the groups of each event, and as `state` the hash
    of each hook, by which Codex trusts it.
    """
    settings, trusted = {}, {}
    for event, of_event in groups.items():
        settings[event] = _toml(of_event)
        name = event_key(event)
        for index, group in enumerate(of_event):
            for number, hook in enumerate(group["hooks"]):
                place = f"{_HOOKS_FILE}:{name}:{index}:{number}"
                trusted[place] = {"trusted_hash": hook_hash(name, group, hook)}
    return {**settings, "state": _toml(trusted)} if settings else {}


def event_key(event: str) -> str:
    """Return how the settings spell an event: `pre_tool_use` for `PreToolUse`."""
    return re.sub(r"(?<=.)(?=[A-Z])", "_", event).lower()


def hook_hash(event: str, group: Mapping[str, Any], hook: Mapping[str, Any]) -> str:
    """Return the hash by which Codex knows a hook of a group."""
    known = {**group, "hooks": [{**_HOOK_DEFAULTS, **hook}], "event_name": event}
    text = json.dumps(known, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _toml(value: Any) -> str:
    """Return a value as TOML on one line."""
    if isinstance(value, Mapping):
        fields = (f"{json.dumps(name)} = {_toml(field)}" for name, field in value.items())
        return f"{{{', '.join(fields)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


class CodexReading(Reading):
    """Reads the log of a run while it grows, as an import would, and from the output how the run
    ended. Of a session that is resumed, only what is new counts.
    """

    def __init__(self, page: Codex, request: RunRequest, environ: Mapping[str, str]) -> None:
        super().__init__(request)
        self._page, self._environ = page, environ
        self.session = request.resume
        self._failure = self._answer = ""
        self._is_complete = self._has_begun = False
        self._state: LogState | None = None
        self._messages: dict[str, Message] = {}
        self._usage: dict[str, Usage] = {}
        self._seen: set[str] = set()
        if request.resume:
            self._read()
            self._seen, self._usage = {*self._messages}, {}
            self._count()

    @property
    def exceeded(self) -> RunStatus | None:
        return None if self._is_complete else super().exceeded

    def steps(self, line: str) -> Iterable[RunStep]:
        event = only_object(json_value(line))
        kind = event.get("type")
        if kind == "thread.started":
            self.session = only_text(event.get("thread_id"))
        elif kind == "turn.completed":
            self._is_complete = True
        elif kind == "turn.failed":
            self._failure = only_text(only_object(event.get("error")).get("message"))
        return ()

    def look(self) -> Iterable[RunStep]:
        if not self._read():
            return
        if self.model and not self._has_begun:
            self._has_begun = True
            yield RunBegan(session=self.session, model=self.model)
        calls = {call.answered_key: call for call in join_calls(self._messages.values())}
        for message in sorted(self._messages.values(), key=lambda one: one.position):
            if message.key in self._seen:
                continue
            self._seen.add(message.key)
            if message.role == "assistant" and message.text:
                self._answer = message.text
                yield RunText(text=message.text)
            elif call := calls.get(message.key):
                yield self.ended(call)

    def _read(self) -> bool:
        """Read what the log has gained; return whether that is anything."""
        path = self._page.find_log(self.session, self._environ)
        if path is None or (self._state and path.stat().st_size == self._state.size):
            return False
        for event in CodexReader().read(LogFile(path), self._state):
            if isinstance(event, Mark):
                self._state = event.state
            elif isinstance(event, Fragment):
                self.model = event.session.model or self.model
                self._messages |= {message.key: message for message in event.messages}
                self._usage |= {usage.key: usage for usage in event.usage}
        self._count()
        return True

    def _count(self) -> None:
        self.turns = len(self._usage)

        def total(name: str) -> int | None:
            recorded = (getattr(usage, name) for usage in self._usage.values())
            known = [count for count in recorded if count is not None]
            return sum(known) if known else None

        self.tokens = Tokens(**{name: total(name) for name in Tokens.__struct_fields__})

    def result(self, exit_code: int, errors: str) -> RunResult:
        if self._failure:
            found = (kind for kind, words in _WORDS if words.search(self._failure))
            return self.report(next(found, "model_failed"), reason=self._failure)
        if not self._is_complete or exit_code:
            return self.report("failed", reason=end_of(errors, exit_code))
        if not self._answer.strip():
            return self.report("empty", reason="The last reply had no text.")
        return self.report("done", text=self._answer)
