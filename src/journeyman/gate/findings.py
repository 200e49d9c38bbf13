"""What a reading of a script comes to: commands, code and notes, and how far it may go."""

from dataclasses import dataclass, field

from journeyman.gate.command import Command
from journeyman.gate.inner import Code

DEEPEST = 20
"""How many levels may be nested: brackets, loops, substitutions, scripts in scripts."""

DEEPEST_CALLS = 4 * DEEPEST
"""The same for statements of any kind, nested or not."""

MOST_STEPS = 1_000
"""How many statements are looked at; loops over known words are walked once for each word."""

MOST_WORDS = 1_000
"""How many words all commands may have together, those inside others counted again."""


@dataclass
class Findings:
    """Grows while a script is read. Notes are ids of the rules in `rules.structure`."""

    commands: list[Command] = field(default_factory=list)
    code: list[Code] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    steps: int = 0
    depth: int = 0
    calls: int = 0
    words: int = 0
    more: int = 0
    stopped: bool = False

    def note(self, rule: str) -> None:
        self.notes.append(rule)

    def take(self, command: Command) -> None:
        """Keeps a command, unless there are too many words to look at."""
        self.words += len(command.words)
        if self.words > MOST_WORDS + self.more:
            self._stop("too_large")
        else:
            self.commands.append(command)

    def allow_for(self, text: str) -> None:
        """A file may be longer than a command line."""
        self.more += len(text) // 8

    def _stop(self, rule: str) -> None:
        if not self.stopped:
            self.note(rule)
        self.stopped = True

    def may_go_on(self, *, deeper: bool = False) -> bool:
        """Counts a step; says no, with a note, when it is one too many or too deep."""
        self.steps += 1
        if self.depth + deeper > DEEPEST or self.calls > DEEPEST_CALLS:
            self._stop("too_deep")
        elif self.steps > MOST_STEPS + self.more:
            self._stop("too_large")
        return not self.stopped
