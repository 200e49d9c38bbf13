"""The facts of a project, counted over its episodes: commands, traps, findings, what the person
said, and which files its sessions worked on.
"""

import math
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from msgspec.structs import replace

from journeyman.experience.checkout import Checkout, says, warns
from journeyman.experience.continuity import MAIN_BRANCHES, WorkedOn, work_of_sessions
from journeyman.experience.preferences import grouped, is_alike, may_be_told
from journeyman.learning.commands import (
    SCRIPT_RUNNERS,
    check_kind,
    is_project_command,
    placed,
    program_of,
    subject_of,
)
from journeyman.learning.traps import SHELL
from journeyman.logs.repositories import is_work_tree
from journeyman.records import CommandUse, SessionId, Trap
from journeyman.records.fact import (
    TOLD,
    Correction,
    Fact,
    FactDecision,
    FactKind,
    FactState,
    fact_id,
)
from journeyman.records.session import BOT_PLATFORMS, JOB, REVIEW
from journeyman.store.episodes import EpisodeRow

CONFIRMED = 2
"""The minimum number of sessions behind a fact."""

HALF_LIFE = 40
"""After this many later sessions of the project, a session counts half: projects change."""

_FADED = 0.5
"""A fact whose sessions weigh less than this in sum has faded: nothing has confirmed it lately."""

_FREQUENT = 0.05
"""The share of recent sessions from which a trap or a command is told at the start."""

_SLOW_S = 5.0
_OF_COMMANDS = ("program", "check", "task")
"""Reasons for which a whole command fails."""

_TYPICAL = 0.5
"""The share of the sessions with a command from which a form counts as the usual one."""

_PARTICULAR = re.compile(r"[^\s|-]*(?:/|\.\w{1,5}$|\d{2,}|[a-z][A-Z])[^\s|]*|[^\s|]{25,}|\d+")
_PIPE = " | "


class Sighting(NamedTuple):
    """An episode, and what was seen in it."""

    row: EpisodeRow
    item: Any


def of_project(rows: Iterable[EpisodeRow], *, bots: bool) -> tuple[list[EpisodeRow], int]:
    """Return the episodes of people's sessions, and how many sessions of bots are left out. With
    `bots`, and where only bots spoke, return all; but jobs teach only jobs, and reviews nothing.
    """
    found = [row for row in rows if row.platform != REVIEW]
    people = [row for row in found if row.platform.lower() not in BOT_PLATFORMS]
    kept = found if bots else people or [row for row in found if row.platform != JOB]
    return kept, len({row.session for row in found} - {row.session for row in kept})


class ProjectFacts:
    """The facts that the episodes of one project show, and what a person decided about them."""

    def __init__(
        self,
        rows: Sequence[EpisodeRow],
        decisions: Iterable[FactDecision] = (),
    ) -> None:
        self.rows = rows
        self.sessions = len({row.session for row in self.rows})
        self._decisions = {decision.id: decision for decision in decisions}
        self._weights = _session_weights(self.rows)

    @cached_property
    def all(self) -> tuple[Fact, ...]:
        """All facts but those of one moment, whether they hold in a checkout or not, the most
        useful of each kind first. Dropped ones and drafts are among them.
        """
        commands = {fact.subject: fact for fact in self._commands()}
        # Of two facts that disagree, the newer one is right.
        traps: dict[str, Fact] = {}
        for fact in self._traps():
            if not _is_newer(commands.get(fact.subject), fact):
                traps.setdefault(fact.subject, fact)
        facts = [
            fact
            for fact in commands.values()
            if fact.subject not in traps
            and not _is_newer(traps.get(fact.subject.partition(" ")[0]), fact)
        ]
        facts += [_with_remedy(fact, commands, traps) for fact in traps.values()]
        facts += [*self._findings(), *self._preferences()]
        decided = map(self._decided, facts)
        return tuple(
            fact
            for fact in decided
            if fact.weight >= _FADED or fact.state == "pinned" or fact.kind == "preference"
        )

    def at(self, root: Path) -> "ProjectFacts":
        """Return the facts that are told in a top folder. If it is no repository, another folder
        may have the same name: only those of sessions that worked there, and what was decided.
        """
        if is_work_tree(root):
            return self
        folder = str(root)
        rows = [row for row in self.rows if f"{row.cwd}/".startswith(f"{folder}/")]
        return ProjectFacts(rows, self._decisions.values())

    def holding(self, checkout: Checkout) -> tuple[Fact, ...]:
        """Return the facts that may be told to an agent: neither draft nor dropped, true in this
        checkout, and not said by its instructions files.
        """
        return tuple(
            fact
            for fact in self.all
            if fact.state in ("known", "pinned") and not checkout.why_silent(fact)
        )

    def corrections(self, checkout: Checkout) -> tuple[Correction, ...]:
        """Return where an instructions file names a command that fails here."""
        found = []
        for fact in self.all:
            is_trap = fact.kind == "trap" and fact.tool == SHELL
            if is_trap and fact.state != "dropped" and not (fact.absent or checkout.why_gone(fact)):
                for file, text in checkout.instructions.items():
                    if says(text, fact.subject) and not warns(text, fact.subject):
                        found.append(Correction(file=file, says=fact.subject, fact=fact))
        return tuple(found)

    def _weight_of(self, sightings: Iterable[Sighting]) -> float:
        sessions = {sighting.row.session for sighting in sightings}
        return round(sum(self._weights[session] for session in sorted(sessions)), 4)

    @cached_property
    def worked_on(self) -> tuple[WorkedOn, ...]:
        """What each session worked on, the oldest first."""
        return work_of_sessions(self.rows)

    def is_frequent(self, fact: Fact) -> bool:
        """Whether a fact comes up often enough to be told before anything is known."""
        return fact.weight >= _FREQUENT * sum(self._weights.values())

    def on_branch(self, branch: str) -> Sequence[WorkedOn]:
        """Return what sessions on a branch worked on, the last first; nothing for the main branch,
        which is everybody's.
        """
        is_own = branch not in MAIN_BRANCHES
        return [one for one in reversed(self.worked_on) if is_own and one.branch == branch]

    def _decided(self, fact: Fact) -> Fact:
        decision = self._decisions.get(fact.id)
        if decision is None:
            return fact
        # In the person's words it is what they want, whatever it was counted from.
        words = {"kind": "preference", "text": decision.text} if decision.text else {}
        return replace(fact, state=decision.state, **words)

    def _fact(
        self, kind: FactKind, subject: str, text: str, sightings: Sequence[Sighting], **more: Any
    ) -> Fact:
        times = [sighting.row.at for sighting in sightings if sighting.row.at is not None]
        newest = sorted(sightings, key=lambda one: (-(one.row.at or -math.inf), one.row.session))
        return Fact(
            id=fact_id(kind, subject),
            kind=kind,
            subject=subject,
            text=text,
            sessions=tuple(dict.fromkeys(one.row.session for one in newest)),
            times=len(sightings),
            first_at=min(times, default=None),
            last_at=max(times, default=None),
            weight=self._weight_of(sightings),
            **more,
        )

    def _confirmed(
        self, items: str, key_of: Callable[[Any], Any], least: int = CONFIRMED
    ) -> Iterator[tuple[Any, Sequence[Sighting]]]:
        """Yield the items of episodes, by this key, that so many sessions show which had taken in
        nothing from outside by then, the most frequent first. What has no key does not count.
        """
        groups: defaultdict[Any, list[Sighting]] = defaultdict(list)
        for row in self.rows:
            for item in () if row.observed.tainted else getattr(row.observed, items):
                if key := key_of(item):
                    groups[key].append(Sighting(row, item))
        order = {key: (-self._weight_of(group), str(key)) for key, group in groups.items()}
        for key in sorted(groups, key=order.__getitem__):
            if len({one.row.session for one in groups[key]}) >= least:
                yield key, groups[key]

    def _commands(self) -> list[Fact]:
        def key_of(use: CommandUse) -> tuple[str, str] | None:
            is_own = use.worked and is_project_command(use.name)
            return (use.folder, subject_of(use.name)) if is_own else None

        facts = []
        for (folder, name), seen in self._confirmed("commands", key_of):
            form = placed(usual_form((row.session, use.form) for row, use in seen), folder)
            if form == placed("", folder):
                continue
            seconds = median([use.seconds for _, use in seen if use.seconds] or [0.0])
            took = f" ({_duration(seconds)})" if seconds >= _SLOW_S else ""
            program = name.partition(" ")[0]
            is_run = subject_of(seen[0].item.name) != seen[0].item.name  # by an interpreter
            script = program if "/" in program else name if is_run else ""
            path = posixpath.join(folder, script).rstrip("/")
            more = {"present": (path,) if path else (), "detail": form}
            subject = placed(name, folder)
            facts.append(self._fact("command", subject, f"`{form}`{took}", seen, **more))
        return facts

    def _traps(self) -> list[Fact]:
        def key_of(trap: Trap) -> tuple[str, str, str]:
            return trap.reason, trap.tool, program_of(trap.failed)

        worked: defaultdict[str, list[EpisodeRow]] = defaultdict(list)
        proven: set[str] = set()
        for row in self.rows:
            for use in row.observed.commands:
                if use.worked:
                    proven.add(placed(use.name, use.folder))
                if use.worked and not use.folder:
                    worked[program_of(use.name)].append(row)
        facts = []
        for (reason, tool, failed), sightings in self._confirmed("traps", key_of):
            # What usually works is no trap, however often it failed; what worked only before is.
            times = [one.row.at or 0.0 for one in sightings]
            since = [row for row in worked[failed] if (row.at or 0.0) >= min(times)]
            if reason in _OF_COMMANDS and len(since) >= len(sightings):
                continue
            later = {row.session for row in since if (row.at or 0.0) > max(times)}
            if len(later) >= CONFIRMED:
                continue
            remedies: defaultdict[str, set[SessionId]] = defaultdict(set)
            for row, trap in sightings:
                is_command = reason in _OF_COMMANDS and " " in trap.works
                if trap.works and (trap.works in proven or not is_command):
                    remedies[trap.works].add(row.session)
            works = max(remedies, key=lambda one: (len(remedies[one]), one), default="")
            if reason != "path" and len(remedies[works]) < CONFIRMED:
                works = ""
            if not works and reason in ("check", "arguments"):
                continue  # without another way there is nothing to say
            forms = sorted({one.item.failed for one in sightings})
            fact = self._fact(
                "trap",
                failed if tool == SHELL else f"{tool}({failed})",
                ", ".join(f"`{form}`" for form in forms),
                sightings,
                detail=reason,
                remedy=works,
                tool=tool,
                target=failed.partition(" ")[0] if reason == "program" and failed in forms else "",
                absent=(failed,) if reason == "path" else (),
                present=(works,) if reason == "path" and works else (),
            )
            facts.append(fact)
        return facts

    def _findings(self) -> list[Fact]:
        # The name of a rule needs no second witness once linters have reported twice.
        found = [*self._confirmed("findings", lambda finding: finding.rule, least=1)]
        if len({row.session for _, sightings in found for row, _ in sightings}) < CONFIRMED:
            return []
        facts = []
        for rule, sightings in found:
            detail = "test" if check_kind(sightings[0].item.command) == "test" else "rule"
            fact = self._fact("finding", rule, rule, sightings, detail=detail)
            if detail == "rule" or len(fact.sessions) >= CONFIRMED:
                facts.append(fact)
        return facts

    def _preferences(self) -> list[Fact]:
        """Return what the person said against calls, as drafts, and what they told us to remember.
        What a second session repeats is known.
        """
        told = [
            Fact(
                id=decision.id,
                kind=decision.kind,
                subject=decision.text,
                text=decision.text,
                first_at=decision.at,
                last_at=decision.at,
                weight=1.0,
            )
            for decision in self._decisions.values()
            if decision.id.startswith(TOLD)
        ]
        remarks = [
            Sighting(row, remark)
            for row in sorted(self.rows, key=lambda row: (row.at or 0.0, row.session, row.row))
            for remark in row.observed.remarks
            if row.platform.lower() not in BOT_PLATFORMS
        ]
        facts = []
        for sightings in grouped(remarks, lambda one: one.item.words):
            remark = sightings[0].item
            fact = self._fact("preference", remark.words, f'"{_quotable(remark.words)}"', sightings)
            is_repeated = len(fact.sessions) >= CONFIRMED and may_be_told(remark.words)
            state: FactState = "known" if is_repeated else "draft"
            facts.append(replace(fact, state=state, tool=remark.tool, target=remark.target))
        is_new = (not any(is_alike(fact.subject, one.subject) for one in told) for fact in facts)
        return [*told, *compress(facts, is_new)]


def _is_newer(one: Fact | None, other: Fact) -> bool:
    return one is not None and (one.last_at or 0.0) > (other.last_at or 0.0)


def _with_remedy(trap: Fact, commands: Mapping[str, Fact], traps: Mapping[str, Fact]) -> Fact:
    """Return a trap, whose text names only what failed, with what works instead by now, in its
    usual form.
    """
    remedy, present = trap.remedy, trap.present
    failing = traps.get(subject_of(remedy))
    if failing is not None and not _is_newer(trap, failing):
        remedy, present = failing.remedy if failing.remedy != trap.subject else "", ()
    shown = remedy
    command = commands.get(subject_of(remedy))
    if command is not None and trap.detail in _OF_COMMANDS:
        is_runner = trap.subject in SCRIPT_RUNNERS  # what it ran there is not what it is for
        shown = generalised(command.detail) if is_runner else command.detail
        present = command.present
    text = _trap_text(trap, shown)
    return replace(trap, text=text, remedy=remedy, present=present)


def _trap_text(trap: Fact, works: str) -> str:
    if trap.detail == "path":
        return f"{trap.text} does not exist" + (f" (it is `{works}`)" if works else "")
    if trap.detail == "arguments":
        return f"`{trap.tool}` with ({trap.text.strip('`')}), instead of ({works})"
    why = f"no such {trap.detail}" if trap.detail in ("option", "task") else "not available"
    return f"{trap.text} ({f'instead: `{works}`' if works else why})"


def _quotable(words: str) -> str:
    """Return a person's words on one line, in quotes that nothing in them can close."""
    return " ".join(words.split()).replace('"', "'")


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _session_weights(rows: Sequence[EpisodeRow]) -> dict[SessionId, float]:
    """Return the weight of each session: half after `HALF_LIFE` later ones."""
    began: dict[SessionId, float] = {}
    for row in rows:
        at = -math.inf if row.at is None else row.at
        began[row.session] = min(began.get(row.session, at), at)
    ordered = sorted(began, key=lambda session: (-began[session], session))
    return {session: 0.5 ** (number / HALF_LIFE) for number, session in enumerate(ordered)}


def by_folder(paths: Iterable[str]) -> str:
    """Return paths with each folder named once: `src/app/: cart.py, tax.py; docs/: a.md`."""
    folders: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        folder, _, name = path.rpartition("/")
        folders[folder].append(name)
    parts = (
        f"{folder}/: {', '.join(names)}"
        if folder and len(names) > 1
        else ", ".join(f"{folder}/{name}" if folder else name for name in names)
        for folder, names in folders.items()
    )
    return "; ".join(parts)


def first(facts: Iterable[Fact], kind: FactKind, most: int) -> list[Fact]:
    """Return the first facts of a kind, pinned ones before others."""
    found = [fact for fact in facts if fact.kind == kind]
    return sorted(found, key=lambda fact: fact.state != "pinned")[:most]


def usual_form(uses: Iterable[tuple[SessionId, str]]) -> str:
    """Return how a command is usually written, by sessions. If no form is usual, omit what is
    particular to each use. A form of a single session is not shown: that several sessions use a
    command does not vouch for what one of them added.
    """
    forms: defaultdict[str, set[SessionId]] = defaultdict(set)
    for session, written in uses:
        forms[written.partition(_PIPE)[0].removesuffix("2>&1").rstrip()].add(session)
    total = len(set().union(*forms.values()))
    form = _most_used(forms)
    if len(forms[form]) < max(CONFIRMED, _TYPICAL * total) and len(forms) > 1:
        general: defaultdict[str, set[SessionId]] = defaultdict(set)
        for specific, sessions in forms.items():
            general[generalised(specific)] |= sessions
        forms, form = general, _most_used(general)
    return form if len(forms[form]) >= CONFIRMED else ""


def _most_used(forms: Mapping[str, set[SessionId]]) -> str:
    return min(forms, key=lambda form: (-len(forms[form]), form))


def generalised(form: str) -> str:
    """Return a form without what names a file, a number or a value of its own."""
    words: list[str] = []
    for number, word in enumerate(form.split(" ")):
        is_program = number == 0 or (number == 1 and subject_of(form) != form)
        shown = "…" if not is_program and _PARTICULAR.fullmatch(word) else word
        if not (shown == "…" and words and words[-1] == "…"):
            words.append(shown)
    return " ".join(words)
