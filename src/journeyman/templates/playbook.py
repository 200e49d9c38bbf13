"""Building a playbook: the commands that work in a project, the mistakes that recur with what
mended them, and the files that work keeps coming back to, counted over the project's episodes.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from journeyman.records import CommandUse, FileUse, Mistake, SessionId
from journeyman.records.playbook import Playbook, PlaybookCommand, PlaybookFile, PlaybookMistake
from journeyman.redaction.redactor import Redactor
from journeyman.store.episodes import EpisodeRow

RECURRING = 3
"""In how many sessions a mistake must have happened, or a file been used, to be shown."""

HALF_LIFE = 40
"""After how many later sessions of the project one counts half: projects change."""

SHELL = "shell"
"""The tool of a mistake that was made with a command."""

_TYPICAL, _TYPICAL_IF_PARTICULAR = 0.2, 0.5
"""The share of the sessions with a command from which a form counts as the usual one; more where it
names a file or a number."""

_REQUESTS = 3
_PARTICULAR = re.compile(r"[^\s|-]*(?:/|\.\w{1,5}$|\d{2,}|[a-z][A-Z])[^\s|]*|[^\s|]{25,}|\d+")
_PIPE = " | "
_TOOL_NAME = re.compile(r"[\w.:/-]{1,80}")
"""What is named without quotes is a name: a model may call anything a tool."""


_Seen = Sequence[tuple[EpisodeRow, Any]]
"""The episodes in which something was seen, each with what was."""


def _sessions(seen: _Seen) -> set[SessionId]:
    return {one.session for one, _ in seen}


def _last_at(seen: _Seen) -> float | None:
    return max((one.at for one, _ in seen if one.at is not None), default=None)


def _served(seen: _Seen, requests: Mapping[int, str]) -> tuple[str, ...]:
    """The last requests for which it was seen, of those that are given by row."""
    rows = (one.row for one, _ in seen[-_REQUESTS:])
    return tuple(dict.fromkeys(requests[row] for row in rows if requests.get(row)))


def build_playbook(
    project: str, episodes: Sequence[EpisodeRow], requests: Mapping[int, str] | None = None
) -> Playbook:
    """The playbook of these episodes, with a few of the `requests`, which are given by row."""
    commands: defaultdict[str, list[tuple[EpisodeRow, CommandUse]]] = defaultdict(list)
    mistakes: defaultdict[tuple[str, str], list[tuple[EpisodeRow, Mistake]]] = defaultdict(list)
    files: defaultdict[str, list[tuple[EpisodeRow, FileUse]]] = defaultdict(list)
    recent, asked = recency(episodes), requests or {}
    for one in episodes:
        for made in one.facts.mistakes:
            mistakes[kind_of(made)].append((one, made))
        if not one.quarantined:
            for use in one.facts.commands:
                commands[use.name].append((one, use))
            for file in one.facts.files:
                files[file.path].append((one, file))

    def weight(seen: _Seen) -> float:
        return round(sum(recent[session] for session in sorted(_sessions(seen))), 6)

    ranked = {}
    for name, uses in commands.items():
        worked = [(one, use) for one, use in uses if use.worked]
        if worked:
            order = -weight(worked), -sum(use.worked for _, use in worked), name
            ranked[order] = _as_command(name, uses, worked, asked)
    again = {}
    for path, used in files.items():
        if len(_sessions(used)) >= RECURRING:
            changed = sum(file.changed for _, file in used)
            again[-weight(used), -changed, path] = PlaybookFile(
                path=path,
                sessions=len(_sessions(used)),
                read=sum(file.read for _, file in used),
                changed=changed,
                last_at=_last_at(used),
                requests=_served(used, asked),
            )
    return Playbook(
        project=Redactor().text(project),
        sessions=len({one.session for one in episodes}),
        episodes=len(episodes),
        commands=tuple(ranked[order] for order in sorted(ranked)),
        mistakes=tuple(_as_mistakes(mistakes)),
        files=tuple(again[order] for order in sorted(again)),
    )


def recency(episodes: Sequence[EpisodeRow]) -> dict[SessionId, float]:
    """How much each session counts: half after `HALF_LIFE` later ones."""
    began: dict[SessionId, float] = {}
    for one in episodes:
        at = float("-inf") if one.at is None else one.at
        began[one.session] = min(began.get(one.session, at), at)
    ordered = sorted(began, key=lambda session: (-began[session], session))
    return {session: 0.5 ** (number / HALF_LIFE) for number, session in enumerate(ordered)}


def kind_of(mistake: Mistake) -> tuple[str, str]:
    """What makes two failures the same mistake. All shells are one tool."""
    return SHELL if mistake.target else mistake.tool, mistake.error


def _as_command(name: str, uses: _Seen, worked: _Seen, asked: Mapping[int, str]) -> PlaybookCommand:
    plain: defaultdict[str, set[SessionId]] = defaultdict(set)
    piped: defaultdict[str, set[SessionId]] = defaultdict(set)
    for one, use in worked:
        (piped if _PIPE in use.form else plain)[use.form].add(one.session)
    sessions = len(_sessions(worked))
    return PlaybookCommand(
        name=name,
        form=_usual(plain, min(2, sessions)) or name,
        piped=_usual(piped, min(2, sessions)),
        sessions=sessions,
        worked=sum(use.worked for _, use in worked),
        failed=sum(use.failed for _, use in uses),
        last_at=_last_at(worked),
        purpose=_first(Counter(use.purpose for _, use in worked if use.purpose)),
        requests=_served(worked, asked),
    )


def _usual(forms: Mapping[str, set[SessionId]], least: int) -> str:
    """How a command is mostly written, by sessions. Where no form is usual, what is particular to
    each use is left out. A form that fewer than the `least` number of sessions have is not told: a
    command that several sessions use does not vouch for what one of them added.
    """
    counts = Counter({form: len(seen) for form, seen in forms.items()})
    form = _first(counts)
    sessions = len(set[SessionId]().union(*forms.values()))
    needed = _TYPICAL if _generalised(form) == form else _TYPICAL_IF_PARTICULAR
    if counts[form] < max(2, needed * sessions) and len(forms) > 1:
        general: defaultdict[str, set[SessionId]] = defaultdict(set)
        for one, seen in forms.items():
            general[_generalised(one)] |= seen
        counts = Counter({one: len(seen) for one, seen in general.items()})
        form = _first(counts)
    return form if counts[form] >= least else ""


def _generalised(form: str) -> str:
    words: list[str] = []
    for number, word in enumerate(form.split(" ")):
        shown = "…" if number and _PARTICULAR.fullmatch(word) and word != "./..." else word
        if not (shown == "…" and words and words[-1] == "…"):
            words.append(shown)
    return " ".join(words)


def _as_mistakes(
    found: Mapping[tuple[str, str], Sequence[tuple[EpisodeRow, Mistake]]],
) -> Iterator[PlaybookMistake]:
    for (tool, error), seen in sorted(
        found.items(), key=lambda one: (-len(_sessions(one[1])), one[0])
    ):
        if len(_sessions(seen)) < RECURRING or not _TOOL_NAME.fullmatch(tool):
            continue
        targets = Counter(made.target for _, made in seen)
        target = _first(targets)
        remedies: defaultdict[tuple[str, ...], list[SessionId]] = defaultdict(list)
        for one, made in seen:
            if all(step.startswith("`") or _TOOL_NAME.fullmatch(step) for step in made.remedy):
                remedies[made.remedy].append(one.session)
        remedies.pop((), None)
        proven = [remedy for remedy, sessions in remedies.items() if len(set(sessions)) > 1]
        yield PlaybookMistake(
            tool=tool,
            error=error,
            target=target if targets[target] > len(seen) / 2 else "",
            sessions=len(_sessions(seen)),
            times=len(seen),
            mended=sum(map(len, remedies.values())),
            remedy=min(proven, key=lambda steps: (-len(remedies[steps]), steps), default=()),
            last_at=_last_at(seen),
        )


def most_frequent(counts: Counter[str]) -> list[str]:
    """The most frequent first, equal ones by name."""
    return sorted(counts, key=lambda one: (-counts[one], one))


def _first(counts: Counter[str]) -> str:
    return next(iter(most_frequent(counts)), "")
