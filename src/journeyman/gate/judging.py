"""The judgement on a script or on code: everything in it is looked at, and the strongest answer
counts, then the first.
"""

from collections.abc import Iterable

from journeyman.gate import characters, code_words, python_code
from journeyman.gate.command import Command
from journeyman.gate.decision import ALLOW, Decision
from journeyman.gate.files import Files, ReadFile
from journeyman.gate.inner import Code, Nested, Script
from journeyman.gate.places import Places
from journeyman.gate.reader import Reader
from journeyman.gate.rule import Rule, Table
from journeyman.gate.rules.databases import DATABASES
from journeyman.gate.rules.deleting import DELETING
from journeyman.gate.rules.environment import ENVIRONMENT
from journeyman.gate.rules.git import GIT
from journeyman.gate.rules.network import NETWORK
from journeyman.gate.rules.packages import PACKAGES
from journeyman.gate.rules.python import PYTHON
from journeyman.gate.rules.services import SERVICES
from journeyman.gate.rules.structure import STRUCTURE
from journeyman.gate.rules.system import SYSTEM
from journeyman.gate.rules.writing import WRITING

LONGEST_COMMAND = 20_000
LONGEST_CODE = 200_000
MOST_DOCUMENTS = 200
"""How many here-documents a command may have; the parser takes long over many."""

DEEPEST = 4
"""How often code may hold a command that holds code."""

COMMANDS = Table(
    (
        *(*DELETING, *WRITING, *ENVIRONMENT, *GIT, *NETWORK, *DATABASES, *SERVICES),
        *(*PACKAGES, *SYSTEM),
    )
)
NOTES: dict[str, Rule] = {row.id: row for row in (*STRUCTURE, *PYTHON)}
_WEIGHT = {"allow": 0, "ask": 1, "refuse": 2}
_MOST_WORDS_WITH_HELP = 4


def strongest(decisions: Iterable[Decision]) -> Decision:
    """The strongest of some decisions; of equals the first."""
    return max(decisions, key=lambda one: _WEIGHT[one.answer], default=ALLOW)


class Judge:
    """Judges scripts and code as seen from one workspace."""

    def __init__(self, places: Places, read: ReadFile) -> None:
        self._places = places
        self._read_file = read

    def script(
        self, text: str, *, folder: str = "", leaving_out: frozenset[str] = frozenset()
    ) -> Decision:
        """What to do with a command line that runs in the workspace or in another folder. Rules may
        be left out where the text may be no command at all.
        """
        if len(text) > LONGEST_COMMAND or text.count("<<") > MOST_DOCUMENTS:
            return NOTES["too_large"].decision
        if characters.hides(text):
            return NOTES["invisible"].decision
        found = self._script(text, 0, self._files(), folder)
        return strongest(one for one in found if one.rule not in leaving_out)

    def python(self, text: str) -> Decision:
        """What to do with Python code. Code that cannot be parsed cannot run."""
        return strongest(self._python(text, 0, self._files()))

    def _files(self) -> Files:
        return Files(self._read_file, self._places)

    def _python(self, text: str, depth: int, files: Files) -> Iterable[Decision]:
        if len(text) > LONGEST_CODE:
            yield NOTES["too_large"].decision
            return
        found = python_code.look(text, self._places)
        for note in found.notes:
            yield NOTES[note].decision
        for inner in found.inner:
            if depth >= DEEPEST:
                yield NOTES["too_deep"].decision
            elif isinstance(inner, Script):
                yield from self._script(inner.text, depth + 1, files)
            elif isinstance(inner, Code):
                yield from self._python(inner.text, depth + 1, files)
            elif isinstance(inner, Nested):
                reader = Reader(self._places, files=files)
                reader.follow(inner.command)
                yield from self._read(reader, depth + 1, files)

    def _script(self, text: str, depth: int, files: Files, folder: str = "") -> Iterable[Decision]:
        cwd = self._places.resolve(folder or ".", self._places.workspace)
        reader = Reader(self._places, cwd, files=files)
        reader.read(text)
        yield from self._read(reader, depth, files)

    def _read(self, reader: Reader, depth: int, files: Files) -> Iterable[Decision]:
        for note in reader.findings.notes:
            yield NOTES[note].decision
        for command in reader.findings.commands:
            if _asks_for_help(command):
                continue
            if command.words and characters.misleads(command.words[0].text, command.arguments):
                yield NOTES["invisible"].decision
            row = COMMANDS.find(command, self._places)
            if row is not None:
                yield row.decision
        for code in reader.findings.code:
            yield from self._code(code, depth, files)

    def _code(self, code: Code, depth: int, files: Files) -> Iterable[Decision]:
        if depth >= DEEPEST:
            yield NOTES["too_deep"].decision
        elif code.language == "python":
            yield from self._python(code.text, depth + 1, files)
        elif code_words.is_dangerous(code, self._places):
            yield NOTES["code.dangerous"].decision


def _asks_for_help(command: Command) -> bool:
    """`git push --help` shows a page; so do all programs whose last word is this one."""
    words = command.arguments
    if not words or "/" in command.words[0].text:
        return False
    return (
        words[-1:] in (("--help",), ("--version",))
        and len(words) < _MOST_WORDS_WITH_HELP
        and not command.redirects
        and not command.settings
    )
