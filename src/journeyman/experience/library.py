"""The library of templates: build them from many sessions or create them from one, list, pick,
export, import and delete them. Building the same name again adds a version and keeps the old ones.
"""

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Unpack

import msgspec
from msgspec.structs import replace

from journeyman.experience.opening import episode_pattern, why_not_shown
from journeyman.experience.template_files import (
    LONGEST_NAME,
    checked_tags,
    checked_template,
    checked_template_name,
    checked_type,
    decode,
    encode,
    parse_reference,
)
from journeyman.learning.commands import skill_of
from journeyman.learning.episodes import NOT_LEARNED_REASONS
from journeyman.learning.learner import Learner
from journeyman.learning.opening_text import CountTokens, example_tokens
from journeyman.learning.safety import why_unsafe
from journeyman.learning.sanitizer import cleaned
from journeyman.records import (
    Episode,
    ImportedFolder,
    ImportedTemplate,
    JudgedSession,
    LateChange,
    Pattern,
    PatternType,
    SessionId,
    SessionOverview,
    Template,
    TemplateStats,
)
from journeyman.records.defaults import MAX_EXAMPLES, MAX_PATTERNS, MAX_SESSIONS, MIN_MESSAGES
from journeyman.records.errors import BadTemplate, UnknownTemplate, WrongInput
from journeyman.reliability.task_types import task_type as most_frequent_type
from journeyman.store.session_filters import SessionFilters, leave_out_bots
from journeyman.store.store import Store

JudgeSessions = Callable[[Sequence[SessionOverview]], list[JudgedSession]]
Progress = Callable[[int, int], None]


class Library:
    """The templates of a store."""

    def __init__(
        self,
        store: Store,
        learner: Learner,
        judged: JudgeSessions,
        count_tokens: CountTokens,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._learner = learner
        self._judged = judged
        self._count_tokens = count_tokens
        self._clock = clock

    def build(
        self,
        name: str,
        *,
        max_sessions: int = MAX_SESSIONS,
        max_patterns: int = MAX_PATTERNS,
        tags: Iterable[str] | None = None,
        description: str | None = None,
        addendum: str | None = None,
        progress: Progress = lambda _done, _total: None,
        **filters: Unpack[SessionFilters],
    ) -> Template:
        """Build a template from the newest sessions that may teach and match the filters, which are
        those of `sessions.list`; `min_messages` has a default here, and sessions of bots are
        left out unless `bots`, their platform or a tag selects them. Omitted tags and texts are
        taken from the previous version. Raises BadTemplate when no session teaches anything.
        """
        filters.setdefault("min_messages", MIN_MESSAGES)
        leave_out_bots(filters)
        name = checked_template_name(name)
        previous = self._store.templates.find(name) or Template(name=name)
        kept_tags = previous.tags if tags is None else checked_tags(tags)
        scanned, qualified = self._qualified(filters, max_sessions, progress)
        patterns = self._patterns([overview.session.id for overview in qualified])
        if not patterns:
            reason = f"None of the {scanned} matching sessions teaches anything."
            if not scanned:
                reason = self._store.sessions.no_match(**filters) or "No session is stored."
            raise BadTemplate(
                f"{reason} Import more sessions, or lower the number of messages; `journeyman "
                "learn` says why sessions do not teach."
            )
        judged = self._judged(qualified)
        return self._added(
            name=name,
            origin="built",
            tags=kept_tags,
            description=previous.description if description is None else description,
            addendum=previous.addendum if addendum is None else addendum,
            source=filters.get("source") or filters.get("origin") or "",
            task_type=type_of(judged),
            scanned=scanned,
            qualified=len(qualified),
            late_minus_early=late_change(judged),
            patterns=tuple(patterns[:max_patterns]),
        )

    def create(
        self,
        session_id: str | None = None,
        *,
        name: str | None = None,
        task_type: str | None = None,
        tags: Iterable[str] = (),
        description: str = "",
        addendum: str = "",
        max_examples: int = MAX_EXAMPLES,
    ) -> Template:
        """Create a template from one session, or from an addendum alone. Raises BadTemplate when
        the session teaches nothing.
        """
        overview = None if session_id is None else self._store.sessions.get(session_id)
        if name is None and overview is not None:
            name = re.sub(r"[^\w.-]", "-", overview.session.id)[:LONGEST_NAME]
        if name is None or (overview is None and not addendum.strip()):
            raise WrongInput(
                "A template without a session needs a name and an addendum. Pass --name and "
                "--addendum, or a session."
            )
        sessions = [] if overview is None else [overview]
        return self._added(
            name=checked_template_name(name),
            origin="created",
            tags=checked_tags(tags),
            description=description,
            addendum=addendum,
            source=overview.session.source if overview else "",
            task_type=checked_type(task_type) or type_of(self._judged(sessions)),
            scanned=len(sessions),
            qualified=len(sessions),
            patterns=tuple(self._taught_by(overview.session.id)[:max_examples]) if overview else (),
        )

    def _added(self, **fields: Any) -> Template:
        """Store a new version of a template, checked and redacted."""
        template = Template(created_at=self._clock(), **fields)
        return self._store.templates.add(checked_template(template))

    def _taught_by(self, session: SessionId) -> Sequence[Pattern]:
        """Return the patterns of one session. Raises BadTemplate when there are none."""
        if session in self._learner.missing():
            self._learner.learn([session])
        reason = self._store.learned.reasons([session]).get(session, "")
        patterns = self._patterns([session])
        if reason or not patterns:
            why = NOT_LEARNED_REASONS.get(reason, "none of its calls is worth repeating")
            raise BadTemplate(
                f"No template can be made from session {session}: {why}. Choose another session."
            )
        return patterns

    def list(
        self,
        *,
        task_type: str | None = None,
        tags: Iterable[str] = (),
        all_tags: bool = False,
        versions: bool = False,
    ) -> Sequence[Template]:
        """Return the templates of this type with one of these tags, or with `all_tags` all of them,
        by name: the newest version of each, or all versions.
        """
        required_type, wanted = checked_type(task_type), set(checked_tags(tags))
        least = len(wanted) if all_tags else min(1, len(wanted))
        return [
            template
            for template in self._store.templates.list(newest_only=not versions)
            if (required_type is None or template.task_type == required_type)
            and len(wanted.intersection(template.tags)) >= least
        ]

    def get(self, reference: str) -> Template:
        """Return a template by its name, or by `name@version`. Raises UnknownTemplate."""
        name, version = parse_reference(reference)
        template = self._store.templates.find(name, version)
        if template is None:
            raise UnknownTemplate(
                f"There is no template {reference!r}. `journeyman templates list` shows the "
                "existing ones; `journeyman templates build` makes one."
            )
        return template

    def pick(
        self,
        *,
        task_type: str | None = None,
        tags: Iterable[str] = (),
        all_tags: bool = False,
    ) -> Template | None:
        """Return the template of a type with most of these tags, then the least used, then the
        newest.
        """
        wanted = checked_tags(tags)
        return min(
            self.list(task_type=task_type, tags=wanted, all_tags=all_tags),
            key=lambda template: (
                -len({*wanted}.intersection(template.tags)),
                template.used,
                -(template.created_at or 0.0),
                template.name,
            ),
            default=None,
        )

    def stats(self) -> TemplateStats:
        """Return the library in numbers."""
        versions = self._store.templates.list()
        newest = {template.name: template for template in versions}.values()
        uses: Counter[str] = Counter()
        for template in versions:
            uses[template.name] += template.used
        return TemplateStats(
            total=len(newest),
            versions=len(versions),
            by_type=dict(sorted(Counter(template.task_type for template in newest).items())),
            patterns=sum(len(template.patterns) for template in newest),
            used=uses.total(),
            most_used=max(uses, key=lambda name: uses[name]) if uses.total() else "",
        )

    def delete(self, reference: str) -> int:
        """Delete a template, or one version of it, and return how many versions were deleted.
        Raises UnknownTemplate.
        """
        self.get(reference)
        return self._store.templates.delete(*parse_reference(reference))

    def redacted(self, reference: str) -> Template:
        """Return a template redacted by the present rules, to be passed on."""
        from journeyman.redaction.redactor import redacted_record  # noqa: PLC0415 - loads slowly

        return redacted_record(self.get(reference))

    def export(self, reference: str) -> bytes:
        """Return a template as a file."""
        return encode(self.redacted(reference))

    def import_file(
        self,
        data: bytes,
        *,
        name: str | None = None,
        replace_existing: bool = False,
        with_addendum: bool = False,
    ) -> ImportedTemplate:
        """Store a template from a file, redacted and checked like everything that is learned. Its
        addendum goes to models verbatim, so it is stored only `with_addendum`. A template of the
        same name is not touched, unless `replace_existing` makes this its next version. Raises
        BadTemplate, and stores nothing then.
        """
        decoded = decode(data, name=name)
        imported = decoded.template
        patterns, unfit = self._cleaned(imported.patterns)
        addendum, skipped = imported.addendum, (*decoded.skipped, *unfit)
        if addendum and not with_addendum:
            skipped = (*skipped, "the addendum: text for models by another author; read it first")
            addendum = ""
        if not (patterns or addendum):
            left_out = f" ({skipped[0]})" if skipped else ""
            raise BadTemplate(
                f"The file has no example that worked{left_out}. Choose another file"
                f"{', or pass --with-addendum' if imported.addendum else ''}."
            )
        created_at = self._clock() if imported.created_at is None else imported.created_at
        template = checked_template(
            replace(imported, addendum=addendum, patterns=tuple(patterns), created_at=created_at),
            *(imported.name, *imported.tags),
        )
        stored = self._store.templates.add(template, new_name=not replace_existing)
        return ImportedTemplate(template=stored, skipped=skipped)

    def import_folder(
        self, folder: Path, *, replace_existing: bool = False, with_addendum: bool = False
    ) -> ImportedFolder:
        """Store the templates in the JSON files of a folder, each as `import_file` does. A file
        that cannot be imported is left out. Raises BadTemplate if that is all of them.
        """
        imported: list[ImportedTemplate] = []
        failed: dict[str, str] = {}
        for file in sorted(file for file in folder.glob("*.json") if file.is_file()):
            try:
                one = self.import_file(
                    file.read_bytes(),
                    replace_existing=replace_existing,
                    with_addendum=with_addendum,
                )
                imported.append(one)
            except (BadTemplate, OSError) as error:
                failed[file.name] = str(error)
        if not imported:
            why = next((": ".join(entry) for entry in failed.items()), "It has no JSON file.")
            raise BadTemplate(f"Nothing was imported from the folder {folder}. {why}")
        return ImportedFolder(imported=tuple(imported), failed=failed)

    def count_use(self, template: Template) -> None:
        """Record that an opening was made from a template."""
        self._store.templates.count_use(template.name, template.version, self._clock())

    def _cleaned(self, patterns: Sequence[Pattern]) -> tuple[Sequence[Pattern], Sequence[str]]:
        """Return patterns from a file as they may be stored, and why others may not."""
        kept, unfit = [], []
        for number, pattern in enumerate(patterns, start=1):
            intent, steps, suspicion = cleaned(pattern.intent, pattern.steps)
            decisions = [why_unsafe(step.tool, step.arguments) for step in pattern.steps]
            problem = suspicion or next(filter(None, decisions), None)
            clean = replace(pattern, intent=intent, steps=steps)
            if reason := problem.reason if problem else why_not_shown(clean):
                unfit.append(f"pattern {number}: {reason}")
            else:
                kept.append(replace(clean, tokens=example_tokens(clean, self._count_tokens)))
        return kept, unfit

    def _patterns(self, sessions: Sequence[SessionId]) -> Sequence[Pattern]:
        found = merged_patterns(self._store.episodes.teaching(sessions))
        counted = (replace(one, tokens=example_tokens(one, self._count_tokens)) for one in found)
        return teaching_order([*counted])

    def _qualified(
        self, filters: SessionFilters, most: int, progress: Progress
    ) -> tuple[int, Sequence[SessionOverview]]:
        """Scan sessions, newest first, until enough of them teach something; return how many were
        scanned, and those that teach.
        """
        matching = self._store.sessions.list(**filters)
        missing = set(self._learner.missing())
        scanned = 0
        qualified: list[SessionOverview] = []
        while scanned < len(matching) and len(qualified) < most:
            batch = matching[scanned : scanned + most - len(qualified)]
            ids = [overview.session.id for overview in batch]
            self._learner.learn([id_ for id_ in ids if id_ in missing])
            reasons = self._store.learned.reasons(ids)
            qualified += [one for one in batch if not reasons.get(one.session.id, "gone")]
            scanned += len(batch)
            progress(scanned, len(matching))
        return scanned, qualified


def type_of(judged: Iterable[JudgedSession]) -> PatternType:
    """Return the type of the task that these sessions are for."""
    task_type = most_frequent_type(call for session in judged for call in session.calls)
    return "mixed" if task_type == "none" else task_type


def late_change(judged: Sequence[JudgedSession]) -> LateChange:
    """Compare late with early calls of these sessions, tool by tool."""
    from journeyman.reliability.learning_curve import learning  # noqa: PLC0415 - statistics load slowly

    curve = learning(judged)
    change = msgspec.convert(curve.stratified, LateChange, from_attributes=True)
    return replace(change, calls=curve.early.total + curve.late.total)


def merged_patterns(episodes: Iterable[Episode]) -> list[Pattern]:
    """Return the patterns of episodes. Work with the same tools and programs is one pattern, shown
    as in its first episode.
    """
    by_work: defaultdict[tuple[str, ...], list[Episode]] = defaultdict(list)
    for one in episodes:
        by_work[tuple(skill_of(step.tool, step.arguments) for step in one.steps)].append(one)
    return [
        replace(
            episode_pattern(same[0]),
            times=len(same),
            session_count=len({episode.session for episode in same}),
        )
        for same in by_work.values()
    ]


def teaching_order(patterns: Sequence[Pattern]) -> list[Pattern]:
    """Return patterns in the order in which a template shows them: those seen most often first, but
    one for each tool before a second for any.
    """
    by_frequency = sorted(
        patterns,
        key=lambda pattern: (
            -pattern.session_count,
            -pattern.times,
            math.inf if pattern.at is None else pattern.at,
            pattern.id,
        ),
    )
    rounds: defaultdict[tuple[str, ...], Iterator[int]] = defaultdict(itertools.count)
    # The key is asked for once for each pattern, in their order.
    return sorted(by_frequency, key=lambda pattern: next(rounds[pattern.tools]))
