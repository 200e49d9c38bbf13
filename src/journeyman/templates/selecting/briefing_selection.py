"""What a briefing tells of a project's experience: the part of the playbook that a task is likely
to need, within its share of the budget.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import msgspec

from journeyman.records.playbook import PlaybookCommand, PlaybookMistake
from journeyman.templates.cost import CountTokens
from journeyman.templates.experience import Experience, LikelyCommand
from journeyman.templates.playbook import SHELL, kind_of
from journeyman.templates.selecting.ranking import Ranked
from journeyman.templates.shown.briefing import (
    Briefing,
    briefing_text,
    command_line,
    mistake_line,
)
from journeyman.templates.translation.tool_table import SHELLS

MOST_COMMANDS = 22
LEAST_SCORE = -4.4
"""How many commands are shown at most, and how likely each must be. Both are set so that about one
shown command in seven is used: a longer list is not foresight."""

_COMMANDS_SHARE, _MISTAKES_SHARE, _FILES_SHARE = 0.45, 0.25, 0.05
_MOST_MISTAKES = 8
_MOST_FILES = 5
_MISTAKE_NEIGHBOURS = 60
_NEIGHBOURS = 12
"""Files count that at least two of so many nearest episodes used."""

_A_LINE = 3
"""What a line costs beside its text."""


def brief(
    experience: Experience,
    ranked: Sequence[Ranked],
    likely: Sequence[LikelyCommand],
    budget: int,
    count: CountTokens,
    *,
    tools: Collection[str] | None = None,
) -> Briefing:
    """The briefing for a task whose nearest episodes and likely commands are given. Where the tools
    of the session are known, what needs another one is not told: without a shell no commands.
    """
    has_shell = tools is None or not SHELLS.isdisjoint(tools)
    commands = _commands(likely, budget * _COMMANDS_SHARE, count) if has_shell else iter(())
    mistakes = [
        one
        for one in _near_first(experience, ranked)
        if tools is None or one.tool in tools or (one.tool == SHELL and has_shell)
    ]
    playbook = experience.playbook.playbook
    briefing = Briefing(
        project=playbook.project,
        sessions=playbook.sessions,
        commands=tuple(commands),
        mistakes=tuple(_fitting(mistakes, budget * _MISTAKES_SHARE, count)),
        files=tuple(_files(experience, ranked, budget * _FILES_SHARE, count)),
    )
    while not briefing.is_empty and count(briefing_text(briefing)) > budget:
        briefing = _shorter(briefing)
    return briefing


def _shorter(briefing: Briefing) -> Briefing:
    """The briefing with its least important line less."""
    replace = msgspec.structs.replace
    if briefing.files:
        return replace(briefing, files=briefing.files[:-1])
    if len(briefing.mistakes) > len(briefing.commands) or not briefing.commands:
        return replace(briefing, mistakes=briefing.mistakes[:-1])
    return replace(briefing, commands=briefing.commands[:-1])


def _commands(
    likely: Sequence[LikelyCommand], room: float, count: CountTokens
) -> Iterator[PlaybookCommand]:
    for one in likely[:MOST_COMMANDS]:
        room -= count(command_line(one.command)) + _A_LINE
        if one.score < LEAST_SCORE or room < 0:
            return
        yield one.command


def _near_first(experience: Experience, ranked: Sequence[Ranked]) -> list[PlaybookMistake]:
    """The mistakes that recur, those first that near episodes met."""
    met: Counter[tuple[str, str]] = Counter()
    for near in ranked[:_MISTAKE_NEIGHBOURS]:
        met.update({kind_of(one) for one in experience.at(near.row).facts.mistakes})
    found = experience.playbook.playbook.mistakes
    order = sorted(range(len(found)), key=lambda at: (-met[found[at].tool, found[at].error], at))
    return [found[at] for at in order]


def _fitting(
    mistakes: Sequence[PlaybookMistake], room: float, count: CountTokens
) -> Iterator[PlaybookMistake]:
    for one in mistakes[:_MOST_MISTAKES]:
        room -= count(mistake_line(one)) + _A_LINE
        if room < 0:
            return
        yield one


def _files(
    experience: Experience, ranked: Sequence[Ranked], room: float, count: CountTokens
) -> Iterator[str]:
    used: Counter[str] = Counter()
    for near in ranked[:_NEIGHBOURS]:
        episode = experience.at(near.row)
        if not episode.quarantined:
            used.update({file.path for file in episode.facts.files})
    again = sorted((path for path in used if used[path] > 1), key=lambda one: (-used[one], one))
    for path in again[:_MOST_FILES]:
        room -= count(path) + 1
        if room < 0:
            return
        yield path
