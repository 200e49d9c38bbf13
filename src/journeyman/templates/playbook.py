"""Building a playbook: the commands that work in a project, the mistakes that recur with what
mended them, and the files that work keeps coming back to, counted over the project's episodes.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from journeyman.records import Mistake, SessionId
from journeyman.records.playbook import (
    Playbook,
    PlaybookCommand,
    PlaybookFile,
    PlaybookMistake,
)
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


class _Command(Struct):
    forms: defaultdict[str, set[SessionId]] = field(default_factory=lambda: defaultdict(set))
    purposes: Counter[str] = field(default_factory=Counter)
    sessions: set[SessionId] = field(default_factory=set)
    worked: int = 0
    failed: int = 0
    last_at: float | None = None
    rows: list[int] = field(default_factory=list)


class _Mistake(Struct):
    targets: Counter[str] = field(default_factory=Counter)
    remedies: defaultdict[tuple[str, ...], list[SessionId]] = field(
        default_factory=lambda: defaultdict(list)
    )
    sessions: set[SessionId] = field(default_factory=set)
    times: int = 0
    last_at: float | None = None


class _File(Struct):
    sessions: set[SessionId] = field(default_factory=set)
    read: int = 0
    changed: int = 0
    last_at: float | None = None
    rows: list[int] = field(default_factory=list)


class PlaybookRows(Struct, frozen=True, kw_only=True):
    """A playbook, and for each command and file the rows of the episodes that it last served."""

    playbook: Playbook
    command_rows: tuple[tuple[int, ...], ...]
    file_rows: tuple[tuple[int, ...], ...]


def build_playbook(project: str, episodes: Sequence[EpisodeRow]) -> PlaybookRows:
    """The playbook of these episodes."""
    commands: defaultdict[str, _Command] = defaultdict(_Command)
    mistakes: defaultdict[tuple[str, str], _Mistake] = defaultdict(_Mistake)
    files: defaultdict[str, _File] = defaultdict(_File)
    recent = recency(episodes)
    for one in episodes:
        for use in one.facts.commands if not one.quarantined else ():
            command = commands[use.name]
            command.failed += use.failed
            if use.worked:
                command.worked += use.worked
                command.forms[use.form].add(one.session)
                command.purposes[use.purpose] += bool(use.purpose)
                command.sessions.add(one.session)
                command.last_at = _later(command.last_at, one.at)
                command.rows.append(one.row)
        for made in one.facts.mistakes:
            mistake = mistakes[kind_of(made)]
            mistake.times += 1
            mistake.targets[made.target] += 1
            mistake.sessions.add(one.session)
            mistake.remedies[made.remedy].append(one.session)
            mistake.last_at = _later(mistake.last_at, one.at)
        for seen in one.facts.files if not one.quarantined else ():
            file = files[seen.path]
            file.read += seen.read
            file.changed += seen.changed
            file.sessions.add(one.session)
            file.last_at = _later(file.last_at, one.at)
            file.rows.append(one.row)
    used = {name: one for name, one in commands.items() if one.sessions}

    def weight(sessions: set[SessionId]) -> float:
        return round(sum(recent[session] for session in sorted(sessions)), 6)

    ranked = sorted(used, key=lambda name: (-weight(used[name].sessions), -used[name].worked, name))
    again = [path for path, one in files.items() if len(one.sessions) >= RECURRING]
    again.sort(key=lambda path: (-weight(files[path].sessions), -files[path].changed, path))
    playbook = Playbook(
        project=Redactor().text(project),
        sessions=len({one.session for one in episodes}),
        episodes=len(episodes),
        commands=tuple(_as_command(name, used[name]) for name in ranked),
        mistakes=tuple(_as_mistakes(mistakes)),
        files=tuple(
            PlaybookFile(
                path=path,
                sessions=len(files[path].sessions),
                read=files[path].read,
                changed=files[path].changed,
                last_at=files[path].last_at,
            )
            for path in again
        ),
    )
    return PlaybookRows(
        playbook=playbook,
        command_rows=tuple(tuple(used[name].rows[-_REQUESTS:]) for name in ranked),
        file_rows=tuple(tuple(files[path].rows[-_REQUESTS:]) for path in again),
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
    """What makes two failures the same mistake: the tool, and what it said. Shells are one tool,
    whatever an agent calls its own.
    """
    return SHELL if mistake.target else mistake.tool, mistake.error


def _as_command(name: str, found: _Command) -> PlaybookCommand:
    plain = {form: seen for form, seen in found.forms.items() if _PIPE not in form}
    piped = {form: seen for form, seen in found.forms.items() if _PIPE in form}
    least = min(2, len(found.sessions))
    return PlaybookCommand(
        name=name,
        form=_usual(plain, least) or name,
        piped=_usual(piped, least),
        sessions=len(found.sessions),
        worked=found.worked,
        failed=found.failed,
        last_at=found.last_at,
        purpose=_first(found.purposes),
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
    if counts[form] >= max(2, needed * sessions) or len(forms) < 2:
        return form if counts[form] >= least else ""
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


def _as_mistakes(found: dict[tuple[str, str], _Mistake]) -> Iterable[PlaybookMistake]:
    recurring = {
        (tool, error): one
        for (tool, error), one in found.items()
        if len(one.sessions) >= RECURRING and _TOOL_NAME.fullmatch(tool)
    }
    for key in sorted(recurring, key=lambda key: (-len(recurring[key].sessions), key)):
        tool, error = key
        one = recurring[key]
        target = _first(one.targets)
        is_typical = one.targets[target] > one.times / 2
        remedies = {
            remedy: sessions
            for remedy, sessions in one.remedies.items()
            if remedy and all(step.startswith("`") or _TOOL_NAME.fullmatch(step) for step in remedy)
        }
        proven = [remedy for remedy, sessions in remedies.items() if len(set(sessions)) > 1]
        yield PlaybookMistake(
            tool=tool,
            error=error,
            target=target if is_typical else "",
            sessions=len(one.sessions),
            times=one.times,
            mended=sum(map(len, remedies.values())),
            remedy=min(proven, key=lambda steps: (-len(remedies[steps]), steps), default=()),
            last_at=one.last_at,
        )


def _first(counts: Counter[str]) -> str:
    """The most frequent, of equal ones the first by name."""
    return min(counts, key=lambda one: (-counts[one], one), default="")


def _later(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else max(one, other)
