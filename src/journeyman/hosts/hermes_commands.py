"""The command `/journeyman` in a session of Hermes."""

from collections.abc import Callable

from journeyman.hosts.client import Unanswered
from journeyman.hosts.hermes_link import Link

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
