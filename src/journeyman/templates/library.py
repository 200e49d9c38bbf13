"""The library of templates: made from many sessions or from one, listed, picked, exported,
imported, deleted. Making the same name again makes a new version and keeps the old.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from journeyman.records import (
    Imported,
    JudgedSession,
    Pattern,
    PatternId,
    SessionOverview,
    Template,
    TemplateStats,
)
from journeyman.records.errors import BadTemplate, UnknownTemplate, WrongInput
from journeyman.redaction.redactor import Redactor
from journeyman.store.choosing import Chosen
from journeyman.store.store import Store
from journeyman.templates.cleaning import clean_pattern
from journeyman.templates.contents import (
    arranged,
    checked_tags,
    checked_type,
    sound_texts,
    type_of,
)
from journeyman.templates.cost import CountTokens, tokens_of
from journeyman.templates.defaults import (
    MAX_EXAMPLES,
    MAX_PATTERNS,
    MAX_SESSIONS,
    MIN_MESSAGES,
)
from journeyman.templates.learning import Learning
from journeyman.templates.mining.gate import WHY_NOT
from journeyman.templates.mining.miner import merged
from journeyman.templates.mining.safety import why_unsafe
from journeyman.templates.names import checked_name, name_for, named

Judged = Callable[[Sequence[SessionOverview]], list[JudgedSession]]
Progress = Callable[[int, int], None]

_NAME = re.compile(r"[\w.:/@+ -]{1,80}")
"""What a model or a recorder may be called in a file."""


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
        for limit, value in (("max_sessions", max_sessions), ("max_patterns", max_patterns)):
            if value < 1:
                raise WrongInput(f"{limit} is {value}: a template needs at least one.")
        texts = sound_texts(
            before.description if description is None else description,
            before.addendum if addendum is None else addendum,
        )
        chosen = Chosen(min_messages=min_messages, source=source, project=project)
        scanned, qualified = self._qualified(chosen, max_sessions, progress)
        found = self._store.patterns.of_sessions([one.session.id for one in qualified])
        patterns = arranged([one.pattern for one in found if not one.pattern.quarantined])
        if not patterns:
            raise BadTemplate(_nothing_to_build(scanned, len(qualified), chosen))
        from journeyman.templates.gains import gain_of  # noqa: PLC0415 - statistics load slowly

        judged = self._judged(qualified)
        return self._store.templates.add(
            Template(
                name=name,
                origin="built",
                task_type=type_of(judged),
                tags=kept_tags,
                description=texts[0],
                addendum=texts[1],
                source=source or "",
                created_at=self._clock(),
                scanned=scanned,
                qualified=len(qualified),
                gain=gain_of(judged),
                patterns=tuple(patterns[:max_patterns]),
            )
        )

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
        """Make a template from one session. Its type and name are found, unless they are given.
        Raises BadTemplate when the session teaches nothing.
        """
        overview = self._store.sessions.get(session_id)
        session = overview.session
        title = Redactor().text(session.title)
        chosen_name = name_for(title, session.id) if name is None else checked_name(name)
        kept_tags, given_type = checked_tags(tags), checked_type(task_type)
        texts = sound_texts(description, addendum)
        if max_examples < 1:
            raise WrongInput(f"max_examples is {max_examples}: a template needs at least one.")
        if session.id in self._learner.missing():
            self._learner.learn([session.id])
        reason = self._store.learned.reasons([session.id]).get(session.id, "")
        found = self._store.patterns.of_sessions([session.id])
        patterns = arranged([one.pattern for one in found if not one.pattern.quarantined])
        if reason or not patterns:
            why = WHY_NOT.get(reason, "none of its calls is worth repeating")
            raise BadTemplate(
                f"No template can be made from session {session.id}: {why}. Choose another one."
            )
        judged = self._judged([overview])
        return self._store.templates.add(
            Template(
                name=chosen_name,
                origin="created",
                task_type=given_type or type_of(judged),
                tags=kept_tags,
                description=texts[0],
                addendum=texts[1],
                source=session.source,
                created_at=self._clock(),
                scanned=1,
                qualified=1,
                patterns=tuple(patterns[:max_examples]),
            )
        )

    def list(
        self,
        *,
        task_type: str | None = None,
        tags: Iterable[str] = (),
        versions: bool = False,
    ) -> Sequence[Template]:
        """Templates by name: of this type, with all these tags, the newest version of each or
        all of them.
        """
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
        """The template to use for a type and tags, if there is one: the most effective, then the
        least used, then the newest.
        """
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
        """Delete a template with all its versions, or the one version that is named; how many
        versions went. Raises UnknownTemplate.
        """
        self.get(reference)
        return self._store.templates.delete(*named(reference))

    def export(self, reference: str) -> bytes:
        """A template as a file that `import_file` reads. It is redacted once more: it may have been
        made by an earlier version, which knew fewer secrets.
        """
        from journeyman.redaction.records import redacted_record  # noqa: PLC0415 - files are rare
        from journeyman.templates.files.exchange import encode  # noqa: PLC0415

        return encode(redacted_record(self.get(reference)))

    def import_file(
        self, data: bytes, *, name: str | None = None, with_addendum: bool = False
    ) -> Imported:
        """Keep a template from a file, redacted and checked like everything that is learned. Its
        addendum goes to models as it is, so it is kept only `with_addendum`. Raises BadTemplate,
        and then nothing is kept.
        """
        from journeyman.templates.files.exchange import decode  # noqa: PLC0415 - files are rare

        decoded = decode(data, name=name)
        given = decoded.template
        found: dict[PatternId, Pattern] = {}
        for pattern in map(self._cleaned, given.patterns):
            known = found.get(pattern.id)
            found[pattern.id] = pattern if known is None else merged(known, pattern)
        patterns = tuple(found.values())
        if not patterns:
            left_out = f" ({decoded.skipped[0]})" if decoded.skipped else ""
            raise BadTemplate(f"The file has no example that worked{left_out}. Choose another.")
        addendum = given.addendum if with_addendum else ""
        texts = sound_texts(given.description, addendum, others=(given.name, *given.tags))
        skipped = decoded.skipped
        if given.addendum and not with_addendum:
            skipped = (*skipped, "the addendum: somebody else's words to models; read it first")
        template = msgspec.structs.replace(
            given,
            description=texts[0],
            addendum=texts[1],
            patterns=patterns,
            created_at=self._clock() if given.created_at is None else given.created_at,
        )
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
        kept = msgspec.structs.replace(
            pattern,
            id=cleaned.id,
            intent=cleaned.intent,
            steps=cleaned.steps,
            source=pattern.source if _NAME.fullmatch(pattern.source) else "",
            sessions=(),  # of another store
            models=tuple(model for model in pattern.models if _NAME.fullmatch(model)),
            quarantined=cleaned.quarantined or pattern.quarantined or unsafe,
        )
        return msgspec.structs.replace(kept, tokens=tokens_of(kept, self._count_tokens))

    def _qualified(
        self, chosen: Chosen, max_sessions: int, progress: Progress
    ) -> tuple[int, Sequence[SessionOverview]]:
        """How many sessions were looked at, newest first, until enough were found that teach."""
        long_ones = self._store.sessions.list(**chosen)
        missing = set(self._learner.missing())
        scanned = 0
        qualified = []
        step = max(max_sessions, 1)
        for start in range(0, len(long_ones), step):
            some = long_ones[start : start + step]
            self._learner.learn([one.session.id for one in some if one.session.id in missing])
            reasons = self._store.learned.reasons([one.session.id for one in some])
            for one in some:
                scanned += 1
                progress(scanned, len(long_ones))
                if not reasons.get(one.session.id, "gone"):
                    qualified.append(one)
                if len(qualified) == max_sessions:
                    return scanned, qualified
        return scanned, qualified


def _nothing_to_build(scanned: int, qualified: int, chosen: Chosen) -> str:
    named = [f" of {name} {chosen[name]!r}" for name in ("source", "project") if chosen[name]]
    which = f"{''.join(named)} with at least {chosen['min_messages']} messages"
    if not scanned:
        return f"There is no session{which}. Import more, or ask for fewer messages."
    why = "none of their calls is worth repeating"
    if not qualified:
        why = "they failed, nothing in them ended well, or they had no calls"
    return (
        f"None of the {scanned} sessions{which} teaches anything: {why}. "
        "`journeyman learn` counts the reasons."
    )
