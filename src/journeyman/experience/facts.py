"""The facts of a project, counted over its episodes: commands, traps, findings, what the person
said, and which files its sessions worked on.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from statistics import median
from typing import Any, NamedTuple

from msgspec.structs import replace

from journeyman.experience.checkout import Checkout, says
from journeyman.experience.command_forms import CONFIRMED, generalised, usual_form
from journeyman.experience.continuity import (
    MAIN_BRANCHES,
    WorkedOn,
    likely_files,
    work_of_sessions,
)
from journeyman.experience.preferences import find_wishes
from journeyman.learning.commands import (
    SCRIPT_RUNNERS,
    check_kind,
    is_project_command,
    names_folder,
    placed,
    program_of,
    subject_of,
)
from journeyman.learning.traps import SHELL
from journeyman.records import SessionId, TrapReason
from journeyman.records.fact import (
    TOLD,
    Correction,
    Fact,
    FactDecision,
    FactKind,
    FactState,
    fact_id,
)
from journeyman.records.session import BOT_PLATFORMS
from journeyman.store.episodes import EpisodeRow

HALF_LIFE = 40
"""After this many later sessions of the project, a session counts half: projects change."""

_FADED = 0.5
"""A fact whose sessions weigh less than this in sum has faded: nothing has confirmed it lately."""

_FREQUENT = 0.05
"""The share of recent sessions from which a trap or a command is told at the start."""

_SLOW_S = 5.0


class Sighting(NamedTuple):
    """An episode, and what was seen in it."""

    row: EpisodeRow
    item: Any


def of_project(rows: Iterable[EpisodeRow], *, bots: bool) -> tuple[list[EpisodeRow], int]:
    """Return the episodes of people's sessions, and how many sessions of bots are left out. With
    `bots`, and where only bots spoke, return all.
    """
    found = list(rows)
    people = [row for row in found if row.platform.lower() not in BOT_PLATFORMS]
    kept = found if bots or not people else people
    return kept, len({row.session for row in found} - {row.session for row in kept})


class ProjectFacts:
    """The facts that the episodes of one project show, and what a person decided about them."""

    def __init__(
        self,
        project: str,
        rows: Sequence[EpisodeRow],
        decisions: Iterable[FactDecision] = (),
        *,
        bots: bool = False,
    ) -> None:
        self.project = project
        self.rows, self.bots = of_project(rows, bots=bots)
        self.sessions = len({row.session for row in self.rows})
        self._decisions = {decision.id: decision for decision in decisions}
        self._weights = _session_weights(self.rows)

    @cached_property
    def all(self) -> tuple[Fact, ...]:
        """All facts but those of one moment, whether they hold in a checkout or not, the most
        useful of each kind first. Dropped ones and drafts are among them.
        """
        commands = self._commands()
        newer = {fact.subject: fact.last_at or 0.0 for fact in commands}
        # Of two facts that disagree, the newer one is right.
        known: dict[str, Fact] = {}
        for fact in self._traps():
            if (fact.last_at or 0.0) >= newer.get(fact.subject, -math.inf):
                known.setdefault(fact.subject, fact)
        traps = [self._with_remedy(self._followed(one, known), commands) for one in known.values()]
        facts = [fact for fact in commands if not _is_outdated(fact, known)]
        facts += [*traps, *self._findings(), *self._preferences()]
        decided = map(self._decided, facts)
        return tuple(
            fact
            for fact in decided
            if fact.weight >= _FADED or fact.state == "pinned" or fact.kind == "preference"
        )

    def of_folder(self, folder: str) -> "ProjectFacts":
        """Return the facts of a folder that is in no repository: those of the sessions that worked
        there, and what was decided. Another folder may have the same name.
        """
        rows = [
            row for row in self.rows if row.cwd == folder or f"{row.cwd}/".startswith(f"{folder}/")
        ]
        return ProjectFacts(self.project, rows, self._decisions.values(), bots=True)

    def holding(self, checkout: Checkout) -> tuple[Fact, ...]:
        """Return the facts that may be told to an agent: neither draft nor dropped, true in this
        checkout, and not said by its instructions files.
        """
        return tuple(
            fact
            for fact in self.all
            if fact.state in ("known", "pinned") and self.why_silent(fact, checkout) == ""
        )

    def why_silent(self, fact: Fact, checkout: Checkout) -> str:
        """Return why a fact is not told in this checkout; empty if it is."""
        if gone := self._why_gone(fact, checkout):
            return gone
        if fact.state == "pinned":
            return ""
        written = checkout.instructions
        if fact.kind == "command" and says(written, fact.subject):
            return "an instructions file says it"
        if fact.kind == "trap" and fact.remedy and says(written, subject_of(fact.remedy)):
            return "an instructions file says it"
        return ""

    @staticmethod
    def _why_gone(fact: Fact, checkout: Checkout) -> str:
        """Return why a fact does not hold in this checkout; empty if it does."""
        if any(checkout.exists(path) is False for path in fact.present):
            return "it names something that no longer exists"
        if any(checkout.exists(path) is True for path in fact.absent):
            return "what was missing exists now"
        if fact.kind == "trap" and fact.target and checkout.is_installed(fact.target):
            return "the program is installed now"
        if fact.detail == "task" and checkout.has_task(fact.subject) is True:
            return "the task exists now"
        works = fact.subject if fact.kind == "command" else fact.remedy
        is_here = works and is_project_command(works) and not names_folder(fact.detail)
        if is_here and checkout.has_task(works) is False:
            return "it names a task that no longer exists"
        return ""

    def corrections(self, checkout: Checkout) -> tuple[Correction, ...]:
        """Return where an instructions file names a command that fails here."""
        found = []
        for fact in self.all:
            if self._why_gone(fact, checkout):
                continue
            if fact.kind == "trap" and fact.tool == SHELL and fact.remedy and not fact.absent:
                for file, text in checkout.instructions.items():
                    if fact.state != "dropped" and says({file: text}, fact.subject):
                        found.append(Correction(file=file, says=fact.subject, fact=fact))
        return tuple(found)

    def weight_of(self, sightings: Iterable[Sighting]) -> float:
        sessions = {sighting.row.session for sighting in sightings}
        return round(sum(self._weights[session] for session in sorted(sessions)), 4)

    @cached_property
    def worked_on(self) -> tuple[WorkedOn, ...]:
        """What each session worked on, the oldest first."""
        return work_of_sessions(self.rows)

    def is_frequent(self, fact: Fact) -> bool:
        """Whether a fact comes up often enough to be told before anything is known."""
        return fact.weight >= _FREQUENT * sum(self._weights.values())

    def last_on_branch(self, branch: str) -> WorkedOn | None:
        """Return the last session on a branch of its own; None on the main branch."""
        if branch in MAIN_BRANCHES:
            return None
        same = (one for one in reversed(self.worked_on) if one.branch == branch and not one.is_bot)
        return next(same, None)

    def likely_files(self, branch: str, person: str) -> list[str]:
        """Return the files of earlier sessions, the likeliest to be needed next before others."""
        return likely_files(self.worked_on, branch, person)

    def files_of_branch(self, branch: str) -> set[str]:
        """Return the files that sessions on a branch of its own used."""
        if branch in MAIN_BRANCHES:
            return set()
        return {path for one in self.worked_on if one.branch == branch for path in one.files}

    def _decided(self, fact: Fact) -> Fact:
        decision = self._decisions.get(fact.id)
        if decision is None:
            return fact
        if not decision.text:
            return replace(fact, state=decision.state)
        # In the person's words it is what they want, whatever it was counted from.
        return replace(fact, state=decision.state, kind="preference", text=decision.text)

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
            weight=self.weight_of(sightings),
            **more,
        )

    def _confirmed(
        self, sightings: Mapping[Any, Sequence[Sighting]], least: int = CONFIRMED
    ) -> Iterator[tuple[Any, Sequence[Sighting]]]:
        """Yield what so many sessions show that had taken in nothing from outside by then, the most
        frequent first.
        """
        kept = {}
        for key, seen in sightings.items():
            clean = [one for one in seen if not one.row.observed.tainted]
            if len({one.row.session for one in clean}) >= least:
                kept[key] = clean
        weights = {key: self.weight_of(seen) for key, seen in kept.items()}
        for key in sorted(kept, key=lambda one: (-weights[one], str(one))):
            yield key, kept[key]

    def _commands(self) -> list[Fact]:
        uses: defaultdict[tuple[str, str], list[Sighting]] = defaultdict(list)
        for row in self.rows:
            for use in row.observed.commands:
                if use.worked and is_project_command(use.name):
                    uses[use.folder, subject_of(use.name)].append(Sighting(row, use))
        facts = []
        for (folder, name), seen in self._confirmed(uses):
            form, subject = (
                placed(usual_form(((row.session, use.form) for row, use in seen)), folder),
                placed(name, folder),
            )
            if form == placed("", folder):
                continue
            seconds = median([use.seconds for _, use in seen if use.seconds] or [0.0])
            took = f" ({_duration(seconds)})" if seconds >= _SLOW_S else ""
            script = name.partition(" ")[0] if "/" in name.partition(" ")[0] else ""
            if not script and subject_of(seen[0].item.name) != seen[0].item.name:
                script = name
            paths = [f"{folder}/{script}" if folder else script] if script else []
            present = tuple(paths or filter(None, [folder]))
            more = {"present": present, "detail": form}
            facts.append(self._fact("command", subject, f"`{form}`{took}", seen, **more))
        return facts

    def _traps(self) -> list[Fact]:
        seen: defaultdict[tuple[TrapReason, str, str], list[Sighting]] = defaultdict(list)
        worked: defaultdict[str, list[Sighting]] = defaultdict(list)
        for row in self.rows:
            for trap in row.observed.traps:
                seen[trap.reason, trap.tool, program_of(trap.failed)].append(Sighting(row, trap))
            for use in row.observed.commands:
                if use.worked and not use.folder:
                    worked[program_of(use.name)].append(Sighting(row, use))
        facts = []
        for (reason, tool, failed), sightings in self._confirmed(seen):
            # What usually works is no trap, however often it failed; what worked only before is.
            times = [one.row.at or 0.0 for one in sightings]
            since = [one for one in worked[failed] if (one.row.at or 0.0) >= min(times)]
            if reason in ("program", "task") and len(since) >= len(sightings):
                continue
            # Of two facts that disagree, the newer one is right.
            later = {one.row.session for one in since if (one.row.at or 0.0) > max(times)}
            if len(later) >= CONFIRMED:
                continue
            remedies: defaultdict[str, set[SessionId]] = defaultdict(set)
            for row, trap in sightings:
                if trap.works:
                    remedies[trap.works].add(row.session)
            works = max(remedies, key=lambda one: (len(remedies[one]), one), default="")
            if works and len(remedies[works]) < CONFIRMED and reason != "path":
                works = ""
            forms = sorted({one.item.failed for one in sightings})
            fact = self._fact(
                "trap",
                failed if tool == SHELL else f"{tool}({failed})",
                _trap_text(reason, tool, forms, works),
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

    def _with_remedy(self, fact: Fact, commands: Sequence[Fact]) -> Fact:
        """Return a trap with the usual form of the command that works instead."""
        subject = subject_of(fact.remedy) if fact.remedy else ""
        known = next((one for one in commands if one.subject == subject), None)
        if known is None or fact.detail not in ("program", "task"):
            return fact
        is_runner = fact.subject in SCRIPT_RUNNERS  # what it ran there is not what it is for
        form = generalised(known.detail) if is_runner else known.detail
        text = fact.text.replace(f"`{fact.remedy}`", f"`{form}`")
        return replace(fact, text=text, present=known.present)

    @staticmethod
    def _followed(fact: Fact, traps: Mapping[str, Fact]) -> Fact:
        """Return a trap with what works in the place of a remedy that fails itself by now."""
        newer = traps.get(subject_of(fact.remedy)) if fact.remedy else None
        if newer is None or (newer.last_at or 0.0) < (fact.last_at or 0.0):
            return fact
        remedy = newer.remedy if newer.remedy != fact.subject else ""
        text = fact.text.partition(" (")[0] + (f" (instead: `{remedy}`)" if remedy else "")
        return replace(fact, text=text, remedy=remedy, present=())

    def _findings(self) -> list[Fact]:
        seen: defaultdict[str, list[Sighting]] = defaultdict(list)
        for row in self.rows:
            for finding in row.observed.findings:
                seen[finding.rule].append(Sighting(row, finding))
        linted = {row.session for one in seen.values() for row, _ in one}
        if len(linted) < CONFIRMED:
            return []
        facts = []
        # The name of a rule is one word: it needs no second witness.
        for rule, sightings in self._confirmed(seen, least=1):
            count = len({row.session for row, _ in sightings})
            is_test = check_kind(sightings[0].item.command)
            if is_test == "test" and count < CONFIRMED:
                continue
            detail = "test" if is_test == "test" else "rule"
            facts.append(self._fact("finding", rule, rule, sightings, detail=detail))
        return facts

    def _preferences(self) -> list[Fact]:
        """Return what the person said against calls, as drafts, and what they told us to remember.
        What a second session repeats is known.
        """
        facts = []
        for remark, rows in find_wishes(self.rows):
            sightings = [Sighting(row, remark) for row in rows]
            fact = self._fact("preference", remark.words, f'"{_quotable(remark.words)}"', sightings)
            state: FactState = "known" if len(fact.sessions) >= CONFIRMED else "draft"
            facts.append(replace(fact, state=state, tool=remark.tool, target=remark.target))
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
        return [*told, *facts]


def _is_outdated(command: Fact, traps: Mapping[str, Fact]) -> bool:
    """Whether a command, or the program that it starts, is known to fail by now."""
    program = traps.get(command.subject.partition(" ")[0])
    is_gone = program is not None and (program.last_at or 0.0) > (command.last_at or 0.0)
    return command.subject in traps or is_gone


def _trap_text(reason: str, tool: str, forms: Sequence[str], works: str) -> str:
    failed = ", ".join(f"`{form}`" for form in forms)
    if reason == "path":
        return f"{failed} does not exist" + (f" (it is `{works}`)" if works else "")
    if reason == "arguments":
        return f"`{tool}` with ({forms[0]}), instead of ({works})"
    why = f"no such {reason}" if reason in ("option", "task") else "not available"
    return f"{failed} ({f'instead: `{works}`' if works else why})"


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
        f"{folder}/: {', '.join(names)}" if folder else ", ".join(names)
        for folder, names in folders.items()
    )
    return "; ".join(parts)


def first(facts: Iterable[Fact], kind: FactKind, most: int) -> list[Fact]:
    """Return the first facts of a kind, pinned ones before others."""
    found = sorted(
        (fact for fact in facts if fact.kind == kind), key=lambda fact: fact.state != "pinned"
    )
    return list(islice(found, most))
