"""Builds a playbook: the commands that work in a project, recurring mistakes with their remedies,
and frequently used files, counted over the project's episodes.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from journeyman.records import CommandUse, FileUse, Mistake, SessionId
from journeyman.records.playbook import Playbook, PlaybookCommand, PlaybookFile, PlaybookMistake
from journeyman.records.project import is_in_project
from journeyman.records.session import BOT_PLATFORMS
from journeyman.redaction.redactor import Redactor
from journeyman.store.episodes import EpisodeRow

RECURRING = 3
"""The minimum number of sessions with a mistake or a file for it to be shown."""

HALF_LIFE = 40
"""After this many later sessions of the project, a session counts half: projects change."""

SHELL = "shell"
"""The tool of a mistake made with a shell command."""

_TYPICAL, _TYPICAL_IF_PARTICULAR = 0.2, 0.5
"""The share of the sessions with a command from which a form counts as the usual one; higher for a
form that names a file or a number."""

_PARTICULAR = re.compile(r"[^\s|-]*(?:/|\.\w{1,5}$|\d{2,}|[a-z][A-Z])[^\s|]*|[^\s|]{25,}|\d+")
_PIPE = " | "
_EXIT_CODE = re.compile(r"exit code -?\d+: ")
_TOOL_NAME = re.compile(r"[\w.:/-]{1,80}")
"""What is shown without quotes must be a name: a model may call anything a tool."""


_Sightings = Sequence[tuple[EpisodeRow, Any]]
"""Episodes, each with the use, file or mistake that was seen in it."""


def _sessions(sightings: _Sightings) -> set[SessionId]:
    return {episode.session for episode, _ in sightings}


def _last_at(sightings: _Sightings) -> float | None:
    return max((episode.at for episode, _ in sightings if episode.at is not None), default=None)


def of_project(
    rows: Sequence[EpisodeRow], project: str, *, bots: bool
) -> tuple[list[EpisodeRow], int]:
    """Return the episodes of a project, of all without a name, and how many sessions of bots are
    left out. Unless `bots`, only people's episodes are returned; where only bots spoke, all.
    """
    found = [row for row in rows if not project or is_in_project(row.project, project)]
    people = [row for row in found if row.platform.lower() not in BOT_PLATFORMS]
    kept = found if bots or not people else people
    return kept, len({row.session for row in found} - {row.session for row in kept})


def project_playbook(project: str, rows: Sequence[EpisodeRow], *, bots: bool) -> Playbook:
    """Return a project's playbook; an empty one if nothing was learned in the project."""
    kept, left_out = of_project(rows, project, bots=bots) if project else ([], 0)
    if not kept:
        return Playbook(project=project)
    return replace(build_playbook(project, kept), bots=left_out)


def build_playbook(project: str, episodes: Sequence[EpisodeRow]) -> Playbook:
    """Build the playbook of these episodes."""
    commands: defaultdict[str, list[tuple[EpisodeRow, CommandUse]]] = defaultdict(list)
    mistakes: defaultdict[tuple[str, str], list[tuple[EpisodeRow, Mistake]]] = defaultdict(list)
    files: defaultdict[str, list[tuple[EpisodeRow, FileUse]]] = defaultdict(list)
    weights = session_weights(episodes)
    for episode in episodes:
        for mistake in episode.facts.mistakes:
            mistakes[mistake_kind(mistake)].append((episode, mistake))
        if not episode.quarantined:
            for use in episode.facts.commands:
                commands[use.name].append((episode, use))
            for file in episode.facts.files:
                files[file.path].append((episode, file))

    def weight(sightings: _Sightings) -> float:
        return round(sum(weights[session] for session in sorted(_sessions(sightings))), 6)

    ranked_commands = {}
    for name, uses in commands.items():
        worked = [(episode, use) for episode, use in uses if use.worked]
        if worked:
            order = -weight(worked), -sum(use.worked for _, use in worked), name
            ranked_commands[order] = _playbook_command(name, uses, worked)
    ranked_files = {}
    for path, file_uses in files.items():
        if len(_sessions(file_uses)) >= RECURRING:
            changed = sum(file.changed for _, file in file_uses)
            ranked_files[-weight(file_uses), -changed, path] = PlaybookFile(
                path=path,
                sessions=len(_sessions(file_uses)),
                read=sum(file.read for _, file in file_uses),
                changed=changed,
                last_at=_last_at(file_uses),
            )
    return Playbook(
        project=Redactor().text(project),
        sessions=len({episode.session for episode in episodes}),
        episodes=len(episodes),
        commands=tuple(ranked_commands[order] for order in sorted(ranked_commands)),
        mistakes=tuple(_recurring_mistakes(mistakes)),
        files=tuple(ranked_files[order] for order in sorted(ranked_files)),
    )


def session_weights(episodes: Sequence[EpisodeRow]) -> dict[SessionId, float]:
    """Return the weight of each session: half after `HALF_LIFE` later ones."""
    began: dict[SessionId, float] = {}
    for episode in episodes:
        at = float("-inf") if episode.at is None else episode.at
        began[episode.session] = min(began.get(episode.session, at), at)
    ordered = sorted(began, key=lambda session: (-began[session], session))
    return {session: 0.5 ** (number / HALF_LIFE) for number, session in enumerate(ordered)}


def mistake_kind(mistake: Mistake) -> tuple[str, str]:
    """Return the key that failures have in common if they are the same mistake. All shells count as
    one tool.
    """
    return SHELL if mistake.target else mistake.tool, mistake.error


def without_exit_code(error: str) -> str:
    """Return the text of a command's failure without its exit code, which not every host states."""
    return _EXIT_CODE.sub("", error, count=1)


def _playbook_command(name: str, uses: _Sightings, worked: _Sightings) -> PlaybookCommand:
    plain: defaultdict[str, set[SessionId]] = defaultdict(set)
    piped: defaultdict[str, set[SessionId]] = defaultdict(set)
    for episode, use in worked:
        (piped if _PIPE in use.form else plain)[use.form].add(episode.session)
    sessions = len(_sessions(worked))
    return PlaybookCommand(
        name=name,
        form=_usual_form(plain, min(2, sessions)) or name,
        piped=_usual_form(piped, min(2, sessions)),
        sessions=sessions,
        worked=sum(use.worked for _, use in worked),
        failed=sum(use.failed for _, use in uses),
        last_at=_last_at(worked),
        purpose=_most_frequent_one(Counter(use.purpose for _, use in worked if use.purpose)),
    )


def _usual_form(forms: Mapping[str, set[SessionId]], least: int) -> str:
    """Return how a command is usually written, by sessions. If no form is usual, omit what is
    particular to each use. A form used in fewer than `least` sessions is not shown: that several
    sessions use a command does not vouch for what one of them added.
    """
    counts = Counter({form: len(sessions) for form, sessions in forms.items()})
    form = _most_frequent_one(counts)
    total = len(set[SessionId]().union(*forms.values()))
    share = _TYPICAL if _generalised(form) == form else _TYPICAL_IF_PARTICULAR
    if counts[form] < max(2, share * total) and len(forms) > 1:
        general: defaultdict[str, set[SessionId]] = defaultdict(set)
        for specific, sessions in forms.items():
            general[_generalised(specific)] |= sessions
        counts = Counter({form: len(sessions) for form, sessions in general.items()})
        form = _most_frequent_one(counts)
    return form if counts[form] >= least else ""


def _generalised(form: str) -> str:
    words: list[str] = []
    for number, word in enumerate(form.split(" ")):
        shown = "…" if number and _PARTICULAR.fullmatch(word) and word != "./..." else word
        if not (shown == "…" and words and words[-1] == "…"):
            words.append(shown)
    return " ".join(words)


def _recurring_mistakes(
    mistakes: Mapping[tuple[str, str], Sequence[tuple[EpisodeRow, Mistake]]],
) -> Iterator[PlaybookMistake]:
    for (tool, error), sightings in sorted(
        mistakes.items(), key=lambda item: (-len(_sessions(item[1])), item[0])
    ):
        if len(_sessions(sightings)) < RECURRING or not _TOOL_NAME.fullmatch(tool):
            continue
        targets = Counter(mistake.target for _, mistake in sightings)
        target = _most_frequent_one(targets)
        remedies: defaultdict[tuple[str, ...], list[SessionId]] = defaultdict(list)
        for episode, mistake in sightings:
            if all(step.startswith("`") or _TOOL_NAME.fullmatch(step) for step in mistake.remedy):
                remedies[mistake.remedy].append(episode.session)
        remedies.pop((), None)
        proven = [remedy for remedy, sessions in remedies.items() if len(set(sessions)) > 1]
        yield PlaybookMistake(
            tool=tool,
            error=error,
            target=target if targets[target] > len(sightings) / 2 else "",
            sessions=len(_sessions(sightings)),
            times=len(sightings),
            mended=sum(map(len, remedies.values())),
            remedy=min(proven, key=lambda steps: (-len(remedies[steps]), steps), default=()),
            last_at=_last_at(sightings),
        )


def most_frequent(counts: Counter[str]) -> list[str]:
    """Return the most frequent first, equal ones by name."""
    return sorted(counts, key=lambda name: (-counts[name], name))


def _most_frequent_one(counts: Counter[str]) -> str:
    return next(iter(most_frequent(counts)), "")
