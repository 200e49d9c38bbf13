"""Builds the opening for a task from the experience of a project, from the whole library, or from
one template. Experience is cached in memory and read again only when it has changed.
"""

import math
import sys
import threading
from collections.abc import Sequence
from typing import Any, Literal

from msgspec.structs import replace

from journeyman.models.chat_template import distinct_sentences
from journeyman.models.embedder import Embedder
from journeyman.records import Pattern, PatternId, Template
from journeyman.records.errors import WrongInput
from journeyman.store.episodes import EpisodeRow
from journeyman.store.store import Store
from journeyman.templates.agent_tools import KNOWN_TOOLS, SHELLS, as_shell_call
from journeyman.templates.briefing import Briefing, briefing_text, episode_line
from journeyman.templates.examples import episode_pattern, example_tokens, note_tokens
from journeyman.templates.experience import (
    Experience,
    build_briefing,
    project_briefing,
)
from journeyman.templates.opening import Choice, Opening
from journeyman.templates.opening_text import note
from journeyman.templates.playbook import of_project
from journeyman.templates.ranking import (
    Bm25,
    Index,
    Ranked,
    is_small_talk,
    pattern_words,
    task_words,
    words,
)
from journeyman.templates.selection import (
    NOTHING_FITS,
    Candidate,
    OpeningLimits,
    select,
    select_in_order,
    too_far_message,
    why_not_selected,
)
from journeyman.templates.tool_schemas import LiveTools

Style = Literal["auto", "text", "messages"]
"""How experience is presented. `text`: a briefing in words and at most one episode as messages,
which suits strong models. `messages`: examples as messages, which suits small models and unfamiliar
tools. `auto` decides by the model and the tools."""

_NEAREST = 96
"""How many of the nearest examples are considered."""

_SHARED_WORDS_WEIGHT = 0.25
"""Weight, added to closeness in meaning, for the tool that shares the most words with the task."""

_SPLIT_EPISODES = 24
"""How many of the nearest episodes are also offered as single calls."""

_MAX_EPISODES = 3
_JUDGED_BY = 5
"""How many of the nearest episodes decide whether anything fits, and whether the tools are known.
"""

_LONGEST_EXAMPLE = 450
"""In tokens: a longer episode is summarised in one line."""

_LINE_OVERHEAD = 8
"""Tokens that an episode's line costs in addition to its text, its share of the heading included.
"""

_BRIEFING_FLOOR = 0.6
"""The floor for a briefing, as a share of the floor for examples: a briefing states what holds in
the project, which also helps where no request was quite like this one. Questions about something
else altogether scored 0.08 to 0.16 against the nearest of a project's requests, its own later
requests 0.20 and more."""

_FLOOR_WITHOUT_WORDS = 0.83
"""The same where the task has no word in common with the nearest requests: random letters scored up
to 0.23."""


class OpeningBuilder:
    """Builds openings from what a store has learned. Threads may share it."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._loading = threading.RLock()
        self._revision = -1
        self._rows: list[EpisodeRow] = []
        self._experiences: dict[tuple[str, bool], Experience] = {}

    def make(
        self,
        task: str,
        limits: OpeningLimits,
        *,
        live: LiveTools | None = None,
        template: Template | None = None,
        project: str = "",
        style: Style = "auto",
        bots: bool = False,
    ) -> Opening:
        """Return the opening for a task, or for a template without a task. The note of an empty
        opening says why it is empty, that of others the template. Raises WrongInput without task
        and template.
        """
        request = OpeningRequest(self._store, self._embedder, task, limits, live)
        if template is not None:
            return request.from_template(template)
        if not task.strip():
            raise WrongInput("An opening needs a task. Describe what the session should do.")
        if is_small_talk(task):
            problem = "asks for no work" if any(map(str.isalnum, task)) else "contains no words"
            return Opening(task=task, note=f"The task {problem}. Describe what should be done.")
        experience = self.experience(project, bots=bots)
        opening = request.from_experience(experience, style)
        if opening.is_empty and experience.project:
            other = request.from_experience(self.experience(bots=bots), style)
            opening = opening if other.is_empty else other
        if opening.is_empty and experience.bots:
            left_out = f"Sessions of bots left out: {experience.bots:,}; --bots includes them."
            return replace(opening, note=f"{opening.note} {left_out}")
        return opening

    def experience(self, project: str = "", *, bots: bool = False) -> Experience:
        """Return what was learned in a project; without a name, in the whole library. If nothing
        was learned in the named project, return that of the whole library. Unless `bots`, people's
        sessions teach, and those of bots only where there are no others.
        """
        key = (project, bots)
        with self._loading:
            revision = self._store.patterns.revision()
            if revision != self._revision:
                self._rows = self._store.episodes.rows()
                self._experiences = {}
                self._revision = revision
            if key not in self._experiences:
                rows, left_out = of_project(self._rows, project, bots=bots)
                self._experiences[key] = (
                    Experience(project, rows, self._embedder, bots=left_out)
                    if rows or not project
                    else self.experience(bots=bots)
                )
            return self._experiences[key]

    def for_project(self, project: str, tokens: int) -> Opening:
        """Return the opening of a session in a project before its task is known."""
        experience, count = self.experience(project), self._embedder.count_tokens
        if experience.project != project or not project:
            return Opening(task="", note=f"Nothing was learned in {project or 'this folder'} yet.")
        briefing = project_briefing(experience, tokens, count)
        if briefing.is_empty:
            return Opening(task="", note=f"Nothing recurs in {project} yet.")
        opening = Opening(task="", briefing=briefing)
        return replace(opening, tokens=note_tokens(opening.system, count))


class OpeningRequest:
    """Builds one opening: a task, its limits, and the tools that the session will have."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        task: str,
        limits: OpeningLimits,
        live: LiveTools | None = None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._count = embedder.count_tokens
        self._task = task
        self._limits = limits
        self._live = live
        self._tools = None if live is None else live.names

    def from_experience(self, experience: Experience, style: Style = "auto") -> Opening:
        """Return the opening from what was learned."""
        limits = self._limits
        if limits.tokens <= 0:
            return self._no_room()
        # A small model copies the call for the nearest request, so only requests are compared.
        ranked = experience.nearest(self._task, widened=not limits.alike)
        command_similarity = experience.command_similarity(self._task)
        if reason := self._why_nothing_fits(ranked, command_similarity):
            return Opening(task=self._task, note=reason)
        likely = experience.likely_commands(self._task, ranked)
        candidates = self._candidates(experience, ranked[:_NEAREST])
        if (self._style(candidates) if style == "auto" else style) == "messages":
            return self._as_messages(experience, candidates)
        briefing = build_briefing(
            experience, ranked, likely, limits.tokens, self._count, tools=self._tools
        )
        remaining = self._limits_after(f"{briefing_text(briefing)}\n\n{note(1)}")
        choices, others = self._examples(candidates, remaining)
        opening = self._assembled(replace(briefing, episodes=tuple(others)), choices)
        return self._no_room() if opening.is_empty else opening

    def _as_messages(self, experience: Experience, candidates: Sequence[Candidate]) -> Opening:
        """Return examples as messages and, unless the model is small, the recurring mistakes."""
        limits, briefing = self._limits, Briefing()
        if not limits.alike:
            candidates = self._with_single_calls(candidates)
            half = limits.tokens // 2
            briefing = build_briefing(experience, (), (), half, self._count, tools=self._tools)
        system = f"{briefing_text(briefing)}\n\n{note(min(limits.most, 2), short=limits.alike)}"
        remaining = self._limits_after(system)
        if remaining.tokens <= 0 or limits.most <= 0:
            return self._no_room()
        choices = select(candidates, remaining, self._live, self._tool_affinity())
        if not choices:
            return Opening(task=self._task, note=NOTHING_FITS if candidates else "")
        return self._assembled(briefing, choices, for_small_model=limits.alike)

    def from_template(self, template: Template) -> Opening:
        """Return the opening from one template, however little it resembles the task; without a
        task, its patterns in order.
        """
        addendum, patterns = template.addendum.strip(), template.patterns
        about_examples = note(min(self._limits.most, 2)) if patterns else ""
        remaining = self._limits_after(f"{about_examples}\n\n{addendum}")
        if remaining.tokens <= 0:
            return self._no_room()
        remaining = replace(remaining, floor=-math.inf)
        candidates = [Candidate(pattern=one, similarity=None, score=1.0) for one in patterns]
        if self._task.strip() and patterns:
            candidates = self._nearest_patterns(candidates)
            choices = select(candidates, remaining, self._live, self._tool_affinity())
        else:
            choices = select_in_order(candidates, remaining, self._live)
        reference = f"{template.name}@{template.version}"
        opening = self._assembled(Briefing(), choices, addendum=addendum, template=reference)
        reason = "" if choices else NOTHING_FITS if patterns else "It has no patterns."
        return replace(opening, note=f"From the template {reference}. {reason}".strip())

    def _nearest_patterns(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates ranked by how near they are to the task."""
        patterns = [candidate.pattern for candidate in candidates]
        vectors = self._embedder.embed([pattern.intent for pattern in patterns])
        index = Index(range(len(patterns)), vectors, [*map(pattern_words, patterns)])
        vector = self._embedder.embed([self._task])[0]
        ranked = index.nearest(vector, task_words(self._task), most=_NEAREST)
        return [
            replace(candidates[hit.row], similarity=hit.similarity, score=hit.score)
            for hit in ranked
        ]

    def _assembled(self, briefing: Briefing, choices: tuple[Choice, ...], **fields: Any) -> Opening:
        """Return the opening with its cost in tokens."""
        opening = Opening(task=self._task, briefing=briefing, choices=choices, **fields)
        if opening.is_empty:
            return opening
        tokens = sum(choice.tokens for choice in choices)
        return replace(opening, tokens=tokens + note_tokens(opening.system, self._count))

    def _no_room(self) -> Opening:
        reason = (
            f"The limits leave no room for an example: at most {self._limits.tokens} tokens and "
            f"{self._limits.most} examples."
        )
        return Opening(task=self._task, note=reason)

    def _limits_after(self, system: str) -> OpeningLimits:
        """Return the limits that remain for examples after this system text."""
        tokens = self._limits.tokens - note_tokens(system, self._count)
        return replace(self._limits, tokens=tokens)

    def _tool_affinity(self) -> dict[str, float]:
        """Return how near the task is to the description of each tool."""
        if not self._live or not self._tools or not self._task.strip():
            return {}
        descriptions = distinct_sentences([self._live.description(name) for name in self._tools])
        texts = [
            f"{name.replace('_', ' ')}: {description}"
            for name, description in zip(self._tools, descriptions, strict=True)
        ]
        vectors = self._embedder.embed([self._task, *texts])
        matches = Bm25([words(text) for text in texts]).scores(words(self._task))
        affinity = vectors[1:] @ vectors[0] + _SHARED_WORDS_WEIGHT * matches / (
            matches.max() or 1.0
        )
        return dict(zip(self._tools, affinity.tolist(), strict=True))

    def _candidates(self, experience: Experience, ranked: Sequence[Ranked]) -> list[Candidate]:
        """Return the nearest episodes that may be examples."""
        rows = [hit.row for hit in ranked if experience.at(hit.row).ending == "well"]
        episodes = self._store.episodes.by_row(rows)
        return [
            Candidate(
                pattern=self._with_own_shell(episode_pattern(episodes[hit.row])),
                similarity=hit.similarity,
                score=hit.score,
            )
            for hit in ranked
            if hit.row in episodes and episodes[hit.row].teaches
        ]

    def _with_own_shell(self, pattern: Pattern) -> Pattern:
        """Return a pattern with the shell calls of another agent as calls of the live shell."""
        shell = next((name for name in self._tools or () if name in SHELLS), "")
        if not shell or not (self._live and self._live.misfit_of(pattern)):
            return pattern
        steps = tuple(as_shell_call(step, shell) for step in pattern.steps)
        return replace(pattern, steps=steps)

    def _with_single_calls(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates, and the single calls of the nearest ones: where whole episodes are
        too long to show all tools that are needed, single calls may still fit.
        """
        extended = list(candidates)
        for candidate in candidates[:_SPLIT_EPISODES]:
            pattern = candidate.pattern
            for number, step in enumerate(pattern.steps if len(pattern.steps) > 1 else ()):
                id_ = PatternId(f"{pattern.id}/{number}")
                single = replace(pattern, id=id_, kind="first_try", steps=(step,))
                single = replace(single, tokens=example_tokens(single, self._count))
                extended.append(replace(candidate, pattern=single))
        return extended

    def _style(self, candidates: Sequence[Candidate]) -> Style:
        if self._limits.alike:
            return "messages"
        if self._tools:
            is_known = not SHELLS.isdisjoint(self._tools) or len(KNOWN_TOOLS & {*self._tools}) > 1
            return "text" if is_known else "messages"
        nearest = candidates[:_JUDGED_BY]
        tools = [step.tool for candidate in nearest for step in candidate.pattern.steps]
        known_count = sum(tool in KNOWN_TOOLS for tool in tools)
        return "messages" if 2 * known_count < len(tools) else "text"

    def _examples(
        self, candidates: Sequence[Candidate], limits: OpeningLimits
    ) -> tuple[tuple[Choice, ...], list[Pattern]]:
        """Return the nearest examples, each for a different request: the first in full if it is
        short enough and fits the live tools, the others as patterns to summarise in a line each.
        """
        choices: list[Choice] = []
        lines: dict[str, Pattern] = {}
        room, unlimited = limits.tokens, replace(limits, tokens=sys.maxsize)
        for candidate in candidates:
            pattern = candidate.pattern
            shown = {*lines, *(choice.pattern.intent for choice in choices)}
            if len(shown) >= min(_MAX_EPISODES, limits.most):
                break
            if pattern.intent in shown or why_not_selected(candidate, unlimited, None):
                continue
            in_full = not shown and pattern.tokens <= min(_LONGEST_EXAMPLE, room)
            in_full = in_full and not (self._live and self._live.misfit_of(pattern))
            cost = pattern.tokens
            if not in_full:
                cost = self._count(episode_line(pattern)) + _LINE_OVERHEAD
            if cost > room:
                continue
            room -= cost
            if in_full:
                similarity = candidate.similarity or 0.0
                choices.append(candidate.chosen(f"the nearest request ({similarity:.2f})"))
            else:
                lines[pattern.intent] = pattern
        return tuple(choices), list(lines.values())

    def _why_nothing_fits(self, ranked: Sequence[Ranked], command_similarity: float) -> str:
        """Return why nothing that was learned fits, or an empty text if something does."""
        if not ranked:
            return "Nothing has been learned yet. Run `journeyman learn` after importing sessions."
        nearest, floor = ranked[:_JUDGED_BY], self._limits.floor
        best = max([command_similarity, *(hit.similarity for hit in nearest)])
        if best < floor * _BRIEFING_FLOOR:
            return too_far_message(best, floor)
        if best < floor * _FLOOR_WITHOUT_WORDS and not any(hit.matched for hit in nearest):
            return "Nothing that was learned has a word in common with this task."
        return ""
