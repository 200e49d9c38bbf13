"""The verbs on what sessions teach: learn, open, facts at their moments, what they are worth."""

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from journeyman.facade.sessions import Counting, SessionsFacade, silent
from journeyman.records import SessionId
from journeyman.records.defaults import BUDGET_TOKENS, EXAMPLES
from journeyman.records.errors import AmbiguousSession, UnknownSession, WrongInput
from journeyman.records.report import LearnReport, Progress, learn_report

if TYPE_CHECKING:
    from journeyman.experience.moments import Moments
    from journeyman.experience.opening import Opening
    from journeyman.records import Observations
    from journeyman.records.fact import FactKind, Playbook
    from journeyman.records.forgetting import Forgotten
    from journeyman.trials.worth import Worth


class ExperienceFacade(SessionsFacade):
    """What one home knows, and the everyday verbs on it."""

    def learn(
        self,
        *,
        project: str | None = None,
        workers: int = 1,
        seconds: float | None = None,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> LearnReport:
        """Judge and mine all sessions that are new since the last run, in one project or in all,
        and store what they teach. With `seconds`, stop after about that long; the newest sessions
        come first, and the next call learns from the rest. Several `workers` are separate
        processes; a program that uses them must guard its entry point with
        `if __name__ == "__main__"`. The report counts everything learned so far.
        """
        if project is not None and not self.sessions.list(project=project, limit=1):
            raise WrongInput(
                self.sessions.no_match(project=project)
                or f"No session is stored, so there is none of project {project!r}."
            )
        started, mined = time.perf_counter(), 0
        missing = self._store.learned.missing(self._learning_rules, project)
        if missing:
            from journeyman.learning.worker_pool import worker_pool

            pool = worker_pool(workers) if workers > 1 else None
            try:
                mined = self._learner.learn(
                    missing if seconds is None else missing[::-1],
                    progress,
                    pool,
                    is_over=lambda: (
                        seconds is not None and time.perf_counter() >= started + seconds
                    ),
                )
            finally:
                if pool is not None:
                    pool.shutdown(cancel_futures=True)
        reasons, examples = self._store.learned.counts(), self._store.episodes.examples()
        return learn_report(reasons, examples, mined=mined, seconds=time.perf_counter() - started)

    def forget(
        self,
        session: str = "",
        *,
        project: Path | str = "",
        matching: str | None = None,
        dry_run: bool = False,
    ) -> "Forgotten":
        """Remove everything learned from a session or a project, or everything that
        contains a text, and never learn it again. The recorded sessions stay. With `dry_run`,
        nothing is removed.
        """
        from journeyman.records.forgetting import EVERY_REQUEST

        requests: Mapping[SessionId, Collection[int]]
        if matching is None:
            requests = dict.fromkeys(self._learned_from(session, project), (EVERY_REQUEST,))
        elif session or project:
            raise WrongInput(
                "Both a text and a session or project were passed. Forget one of them, then the "
                "other."
            )
        elif not matching.strip():
            raise WrongInput("The text to forget is empty. Pass some of the text that was learned.")
        else:
            requests = self.forgotten.matching(matching)
        found = self.forgotten.forget(
            requests, at=self._clock(), matching=matching or "", dry_run=dry_run
        )
        if not (dry_run or found.is_empty):
            self._store.host_sessions.drop_content()
        return found

    def unforget(self, session: str = "", *, project: Path | str = "") -> Sequence[SessionId]:
        """Allow forgotten sessions, named as in `forget`, to be learned from again by the next
        `learn`, and return their ids. Patterns that were removed from templates do not come back.
        """
        restored = self.forgotten.undo(self._learned_from(session, project))
        if not restored:
            raise WrongInput(
                f"Nothing learned from {session or str(project)!r} was forgotten. "
                "`journeyman forget --list` shows what was."
            )
        return restored

    def _learned_from(self, session: str, project: Path | str) -> Sequence[SessionId]:
        name = self.project_named(project)
        if bool(session) == bool(name):
            raise WrongInput("Say what to forget: a session, a project, or a text with --matching.")
        if session:
            return [self.sessions.get(session).session.id]
        found = self.sessions.list(project=name)
        if not found:
            reason = self.sessions.no_match(project=name)
            raise UnknownSession(reason or "No session is stored, so nothing was learned.")
        return [overview.session.id for overview in found]

    def opening(
        self,
        task: str = "",
        *,
        project: Path | str = "",
        tools: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None = None,
        model: str = "",
        small: bool | None = None,
        budget_tokens: int | None = None,
        max_patterns: int | None = None,
        template: str | None = None,
        own_only: bool = False,
        bots: bool = False,
        counted: bool = True,
    ) -> "Opening":
        """Return what a session on this task should start with, within the budget: what is known
        about working in the `project` (its name, or a folder in it), and for unfamiliar `tools`
        (definitions in any common shape) and `small` models, the first calls of the nearest
        requests, of other projects where this one has none, unless `own_only`. Models in the
        setting `opening.small_models` are small. Sessions of bots are used only with `bots`, or
        where there are no others.

        A `template` is shown whole, as far as a limit is passed and the tools fit; the note names
        it, and the use is counted if `counted`. The task may then be empty.
        """
        from journeyman.experience.opening_builder import UNLIMITED, OpeningLimits
        from journeyman.experience.tool_schemas import LiveTools

        live = None if tools is None else LiveTools.read(tools)
        if template is None:
            default_tokens, default_most = BUDGET_TOKENS, EXAMPLES
        else:
            default_tokens = default_most = UNLIMITED
        limits = OpeningLimits(
            tokens=default_tokens if budget_tokens is None else budget_tokens,
            most=default_most if max_patterns is None else max_patterns,
            small=model in self.settings.opening.small_models if small is None else small,
        )
        if template is not None:
            chosen = self.templates.get(template)
            opening = self._opening_builder.from_template(chosen, task, limits, live)
            if counted and not opening.is_empty:
                self.templates.count_use(chosen)
            return opening
        name = self.project_named(project)
        return self._opening_builder.for_task(
            task,
            limits,
            moments=self.moments(project, bots=bots) if name else None,
            live=live,
            project=name,
            own_only=own_only,
            bots=bots,
        )

    def moments(self, project: Path | str = ".", *, bots: bool = False) -> "Moments":
        """Return what a session in a project is told at each moment, as `start()`, `prompt(text)`,
        `call(call)`, `failure(call)` and `compaction(…)`. A folder is also what facts are checked
        against; by its name alone, a project is not checked.
        """
        from journeyman.experience.checkout import Checkout, branch_of, find_root
        from journeyman.experience.continuity import person_of
        from journeyman.experience.moments import Moments

        facts = self._experiences.of(self.project_named(project), bots=bots).facts
        kinds = frozenset(self.settings.hosts.facts)
        folder = Path(project) if self._is_folder(project) else None
        if folder is None:
            return Moments(facts, Checkout(), request_of=self._request_of, kinds=kinds)
        root = find_root(folder.absolute())
        return Moments(
            facts.at(root),
            Checkout(root),
            branch=branch_of(root),
            folder=str(root),
            cwd=str(folder.absolute()),
            person=person_of(str(root)),
            request_of=self._request_of,
            kinds=kinds,
        )

    def worth(
        self,
        project: str | None = None,
        *,
        kinds: "Collection[FactKind]" = (),
        unrelated: Sequence[str] = (),
        progress: Counting = silent,
    ) -> "list[Worth]":
        """Return what facts would have been worth in the recorded sessions of a project, or of each
        project with enough of them, the largest first. `kinds` are those told, by default those of
        the setting `hosts.facts`. `unrelated` requests should be told nothing.
        """
        from journeyman.redaction.redactor import redacted_record
        from journeyman.trials.worth import measure_worth

        known = [totals.project for totals in self.sessions.projects() if totals.project]
        found = []
        for name in [project] if project else known:
            others = [one for one in known if one != name and not project]
            one = measure_worth(
                self._store,
                name,
                kinds=frozenset(kinds or self.settings.hosts.facts),
                others=others,
                unrelated=unrelated,
                progress=progress,
            )
            found += [one] if one is not None else []
        return redacted_record(found)  # it quotes requests and calls

    def observed(self, session_id: str, log: Path | str = "") -> "list[Observations]":
        """Return what the requests of a session show of its project, after reading what is new in
        its `log`; nothing for a session that is not stored.
        """
        if log:
            self.import_logs([log])
        try:
            session = self.sessions.get(session_id).session
        except (UnknownSession, AmbiguousSession):
            return []
        if session.id in self._learner.missing(session.project or None):
            self._learner.learn([session.id])
        rows = self._store.episodes.rows(session.project)
        return [row.observed for row in rows if row.session == session.id]

    def _request_of(self, row: int) -> str:
        found = self._store.episodes.by_row([row]).get(row)
        return found.request if found is not None else ""

    def playbook(self, project: Path | str = ".", *, bots: bool = False) -> "Playbook":
        """Return the facts of a project, given by name or by a folder in it, which are then checked
        there, and what they correct in its instructions files. `bots` is that of `opening`.
        """
        from journeyman.experience.checkout import find_root

        name = self.project_named(project)
        folder = Path(project).absolute() if self._is_folder(project) else None
        return self.facts.playbook(name, find_root(folder) if folder else None, bots=bots)

    def project_named(self, project: Path | str) -> str:
        """Return the name of a project, given by its name or by a folder in it."""
        return self.find_project(project) if self._is_folder(project) else str(project)

    @staticmethod
    def _is_folder(project: Path | str) -> bool:
        is_folder = bool(project) and os.path.isdir(project)  # noqa: PTH112 - takes any length
        return isinstance(project, Path) or is_folder
