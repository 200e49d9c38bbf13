"""The verbs on sessions and on what they teach: import, judge, profile, compare, learn, open."""

import os
import platform
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from journeyman.facade.rooms import Rooms
from journeyman.logs.discovery import default_locations
from journeyman.logs.importer import Importer
from journeyman.records import (
    Call,
    Fragment,
    JudgedSession,
    Pattern,
    SessionId,
    SessionOverview,
    Usage,
    Verdict,
)
from journeyman.records.defaults import BUDGET_TOKENS, EXAMPLES
from journeyman.records.errors import AmbiguousSession, UnknownSession, WrongInput
from journeyman.records.report import ImportReport, LearnReport, LogLocation, Progress, learn_report
from journeyman.settings import sqlite_path

if TYPE_CHECKING:
    from journeyman.experience.moments import Moments
    from journeyman.experience.opening import Opening
    from journeyman.facade.reliability import Reliability
    from journeyman.facade.transcript import Transcript
    from journeyman.records import Observations
    from journeyman.records.fact import FactKind, Playbook
    from journeyman.records.forgetting import Forgotten
    from journeyman.reliability import By
    from journeyman.reliability.comparison import Comparison
    from journeyman.reliability.compression import CompressionReport
    from journeyman.reliability.groups import Group
    from journeyman.reliability.profile import Profile
    from journeyman.store.sessions import SessionQuery
    from journeyman.trials.worth_report import Worth


class ExperienceFacade(Rooms):
    """What one home knows, and the everyday verbs on it."""

    def places(self) -> list[LogLocation]:
        """Return the default locations of logs on this machine, and what each contains."""
        return default_locations(self._environ, self._user_home)

    def import_logs(
        self,
        paths: Path | str | Iterable[Path | str] | None = None,
        *,
        source: str = "auto",
        reread: bool = False,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> ImportReport:
        """Import logs from files and folders, or from the default locations. Logs that were
        imported before are skipped unless `reread` is set.
        """
        # In a database that a team shares, log names start with the name of the machine.
        is_shared = sqlite_path(self.settings.database) is None
        run = Importer(
            lambda: self._readers,
            self._store,
            source=source,
            reread=reread,
            place=f"{platform.node()}:" if is_shared else "",
            repositories=self._repositories,
            progress=progress,
        )
        if paths is None:
            return run.discovered(self.places())
        return run.run([*map(Path, [paths] if isinstance(paths, str | Path) else paths)])

    def record(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        source: str = "mine",
        session_id: str | None = None,
        outcome: float | None = None,
        model: str = "",
        project: str = "",
        cwd: Path | str = "",
        tags: Iterable[str] = (),
        usage: Sequence[Usage] = (),
        append: bool = False,
    ) -> SessionOverview:
        """Store a conversation in the OpenAI message format as a session. Recording the same
        `session_id` again replaces it, or with `append` continues it; without an id, equal messages
        are one session. The project is `project`, or that of the folder `cwd`. `usage` are the
        tokens of the answers, if they are known.
        """
        from journeyman.logs.chat import continuation, conversation_fragment

        facts = {
            "id": session_id,
            "source": source,
            "outcome": outcome,
            "model": model,
            "project": project or (self.find_project(cwd) if cwd else ""),
            "cwd": str(cwd),
            "tags": (tags,) if isinstance(tags, str) else tuple(tags),
        }
        fragment = conversation_fragment(messages, facts, now=self._clock(), usage=usage)
        with self._store.writing(restores=True) as writing:
            if append and (stored := writing.message_count(fragment.session.id)):
                fragment = continuation(fragment, stored)
            writing.add(fragment)
            writing.finish()
        return self.sessions.get(fragment.session.id)

    def find_project(self, folder: Path | str = ".") -> str:
        """Return the project of a folder on this machine, as its sessions record it."""
        return self._repositories.find_project(folder)

    def judge(self, call: Call | Mapping[str, Any]) -> Verdict:
        """Return the verdict on a call: one from `sessions.calls`, or an object with `tool`,
        `arguments` and `result_text`.
        """
        from journeyman.outcomes.judge import call_from_fields, judge

        return judge(call if isinstance(call, Call) else call_from_fields(call))

    def judged(
        self,
        sessions: str | Iterable[str] | None = None,
        *,
        raw: bool = False,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
        **chosen: "Unpack[SessionQuery]",
    ) -> list[JudgedSession]:
        """Return sessions with verdicts on their calls: those named, or all that `sessions.list`
        returns for the same filters (project, source, platform, model, tag, since, until, …). Each
        session is judged once. Secrets are redacted, because reports get passed on; with `raw`, the
        text is as it was recorded, and the calls are judged anew for it.
        """
        from journeyman.redaction.redactor import redacted_record

        if sessions is None:
            overviews = self.sessions.list(**chosen)
        elif chosen:
            raise WrongInput("Sessions were named and also filtered. Use one of the two.")
        else:
            named = [sessions] if isinstance(sessions, str) else sessions
            overviews = [self.sessions.get(session_id) for session_id in named]
        if raw:
            return self._session_judge.judged(overviews, progress, raw=True)
        return redacted_record(self._session_judge.judged(overviews, progress))

    def errors(
        self,
        overviews: Sequence[SessionOverview],
        *,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> dict[SessionId, int]:
        """Return the number of failed calls of each session; those that are new are judged."""
        judged = self._session_judge.judged(overviews, progress)
        return {one.id: sum(call.verdict.is_error for call in one.calls) for one in judged}

    def transcript(self, session_id: str, *, raw: bool = False) -> "Transcript":
        """Return a session with its messages, its calls and the verdicts on them. Secrets and
        personal data are redacted unless `raw`.
        """
        from journeyman.facade.transcript import transcript

        return transcript(self.sessions, self.judge, session_id, raw=raw)

    def profile(
        self,
        sessions: str | Iterable[str] | None = None,
        *,
        messages: Sequence[Mapping[str, Any]] | None = None,
        include_trivial: bool = False,
        **chosen: "Unpack[SessionQuery]",
    ) -> "Profile":
        """Return the reliability of the calls in these sessions, selected as in `judged`, without
        those of the tools in the setting `trivial_tools`, unless `include_trivial`; or in the
        `messages` of one conversation in the OpenAI format, which is not stored. Bots are left out
        unless `bots`, their platform or a tag selects them. Raises WrongInput if the filters match
        none of the stored sessions.
        """
        found = self.reliability(
            sessions, messages=messages, include_trivial=include_trivial, **chosen
        )
        return found.profile()

    def extract_patterns(
        self, messages: Sequence[Mapping[str, Any]], *, outcome: float | None = None
    ) -> tuple[Pattern, ...]:
        """Return the patterns that one conversation teaches, redacted. Nothing is stored."""
        from journeyman.experience.opening import episode_pattern
        from journeyman.learning.episodes import mine

        fragment, judged = self._judged_messages(messages, outcome)
        trivial = frozenset(self.settings.trivial_tools)
        mined = mine(fragment.session, fragment.messages, judged.calls, trivial=trivial)
        return tuple(episode_pattern(episode) for episode in mined.episodes if episode.teaches)

    def _judged_messages(
        self, messages: Sequence[Mapping[str, Any]], outcome: float | None = None
    ) -> tuple[Fragment, JudgedSession]:
        from journeyman.learning.session_judge import judged_calls, judged_session
        from journeyman.logs.chat import conversation_fragment

        facts = {"id": None, "source": "mine", "outcome": outcome}
        fragment = conversation_fragment(messages, facts, now=self._clock())
        calls = judged_calls(fragment.messages, self.judge)
        return fragment, judged_session(fragment.session, len(fragment.messages), calls)

    def grouped(
        self,
        by: "By",
        sessions: str | Iterable[str] | None = None,
        *,
        include_trivial: bool = False,
        **chosen: "Unpack[SessionQuery]",
    ) -> "tuple[Group, ...]":
        """Return error rates by tool, model, source, platform, project, day, length or type, with
        early and late calls compared except by tool; the arguments are those of `profile`.
        """
        if by == "platform" and sessions is None:
            chosen.setdefault("bots", True)
        return self.reliability(sessions, include_trivial=include_trivial, **chosen).grouped(by)

    def reliability(
        self,
        sessions: str | Iterable[str] | None = None,
        *,
        messages: Sequence[Mapping[str, Any]] | None = None,
        include_trivial: bool = False,
        raw: bool = False,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
        **chosen: "Unpack[SessionQuery]",
    ) -> "Reliability":
        """Return sessions judged for both `profile` and `grouped`, which are its methods. `raw` and
        `progress` are those of `judged`, the other arguments those of `profile`.
        """
        from journeyman.facade.reliability import Reliability
        from journeyman.redaction.redactor import redacted_record
        from journeyman.store.session_filters import leave_out_bots

        if messages is not None:
            found = redacted_record([self._judged_messages(messages)[1]])
            return Reliability(found, self._left_out(include_trivial=include_trivial))
        if sessions is None:
            leave_out_bots(chosen)
        judged = self.judged(sessions, raw=raw, progress=progress, **chosen)
        if not judged and (reason := self.sessions.no_match(**chosen)):
            raise WrongInput(reason)
        everyone: SessionQuery = {**chosen, "bots": True}
        bots = 0 if chosen.get("bots", True) else len(self.sessions.list(**everyone)) - len(judged)
        return Reliability(judged, self._left_out(include_trivial=include_trivial), bots)

    def _left_out(self, *, include_trivial: bool) -> tuple[str, ...]:
        return () if include_trivial else self.settings.trivial_tools

    def compression(self, session_id: str, *, include_trivial: bool = False) -> "CompressionReport":
        """Return whether the compressions in a session's lineage preserved its proficiency."""
        from journeyman.redaction.redactor import redacted_record
        from journeyman.reliability.compression import compression

        segments, note = self._session_judge.segments(session_id)
        trivial = self._left_out(include_trivial=include_trivial)
        return redacted_record(compression(segments, note, trivial=trivial))

    def compare(
        self,
        warm: str | Iterable[str] | None = None,
        cold: str | Iterable[str] | None = None,
        *,
        warm_tag: str | None = None,
        cold_tag: str | None = None,
        by_opening: bool = False,
        project: str | None = None,
        platform: str | None = None,
        include_trivial: bool = False,
    ) -> "Comparison":
        """Compare warm sessions with cold ones: two sessions, two lists of sessions, all sessions
        with a tag or, `by_opening`, those that started with an opening and those that did not; tags
        and openings optionally of one project or platform. `include_trivial` is that of `profile`.
        """
        from journeyman.reliability.comparison import compare

        where: dict[str, Any] = {"project": project, "platform": platform}
        if by_opening:
            # Hosts give subagents no opening, so they are on neither side.
            where["subagents"] = False
            judged = [self.judged(warm=is_warm, **where) for is_warm in (True, False)]
        else:
            sides = ("warm", warm, warm_tag), ("cold", cold, cold_tag)
            for name, named, tag in sides:
                if (named is None) == (tag is None):
                    raise WrongInput(
                        f"The {name} side needs session ids or a tag, one of the two. Pass {name} "
                        f"or {name}_tag."
                    )
            judged = [
                self.judged(tag=tag, **where) if named is None else self.judged(named)
                for _, named, tag in sides
            ]
        return compare(*judged, trivial=self._left_out(include_trivial=include_trivial))

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
            from journeyman.logs.worker_pool import WorkerPool

            pool = WorkerPool(workers) if workers > 1 else None
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

        is_small = model in self.settings.opening.small_models if small is None else small
        live = None if tools is None else LiveTools.read(tools)
        if template is not None:
            tokens = UNLIMITED if budget_tokens is None else budget_tokens
            most = UNLIMITED if max_patterns is None else max_patterns
            chosen = self.templates.get(template)
            limits = OpeningLimits(tokens=tokens, most=most, small=is_small)
            opening = self._opening_builder.from_template(chosen, task, limits, live)
            if counted and not opening.is_empty:
                self.templates.count_use(chosen)
            return opening
        tokens = BUDGET_TOKENS if budget_tokens is None else budget_tokens
        most = EXAMPLES if max_patterns is None else max_patterns
        name = self.project_named(project)
        return self._opening_builder.for_task(
            task,
            OpeningLimits(tokens=tokens, most=most, small=is_small),
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
        from journeyman.experience.checkout import (
            Checkout,
            branch_of,
            find_root,
        )
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
        progress: Callable[[int, int], None] = lambda _done, _total: None,
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
            told = frozenset(kinds or self.settings.hosts.facts)
            one = measure_worth(
                self._store,
                name,
                kinds=told,
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
