"""The verbs on sessions and on what they teach: import, judge, profile, compare, learn, open."""

import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from journeyman.records.defaults import (
    BUDGET_TOKENS,
    MAX_TEMPLATE_PATTERNS,
    MIN_SIMILARITY,
    MOST_PATTERNS,
)
from journeyman.records.errors import WrongInput
from journeyman.records.report import ImportReport, LearnReport, LogLocation, Progress, learn_report
from journeyman.settings import STYLES, sqlite_path

if TYPE_CHECKING:
    from journeyman.facade.reliability import Reliability
    from journeyman.facade.transcript import Transcript
    from journeyman.records.exclusions import Forgotten
    from journeyman.records.playbook import Playbook, PlaybookMistake
    from journeyman.reliability import By
    from journeyman.reliability.comparison import Comparison
    from journeyman.reliability.compression import CompressionReport
    from journeyman.reliability.groups import Group
    from journeyman.reliability.profile import Profile
    from journeyman.store.sessions import SessionQuery
    from journeyman.templates.opening import Opening
    from journeyman.templates.opening_builder import Style


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
        from journeyman.templates.mining.miner import mine

        fragment, judged = self._judged_messages(messages, outcome)
        trivial = frozenset(self.settings.trivial_tools)
        return mine(fragment.session, fragment.messages, judged, trivial=trivial).patterns

    def _judged_messages(
        self, messages: Sequence[Mapping[str, Any]], outcome: float | None = None
    ) -> tuple[Fragment, JudgedSession]:
        from journeyman.logs.chat import conversation_fragment
        from journeyman.templates.session_judge import judged_calls, judged_session

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
        is_over = None if seconds is None else lambda: time.perf_counter() >= started + seconds
        if self._store.learned.missing(self._learning_rules, project):
            from journeyman.logs.worker_pool import WorkerPool

            pool = WorkerPool(workers) if workers > 1 else None
            try:
                mined = self._learner.run(progress, pool, project=project, is_over=is_over)
            finally:
                if pool is not None:
                    pool.shutdown(cancel_futures=True)
        reasons, kinds = self.patterns.reasons(), self.patterns.counts()
        return learn_report(reasons, kinds, mined=mined, seconds=time.perf_counter() - started)

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
        if matching is None:
            name = self.project_named(project)
            found = self.forgotten.forget(session, project=name, dry_run=dry_run)
        elif session or project:
            raise WrongInput(
                "Both a text and a session or project were passed. Forget one of them, then the "
                "other."
            )
        else:
            found = self.forgotten.forget_matching(matching, dry_run=dry_run)
        if not (dry_run or found.is_empty):
            self._store.host_sessions.drop_content()
        return found

    def unforget(self, session: str = "", *, project: Path | str = "") -> Sequence[SessionId]:
        """Allow forgotten sessions, named as in `forget`, to be learned from again by the next
        `learn`, and return their ids. Patterns that were removed from templates do not come back.
        """
        return self.forgotten.undo(session, project=self.project_named(project))

    def opening(
        self,
        task: str = "",
        *,
        project: Path | str = "",
        tools: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None = None,
        model: str = "",
        style: "Style | None" = None,
        budget_tokens: int | None = None,
        max_patterns: int | None = None,
        floor: float = MIN_SIMILARITY,
        alike: bool = False,
        template: str | None = None,
        bots: bool = False,
        counted: bool = True,
    ) -> "Opening":
        """Return what a session on this task should start with, within the budget: from a
        `project` (its name, or a folder in it), or from the whole library. `tools` are the tool
        definitions of the session, in any common shape; calls that do not fit them are translated
        or left out. `style` sets the presentation; by default, the settings for the `model` do.
        With `alike`, it shows the request nearest to the task and others that start the same way,
        which helps small models. Sessions of bots are used only with `bots`, or where there are no
        others.

        With a `template`, only its patterns are considered, however little they resemble the task;
        the note names it, and the use is counted if `counted`.
        The task may then be empty: the template's patterns are shown in their order, up to
        `max_patterns` and without a token limit unless one is passed.
        """
        from journeyman.templates.selection import OpeningLimits, check_limits
        from journeyman.templates.tool_schemas import LiveTools

        whole = template is not None and isinstance(task, str) and not task.strip()
        if budget_tokens is None:
            budget_tokens = sys.maxsize if whole else BUDGET_TOKENS
        if max_patterns is None:
            max_patterns = MAX_TEMPLATE_PATTERNS if whole else MOST_PATTERNS
        check_limits(task, budget_tokens, max_patterns, floor)
        limits = OpeningLimits(tokens=budget_tokens, most=max_patterns, floor=floor, alike=alike)
        live = None if tools is None else LiveTools.read(tools)
        chosen = None if template is None else self.templates.get(template)
        opening = self._opening_builder.make(
            task,
            limits,
            live=live,
            template=chosen,
            project=self.project_named(project),
            style=self._style(style, model),
            bots=bots,
        )
        if counted and chosen is not None and not opening.is_empty:
            self.templates.count_use(chosen)
        return opening

    def project_opening(
        self, project: Path | str = ".", *, budget_tokens: int = BUDGET_TOKENS
    ) -> "Opening":
        """Return what a session in a project, given by name or by a folder in it, should start with
        before its task is known: the commands, mistakes and files that recur there.
        """
        return self._opening_builder.for_project(self.project_named(project), budget_tokens)

    def known_mistake(self, call: Call, project: Path | str) -> "PlaybookMistake | None":
        """Return the recurring mistake of a project that a failed call repeats, if its playbook has
        a remedy for it; None otherwise. A call without an exit code is compared by its text alone.
        """
        from journeyman.templates.mining.episodes import find_mistake
        from journeyman.templates.playbook import mistake_kind, without_exit_code

        verdict = self.judge(call)
        mistake = find_mistake(call, verdict) if verdict.is_error else None
        name = self.project_named(project)
        experience = self._opening_builder.experience(name)
        if mistake is None or experience.project != name:
            return None
        tool, error = mistake_kind(mistake)
        same = (
            one
            for one in experience.playbook.mistakes
            if one.tool == tool and error in (one.error, without_exit_code(one.error))
        )
        return next((one for one in same if one.remedy), None)

    def playbook(self, project: Path | str = ".", *, bots: bool = False) -> "Playbook":
        """Return the playbook of a project, given by name or by a folder in it: commands that work,
        recurring mistakes, frequently used files. `bots` is that of `opening`.
        """
        from journeyman.templates.playbook import project_playbook

        rows = self._store.episodes.rows()
        return project_playbook(self.project_named(project), rows, bots=bots)

    def remedies(self, sessions: Iterable[str]) -> "tuple[PlaybookMistake, ...]":
        """Return the recurring mistakes of these sessions that have a known fix, most frequent
        first.
        """
        from journeyman.templates.playbook import RECURRING, build_playbook

        wanted = set(sessions)
        if len(wanted) < RECURRING:
            return ()
        rows = [one for one in self._store.episodes.rows() if one.session in wanted]
        found = build_playbook("", rows).mistakes
        return tuple(sorted((one for one in found if one.remedy), key=lambda one: -one.times))

    def project_named(self, project: Path | str) -> str:
        """Return the name of a project, given by its name or by a folder in it."""
        is_folder = isinstance(project, Path) or (project and os.path.isdir(project))  # noqa: PTH112 - takes any length
        return self.find_project(project) if is_folder else str(project)

    def _style(self, style: "Style | None", model: str) -> "Style":
        found = style or self.settings.opening.models.get(model) or self.settings.opening.style
        if found not in STYLES:
            raise WrongInput(f"Unknown style {found!r}. Choose one of: {', '.join(STYLES)}.")
        return found
