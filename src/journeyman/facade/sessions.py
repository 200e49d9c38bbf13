"""The verbs on sessions: import, record, judge, profile, compare."""

import platform
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
from journeyman.records.errors import WrongInput
from journeyman.records.report import ImportReport, LogLocation, Progress
from journeyman.settings import sqlite_path

if TYPE_CHECKING:
    from journeyman.facade.reliability import Reliability
    from journeyman.facade.transcript import Transcript
    from journeyman.reliability import By
    from journeyman.reliability.comparison import Comparison
    from journeyman.reliability.compression import CompressionReport
    from journeyman.reliability.groups import Group
    from journeyman.reliability.profile import Profile
    from journeyman.store.sessions import SessionQuery


Counting = Callable[[int, int], None]
"""Receives the items done and their total."""


def silent(_done: int, _total: int) -> None:
    """Report no progress."""


class SessionsFacade(Rooms):
    """The sessions of one home, and how reliable they were."""

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
        progress: Counting = silent,
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
        judged = self._session_judge.judged(overviews, progress, raw=raw)
        return judged if raw else redacted_record(judged)

    def errors(
        self, overviews: Sequence[SessionOverview], *, progress: Counting = silent
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

    def profile(self, sessions: str | Iterable[str] | None = None, **options: Any) -> "Profile":
        """Return the reliability of calls; the arguments are those of `reliability`."""
        return self.reliability(sessions, **options).profile()

    def grouped(
        self, by: "By", sessions: str | Iterable[str] | None = None, **options: Any
    ) -> "tuple[Group, ...]":
        """Return error rates by tool, model, source, platform, project, day, length or type, with
        early and late calls compared except by tool; the arguments are those of `reliability`.
        """
        if by == "platform" and sessions is None:
            options.setdefault("bots", True)
        return self.reliability(sessions, **options).grouped(by)

    def reliability(
        self,
        sessions: str | Iterable[str] | None = None,
        *,
        messages: Sequence[Mapping[str, Any]] | None = None,
        include_trivial: bool = False,
        raw: bool = False,
        progress: Counting = silent,
        **chosen: "Unpack[SessionQuery]",
    ) -> "Reliability":
        """Return these sessions, selected as in `judged`, for `profile` and `grouped`, its methods;
        or the `messages` of one conversation in the OpenAI format, which is not stored. The calls
        of the tools in the setting `trivial_tools` are left out, unless `include_trivial`; bots,
        unless `bots`, their platform or a tag selects them. Raises WrongInput if the filters match
        none of the stored sessions.
        """
        from journeyman.facade.reliability import Reliability
        from journeyman.redaction.redactor import redacted_record
        from journeyman.store.session_filters import leave_out_bots

        trivial = self._left_out(include_trivial=include_trivial)
        if messages is not None:
            return Reliability(redacted_record([self._judged_messages(messages)[1]]), trivial)
        if sessions is None:
            leave_out_bots(chosen)
        judged = self.judged(sessions, raw=raw, progress=progress, **chosen)
        if not judged and (reason := self.sessions.no_match(**chosen)):
            raise WrongInput(reason)
        everyone: SessionQuery = {**chosen, "bots": True}
        bots = 0 if chosen.get("bots", True) else len(self.sessions.list(**everyone)) - len(judged)
        return Reliability(judged, trivial, bots)

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
        include_trivial: bool = False,
        **where: Any,
    ) -> "Comparison":
        """Compare warm sessions with cold ones: two sessions, two lists of sessions or all sessions
        with a tag; without any of these, those that started with an opening and those that did
        not. `where` narrows tags and openings to a project or a platform.
        """
        from journeyman.reliability.comparison import compare

        sides = (warm, warm_tag), (cold, cold_tag)
        if sides == ((None, None), (None, None)):
            where["subagents"] = False  # hosts give them no opening, so they are on neither side
            judged = [self.judged(**where, warm=is_warm) for is_warm in (True, False)]
        elif any((named is None) == (tag is None) for named, tag in sides):
            raise WrongInput(
                "Each side needs session ids or a tag, one of the two. Pass warm or warm_tag, and "
                "cold or cold_tag."
            )
        else:
            judged = [
                self.judged(**where, tag=tag) if tag is not None else self.judged(named)
                for named, tag in sides
            ]
        return compare(*judged, trivial=self._left_out(include_trivial=include_trivial))
