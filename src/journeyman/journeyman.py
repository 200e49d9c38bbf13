"""The one public facade. It only wires: it reads the settings, opens the rooms and offers the
everyday verbs; the rest hangs off it by noun. A room is loaded when it is first used, because most
calls need few of them.
"""

import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, get_args

from journeyman.logs.discovery import usual_places
from journeyman.logs.importing import Import
from journeyman.logs.repositories import find_project
from journeyman.records import Call, JudgedSession, SessionId, SessionOverview, Template, Verdict
from journeyman.records.errors import MissingPart, WrongInput
from journeyman.records.report import ImportReport, LearnReport, Place, Progress, learn_report
from journeyman.settings import STYLES, load
from journeyman.store.sqlite_file import sqlite_path
from journeyman.templates.defaults import BUDGET_TOKENS, FLOOR, MOST_OF_TEMPLATE, MOST_PATTERNS
from journeyman.version import __version__

if TYPE_CHECKING:
    from journeyman.accounting import Accounting
    from journeyman.agent.agent import Agent
    from journeyman.agent.dispatch import Ask
    from journeyman.agent.review.journal import Journal
    from journeyman.agent.review.reviewer import Reviewed
    from journeyman.agent.turn import Limits, Turn
    from journeyman.agent.undo import Undo
    from journeyman.agent_making import AgentMaking
    from journeyman.confirm.administration import Administration
    from journeyman.confirm.client import ConfirmClient
    from journeyman.diagnosis import Finding
    from journeyman.foresight import Foresight
    from journeyman.jobs.guard import Route
    from journeyman.jobs.jobs import Jobs
    from journeyman.logs.registry import Readers
    from journeyman.models.model import Model
    from journeyman.playbook_files import PlaybookFiles
    from journeyman.records.kept_out import Forgotten
    from journeyman.records.playbook import Playbook, PlaybookMistake
    from journeyman.reliability.comparison import Comparison
    from journeyman.reliability.compression import CompressionReport
    from journeyman.reliability.profile import By, Group, Profile
    from journeyman.store.patterns import Patterns
    from journeyman.store.quarantine import Quarantine
    from journeyman.store.sessions import Choice, Sessions
    from journeyman.store.store import Store
    from journeyman.templates.judging import Judging
    from journeyman.templates.learning import Learning
    from journeyman.templates.library import Library
    from journeyman.templates.openings import Openings, Style
    from journeyman.templates.removal import Removal, Target
    from journeyman.templates.shown.opening import Opening


class Journeyman:
    """Experience for agents, kept in one home.

    `Journeyman()` uses the home and database of the settings; `home` and `database` override
    them. The database is opened on first use. Use it as a context manager, or `close` it.
    """

    def __init__(
        self,
        home: Path | str | None = None,
        database: str | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._environ = os.environ if environ is None else environ
        self._user_home = Path(self._environ.get("HOME") or Path.home())
        self._clock = clock
        # For how long something takes, nobody sets the clock; unless the caller has one of his own.
        self._timer = time.monotonic if clock is time.time else clock
        self.settings = load(self._environ, self._user_home, home=home, database=database)

    @cached_property
    def _store(self) -> "Store":
        from journeyman.store.store import Store

        return Store(self.settings.database, busy_timeout_s=self.settings.busy_timeout_s)

    @cached_property
    def _readers(self) -> "Readers":
        from journeyman.logs.registry import Readers

        return Readers()

    @cached_property
    def _judging(self) -> "Judging":
        from journeyman.outcomes import RULES_VERSION
        from journeyman.outcomes.judge import judge
        from journeyman.templates.judging import Judging

        return Judging(self._store, judge, str(RULES_VERSION))

    @cached_property
    def _learning(self) -> "Learning":
        from journeyman.templates.learning import Learning, WorkerSettings

        settings = WorkerSettings(
            database=self.settings.database,
            busy_timeout_s=self.settings.busy_timeout_s,
            trivial=frozenset(self.settings.trivial_tools),
        )
        return Learning(self._store, settings, self._learning_rules)

    @property
    def _learning_rules(self) -> str:
        from journeyman.templates.mining import learning_rules

        return learning_rules(self.settings.trivial_tools)

    @cached_property
    def _openings(self) -> "Openings":
        from journeyman.embeddings.embedder import Embedder
        from journeyman.templates.openings import Openings

        return Openings(self._store, Embedder())

    @cached_property
    def templates(self) -> "Library":
        """The templates: build, create, list, get, pick, stats, export, import_file, delete."""
        from journeyman.embeddings.embedder import Embedder
        from journeyman.templates.library import Library

        judged, count_tokens = self._judging.judged, Embedder().count_tokens
        return Library(self._store, self._learning, judged, count_tokens, self._clock)

    @property
    def patterns(self) -> "Patterns":
        """What was learned: list (also what is in quarantine), get, counts."""
        return self._store.patterns

    @property
    def kept_out(self) -> "Quarantine":
        """What rules kept out of what is learned: list, get, release, delete, restore."""
        return self._store.quarantine

    @cached_property
    def forgotten(self) -> "Removal":
        """What was forgotten and is not learned again: list. `forget` and `unforget` change it."""
        from journeyman.templates.removal import Removal

        return Removal(self._store, self._clock)

    @cached_property
    def _agents(self) -> "AgentMaking":
        with _extra("agent", "An agent needs"):
            from journeyman.agent_making import AgentMaking
        return AgentMaking(self.settings, self._store, self, self._clock, self._timer)

    @cached_property
    def reviews(self) -> "Journal":
        """What reviews and agents wrote into memory and skills: list, get, writes, undo."""
        from journeyman.agent.review.journal import Journal

        return Journal(self._store.reviews, self._agents.knowledge, self._clock)

    @cached_property
    def accounting(self) -> "Accounting":
        """What sessions used and cost: report, add, set_total."""
        from journeyman.accounting import Accounting
        from journeyman.models.prices import estimated_cost

        return Accounting(self._store, estimated_cost)

    @cached_property
    def confirmations(self) -> "Administration":
        """Confirmations on this machine: agents and approvers, list, policy, audit, serve."""
        from journeyman.confirm_making import administration

        return administration(self.settings, self._store, self._clock)

    @cached_property
    def jobs(self) -> "Jobs":
        """Agents on a schedule: add, list, show, pause, resume, remove, run, scheduler."""
        return self.jobs_with(None)

    def jobs_with(self, models: "Callable[[Route], Model] | None") -> "Jobs":
        """The same jobs, run on models of the caller's own instead of those of the settings."""
        agents = self._agents
        with _extra("jobs", "Jobs need"):
            from journeyman.jobs.jobs import Jobs
            from journeyman.jobs.runner import JobRunner
        runner = JobRunner(
            settings=self.settings,
            agents=agents,
            experience=self,
            environment=self._environ,
            models=models,
            clock=self._clock,
            timer=self._timer,
        )
        return Jobs(self._store, runner)

    def confirm_client(self) -> "ConfirmClient":
        """The confirmation service of the settings, asked with the agent's token."""
        return self.approver_client(self.settings.confirm.token)

    def approver_client(self, key: str) -> "ConfirmClient":
        """The same with an approver's key: who has that can decide."""
        from journeyman.confirm_making import client

        return client(self.settings, key)

    @property
    def sessions(self) -> "Sessions":
        """The stored sessions: list, get, messages, calls, usage, projects, search, export, …"""
        return self._store.sessions

    def places(self) -> list[Place]:
        """The usual places for logs on this machine and what each holds."""
        return usual_places(self._environ, self._user_home)

    def import_logs(
        self,
        paths: Path | str | Iterable[Path | str] | None = None,
        *,
        source: str = "auto",
        reread: bool = False,
        workers: int = 1,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> ImportReport:
        """Import logs from files and folders, or from the usual places. What was imported before
        is not read again, unless `reread`. Many new logs are read by as many processes as there
        are `workers`; `learn` says what that asks of a program.
        """
        _check_workers(workers)
        # Where a team shares a database, the names of logs begin with this machine's.
        is_shared = sqlite_path(self.settings.database) is None
        run = Import(
            lambda: self._readers,
            self._store,
            source=source,
            reread=reread,
            place=f"{platform.node()}:" if is_shared else "",
            home=self._user_home,
            progress=progress,
            workers=workers,
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
    ) -> SessionOverview:
        """Keep a conversation in the OpenAI message format as a session. Recording under the same
        `session_id` again replaces it; without one, equal messages are one session. The project
        is that of the folder `cwd`, unless it is named.
        """
        from journeyman.logs.chat import recorded_session

        facts = {
            "id": session_id,
            "source": source,
            "outcome": outcome,
            "model": model,
            "project": project or (self.find_project(cwd) if cwd else ""),
            "cwd": str(cwd),
            "tags": (tags,) if isinstance(tags, str) else tuple(tags),
        }
        fragment = recorded_session(messages, facts, now=self._clock())
        with self._store.writing(restores=True) as writing:
            writing.add(fragment)
            writing.finish()
        return self.sessions.get(fragment.session.id)

    def find_project(self, folder: Path | str = ".") -> str:
        """The project of a folder on this machine, as sessions there have it."""
        return find_project(folder, home=self._user_home)

    def judge(self, call: Call | Mapping[str, Any]) -> Verdict:
        """What became of a call: one of `sessions.calls`, or an object with `tool`, `arguments`
        and `result_text`.
        """
        from journeyman.outcomes.judge import given_call, judge

        return judge(call if isinstance(call, Call) else given_call(call))

    def judged(
        self,
        sessions: str | Iterable[str] | None = None,
        *,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
        **chosen: "Unpack[Choice]",
    ) -> list[JudgedSession]:
        """Sessions with the verdicts on their calls: those named, or all that `sessions.list`
        finds for the same choices (project, source, model, tag, since, until, …). Each is judged
        once. They are for reports, which are passed on, so secrets are taken out.
        """
        from journeyman.redaction.redactor import redacted_sessions

        if sessions is None:
            overviews = self.sessions.list(**chosen)
        elif chosen:
            raise WrongInput("Name sessions, or choose them by what they are, not both at once.")
        else:
            named = [sessions] if isinstance(sessions, str) else sessions
            overviews = [self.sessions.get(session_id) for session_id in named]
        return redacted_sessions(self._judging.judged(overviews, progress))

    def profile(
        self, sessions: str | Iterable[str] | None = None, **chosen: "Unpack[Choice]"
    ) -> "Profile":
        """How reliable the calls of these sessions were; chosen as in `judged`."""
        from journeyman.reliability.profile import profile

        return profile(self.judged(sessions, **chosen))

    def grouped(
        self, by: "By", sessions: str | Iterable[str] | None = None, **chosen: "Unpack[Choice]"
    ) -> "tuple[Group, ...]":
        """Error rates by tool, model, source, project, length or type; chosen as in `judged`."""
        from journeyman.reliability.profile import By, grouped

        if by not in get_args(By):
            raise WrongInput(
                f"Sessions can be grouped by {', '.join(get_args(By))}, not by {by!r}."
            )
        return grouped(self.judged(sessions, **chosen), by)

    def compression(self, session_id: str) -> "CompressionReport":
        """Whether the compressions in a session's lineage preserved its proficiency."""
        from journeyman.redaction.redactor import redacted_record
        from journeyman.reliability.compression import compression

        return redacted_record(compression(*self._judging.stretches(session_id)))

    def compare(
        self,
        warm: str | Iterable[str] | None = None,
        cold: str | Iterable[str] | None = None,
        *,
        warm_tag: str | None = None,
        cold_tag: str | None = None,
        project: str | None = None,
    ) -> "Comparison":
        """Warm against cold: two sessions, two lists of them, or all with a tag, of one project
        if that is given.
        """
        from journeyman.reliability.comparison import compare

        sides = ("warm", warm, warm_tag), ("cold", cold, cold_tag)
        for name, named, tag in sides:
            if (named is None) == (tag is None):
                raise WrongInput(f"Name the {name} sessions or give their tag, one of the two.")
        warm_side, cold_side = (
            self.judged(tag=tag, project=project) if named is None else self.judged(named)
            for _, named, tag in sides
        )
        return compare(warm_side, cold_side)

    def learn(
        self,
        *,
        project: str | None = None,
        workers: int = 1,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> LearnReport:
        """Judge, mine and keep what is new since the last time, in one project or in all. Several
        `workers` are as many processes; a program that asks for them must keep what it does when
        it starts under `if __name__ == "__main__"`. The report counts all that was ever learned.
        """
        _check_workers(workers)
        if project is not None and not self.sessions.list(project=project, limit=1):
            nearest = ", ".join(self.sessions.nearest_projects(project)) or "none"
            raise WrongInput(
                f"No stored session belongs to project {project!r}. Known projects: {nearest}."
            )
        began = time.perf_counter()
        mined = 0
        if self._store.learned.missing(self._learning_rules, project):
            from journeyman.worker_pool import WorkerPool

            pool = WorkerPool(workers) if workers > 1 else None
            try:
                mined = self._learning.run(progress, pool, project=project)
            finally:
                if pool is not None:
                    pool.shutdown(cancel_futures=True)
        reasons, kinds = self.patterns.reasons(), self.patterns.counts()
        return learn_report(reasons, kinds, mined=mined, seconds=time.perf_counter() - began)

    def forget(
        self,
        target: Path | str = "",
        *,
        session: str = "",
        project: Path | str = "",
        source: str = "",
        matching: str | None = None,
        dry_run: bool = False,
    ) -> "Forgotten":
        """Remove all that was learned from a session, a project or a recorder (`target` is any of
        them by its name), or all that holds a text, and do not learn it again. The recorded
        sessions stay. With a `dry_run` nothing is removed.
        """
        chosen = self._target(target, session, project, source)
        if matching is None:
            found = self.forgotten.forget(chosen, dry_run=dry_run)
        elif any(chosen):
            raise WrongInput("Forget a text, or what was learned from somewhere, not both at once.")
        else:
            found = self.forgotten.forget_matching(matching, dry_run=dry_run)
        if not (dry_run or found.is_empty):
            self.playbook_files.forget_blocks()
        return found

    def unforget(self, target: Path | str = "", **where: str) -> Sequence[SessionId]:
        """Let sessions teach again that were forgotten, whole or in part, from the next `learn`
        on; which those were, named as for `forget`. What was taken out of templates does not come
        back.
        """
        return self.forgotten.undo(self._target(target, **where))

    def _target(
        self, target: Path | str, session: str = "", project: Path | str = "", source: str = ""
    ) -> "Target":
        from journeyman.templates.removal import Target

        # A folder is named as one: "docs" is rather a project than a folder of this one.
        is_folder = isinstance(target, Path) or target in (".", "..") or os.sep in target
        if is_folder and os.path.isdir(target):  # noqa: PTH112 - takes any length
            target, project = "", project or target
        return Target(str(target), session, self.project_named(project) if project else "", source)

    def build_template(self, name: str, **options: Any) -> Template:
        """Make a template from the newest long sessions that may teach. Making the same name again
        makes a new version, with the tags and the description of the one before unless others are
        given. The options are those of `templates.build`.
        """
        return self.templates.build(name, **options)

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
        floor: float = FLOOR,
        alike: bool = False,
        template: str | None = None,
        counted: bool = True,
    ) -> "Opening":
        """What a session on this task should start with, within the budget: of a `project` (its
        name, or a folder of it), or of the whole library. `tools` are the definitions that the
        session will have, in any usual shape: what does not fit them is translated or left out.
        `style` says how it is told; without one, the settings for the `model` do. With `alike` it
        is the request nearest to the task and others that begin in the same way, which helps small
        models.

        With a `template` only its patterns are considered, and the use is counted, unless it is
        not to be `counted`. Then the task may be left out, and the template's patterns are shown in
        their order, up to `max_patterns` and without a limit of tokens unless one is given.
        """
        from journeyman.templates.selection import Limits
        from journeyman.templates.tool_schemas import LiveTools

        whole = template is not None and isinstance(task, str) and not task.strip()
        if budget_tokens is None:
            budget_tokens = sys.maxsize if whole else BUDGET_TOKENS
        if max_patterns is None:
            max_patterns = MOST_OF_TEMPLATE if whole else MOST_PATTERNS
        _check_opening(task, budget_tokens, max_patterns, floor)
        limits = Limits(tokens=budget_tokens, most=max_patterns, floor=floor, alike=alike)
        live = None if tools is None else LiveTools.read(tools)
        chosen = None if template is None else self.templates.get(template)
        opening = self._openings.make(
            task,
            limits,
            live=live,
            template=chosen,
            project=self.project_named(project),
            style=self._style(style, model),
        )
        if counted and chosen is not None and opening.choices:
            self.templates.count_use(chosen)
        return opening

    def playbook(self, project: Path | str = ".") -> "Playbook":
        """What holds in a project: commands that work, mistakes that recur, files that are used
        again and again. Given by its name, or by a folder of it.
        """
        return self._openings.playbook(self.project_named(project))

    def remedies(self, sessions: Iterable[str]) -> "tuple[PlaybookMistake, ...]":
        """The mistakes of these sessions that recur and that something mended, those first whose
        remedies would prevent most failures.
        """
        from journeyman.templates.playbook import RECURRING, build_playbook

        wanted = set(sessions)
        if len(wanted) < RECURRING:
            return ()
        rows = [one for one in self._store.episodes.rows() if one.session in wanted]
        found = build_playbook("", rows).mistakes
        return tuple(sorted((one for one in found if one.remedy), key=lambda one: -one.times))

    @cached_property
    def playbook_files(self) -> "PlaybookFiles":
        """Playbooks as blocks of files that agents read: preview, write, preview_undo, undo."""
        from journeyman.playbook_files import PlaybookFiles

        return PlaybookFiles(self.settings.home)

    def foresight(
        self,
        *,
        project: Path | str = "",
        budget_tokens: int = BUDGET_TOKENS,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> "Foresight | None":
        """How much of what the later sessions needed, openings from the earlier ones would have
        shown; None where that cannot be measured.
        """
        from journeyman.embeddings.embedder import Embedder
        from journeyman.foresight import measure

        named = self.project_named(project)
        store, embedder = self._store, Embedder()
        return measure(store, embedder, budget=budget_tokens, project=named, progress=progress)

    def project_named(self, project: Path | str) -> str:
        """A project by its name; a folder stands for the project that it is in."""
        is_folder = isinstance(project, Path) or (project and os.path.isdir(project))  # noqa: PTH112 - takes any length
        return self.find_project(project) if is_folder else str(project)

    def _style(self, style: "Style | None", model: str) -> "Style":
        found = style or self.settings.opening.models.get(model) or self.settings.opening.style
        if found not in STYLES:
            raise WrongInput(f"There is no style {found!r}. The styles are: {', '.join(STYLES)}.")
        return found

    def agent(
        self,
        *,
        model: "Model | str" = "",
        workspace: Path | str = ".",
        warm: str = "auto",
        ask: "Ask | None" = None,
        limits: "Limits | None" = None,
        review: bool | None = None,
        network: bool = False,
        tell: Callable[[str], None] = lambda _line: None,
        platform: str = "library",
        tags: Iterable[str] = (),
    ) -> "Agent":
        """An agent that works in a folder. `model` is one, or a name: of the embedded model, of a
        .gguf file, or of one at the endpoint in the settings. `warm` is `auto`, `off` or the name
        of a template. `ask` is asked about risky calls; without it they are refused. `network`
        gives commands the network. Close it, or use it as a context manager.
        """
        if warm not in ("auto", "off"):
            self.templates.get(warm)  # an unknown name is told before anything is spent
        return self._agents.agent(
            model,
            workspace=Path(workspace),
            warm=warm,
            ask=ask,
            limits=limits,
            review=review,
            network=network,
            tell=tell,
            platform=platform,
            tags=(tags,) if isinstance(tags, str) else tuple(tags),
        )

    def run(self, task: str, **options: Any) -> "Turn":
        """Have an agent do a task, in one turn; the options are those of `agent`."""
        with self.agent(**options) as agent:
            turn = agent.run_conversation(task)
            agent.wait_for_review()
            return turn

    def review(
        self,
        session_id: str,
        *,
        model: "Model | str" = "",
        cancelled: Callable[[], bool] = lambda: False,
        platform: str = "library",
    ) -> "Reviewed":
        """Review a session now: keep in memory and skills what it shows, if anything."""
        return self._agents.review(session_id, model, cancelled=cancelled, platform=platform)

    def undo(
        self, session_id: str, *, turn: int | None = None, redo: bool = False, dry_run: bool = False
    ) -> "Undo":
        """Put back what a session of `run` changed in its workspace: all of it, or what it did from
        a turn on. `redo` takes the last undo back; `dry_run` only says what would change.
        """
        from journeyman.agent.undo import undo

        session = self.sessions.get(session_id).session
        snapshots = self._agents.snapshots(Path(session.cwd))
        return undo(snapshots, session, turn=turn, redo=redo, dry_run=dry_run)

    def diagnose(self) -> "list[Finding]":
        """What is found, what works and what to mend on this machine."""
        from journeyman.diagnosis import diagnose

        return diagnose(self.settings, self._readers, self.places(), __version__)

    def close(self) -> None:
        """Let go of the database, and of the rooms that use it."""
        if "_store" in self.__dict__:
            self._store.close()
            for name, value in vars(type(self)).items():
                if isinstance(value, cached_property):
                    self.__dict__.pop(name, None)

    def __enter__(self) -> "Journeyman":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


@contextmanager
def _extra(name: str, who_needs: str) -> Iterator[None]:
    """Around imports of what comes with an extra."""
    try:
        yield
    except ImportError as error:
        raise MissingPart(
            f"{who_needs} parts that are not installed here ({error}). Install them with: "
            f"pip install 'journeyman[{name}]'"
        ) from error


def _check_workers(workers: int) -> None:
    if workers < 1:
        raise WrongInput(f"{workers} workers cannot do anything. Use 1 or more.")


def _check_opening(task: object, tokens: object, most: object, floor: object) -> None:
    if not isinstance(task, str):
        raise WrongInput(f"The task {task!r} is not a text. Say what the session is to do.")
    for name, value in (("budget_tokens", tokens), ("max_patterns", most)):
        if not isinstance(value, int) or value < 0:
            raise WrongInput(f"{name} is {value!r}. Use a whole number from 0 on.")
    if not isinstance(floor, int | float) or math.isnan(floor):
        raise WrongInput(f"The floor of similarity is {floor!r}. Use a number from 0 to 1.")
