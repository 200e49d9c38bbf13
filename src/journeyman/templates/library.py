"""The library of templates: made from many sessions or from one, listed, picked, exported,
imported, deleted. Making the same name again makes a new version and keeps the old.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from journeyman.records import (
    Gain,
    Imported,
    JudgedSession,
    Pattern,
    SessionId,
    SessionOverview,
    Template,
    TemplateStats,
)
from journeyman.records.errors import BadTemplate, UnknownTemplate, WrongInput
from journeyman.redaction.redactor import Redactor
from journeyman.store.session_filters import Chosen
from journeyman.store.store import Store
from journeyman.templates.cleaning import clean_pattern
from journeyman.templates.defaults import MAX_EXAMPLES, MAX_PATTERNS, MAX_SESSIONS, MIN_MESSAGES
from journeyman.templates.examples import CountTokens, tokens_of
from journeyman.templates.learning import Learning
from journeyman.templates.mining.episodes import WHY_NOT
from journeyman.templates.mining.miner import merged_by_id, type_of
from journeyman.templates.mining.safety import why_unsafe
from journeyman.templates.names import (
    checked_name,
    checked_tags,
    checked_type,
    name_for,
    named,
    sound,
)

Judged = Callable[[Sequence[SessionOverview]], list[JudgedSession]]
Progress = Callable[[int, int], None]

_NAME = re.compile(r"[\w.:/@+ -]{1,80}")
"""What a model or a recorder may be called in a file."""

_FIRST = {"sequence": 0, "recovery": 1, "final": 2, "first_try": 3}
"""Which kinds teach most when all else is equal."""


class Library:
    """The templates of a store."""

    def __init__(
        self,
        store: Store,
        learner: Learning,
        judged: Judged,
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
        min_messages: int = MIN_MESSAGES,
        max_sessions: int = MAX_SESSIONS,
        max_patterns: int = MAX_PATTERNS,
        project: str | None = None,
        source: str | None = None,
        tags: Iterable[str] | None = None,
        description: str | None = None,
        addendum: str | None = None,
        progress: Progress = lambda _done, _total: None,
    ) -> Template:
        """Make a template from the newest long sessions that may teach. Tags and texts that are
        not given are those of the version before. Raises BadTemplate when no session teaches.
        """
        name = checked_name(name)
        before = self._store.templates.find(name) or Template(name=name)
        kept_tags = before.tags if tags is None else checked_tags(tags)
        _check_positive(max_sessions=max_sessions, max_patterns=max_patterns)
        chosen = Chosen(min_messages=min_messages, source=source, project=project)
        scanned, qualified = self._qualified(chosen, max_sessions, progress)
        patterns = self._patterns([one.session.id for one in qualified])
        if not patterns:
            named = f" of source {source!r}" if source else ""
            named += f" of project {project!r}" if project else ""
            named += f" with at least {min_messages} messages"
            if not scanned:
                said = f"There is no session{named}. Import more, or ask for fewer messages."
                raise BadTemplate(said)
            raise BadTemplate(
                f"None of the {scanned} sessions{named} teaches anything; `journeyman learn` "
                "counts the reasons."
            )
        judged = self._judged(qualified)
        template = Template(
            name=name,
            origin="built",
            tags=kept_tags,
            description=before.description if description is None else description,
            addendum=before.addendum if addendum is None else addendum,
            source=source or "",
            task_type=type_of(judged),
            created_at=self._clock(),
            scanned=scanned,
            qualified=len(qualified),
            gain=gain_of(judged),
            patterns=tuple(patterns[:max_patterns]),
        )
        return self._store.templates.add(sound(template))

    def create(
        self,
        session_id: str,
        *,
        name: str | None = None,
        task_type: str | None = None,
        tags: Iterable[str] = (),
        description: str = "",
        addendum: str = "",
        max_examples: int = MAX_EXAMPLES,
    ) -> Template:
        """Make a template from one session. Raises BadTemplate when it teaches nothing."""
        overview = self._store.sessions.get(session_id)
        session = overview.session
        if name is None:
            name = name_for(Redactor().text(session.title), session.id)
        name, kept_tags = checked_name(name), checked_tags(tags)
        given_type = checked_type(task_type)
        _check_positive(max_examples=max_examples)
        if session.id in self._learner.missing():
            self._learner.learn([session.id])
        reason = self._store.learned.reasons([session.id]).get(session.id, "")
        patterns = self._patterns([session.id])
        if reason or not patterns:
            why = WHY_NOT.get(reason, "none of its calls is worth repeating")
            raise BadTemplate(
                f"No template can be made from session {session.id}: {why}. Choose another one."
            )
        template = Template(
            name=name,
            origin="created",
            tags=kept_tags,
            description=description,
            addendum=addendum,
            source=session.source,
            scanned=1,
            qualified=1,
            task_type=given_type or type_of(self._judged([overview])),
            created_at=self._clock(),
            patterns=tuple(patterns[:max_examples]),
        )
        return self._store.templates.add(sound(template))

    def list(
        self, *, task_type: str | None = None, tags: Iterable[str] = (), versions: bool = False
    ) -> Sequence[Template]:
        """Templates of this type with all these tags, by name; the newest or all versions."""
        wanted_type, wanted_tags = checked_type(task_type), set(checked_tags(tags))
        return [
            template
            for template in self._store.templates.list(newest_only=not versions)
            if (wanted_type is None or template.task_type == wanted_type)
            and wanted_tags <= set(template.tags)
        ]

    def get(self, reference: str) -> Template:
        """A template by its name, or `name@version`. Raises UnknownTemplate."""
        name, version = named(reference)
        found = self._store.templates.find(name, version)
        if found is None:
            raise UnknownTemplate(
                f"There is no template {reference!r}. `journeyman templates list` shows what there "
                "is; `journeyman templates build` makes one."
            )
        return found

    def pick(self, *, task_type: str | None = None, tags: Iterable[str] = ()) -> Template | None:
        """The most effective template of a type and tags, then the least used, then the newest."""
        found = self.list(task_type=task_type, tags=tags)
        return min(
            found,
            key=lambda one: (-one.effect.shrunk, one.used, -(one.created_at or 0.0), one.name),
            default=None,
        )

    def stats(self) -> TemplateStats:
        """The library in numbers."""
        every = self._store.templates.list()
        newest = list({template.name: template for template in every}.values())
        used: Counter[str] = Counter()
        for template in every:
            used[template.name] += template.used
        first = used.most_common(1)
        return TemplateStats(
            total=len(newest),
            versions=len(every),
            by_type=dict(sorted(Counter(one.task_type for one in newest).items())),
            examples=sum(len(one.patterns) for one in newest),
            used=used.total(),
            most_used=first[0][0] if first and first[0][1] else "",
            tried=sum(one.effect.tried for one in every),
        )

    def delete(self, reference: str) -> int:
        """Delete a template, or one version of it; how many went. Raises UnknownTemplate."""
        self.get(reference)
        return self._store.templates.delete(*named(reference))

    def export(self, reference: str) -> bytes:
        """A template as a file, redacted once more: an earlier version knew fewer secrets."""
        from journeyman.redaction.redactor import redacted_record  # noqa: PLC0415 - files are rare
        from journeyman.templates.template_files import encode  # noqa: PLC0415

        return encode(redacted_record(self.get(reference)))

    def import_file(
        self, data: bytes, *, name: str | None = None, with_addendum: bool = False
    ) -> Imported:
        """Keep a template from a file, redacted and checked like everything that is learned. Its
        addendum goes to models as it is, so it is kept only `with_addendum`. Raises BadTemplate,
        and then nothing is kept.
        """
        from journeyman.templates.template_files import decode  # noqa: PLC0415 - files are rare

        decoded = decode(data, name=name)
        given = decoded.template
        patterns = merged_by_id(map(self._cleaned, given.patterns))
        if not patterns:
            left_out = f" ({decoded.skipped[0]})" if decoded.skipped else ""
            raise BadTemplate(f"The file has no example that worked{left_out}. Choose another.")
        addendum, skipped = given.addendum, decoded.skipped
        if addendum and not with_addendum:
            skipped = (*skipped, "the addendum: somebody else's words to models; read it first")
            addendum = ""
        given = sound(replace(given, addendum=addendum), given.name, *given.tags)
        created_at = self._clock() if given.created_at is None else given.created_at
        template = replace(given, patterns=patterns, created_at=created_at)
        return Imported(template=self._store.templates.add(template), skipped=skipped)

    def credit(self, gains: Mapping[str, Iterable[float]]) -> None:
        """Tell what trials found: for ids of patterns, and of templates as `template:name@version`,
        the gains there were, each the outcome with it minus the outcome without.
        """
        self._store.templates.add_effects(gains)

    def count_use(self, template: Template) -> None:
        """Say that an opening was made from a template."""
        self._store.templates.count_use(template.name, template.version, self._clock())

    def _cleaned(self, pattern: Pattern) -> Pattern:
        cleaned = clean_pattern(pattern.kind, pattern.intent, pattern.steps)
        decisions = [why_unsafe(one.tool, one.arguments) for one in pattern.steps]
        unsafe = next((one.rule for one in decisions if one), "")
        kept = replace(
            pattern,
            id=cleaned.id,
            intent=cleaned.intent,
            steps=cleaned.steps,
            source=pattern.source if _NAME.fullmatch(pattern.source) else "",
            sessions=(),  # of another store
            models=tuple(model for model in pattern.models if _NAME.fullmatch(model)),
            quarantined=cleaned.quarantined or pattern.quarantined or unsafe,
        )
        return replace(kept, tokens=tokens_of(kept, self._count_tokens))

    def _patterns(self, sessions: Sequence[SessionId]) -> Sequence[Pattern]:
        found = self._store.patterns.of_sessions(sessions)
        return arranged([one for one in found if not one.quarantined])

    def _qualified(
        self, chosen: Chosen, max_sessions: int, progress: Progress
    ) -> tuple[int, Sequence[SessionOverview]]:
        """How many sessions were looked at, newest first, until enough were found that teach."""
        long_ones = self._store.sessions.list(**chosen)
        missing = set(self._learner.missing())
        scanned = 0
        qualified: list[SessionOverview] = []
        while scanned < len(long_ones) and len(qualified) < max_sessions:
            some = long_ones[scanned : scanned + max_sessions - len(qualified)]
            self._learner.learn([one.session.id for one in some if one.session.id in missing])
            reasons = self._store.learned.reasons([one.session.id for one in some])
            qualified += [one for one in some if not reasons.get(one.session.id, "gone")]
            scanned += len(some)
            progress(scanned, len(long_ones))
        return scanned, qualified


def _check_positive(**limits: int) -> None:
    for name, value in limits.items():
        if value < 1:
            raise WrongInput(f"{name} is {value}: a template needs at least one.")


def gain_of(judged: Sequence[JudgedSession]) -> Gain:
    """Late against early calls of these sessions, tool by tool; positive is better."""
    from journeyman.reliability.learning import learning  # noqa: PLC0415 - statistics load slowly

    found = learning(judged)
    late, early = found.stratified, found.early
    return Gain(
        estimate=None if late.estimate is None else -late.estimate,
        low=None if late.high is None else -late.high,
        high=None if late.low is None else -late.low,
        calls=early.total + found.late.total,
        method=late.method,
    )


def arranged(patterns: Sequence[Pattern]) -> list[Pattern]:
    """Patterns in the order in which a template shows them: those seen most first, but of each
    tool one before there is a second of any. What was seen in one session only comes last, unless
    all patterns are of one session.
    """
    ranked = sorted(
        patterns,
        key=lambda one: (-one.session_count, -one.times, _FIRST[one.kind], *one.age, one.id),
    )
    by_tools: Counter[tuple[str, ...]] = Counter()
    rounds = []
    for number, pattern in enumerate(ranked):
        rounds.append((pattern.session_count < 2, by_tools[pattern.tools], number))
        by_tools[pattern.tools] += 1
    return [ranked[number] for *_, number in sorted(rounds)]
