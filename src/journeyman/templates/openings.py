"""Making openings: from what a project has taught, from the whole library, or from one template,
for one task. What was learned is kept in memory and read again only when it has changed.
"""

import sys
from collections.abc import Sequence
from typing import Literal

import msgspec

from journeyman.embeddings.embedder import Embedder, Vectors
from journeyman.records import Effect, Episode, Pattern, PatternId, Template
from journeyman.records.errors import WrongInput
from journeyman.records.playbook import Playbook
from journeyman.records.project import is_in_project
from journeyman.store.episodes import EpisodeRow
from journeyman.store.store import Store
from journeyman.templates.assembly import (
    NEAREST,
    assembled,
    left_beside,
    no_room,
    tool_affinity,
    why_empty,
)
from journeyman.templates.cost import tokens_of
from journeyman.templates.examples import episode_pattern
from journeyman.templates.experience import Experience, carried_over
from journeyman.templates.schemas.tool_schemas import LiveTools
from journeyman.templates.selecting.briefing_selection import brief
from journeyman.templates.selecting.ranking import Ranked
from journeyman.templates.selecting.selection import (
    Candidate,
    Limits,
    Selection,
    select,
    why_not,
)
from journeyman.templates.selecting.words import says_nothing
from journeyman.templates.shown.briefing import (
    ELSEWHERE,
    Briefing,
    briefing_text,
    episode_line,
)
from journeyman.templates.shown.opening import Choice, LeftOut, Opening
from journeyman.templates.shown.opening_wording import note
from journeyman.templates.template_openings import TemplateOpenings
from journeyman.templates.tool_translation import (
    Dialect,
    Untranslatable,
    find_dialect,
    operation_of,
    translate_pattern,
)
from journeyman.templates.translation.tool_table import SHELLS

Style = Literal["auto", "text", "messages"]
"""How experience is told. `text`: a briefing in words and at most one episode as messages, which
suits strong models. `messages`: examples as messages, which suits small models and tools that no
model knows. `auto` decides by the model and the tools."""

_TAKEN_APART = 24
_MOST_EPISODES = 3
_JUDGED_BY = 5
"""By how many of the nearest it is decided whether anything fits, and whether the tools are known.
"""

_LONGEST_EXAMPLE = 450
"""In tokens: a longer episode is told in a line."""

_A_LINE = 8
"""What an episode's line costs beside its text, its share of the heading included."""

_BRIEFING_FLOOR = 0.6
"""What share of the floor for examples a briefing needs: it tells what holds in the project, which
also helps where no request was quite like this one. Questions about something else altogether were
at 0.08 to 0.16 from the nearest of a project's requests, its own later requests at 0.20 and more.
"""

_WITHOUT_WORDS = 0.83
"""The same where the task has no word in common with the nearest requests: random letters came as
near as 0.23."""


class Openings:
    """Makes openings from what a store has learned."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._templates = TemplateOpenings(store, embedder)
        self._revision = -1
        self._rows: list[EpisodeRow] = []
        self._experiences: dict[str, Experience] = {}

    def make(
        self,
        task: str,
        limits: Limits,
        *,
        live: LiveTools | None = None,
        template: Template | None = None,
        project: str = "",
        style: Style = "auto",
    ) -> Opening:
        """The opening for a task, or for a template without one. It is empty, with a note that
        says why, where nothing fits.
        """
        if not task.strip() and template is None:
            raise WrongInput("An opening is made for a task. Say what the session is to do.")
        if task.strip() and says_nothing(task):
            missing = "asks for no work" if any(map(str.isalnum, task)) else "has no words to go by"
            return Opening(task=task, note=f"The task {missing}. Say what is to be done.")
        if limits.tokens <= 0:
            return Opening(task=task, note=no_room(limits))
        if template is not None:
            return self._templates.make(task, limits, live, template)
        opening = self.from_experience(
            task, limits, self.experience(project), live=live, style=style
        )
        if opening.is_empty and self.experience(project).project == project != "":
            elsewhere = self._elsewhere(project)
            found = self.from_experience(task, limits, elsewhere, live=live, style=style)
            return opening if found.is_empty else found
        return opening

    def experience(self, project: str = "") -> Experience:
        """What was learned in a project. Where none is named, that is the whole library; where the
        one that is named has taught nothing, it is what other projects taught.
        """
        revision = self._store.patterns.revision()
        if revision != self._revision:
            self._rows = self._store.episodes.rows()
            self._experiences = {}
            self._revision = revision
        if project not in self._experiences:
            rows = [one for one in self._rows if not project or is_in_project(one.project, project)]
            if rows or not project:
                self._experiences[project] = Experience(project, rows, self._embedder)
            else:
                self._experiences[project] = self._elsewhere(project)
        return self._experiences[project]

    def _elsewhere(self, project: str) -> Experience:
        """What the other projects taught, as far as it carries over."""
        key = f"{project}\0"
        if key not in self._experiences:
            rows = [one for one in self._rows if not is_in_project(one.project, project)]
            self._experiences[key] = Experience(ELSEWHERE, carried_over(rows), self._embedder)
        return self._experiences[key]

    def playbook(self, project: str) -> Playbook:
        """The playbook of a project, with a few requests that its commands and files served; an
        empty one where the project has taught nothing.
        """
        experience = self.experience(project)
        if experience.project != project or not project:
            return Playbook(project=project)
        found = experience.playbook
        wanted = {row for rows in (*found.command_rows, *found.file_rows) for row in rows}
        requests = self._store.episodes.requests(sorted(wanted))

        def named(rows: Sequence[int]) -> tuple[str, ...]:
            return tuple(dict.fromkeys(requests[row] for row in rows if requests.get(row)))

        replace, book = msgspec.structs.replace, found.playbook
        commands = zip(book.commands, found.command_rows, strict=True)
        files = zip(book.files, found.file_rows, strict=True)
        return replace(
            book,
            commands=tuple(replace(one, requests=named(rows)) for one, rows in commands),
            files=tuple(replace(one, requests=named(rows)) for one, rows in files),
        )

    def from_experience(
        self,
        task: str,
        limits: Limits,
        experience: Experience,
        *,
        live: LiveTools | None = None,
        style: Style = "auto",
    ) -> Opening:
        """The opening for a task from this experience."""
        # A small model copies the call for the nearest request, so the request decides.
        ranked = experience.nearest(task, widened=not limits.alike)
        to_commands = experience.nearness_to_commands(task)
        if why := _why_nothing_fits(ranked, to_commands, limits.floor):
            return Opening(task=task, note=why)
        likely = experience.likely_commands(task, ranked)
        near = experience.served(ranked[:NEAREST], likely)
        candidates, vectors = self._candidates(experience, near, live)
        if self._style(style, limits, live, candidates) == "messages":
            return self._as_messages(task, limits, experience, (candidates, vectors), live)
        count = self._embedder.count_tokens
        tools = None if live is None else live.names
        briefing = brief(experience, ranked, likely, limits.tokens, count, tools=tools)
        within = left_beside(limits, f"{briefing_text(briefing)}\n\n{note(1)}", count)
        selection, others = self._examples(candidates, within, live)
        told = msgspec.structs.replace(briefing, episodes=tuple(others))
        opening = assembled(task, told, selection, count)
        return Opening(task=task, note=no_room(limits)) if opening.is_empty else opening

    def _as_messages(
        self,
        task: str,
        limits: Limits,
        experience: Experience,
        found: tuple[list[Candidate], Vectors],
        live: LiveTools | None,
    ) -> Opening:
        """Examples as messages; unless the model is small, with the mistakes that recur."""
        count = self._embedder.count_tokens
        briefing, (candidates, vectors) = Briefing(), found
        if not limits.alike:
            candidates, vectors = self._with_single_calls(candidates, vectors)
            tools = None if live is None else live.names
            briefing = brief(experience, (), (), limits.tokens // 2, count, tools=tools)
        said = f"{briefing_text(briefing)}\n\n{note(min(limits.most, 2), short=limits.alike)}"
        within = left_beside(limits, said, count)
        if within.tokens <= 0 or limits.most <= 0:
            return Opening(task=task, note=no_room(limits))
        selection = select(
            candidates, vectors, within, live, tool_affinity(task, live, self._embedder)
        )
        if not selection.choices:
            return assembled(task, Briefing(), selection, count, note=why_empty(selection, within))
        return assembled(task, briefing, selection, count, for_small_model=limits.alike)

    def _candidates(
        self, experience: Experience, ranked: Sequence[Ranked], live: LiveTools | None
    ) -> tuple[list[Candidate], Vectors]:
        """The nearest episodes that may be examples, as calls of the live tools where those are
        another agent's.
        """
        rows = [one.row for one in ranked if experience.at(one.row).ending == "well"]
        episodes = self._store.episodes.by_row(rows)
        found = {row: episode for row, episode in episodes.items() if episode.teaches}
        dialect = None if live is None else find_dialect(live.names)
        near = [one for one in ranked if one.row in found]
        translated = [self._translated(found[one.row], dialect, live) for one in near]
        patterns = [pattern for pattern, _ in translated]
        # Read each time, because trials go on while the episodes stay the same.
        effects = self._store.templates.effects([pattern.id for pattern in patterns])
        candidates = [
            Candidate(
                pattern=pattern,
                similarity=one.similarity,
                place=one.score,
                effect=effects.get(pattern.id, Effect()),
                untranslatable=why,
            )
            for one, (pattern, why) in zip(near, translated, strict=True)
        ]
        return candidates, experience.vectors_of([one.row for one in near])

    def _with_single_calls(
        self, candidates: Sequence[Candidate], vectors: Vectors
    ) -> tuple[list[Candidate], Vectors]:
        """The examples, and each call of the nearest ones by itself: where whole episodes are too
        long to show all tools that are needed, single calls may.
        """
        count = self._embedder.count_tokens
        found, places = list(candidates), list(range(len(candidates)))
        near = candidates[:_TAKEN_APART]
        names = [f"{one.pattern.id}/{at}" for one in near for at in range(len(one.pattern.steps))]
        effects = self._store.templates.effects(names)
        for at, one in enumerate(near):
            for number, step in enumerate(one.pattern.steps if len(one.pattern.steps) > 1 else ()):
                single = msgspec.structs.replace(
                    one.pattern,
                    id=PatternId(f"{one.pattern.id}/{number}"),
                    kind="first_try",
                    steps=(step,),
                )
                single = msgspec.structs.replace(single, tokens=tokens_of(single, count))
                effect = effects.get(single.id, one.effect)
                found.append(msgspec.structs.replace(one, pattern=single, effect=effect))
                places.append(at)
        return found, vectors[places]

    def _translated(
        self, episode: Episode, dialect: Dialect | None, live: LiveTools | None
    ) -> tuple[Pattern, str]:
        """An episode as calls of the live tools; where that cannot be, as it was, and why."""
        pattern = episode_pattern(episode)
        if dialect is None or live is None or not live.misfit_of(pattern):
            return pattern, ""
        found = translate_pattern(pattern, dialect, live)
        if isinstance(found, Untranslatable):
            return pattern, found.reason
        tokens = tokens_of(found, self._embedder.count_tokens)
        return msgspec.structs.replace(found, tokens=tokens), ""

    def _style(
        self,
        style: Style,
        limits: Limits,
        live: LiveTools | None,
        candidates: Sequence[Candidate],
    ) -> Style:
        if style != "auto":
            return style
        if limits.alike:
            return "messages"
        if live is not None and live.names:
            is_known = find_dialect(live.names) or not SHELLS.isdisjoint(live.names)
            return "text" if is_known else "messages"
        steps = [step for one in candidates[:_JUDGED_BY] for step in one.pattern.steps]
        known = sum(operation_of(step.tool, step.arguments) is not None for step in steps)
        return "messages" if 2 * known < len(steps) else "text"

    def _examples(
        self, candidates: Sequence[Candidate], limits: Limits, live: LiveTools | None
    ) -> tuple[Selection, list[Pattern]]:
        """The nearest examples, each of another request: the first in full if it is short enough
        and fits the live tools, the others to be told in a line each.
        """
        choices: list[Choice] = []
        lines: list[Pattern] = []
        left_out: list[LeftOut] = []
        room, requests = limits.tokens, set[str]()
        unlimited = msgspec.structs.replace(limits, tokens=sys.maxsize)
        for one in candidates:
            pattern = one.pattern
            reason = why_not(one, unlimited, None)
            if not reason and len(requests) >= min(_MOST_EPISODES, limits.most):
                reason = f"enough are chosen ({len(requests)})"
            elif not reason and pattern.intent in requests:
                reason = "its request is shown already"
            if not reason:
                in_full = not requests and pattern.tokens <= min(_LONGEST_EXAMPLE, room)
                in_full = in_full and not (live and live.misfit_of(pattern))
                cost = pattern.tokens if in_full else self._line_tokens(pattern)
                if cost > room:
                    reason = f"no room: {cost} tokens, {room} left"
            if reason:
                left_out.append(LeftOut(pattern=pattern, reason=reason, similarity=one.similarity))
                continue
            room -= cost
            requests.add(pattern.intent)
            if in_full:
                said = f"the nearest request ({one.similarity or 0.0:.2f})"
                choices.append(
                    Choice(pattern=pattern, reason=said, similarity=one.similarity, tokens=cost)
                )
            else:
                lines.append(pattern)
        left_out.sort(key=lambda one: -(one.similarity or 0.0))
        return Selection(choices=tuple(choices), left_out=tuple(left_out)), lines

    def _line_tokens(self, pattern: Pattern) -> int:
        return self._embedder.count_tokens(episode_line(pattern)) + _A_LINE


def _why_nothing_fits(ranked: Sequence[Ranked], near: float, floor: float) -> str:
    """Why nothing that was learned says anything about a task; empty if something does. `near` is
    how near the task is to what commands were used for.
    """
    if not ranked:
        return "Nothing has been learned yet. `journeyman learn` learns from imported sessions."
    first = ranked[:_JUDGED_BY]
    best = max([near, *(one.similarity for one in first)])
    if best < floor * _BRIEFING_FLOOR:
        return (
            f"Nothing that was learned is similar enough to this task: the nearest has "
            f"{best:.3f}, and the floor is {floor:.2f}."
        )
    if best < floor * _WITHOUT_WORDS and not any(one.matched > 0 for one in first):
        return "Nothing that was learned has a word in common with this task."
    return ""
