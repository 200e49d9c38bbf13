"""The contract of a host: one page for each program says what we know of it."""

import signal
import sqlite3
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from journeyman.hosts.runner import (
    DeniedCall,
    RunCall,
    RunRequest,
    RunResult,
    RunStatus,
    RunStep,
)
from journeyman.logs.fields import json_value, only_object
from journeyman.outcomes.judge import judge
from journeyman.records import Call, Tokens
from journeyman.records.host import Host

Login = Literal["yes", "no", "unknown"]

RUN_VARIABLE = "JOURNEYMAN_RUN"
"""Names the run to everything that a host's program starts: hooks then ask the process that started
the run, and what it leaves behind can be found."""


class Plug(Struct, frozen=True, kw_only=True):
    """What Journeyman adds to a host for one run. `hooks` are groups of hooks by event, in the form
    of Claude Code and Codex; `plugin` is the file of a plugin for opencode or Hermes. Both are
    empty where they are installed in the host anyway.
    """

    run: str = ""
    hooks: Mapping[str, Mapping[str, Any]] = {}
    plugin: str = ""


class Launch(Struct, frozen=True, kw_only=True):
    """How a host's program is started: its arguments, its standard input, the variables to set
    (None to remove one), and files to write and links to make in a private folder first, whose
    path replaces `{folder}` in arguments and variables.
    """

    arguments: tuple[str, ...]
    stdin: str = ""
    variables: Mapping[str, str | None] = {}
    files: Mapping[str, str] = {}
    links: Mapping[str, str] = {}


class Reading:
    """Reads what a host prints during one run, in its machine-readable form, and counts what it has
    used as far as it says so.
    """

    def __init__(self, request: RunRequest) -> None:
        self.request = request
        self.session = self.model = ""
        self.turns = self.calls = 0
        self.tokens = Tokens()
        self.denied: list[DeniedCall] = []

    @property
    def exceeded(self) -> RunStatus | None:
        """The limit that the run has reached, if any. Hosts that keep a limit themselves stop
        before.
        """
        limits, total = self.request.limits, self.tokens.total or 0
        if limits.turns is not None and self.turns > limits.turns:
            return "turns"
        if limits.tokens is not None and total > limits.tokens:
            return "tokens"
        if limits.cost_usd is not None and (self.tokens.cost_usd or 0.0) > limits.cost_usd:
            return "cost"
        return None

    def steps(self, line: str) -> Iterable[RunStep]:
        """Return the steps that a line of the output reports; none for a line of another kind."""
        raise NotImplementedError

    def look(self) -> Iterable[RunStep]:
        """Return the steps that the host has reported since, elsewhere than in its output. This is
        asked for several times a second.
        """
        return ()

    def ended(self, call: Call) -> RunCall:
        """Count a call that has its result, and return its step."""
        self.calls += 1
        is_denied = judge(call).status == "refused"
        if is_denied:
            self.denied.append(DeniedCall(tool=call.tool, reason=call.result or ""))
        return RunCall(call=call, denied=is_denied)

    def report(self, status: RunStatus, *, text: str = "", reason: str = "") -> RunResult:
        """Return a result with what was counted."""
        return RunResult(
            runner="",
            status=status,
            text=text,
            session=self.session,
            model=self.model,
            tokens=self.tokens,
            turns=self.turns,
            calls=self.calls,
            denied=tuple(self.denied),
            reason=reason,
        )

    def result(self, exit_code: int, errors: str) -> RunResult:
        """Return the result after the program has ended by itself. `errors` is the end of its
        standard error.
        """
        raise NotImplementedError


class HostPage:
    """One host. `variable` names the folder of its settings, `folder` the usual one below the
    user's home, `file` what Journeyman changes in it. `nested` are variables by which its program
    knows that it runs inside another session of it.
    """

    name: Host
    title: str
    program: str
    variable: str
    folder: str
    file: str
    nested: tuple[str, ...] = ()
    needs_trust: bool = False
    """Whether installed hooks run only if a person has trusted them."""
    is_always_plugged: bool = False
    """Whether a run brings all parts, also those that are installed, which then stay silent."""
    fork_needs_model: bool = False
    """Whether a fork has the model of the settings, unless its own is named."""
    install: str
    """How to get it."""
    log_in: str
    """The command by which a person logs in."""

    def launch(self, request: RunRequest, plug: Plug, environ: Mapping[str, str]) -> Launch:
        """Return how to start a run. Raise WrongInput for what the host cannot do."""
        raise NotImplementedError

    def reading(self, request: RunRequest, environ: Mapping[str, str]) -> Reading:
        """Return what reads the output of a run that is about to start."""
        raise NotImplementedError

    def login(self, program: str, environ: Mapping[str, str]) -> Login:
        """Return whether the program has a login, as far as it tells without a request to its
        provider. Only the program itself is asked: its credentials are never read.
        """
        raise NotImplementedError

    def find_log(self, session: str, environ: Mapping[str, str]) -> Path | None:
        """Return the log that has a session, if there is one."""
        raise NotImplementedError

    def window(self, request: RunRequest, environ: Mapping[str, str]) -> int | None:
        """Return the context window of the model that a run would use, in tokens, as far as the
        host's settings or the model's name tell it.
        """
        raise NotImplementedError

    def skills_folder(self, environ: Mapping[str, str]) -> Path:
        """Return the folder in which `skills/NAME/SKILL.md` is a skill of the person."""
        return (self.settings_folder(environ) / self.file).parent

    def settings_folder(self, environ: Mapping[str, str]) -> Path:
        folder = environ.get(self.variable)
        home = Path(environ.get("HOME") or Path.home())
        return (Path(folder).expanduser() if folder else home / self.folder).absolute()


STATUS_BY_CODE: Mapping[int, RunStatus] = {
    401: "not_logged_in",
    403: "not_logged_in",
    429: "rate_limited",
}
"""What a provider's HTTP status means."""

ANSWER_S = 15.0
_ENDING_CHARACTERS = 500


def run_program(
    command: Sequence[str], environ: Mapping[str, str], *, timeout_s: float = ANSWER_S
) -> "subprocess.CompletedProcess[str] | None":
    """Run a program that answers at once; None if it cannot be run or takes too long."""
    try:
        return subprocess.run(  # noqa: S603 - a program that the user has installed
            [*command],
            env=dict(environ),
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None


def end_of(errors: str, exit_code: int) -> str:
    """Return the reason of a program that ended without telling one: what it wrote last."""
    said = errors[-_ENDING_CHARACTERS:].strip()
    if exit_code < 0:
        return f"It was ended by {signal.Signals(-exit_code).name}. {said}".strip()
    return said or f"It ended with the exit code {exit_code}."


def has_row(database: Path, query: str, value: str) -> bool:
    """Return whether a query of an SQLite file with one value has a result."""
    try:
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute(query, (value,)).fetchone() is not None
    except sqlite3.Error:
        return False


def read_json(path: Path) -> Mapping[str, Any]:
    """Return what a file of settings has; nothing if it is absent or cannot be read."""
    with suppress(OSError, ValueError):
        return only_object(json_value(path.read_text("utf-8")))
    return {}


def text_of(content: Any) -> str:
    """Return the text of a message's content: a text, or a list of blocks with texts."""
    return "".join(_texts(content))


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, dict) and isinstance(block.get("text"), str):
                yield block["text"]
