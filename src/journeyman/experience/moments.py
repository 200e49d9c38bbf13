"""The moments at which something is said to an agent, and what. Everything else is silence. The
table says which kinds of facts a moment may use, and how long its text may be.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from journeyman.experience.checkout import Checkout, says
from journeyman.experience.continuity import likely_files
from journeyman.experience.facts import ProjectFacts, by_folder, first
from journeyman.experience.preferences import QUOTED_SPEECH, forbids_by_name
from journeyman.learning.agent_tools import file_path, operation_of, shell_command
from journeyman.learning.commands import (
    check_kind,
    commands_of,
    is_project_command,
    names_folder,
    placed,
    program_of,
    subject_of,
)
from journeyman.learning.requests import without_quotes
from journeyman.learning.slots import CHANGES, Location, operands, path_inside, signature
from journeyman.learning.traps import SHELL, is_made
from journeyman.models.embedder import Embedder
from journeyman.records import Call, Observations
from journeyman.records.fact import Fact, FactKind, fact_id
from journeyman.redaction.instructions import find_suspicion
from journeyman.text.shell import pipelines
from journeyman.text.truncation import truncate

Moment = Literal["start", "prompt", "call", "failure", "compaction"]


class Allowance(NamedTuple):
    """What may be said at a moment: kinds of facts in their order, and how many tokens. With the
    marks around it, a start has at most 300.
    """

    kinds: tuple[FactKind, ...]
    tokens: int


MOMENTS: dict[Moment, Allowance] = {
    "start": Allowance(("preference", "continuity", "command", "trap", "finding"), 264),
    "prompt": Allowance(("trap",), 120),
    "call": Allowance(("preference", "trap", "finding"), 120),
    "failure": Allowance(("preference", "trap"), 80),
    "compaction": Allowance(("command", "continuity"), 200),
}

_MOST_PER_PROMPT = 2
_MOST: dict[FactKind, int] = {"preference": 5, "command": 6, "trap": 6, "finding": 15}
_MOST_FILES = 10
_LONGEST_REQUEST = 160
_TITLES: dict[FactKind, str] = {
    "preference": "Wanted here",
    "command": "Commands of this project",
    "trap": "Fails here",
    "finding": "Lint rules most often broken here",
}

_NO_CODE = frozenset(("md", "txt", "rst", "json", "toml", "yaml", "yml"))
"""Endings of files in which linters of code report nothing."""

_NOT_OWN = re.compile(rf"{QUOTED_SPEECH.pattern}|\S*://\S*")
"""What a person may have copied into a request: quoted text, and addresses."""

_MAKES = re.compile(r"\b(?:create|add|write|new|make|generate|start)\b", re.IGNORECASE)
"""What asks for a file that need not exist."""

Section = tuple[str, Sequence[Fact]]
"""A title, and the facts under it."""


class Advice(Struct, frozen=True, kw_only=True):
    """What is said at a moment: the facts, and the text with them; both empty for silence."""

    moment: Moment
    facts: tuple[Fact, ...] = ()
    text: str = ""

    is_ban: bool = False
    """Whether the person forbade this call, so that it must be said before it runs."""

    @property
    def is_empty(self) -> bool:
        return not self.text


class Moments:
    """Decides what a session in one project is told. `branch` and `person` are those of the
    session, `request_of` returns the request of a stored episode.
    """

    def __init__(
        self,
        facts: ProjectFacts,
        checkout: Checkout,
        *,
        branch: str = "",
        folder: str = "",
        cwd: str = "",
        person: str = "",
        request_of: Callable[[int], str] = lambda _: "",
        kinds: AbstractSet[FactKind] | None = None,
    ) -> None:
        self._facts = facts
        self._checkout = checkout
        self._branch, self._person = branch, person
        self._folder, self._cwd = folder, cwd or folder
        self._request_of = request_of
        self._kinds = kinds
        self._count = Embedder().count_tokens

    def start(
        self, tools: Collection[str] = (), *, tokens: int | None = None, before_calls: bool = False
    ) -> Advice:
        """Return what a session begins with, in at most so many `tokens`: nothing in a project
        without facts. What is about a tool that models do not know is told with that tool only,
        and what linters report only if nothing can be said `before_calls`: many sessions change no
        code.
        """
        known = [fact for fact in self._holding if self._may_start(fact, tools)]
        if before_calls:
            known = [fact for fact in known if fact.kind != "finding"]
        # What a trap says is to be used instead needs no second mention, if there is room for one.
        instead = {subject_of(fact.remedy) for fact in first(known, "trap", _MOST["trap"])}
        twice = {fact.subject for fact in known if fact.kind == "command"} & instead
        once = [fact for fact in known if fact.kind != "command" or fact.subject not in twice]
        advice = self._start(once, tokens)
        has_all = twice <= {subject_of(fact.remedy) for fact in advice.facts}
        return advice if has_all else self._start(known, tokens)

    def _start(self, known: Sequence[Fact], tokens: int | None) -> Advice:
        sections: list[Section] = []
        for kind in MOMENTS["start"].kinds:
            if kind == "continuity":
                sections += _one_each(self._continuity() if self._is_told(kind) else [])
            else:
                sections.append((_TITLES[kind], first(known, kind, _MOST[kind])))
        return self._advice("start", sections, tokens)

    def _may_start(self, fact: Fact, tools: Collection[str]) -> bool:
        """Whether a fact is about a tool at hand, and comes up often enough to be told first."""
        if fact.kind == "preference":
            return True
        if fact.tool not in ("", SHELL, *tools) or fact.detail == "test":
            return False
        is_rare = fact.kind in ("command", "trap") and not self._facts.is_frequent(fact)
        return fact.state == "pinned" or not is_rare

    def prompt(
        self, text: str, shown: AbstractSet[str] = frozenset(), *, tokens: int | None = None
    ) -> Advice:
        """Return at most two facts that a request needs and the session has not seen."""
        named = [fact for fact in self._holding if _is_named(fact, text)]
        new = [fact for fact in named if fact.id not in shown]
        return self._advice("prompt", _one_each(new[:_MOST_PER_PROMPT]), tokens)

    def call(self, call: Call, told: AbstractSet[str] = frozenset()) -> Advice:
        """Return what is known against exactly this call, unless it was `told` at a call before;
        at the first change of code, what linters report. What the start said bears repeating here.
        """
        about = self._about(call, MOMENTS["call"].kinds, told)
        found = [fact for fact in about if fact.remedy or fact.kind == "preference"][:1]
        if found or not self._changes_code(call):
            advice = self._advice("call", _one_each(found))
            return replace(advice, is_ban=any(_is_ban(fact, call) for fact in found))
        rules = [
            fact for fact in self._holding if self._may_start(fact, ()) and fact.kind == "finding"
        ]
        if any(fact.id in told for fact in rules):
            return Advice(moment="call")
        return self._advice(
            "call", [(_TITLES["finding"], first(rules, "finding", _MOST["finding"]))]
        )

    def failure(self, call: Call, told: AbstractSet[str] = frozenset()) -> Advice:
        """Return what works in the place of a call that has just failed, unless it was `told` at a
        call.
        """
        found = self._about(call, MOMENTS["failure"].kinds, told)
        new = [fact for fact in found if fact.remedy and fact.remedy not in (call.result or "")]
        return self._advice("failure", _one_each(new[:1]))

    def compaction(self, own: Sequence[Observations], start: str) -> Advice:
        """Return the session's own working commands and open ends, as far as their kinds are told,
        after the text of its start.
        """
        uses = Counter(
            placed(use.form, use.folder)
            for seen in own
            for use in seen.commands
            if use.worked and (is_project_command(use.name) or check_kind(use.name))
        )
        checks = {seen.check.command: seen.check.worked for seen in own if seen.check}
        failed = [command for command, has_worked in checks.items() if not has_worked]
        changed = [file.path for seen in own for file in seen.files if file.changed]
        open_ends = tuple(failed)
        forms = [
            form for form in uses if f"`{form}`" not in start and not form.startswith(open_ends)
        ]
        forms = sorted(forms, key=lambda form: -uses[form])[: _MOST["command"]]
        sections: list[Section] = []
        if self._is_told("command"):
            worked = [_own_fact("command", form, f"`{form}`") for form in forms]
            sections.append(("Commands that worked", worked))
        said = ", ".join(f"`{command}`" for command in failed)
        latest = by_folder([*dict.fromkeys(reversed(changed))][:_MOST_FILES])
        for title, text in (("Failed last", said), ("Changed so far", latest)):
            if text and self._is_told("continuity"):
                sections.append((title, [_own_fact("continuity", title, text)]))
        own_part = self._advice("compaction", sections).text
        return Advice(moment="compaction", text="\n\n".join(filter(None, (start, own_part))))

    def reasons(self) -> dict[str, str]:
        """Return why each fact of the project is not told at the moment."""
        return {
            fact.id: "the playbook in an instructions file says it"
            if self._is_in_playbook(fact)
            else self._checkout.why_silent(fact)
            for fact in self._facts.all
        }

    @cached_property
    def _holding(self) -> tuple[Fact, ...]:
        told = (fact for fact in self._facts.holding(self._checkout) if self._is_told(fact.kind))
        return tuple(fact for fact in told if not self._is_in_playbook(fact))

    def _is_in_playbook(self, fact: Fact) -> bool:
        return f"- {fact.text}\n" in self._checkout.playbook

    def _is_told(self, kind: FactKind) -> bool:
        return self._kinds is None or kind in self._kinds

    def _continuity(self) -> list[Fact]:
        """Return what the last session on this branch asked for and how its last check ended, the
        files that the next one is likely to need, and which of them are not committed.
        """
        facts = []
        on_branch = self._facts.on_branch(self._branch)
        last = next((one for one in on_branch if not one.is_bot), None)
        if last is not None:
            request = _NOT_OWN.sub("…", without_quotes(self._request_of(last.row)))
            request = " ".join(request.split())
            if request and find_suspicion((request,)) is None:
                said = truncate(request, _LONGEST_REQUEST).replace('"', "'")
                ended = "worked" if last.check and last.check.worked else "failed"
                check = f" Its last `{last.check.command}` {ended}." if last.check else ""
                day = last.at and f" ({datetime.fromtimestamp(last.at, UTC):%Y-%m-%d})"
                text = f'The last session on this branch{day or ""} was asked: "{said}".{check}'
                facts.append(_own_fact("continuity", f"branch {self._branch}", text))
        own = {path for one in on_branch for path in one.files}
        likely = (
            path
            for path in likely_files(self._facts.worked_on, self._branch, self._person)
            if (path in own or not own) and self._checkout.exists(path) is not False
        )
        files = [*islice(likely, _MOST_FILES)]
        people = {one.person for one in self._facts.worked_on} - {""}
        if files and (own or self._person in people):
            where = "in this branch" if own else "in recent sessions"
            text = f"Files worked on {where}: {by_folder(files)}"
            changed = self._checkout.uncommitted()
            if uncommitted := by_folder(path for path in files if path in changed):
                text += f". Not committed: {uncommitted}"
            facts.append(_own_fact("continuity", "files", text, present=tuple(files)))
        return facts

    def _changes_code(self, call: Call) -> bool:
        path = file_path(call.tool, call.arguments)
        is_change = operation_of(call.tool, call.arguments) in CHANGES
        return is_change and path.rpartition(".")[2].lower() not in _NO_CODE

    def _about(self, call: Call, kinds: Sequence[FactKind], shown: AbstractSet[str]) -> list[Fact]:
        """Return the facts about exactly this call, in the order of the kinds."""
        line = shell_command(call.tool, call.arguments)
        where = Location(self._cwd, self._folder).of(call)
        commands = commands_of(line)
        here = [command for command in commands if not names_folder(command.form)]
        programs = {words[0] for words in pipelines(line)} if line else set()
        names = {command.name for command in here} | programs
        # What stands behind `--` is for another program.
        forms = [f"{command.form} ".partition(" -- ")[0].split() for command in here]
        paths = {path_inside(word, self._folder, where) for word in operands(line)}
        paths.add(path_inside(file_path(call.tool, call.arguments), self._folder, where))

        def is_about(fact: Fact) -> bool:
            if fact.kind == "preference" and not fact.detail:
                about = {command.name for command in commands}
                is_target = bool(fact.target) and fact.target in {*about, *paths, call.tool}
                return is_target or any(
                    says(fact.text, name) for one in about for name in _names(one)
                )
            if fact.kind in ("finding", "command"):
                return False
            if fact.detail == "path":
                return bool(fact.remedy) and fact.absent[0] in paths and not is_made(call)
            if fact.detail == "option":
                name, _, option = fact.subject.rpartition(" ")
                return where == "" and name in names and any(option in form for form in forms)
            if fact.detail in ("program", "check", "task"):
                is_called = fact.subject in map(program_of, names)
                return is_called and (where == "" or fact.detail != "task")
            return call.tool == fact.tool and fact.subject == f"{call.tool}({signature(call)})"

        facts = [fact for fact in self._holding if fact.id not in shown and is_about(fact)]
        return [fact for kind in kinds for fact in facts if fact.kind == kind]

    def _advice(
        self, moment: Moment, sections: Sequence[Section], tokens: int | None = None
    ) -> Advice:
        """Return what fits into the moment's tokens, the first things first."""
        head, most = self._heading(moment), MOMENTS[moment].tokens
        most = most if tokens is None else min(most, tokens)
        lines: list[str] = []
        facts: list[Fact] = []
        for title, parts in sections:
            line = ""
            for fact in parts:
                begun = line or (f"- {title}:" if title else "-")
                longer = f"{begun}{';' if line else ''} {fact.text}"
                if self._count("\n".join((head, *lines, longer))) <= most:
                    line = longer
                    facts.append(fact)
            lines += [line] if line else []
        if not lines:
            return Advice(moment=moment)
        return Advice(moment=moment, facts=tuple(facts), text="\n".join((head, *lines)))

    def _heading(self, moment: Moment) -> str:
        if moment == "compaction":
            return "Journeyman: this session so far."
        if moment != "start":
            return "Journeyman, from earlier sessions here:"
        count = self._facts.sessions
        if not count:
            return "Journeyman: what is wanted in this project."
        sessions = "1 earlier session shows" if count == 1 else f"{count} earlier sessions show"
        is_below = self._cwd.rstrip("/") != self._folder.rstrip("/")
        where = " Paths and commands are for its top folder." if is_below else ""
        return f"Journeyman: what {sessions} of this project.{where}"


def _names(command: str) -> list[str]:
    """Return how a person names a command, also without its last word: `git stash push`. A program
    alone may be an everyday word.
    """
    shorter = command.rpartition(" ")[0]
    return [name for name in (command, shorter) if " " in name or "/" in name]


def _is_ban(fact: Fact, call: Call) -> bool:
    """Whether a person's words forbid this call by its name."""
    commands = [one.name for one in commands_of(shell_command(call.tool, call.arguments))]
    names = {name for command in commands for name in _names(command)}
    called = {*commands, *map(program_of, commands)}
    known = called & {fact.target, fact.subject} if commands else {fact.target}
    names |= known | {name.rpartition(" ")[2] for name in known}  # "never stash", of `git stash`
    is_wish = fact.kind == "preference"
    return is_wish and any(forbids_by_name(fact.text, name) for name in names if name)


def _one_each(facts: Iterable[Fact]) -> list[Section]:
    return [(_TITLES.get(fact.kind, ""), [fact]) for fact in facts]


def _own_fact(kind: FactKind, subject: str, text: str, present: tuple[str, ...] = ()) -> Fact:
    return Fact(id=fact_id(kind, subject), kind=kind, subject=subject, text=text, present=present)


def _is_named(fact: Fact, text: str) -> bool:
    """Whether a request names what a trap of the shell is about. The name of a program may be an
    everyday word, so it counts in code only.
    """
    if fact.kind != "trap" or fact.tool != SHELL:
        return False
    if fact.detail == "path" and not fact.remedy and _MAKES.search(text):
        return False
    if fact.detail in ("program", "check") and fact.subject.isalpha():
        return f"`{fact.subject}" in text
    return says(text, fact.subject)
