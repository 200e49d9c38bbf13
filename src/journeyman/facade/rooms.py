"""Wires the rooms of one installation from its settings. Each room is loaded on first use, because
most calls need only a few of them.
"""

import os
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from journeyman.configuration import load, read_configuration

if TYPE_CHECKING:
    from journeyman.confirm.administration import Administration
    from journeyman.confirm.client import ConfirmClient
    from journeyman.experience.experience import Experiences
    from journeyman.experience.fact_list import FactList
    from journeyman.experience.library import Library
    from journeyman.experience.opening_builder import OpeningBuilder
    from journeyman.experience.playbook_files import PlaybookFiles
    from journeyman.learning.learner import Learner
    from journeyman.learning.session_judge import SessionJudge
    from journeyman.logs.registry import Readers
    from journeyman.logs.repositories import Repositories
    from journeyman.records import Call, Verdict
    from journeyman.store.accounting import Accounting
    from journeyman.store.host_sessions import HostSessions
    from journeyman.store.removals import ForgottenRequests
    from journeyman.store.sessions import Sessions
    from journeyman.store.store import Store


class Rooms:
    """The settings, and the rooms that they configure."""

    def __init__(
        self,
        home: Path | str | None = None,
        database: str | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
        tolerant: bool = False,
    ) -> None:
        self._environ = os.environ if environ is None else environ
        self._user_home = Path(self._environ.get("HOME") or Path.home())
        self._clock = clock
        # Durations are measured with a monotonic clock, unless the caller supplies one.
        self._timer = time.monotonic if clock is time.time else clock
        read = read_configuration if tolerant else load
        self.configuration = read(self._environ, self._user_home, home=home, database=database)
        self.settings = self.configuration.settings

    @cached_property
    def _store(self) -> "Store":
        from journeyman.store.store import Store

        return Store(self.settings.database, busy_timeout_s=self.settings.busy_timeout_s)

    @cached_property
    def _readers(self) -> "Readers":
        from journeyman.logs.registry import Readers

        return Readers()

    @cached_property
    def _repositories(self) -> "Repositories":
        from journeyman.logs.repositories import Repositories

        file, clones = self.settings.home / "clones.json", self.settings.clones
        return Repositories(file, clones=clones, home=self._user_home)

    @cached_property
    def _session_judge(self) -> "SessionJudge":
        from journeyman.learning.session_judge import VERDICT_RULES, SessionJudge

        def judge(call: "Call") -> "Verdict":
            # Most verdicts are stored, and the rules load slowly.
            from journeyman.outcomes.judge import judge as judge_call

            return judge_call(call)

        return SessionJudge(self._store, judge, VERDICT_RULES)

    @cached_property
    def _learner(self) -> "Learner":
        from journeyman.learning.learner import Learner

        return Learner(self._store, self.settings, self._learning_rules)

    @property
    def _learning_rules(self) -> str:
        from journeyman.learning import learning_rules

        return learning_rules(self.settings.trivial_tools)

    @cached_property
    def _experiences(self) -> "Experiences":
        from journeyman.experience.experience import Experiences
        from journeyman.models.embedder import Embedder

        return Experiences(self._store, Embedder())

    @cached_property
    def _opening_builder(self) -> "OpeningBuilder":
        from journeyman.experience.opening_builder import OpeningBuilder
        from journeyman.models.embedder import Embedder

        return OpeningBuilder(self._store, Embedder(), self._experiences)

    @cached_property
    def facts(self) -> "FactList":
        """Facts of projects: list, get, decide, restore, remember, playbook."""
        from journeyman.experience.fact_list import FactList

        return FactList(self._store, self._experiences, self._clock)

    @cached_property
    def templates(self) -> "Library":
        """Templates: build, create, list, get, pick, stats, export, import_file, delete."""
        from journeyman.experience.library import Library
        from journeyman.models.embedder import Embedder

        judged, count_tokens = self._session_judge.judged, Embedder().count_tokens
        return Library(self._store, self._learner, judged, count_tokens, self._clock)

    @property
    def forgotten(self) -> "ForgottenRequests":
        """What was forgotten and must not be learned again: list. `forget` and `unforget` change
        it.
        """
        return self._store.forgotten

    @cached_property
    def accounting(self) -> "Accounting":
        """Tokens and cost of sessions: report, add."""
        from journeyman.models.prices import estimated_cost
        from journeyman.store.accounting import Accounting

        return Accounting(self._store, estimated_cost)

    @cached_property
    def confirmations(self) -> "Administration":
        """Confirmations on this machine: credentials, list, policy, audit, serve."""
        from journeyman.confirm.factory import administration

        return administration(self.settings, self._store, self._clock)

    def confirm_client(self, token: str = "", *, url: str = "") -> "ConfirmClient":
        """Return a client of the configured confirmation service or, without one, of that at `url`
        or on its usual port, with an agent's token (default: the configured one) or an approver's
        key, which may decide.
        """
        from journeyman.confirm.factory import client

        return client(self.settings, token or self.settings.confirm.token, url=url)

    @property
    def sessions(self) -> "Sessions":
        """Stored sessions: list, get, messages, calls, usage, projects, search, export, …"""
        return self._store.sessions

    @property
    def host_sessions(self) -> "HostSessions":
        """What the sessions of hosts started with, and events in them: find, save, events."""
        return self._store.host_sessions

    @cached_property
    def playbook_files(self) -> "PlaybookFiles":
        """Playbook blocks in files that agents read: preview, write, preview_undo, undo."""
        from journeyman.experience.playbook_files import PlaybookFiles

        return PlaybookFiles()

    def close(self) -> None:
        """Close the database, and drop the rooms that use it."""
        if "_store" in self.__dict__:
            self._store.close()
            for name in list(self.__dict__):
                if isinstance(getattr(type(self), name, None), cached_property):
                    del self.__dict__[name]
