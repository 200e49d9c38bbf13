"""What a rule of the gate is: a row with an id, an answer, the programs and the words it is about,
examples and a reason for the person who has to decide. Every row is a test case.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from journeyman.gate.command import Command
from journeyman.gate.decision import Answer, Decision
from journeyman.gate.places import Places

When = Callable[[Command, Places], bool]


def always(_: Command, __: Places) -> bool:
    return True


class Rule(NamedTuple):
    """A row. `programs` empty means any program. An example is a command that this row decides."""

    id: str
    answer: Answer
    reason: str
    examples: tuple[str, ...]
    programs: frozenset[str] = frozenset()
    when: When = always

    @property
    def decision(self) -> Decision:
        return Decision(answer=self.answer, rule=self.id, reason=self.reason)


class Table:
    """Rows, looked up by program. Of those that match, the strongest answer wins, then the first
    row.
    """

    def __init__(self, rows: Iterable[Rule]) -> None:
        self.rows = tuple(rows)
        named = {program for row in self.rows for program in row.programs}
        self._general = tuple(row for row in self.rows if not row.programs)
        self._by_program = {
            program: tuple(row for row in self.rows if not row.programs or program in row.programs)
            for program in named
        }

    def find(self, command: Command, places: Places) -> Rule | None:
        found = None
        for row in self._by_program.get(command.program, self._general):
            if (found is None or row.answer == "refuse") and row.when(command, places):
                if row.answer == "refuse":
                    return row
                found = row
        return found


def programs(names: str) -> frozenset[str]:
    return frozenset(names.split())


def has(*options: str) -> When:
    """One of the options is there."""
    return lambda command, _: command.has(*options)


def told(*commands: str, with_value: tuple[str, ...] = (), exact: bool = False) -> When:
    """The program's own command begins with the words of one of those given: `"stash drop"`; `*`
    is any word. A word that may be an option's value is read both ways, unless all options that
    take one are known (`exact`).
    """
    wanted = [tuple(one.split()) for one in commands]
    first = {one[0] for one in wanted}

    def when(command: Command, _: Places) -> bool:
        if first.isdisjoint(command.arguments) and "*" not in first:
            return False
        said = command.said(*with_value)
        if exact:
            said = [(text, False) for text, _ in said]
        return any(_begins(said, one) for one in wanted)

    return when


def _begins(said: list[tuple[str, bool]], wanted: tuple[str, ...]) -> bool:
    """Whether words can be read as those wanted, leaving out some that may be values."""
    reached = {0}
    for text, may_be_value in said:
        further = {at + 1 for at in reached if wanted[at] in (text, "*")}
        if len(wanted) in further:
            return True
        reached = further | reached if may_be_value else further
        if not reached:
            return False
    return False


def not_told(*commands: str, with_value: tuple[str, ...] = (), flags: tuple[str, ...] = ()) -> When:
    """The program is told something that may be none of those; `flags` take no value."""
    wanted = [tuple(one.split()) for one in commands]

    def when(command: Command, _: Places) -> bool:
        words = tuple(word for word in command.words if word.text not in flags)
        readings = command._replace(words=words).readings(*with_value)
        return any(said and not any(said[: len(one)] == one for one in wanted) for said in readings)

    return when


def both(*conditions: When) -> When:
    return lambda command, places: all(one(command, places) for one in conditions)


def either(*conditions: When) -> When:
    return lambda command, places: any(one(command, places) for one in conditions)


def no(condition: When) -> When:
    return lambda command, places: not condition(command, places)
