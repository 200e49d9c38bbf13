"""The gate in front of every call: a tool's name and its arguments in, a decision out. Nothing is
run; files of code that a command would run are read.
"""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from journeyman.gate.decision import ALLOW, Decision
from journeyman.gate.file_tools import FILE_RULES, judge_paths
from journeyman.gate.files import ReadFile, read_inside
from journeyman.gate.judging import NOTES, Judge, strongest
from journeyman.gate.places import Places
from journeyman.gate.prose import Piece, pieces, runs_a_download

ALWAYS_ALLOWED = frozenset(
    {
        *("memory", "skills_list", "skill_view", "skill_manage", "session_search"),
        *("warm_session", "request_confirmation"),
    }
)
"""Tools that keep to the agent's own notes, or that ask a person themselves."""

UNKNOWN_TOOL = Decision(
    answer="ask", rule="tool.unknown", reason="Nothing is known of what this tool does."
)
UNREADABLE = Decision(
    answer="ask", rule="tool.unreadable", reason="The call lacks what this tool works on."
)
DELETES = Decision(
    answer="ask", rule="tool.delete", reason="It deletes something the agent has learned."
)

# In prose, what is in backquotes need not be a command, and a path alone is only named.
_NO_COMMAND = frozenset({"unparseable"})
_NO_PATH = frozenset({"run.elsewhere", "unknown_program"})


class Gate:
    """Decides on calls as seen from one workspace."""

    def __init__(self, workspace: Path, *, home: Path | None = None) -> None:
        self._places = Places(workspace, Path.home() if home is None else home)
        self._reading = threading.local()
        self._judge = Judge(self._places, self._noting(read_inside(workspace)))
        self._tools: dict[str, Callable[[Mapping[str, Any]], Decision]] = {
            "terminal": self._terminal,
            "execute_code": self._execute_code,
            **{tool: self._files(tool) for tool in FILE_RULES},
        }

    def decide(self, tool: str, arguments: Mapping[str, Any]) -> Decision:
        """Whether a call may run, must be asked about, or never runs."""
        self._places.look_again()
        judge = self._tools.get(tool)
        if judge is not None:
            texts: dict[str, str] = {}
            self._reading.texts = texts
            try:
                decision = judge(arguments)
            finally:
                del self._reading.texts
            asks = decision.answer == "ask" and texts
            return msgspec.structs.replace(decision, files=texts) if asks else decision
        if tool not in ALWAYS_ALLOWED:
            return UNKNOWN_TOOL
        deletes = tool in ("warm_session", "skill_manage") and arguments.get("action") == "delete"
        return DELETES if deletes else ALLOW

    def find_risky_command(self, text: str) -> Decision | None:
        """The decision on the first command in prose that would not simply be allowed: in
        backquotes, in a fenced block, after a prompt, or as a download piped into a shell.
        """
        self._places.look_again()
        seen: set[Piece] = set()
        for piece in pieces(text):
            if piece in seen:
                continue
            seen.add(piece)
            if piece.kind == "python":
                decision = self._judge.python(piece.text)
            else:
                left_out = _NO_COMMAND | (_NO_PATH if piece.loose else frozenset())
                decision = self._judge.script(piece.text, leaving_out=left_out)
            if decision.answer != "allow":
                return decision
        return NOTES["run.download"].decision if runs_a_download(text) else None

    def _noting(self, read: ReadFile) -> ReadFile:
        """Reads, and keeps what was read for who is asked: it must still be so when it runs."""

        def noted(path: Path) -> str | None:
            text = read(path)
            if text is not None and hasattr(self._reading, "texts"):
                self._reading.texts[str(path)] = text
            return text

        return noted

    def _terminal(self, arguments: Mapping[str, Any]) -> Decision:
        command = arguments.get("command")
        if not isinstance(command, str):
            return UNREADABLE
        folder = arguments.get("workdir")
        if not isinstance(folder, str) or not folder:
            return self._judge.script(command)
        where = judge_paths("workdir", [folder], self._places)
        return strongest([where, self._judge.script(command, folder=folder)])

    def _execute_code(self, arguments: Mapping[str, Any]) -> Decision:
        code = arguments.get("code")
        return self._judge.python(code) if isinstance(code, str) else UNREADABLE

    def _files(self, tool: str) -> Callable[[Mapping[str, Any]], Decision]:
        def judge(arguments: Mapping[str, Any]) -> Decision:
            return FILE_RULES[tool](arguments, self._places)

        return judge
