"""Stores the states of the workspace before and after an agent's turns, for undo."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from journeyman.agent.tools.tool import Invocation, Result, Tool
from journeyman.records import Session
from journeyman.records.errors import OutsideProblem
from journeyman.undo.history import WorkTreeHistory
from journeyman.undo.undo import plan_undo

_FILE_CLOCK_S = 0.01
"""How far the clock of files may lag behind."""


class TurnSnapshots:
    """Stores the states before and after an agent's turns. If that fails, the turn continues, and
    `notify` receives the reason once.
    """

    def __init__(self, history: WorkTreeHistory, notify: Callable[[str], None]) -> None:
        self._history, self._notify = history, notify
        self._session, self._reported, self._is_changed = "", "", False
        self._run: str | None = None
        self._working: list[tuple[float, float]] = []

    def begin(self, session: Session) -> None:
        """Begin a turn; the state is stored before its first write."""
        self._session, self._run, self._is_changed = session.id, None, False
        self._working = []

    def guarded(self, tool: Tool) -> Tool:
        """Wrap a tool that may write, so that its first call in a turn stores the state, and so
        does a later one before which something else changed files.
        """
        if tool.reads_only:
            return tool

        def run(invocation: Invocation) -> Result:
            with self._reporting():
                if self._run and self._history.has_changed_since(self._working[-1][1]):
                    self._end_run(self._run)
                if self._run is None:
                    self._run = ""
                    self._run = self._history.begin(self._session)
            began = time.time() - _FILE_CLOCK_S
            try:
                return tool.run(invocation)
            finally:
                self._working.append((began, time.time()))

        return msgspec.structs.replace(tool, run=run)

    def end(self) -> bool:
        """End the turn; return whether it changed something that can be undone."""
        if self._run:
            with self._reporting():
                self._end_run(self._run)
        return self._is_changed

    def _end_run(self, run: str) -> None:
        working, self._run, self._working = self._working, None, []
        ended = self._history.end(run, self._session, working)
        self._is_changed |= bool(plan_undo([ended], ended.after).targets)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except (OutsideProblem, OSError) as error:
            if str(error) != self._reported:
                self._reported = str(error)
                self._notify(f"Undo is not available: {self._reported.rstrip('.')}.")
