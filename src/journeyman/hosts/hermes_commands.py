"""The commands of the Hermes plugin: `/journeyman` in a session, `hermes journeyman` in a shell."""

import sys
from collections.abc import Callable
from typing import Any

from journeyman.hosts.client import PROGRAM, Unanswered
from journeyman.hosts.hermes_link import HOST, Link

ARGUMENTS = "[why|off|on] [SESSION]"
_COMMAND_S = 5.0

_USAGE = """\
/journeyman          why this session started with what it has
/journeyman off      no opening in this session from now on
/journeyman on       the session's opening again
Where several sessions are open, add the id of the session."""


class SessionCommand:
    """`/journeyman`. `find_sessions` returns the sessions it may mean, the newest first; `switched`
    is called with a session whose opening was switched, and an empty id means the next one.
    """

    def __init__(
        self,
        link: Link,
        find_sessions: Callable[[], list[str]],
        switched: Callable[[str, bool], None],
    ) -> None:
        self._link = link
        self._find_sessions = find_sessions
        self._switched = switched

    def __call__(self, raw: str) -> str:
        """Run the command and return its text."""
        verb, _, named = (raw or "").strip().partition(" ")
        verb = verb.lower() or "why"
        if verb not in ("why", "on", "off"):
            return _USAGE
        sessions = [named.strip()] if named.strip() else self._find_sessions()
        if len(sessions) > 1:
            listed = "\n".join(f"  {session}" for session in sessions[:10])
            example = f"/journeyman {verb} ID"
            return f"Several sessions are open. Add the id of one, as in {example}:\n{listed}"
        try:
            return self._run(verb, sessions[0] if sessions else "")
        except Unanswered as error:
            return f"Journeyman does not answer: {error}. Start it with `journeyman serve`."

    def _run(self, verb: str, session: str) -> str:
        if not session:
            if verb == "why":
                return "No session has begun here yet. Write something first."
            self._switched("", verb == "on")
            return f"The next session here starts with its opening {verb}."
        if verb == "why":
            answer = self._link.ask("explain", {"session": session}, timeout_s=_COMMAND_S)
        else:
            body = {"session": session, "on": verb == "on"}
            answer = self._link.ask("switch", body, timeout_s=_COMMAND_S)
            self._switched(session, verb == "on")
        return str(answer.get("text") or "Done.")


def add_arguments(parser: Any) -> None:
    """Define the arguments of `hermes journeyman`."""
    commands = parser.add_subparsers(dest="journeyman_command", metavar="setup|status")
    commands.add_parser("setup", help="install Journeyman into this Hermes, or renew it")
    commands.add_parser("status", help="show whether Journeyman answers, and from where")


class ShellCommand:
    """`hermes journeyman setup` and `hermes journeyman status`."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def __call__(self, arguments: Any) -> int:
        """Run the command that was parsed, and return its exit code."""
        if getattr(arguments, "journeyman_command", None) == "setup":
            return self._setup()
        return self._status()

    def _setup(self) -> int:
        import subprocess  # noqa: PLC0415 - Hermes starts faster without it

        program = [*PROGRAM, "--home", self._link.home]
        return subprocess.run([*program, "hosts", "install", HOST], check=False).returncode  # noqa: S603

    def _status(self) -> int:
        home = self._link.home
        try:
            status = self._link.ask_resident("status", timeout_s=_COMMAND_S)
        except Unanswered as error:
            _print(f"No resident process answers for {home}: {error}")
            _print("The next session starts one, unless hosts.start is never.")
            return 1
        _print(f"Journeyman {status.get('version')} answers for {status.get('home')}.")
        _print(f"  process        {status.get('pid')}")
        parts = status.get("parts")
        for name, place in (parts if isinstance(parts, dict) else {}).items():
            _print(f"  {name:14s} {place}")
        return 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
