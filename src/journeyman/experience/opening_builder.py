"""Builds the opening for a task: the facts of the start and of the request, and for small models
and unfamiliar tools, the first calls of the nearest requests. A template that a person names is
shown whole.
"""

import sys
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from journeyman.experience.experience import Experience, Experiences, Ranked
from journeyman.experience.moments import Moments
from journeyman.experience.opening import Choice, Opening, episode_pattern, why_not_shown
from journeyman.experience.tool_schemas import LiveTools
from journeyman.learning.agent_tools import KNOWN_TOOLS, SHELLS, find_call, parse_arguments
from journeyman.learning.opening_text import WORKED, example_tokens, note, note_tokens
from journeyman.learning.search_keys import is_small_talk
from journeyman.learning.slots import CHANGES, has_plain_names, is_sound_path
from journeyman.models.embedder import Embedder
from journeyman.records import Episode, Pattern, Step, Template
from journeyman.records.defaults import EXAMPLES, MIN_SIMILARITY
from journeyman.records.errors import WrongInput
from journeyman.records.host import HOSTS, source_of
from journeyman.store.store import Store

UNLIMITED = sys.maxsize

_LOADED = 24
"""How many of the nearest requests are loaded at a time."""

_FAMILIAR_SOURCES = frozenset(map(source_of, HOSTS))
"""Recorders of agents whose tools models know, also those that are not in the table."""


class OpeningLimits(Struct, frozen=True, kw_only=True):
    """How much may be shown. A `small` model gets examples only."""

    tokens: int
    most: int = EXAMPLES
    small: bool = False


class OpeningBuilder:
    """Builds openings from what a store has learned."""

    def __init__(self, store: Store, embedder: Embedder, experiences: Experiences) -> None:
        self._store = store
        self._embedder = embedder
        self._count = embedder.count_tokens
        self._experiences = experiences

    def for_task(
        self,
        task: str,
        limits: OpeningLimits,
        *,
        moments: Moments | None = None,
        live: LiveTools | None = None,
        project: str = "",
        own_only: bool = False,
        bots: bool = False,
    ) -> Opening:
        """Return the opening for a task, with what the `moments` of its project say; with
        `own_only`, nothing that was said or printed in other projects. The note of an empty opening
        says why it is empty. Raises WrongInput without a task.
        """
        if not task.strip():
            raise WrongInput("An opening needs a task. Describe what the session should do.")
        if is_small_talk(task):
            problem = "asks for no work" if any(map(str.isalnum, task)) else "contains no words"
            return Opening(task=task, note=f"The task {problem}. Describe what should be done.")
        projects = [project] if project else []
        if live is not None and not limits.small and is_familiar(live.names):
            projects = []
        elif not own_only:
            projects.append("")
        searched = [self._experiences.of(name, bots=bots) for name in projects]

        def within(limits: OpeningLimits) -> Opening:
            told = self._told(task, limits, moments, live)
            said = f"{told.preamble}\n\n{note(2, short=True)}"
            room = limits.tokens - note_tokens(said, self._count)
            for experience in searched:
                choices = self._nearest(experience, task, replace(limits, tokens=room), live)
                # Another project's calls are no help without their tools.
                if choices or live is None:
                    return replace(told, choices=choices)
            return told

        opening = within(limits)
        if not opening.is_empty:
            return self._counted(opening)
        if (
            not limits.tokens
            or not within(replace(limits, tokens=UNLIMITED, most=EXAMPLES)).is_empty
        ):
            most = f"{limits.tokens:,} tokens and {limits.most:,} examples"
            reason = f"The limits leave no room: at most {most}."
        else:
            reason = _why_empty(searched)
        return Opening(task=task, note=reason)

    def _told(
        self, task: str, limits: OpeningLimits, moments: Moments | None, live: LiveTools | None
    ) -> Opening:
        """Return an opening with what the start and the request are told."""
        opening = Opening(task=task)
        if moments is None or limits.small:
            return opening
        most = limits.tokens - note_tokens("", self._count)
        start = moments.start(live.names if live else (), tokens=most)
        shown = frozenset(fact.id for fact in start.facts)
        asked = moments.prompt(task, shown, tokens=most - self._count(start.text))
        return replace(
            opening,
            preamble="\n\n".join(filter(None, (start.text, asked.text))),
            facts=(*start.facts, *asked.facts),
        )

    def from_template(
        self, template: Template, task: str, limits: OpeningLimits, live: LiveTools | None = None
    ) -> Opening:
        """Return the opening from one template: all of its patterns in order, but those that the
        limits or the tools exclude, which the note counts.
        """
        patterns: list[Pattern] = []
        room = limits.tokens - note_tokens(f"{note(2)}\n\n{template.addendum}", self._count)
        for pattern in template.patterns:
            misfit = why_not_shown(pattern) or (live.misfit_of(pattern) if live else "")
            if not misfit and pattern.tokens <= room and len(patterns) < limits.most:
                patterns.append(pattern)
                room -= pattern.tokens
        reference = f"{template.name}@{template.version}"
        reason = f"from the template {reference}"
        opening = Opening(
            task=task,
            choices=tuple(
                Choice(pattern=one, reason=reason, tokens=one.tokens) for one in patterns
            ),
            addendum=template.addendum.strip(),
            template=reference,
        )
        left = len(template.patterns) - len(patterns)
        why = f" {left} of its {len(template.patterns)} examples do not fit." if left else ""
        return replace(self._counted(opening), note=f"From the template {reference}.{why}")

    def _nearest(
        self, experience: Experience, task: str, limits: OpeningLimits, live: LiveTools | None
    ) -> tuple[Choice, ...]:
        """Return the first calls of the nearest requests, the nearest last."""
        ranked = [hit for hit in experience.nearest(task) if hit.row in experience.well_ended]
        if live is None:
            ranked = [hit for hit in ranked if hit.similarity >= MIN_SIMILARITY]
        choices: dict[str, Choice] = {}
        room = limits.tokens
        for hit, episode in self._loaded(ranked):
            if len(choices) >= limits.most:
                break
            if not episode.teaches or not is_plain_call(episode.steps[0]):
                continue
            pattern = self._first_call(episode_pattern(episode))
            is_known = pattern.source in _FAMILIAR_SOURCES or KNOWN_TOOLS & {*pattern.tools}
            if live is None and not limits.small and is_known:
                continue
            if pattern.intent in choices or pattern.tokens > room or why_not_shown(pattern):
                continue
            if live is not None and live.misfit_of(pattern):
                continue
            room -= pattern.tokens
            choices[pattern.intent] = Choice(
                pattern=pattern,
                reason=f"the first call for a near request ({hit.similarity:.2f})",
                similarity=hit.similarity,
                tokens=pattern.tokens,
            )
        return tuple(reversed(choices.values()))

    def _loaded(self, ranked: Sequence[Ranked]) -> Iterator[tuple[Ranked, Episode]]:
        """Yield the nearest requests with their episodes, of which few are usually needed."""
        for start in range(0, len(ranked), _LOADED):
            part = ranked[start : start + _LOADED]
            stored = self._store.episodes.by_row([hit.row for hit in part])
            yield from ((hit, stored[hit.row]) for hit in part if hit.row in stored)

    def _first_call(self, pattern: Pattern) -> Pattern:
        """Return a pattern with its first call only, and no result: anyone may have written it."""
        single = replace(pattern, steps=(replace(pattern.steps[0], result=WORKED),))
        return replace(single, tokens=example_tokens(single, self._count))

    def _counted(self, opening: Opening) -> Opening:
        """Return the opening with its cost in tokens."""
        if opening.is_empty:
            return opening
        tokens = sum(choice.tokens for choice in opening.choices)
        return replace(opening, tokens=tokens + note_tokens(opening.system, self._count))


def _why_empty(searched: Sequence[Experience]) -> str:
    reason = "Nothing was learned here yet, or all of it is known: see `journeyman learn`."
    if any(one.rows for one in searched):
        reason = (
            "Nothing that is known fits this task here: `journeyman facts list` says why, and no "
            "earlier request with tools that fit is similar enough."
        )
    if bots := max((one.bots for one in searched), default=0):
        reason += f" Sessions of bots left out: {bots:,}; --bots includes them."
    return reason


def is_plain_call(step: Step) -> bool:
    """Whether a call is made of names and values, as far as that can be told: its path or the names
    of its arguments. What it writes into a file, others may have written before.
    """
    call = find_call(step.tool, step.arguments)
    if call is None:
        return has_plain_names(step.tool, parse_arguments(step.arguments))
    if call.operation in (*CHANGES, "run_code"):
        return False
    path = call.fields.get("path", "")
    return not path or is_sound_path(path)


def is_familiar(tools: Sequence[str]) -> bool:
    """Whether models know tools by training: a shell, or several tools of coding agents."""
    return not SHELLS.isdisjoint(tools) or len(KNOWN_TOOLS & {*tools}) > 1
