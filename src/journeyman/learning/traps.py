"""Calls that failed for a reason that holds for the project, and what then reached the same end.
Only words of the calls are kept: the message of a failure is compared with them, never stored.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain

from journeyman.learning.agent_tools import KNOWN_TOOLS, file_path, operation_of, shell_command
from journeyman.learning.commands import (
    Command,
    check_kind,
    is_project_command,
    names_source,
    placed,
)
from journeyman.learning.sanitizer import redacted_line
from journeyman.learning.slots import (
    CHANGES,
    ServingCall,
    is_sound,
    is_sound_path,
    operands,
    path_inside,
    signature,
)
from journeyman.records import Call, Trap, Verdict
from journeyman.text.shell import pipelines

SHELL = "shell"
"""The tool of a trap that concerns a shell command, whatever the agent calls its shell."""

READ = 20_000
"""How much of a result is searched, from its beginning and from its end."""

_MESSAGE = 1_000
"""The same for messages of shells and runners: what is in the middle, others have written."""

WITHIN = 12
"""The end that a failed call was for must be reached within this many calls."""

_LONGEST = 200
_NO_PATH = re.compile(
    r"no such file or directory|does not exist|cannot (?:access|find)|can't open|ENOENT"
    r"|file not found|path not found",
    re.IGNORECASE,
)
_NO_PROGRAM = re.compile(
    r"(?:sh|\d|\(eval\)): (?P<a>[\w./+-]+): not found(?!: [\w./+-])"
    r"|(?<![\w./+-])(?P<e>[\w./+-]+): command not found(?!:)|command not found: (?P<b>[\w./+-]+)"
    r"|: No module named '?(?P<c>[\w.]+)|'(?P<d>[\w./+-]+)' is not recognized as"
)
_NO_TASK = re.compile(
    r"(?:[Mm]issing script:|No rule to make target|[Nn]o such (?:sub)?command:?|no task"
    r"|[Uu]nknown command:?|does not contain recipe|know how to build task|Failed to spawn:"
    r"|Command not found:|find a script named) ['\"`]?(?P<a>[\w@][\w@:./-]*)"
    r"|(?:[Tt]ask|[Cc]ommand) ['\"`](?P<b>[\w:./-]+)['\"`] (?:not found|does not exist)"
)
"""How make, npm and its kin, just, rake, gradle, mise, uv, poetry and most command lines say so."""

_NO_OPTION = re.compile(
    r"(?:unknown|unrecogni[sz]ed|invalid|illegal|no such) (?:flag|option|switch|argument)s?"
    r"(?: --)?:? ['\"`]?(?P<a>-{1,2}[A-Za-z][\w-]*)"
    r"|(?:unexpected|found) argument ['\"`](?P<c>-{1,2}[A-Za-z][\w-]*)"
    r"|flag provided but not defined: (?P<b>-{1,2}[A-Za-z][\w-]*)",
    re.IGNORECASE,
)
_NO_MODULE = re.compile(r"ModuleNotFoundError|Cannot find module")
_SUFFIX = re.compile(r"[\d.]*|js|w|thon[\d.]*")
"""By what the names of one program differ: `python3`, `nodejs`, `gradlew`, `py`."""

_WRITES = re.compile(r"(?<![-=])>(?!&|>? *(?:&|/dev/))")
"""A redirection to a file: neither `2>&1` nor an arrow."""

_ADDED = re.compile(r"--[a-z][a-z-]*|-[A-Za-z]")
"""An option without a value, which could name anything."""


def find_traps(
    calls: Sequence[ServingCall], root: str, scripts: AbstractSet[str] = frozenset()
) -> Iterator[Trap]:
    """Yield the traps that calls met, in a project with this top folder. `scripts` are names of
    files that the session wrote itself.
    """
    for number, serving in enumerate(calls):
        if not serving.is_error:
            continue
        later = calls[number + 1 : number + 1 + WITHIN]
        for trap in _Failure(serving, later, root, scripts).traps():
            is_shown = is_sound_path if trap.reason == "path" else is_sound
            failed, works = trap.failed, trap.works
            if failed and failed != works and len(failed) <= _LONGEST and is_shown(failed):
                remedy = works if is_shown(works) and not names_source(works) else ""
                yield Trap(trap.reason, *map(redacted_line, (trap.tool, failed, remedy)))


def traps_of(call: Call, verdict: Verdict, root: str, folder: str | None) -> tuple[Trap, ...]:
    """Return the traps that one call met, without what came after it."""
    return tuple(find_traps([ServingCall(call=call, verdict=verdict, folder=folder)], root))


class _Failure:
    """A failed call with the calls after it."""

    def __init__(
        self,
        serving: ServingCall,
        later: Sequence[ServingCall],
        root: str,
        scripts: AbstractSet[str],
    ) -> None:
        self._serving, self._later = serving, later
        self._root, self._scripts = root, scripts
        self._result = head_and_tail(serving.call.result or "", _MESSAGE)

    def traps(self) -> Iterator[Trap]:
        """Yield what failed, and what then worked, as the calls have it. What is not defined below
        the top folder may be defined in another.
        """
        call, verdict = self._serving.call, self._serving.verdict
        if self._serving.operation == "run":
            reasons = [self._programs(), self._unable_checks()]
            if self._serving.folder == "":
                reasons += [self._tasks(), self._options()]
            first = next(chain.from_iterable(reasons), None)
            yield from self._paths(self._missing_paths()) if first is None else (first,)
        elif call.tool in KNOWN_TOOLS:
            head = self._result[:500]
            if _NO_PATH.search(head) and "spawn" not in head:
                yield from self._paths([self._inside(file_path(call.tool, call.arguments))])
        elif "invalid" in (verdict.status, verdict.kind[:7]):
            same = (one.call for one in self._later if one.is_ok and one.call.tool == call.tool)
            works = next(same, None)
            if works and (after := signature(works)):
                yield Trap("arguments", call.tool, signature(call), after)

    def _programs(self) -> Iterator[Trap]:
        """Yield the programs that are missing."""
        for match in _NO_PROGRAM.finditer(self._result):
            program = next(filter(None, match.groups()))
            for command in self._commands(program) if not self._is_own(program) else ():
                named = "" if match["c"] else self._named_alike(program)
                if sorted(named) == sorted(program):
                    continue  # mistyped
                # Whatever it was called with, its first word is what is missing.
                is_first = command.name.split()[0] == program
                failed = program if named or is_first else command.name
                yield Trap("program", SHELL, failed, named or self._same_end(command.name))

    def _unable_checks(self) -> Iterator[Trap]:
        """Yield the checks that cannot load what they check, where another one then could."""
        for command in self._serving.commands if _NO_MODULE.search(self._result) else ():
            program = command.name.partition(" ")[0]
            # What follows a checker may be what it checks.
            is_checker = check_kind(program) and not is_project_command(command.name)
            failed = program if is_checker else command.name
            if check_kind(failed) and (works := self._same_end(command.name)):
                yield Trap("check", SHELL, failed, works)

    def _tasks(self) -> Iterator[Trap]:
        """Yield the commands whose tasks are not defined."""
        for match in _NO_TASK.finditer(self._result):
            for command in self._commands(match["a"] or match["b"]):
                yield Trap("task", SHELL, command.name, self._same_end(command.name))

    def _options(self) -> Iterator[Trap]:
        """Yield the commands with options that they do not know."""
        for match in _NO_OPTION.finditer(self._result):
            option = next(filter(None, match.groups()))
            for one in self._serving.commands:
                if option in one.form.split():
                    works = self._without(one.name, option)
                    yield Trap("option", SHELL, f"{one.name} {option}", works)

    def _commands(self, word: str) -> list[Command]:
        """Return the commands of the call that have a word in their names."""
        return [command for command in self._serving.commands if word in command.name.split()]

    def _missing_paths(self) -> Iterator[str]:
        line = self._serving.line
        words = {word.strip("'\"") for words in pipelines(line) for word in words}
        missing = [text for text in self._result.splitlines() if _NO_PATH.search(text)]
        for word in sorted(words & {*operands(line)}):
            if any(word in text for text in missing):
                yield self._inside(word)

    def _is_own(self, path: str) -> bool:
        return path.rpartition("/")[2] in self._scripts

    def _inside(self, path: str) -> str:
        return path_inside(path, self._root, self._serving.folder)

    def _paths(self, missing: Iterable[str]) -> Iterator[Trap]:
        """Yield missing paths, each with the first that a later call found in another folder."""
        for path in missing:
            if path and not self._is_own(path):
                others = (other for other in self._found_later() if other != path)
                name = path.rpartition("/")[2]
                works = (other for other in others if other.rpartition("/")[2] == name)
                yield Trap("path", SHELL, path, next(works, ""))

    def _found_later(self) -> Iterator[str]:
        for serving in self._later:
            call = serving.call
            for other in (file_path(call.tool, call.arguments), *operands(serving.line)):
                if serving.is_ok:
                    yield path_inside(other, self._root, serving.folder)

    def _ran(self) -> Iterator[ServingCall]:
        """Yield the later commands that no person would have to confirm."""
        return (serving for serving in self._later if serving.line and serving.is_safe)

    def _named_alike(self, program: str) -> str:
        """Return the program of a later command whose name is that of a missing one but for its
        folder in the project or its version, as `python3` for `python`, or has the same letters.
        """
        spaced = program.replace("-", " ")  # docker-compose
        for serving in self._ran():
            for words in pipelines(serving.line) if serving.is_ok else ():
                other, bare = words[0], words[0].rpartition("/")[2]
                is_alike = any(
                    long.startswith(short) and _SUFFIX.fullmatch(long.removeprefix(short))
                    for long, short in ((bare, program), (program, bare))
                )
                is_other = other != program and not other.startswith(("/", "~"))
                if is_other and (is_alike or sorted(other) == sorted(program)):
                    return other
                if spaced != program and " ".join(words).startswith(f"{spaced} "):
                    return spaced
        return ""

    def _same_end(self, name: str) -> str:
        """Return the command that ran in the place of one that does not exist: the first one that
        has an operand in common with it, or is a check of the same kind.
        """
        about, kind = {*operands(self._serving.line)}, check_kind(name)
        for serving in self._ran():
            if serving.folder is None or did_not_run(serving.call.result or ""):
                continue
            for command in serving.commands:
                is_same_kind = kind is not None and check_kind(command.name) == kind
                is_about_same = bool(about & {*operands(command.form)})
                is_own = is_about_same and is_project_command(command.name)
                works = placed(command.name, serving.folder)
                if works != name and (is_same_kind or is_own):
                    return works
        return ""

    def _without(self, name: str, option: str) -> str:
        """Return how the command then worked without the option, with another in its place, or with
        it behind `--`.
        """
        failed = {word for one in self._serving.commands for word in one.form.split()}
        for serving in self._ran():
            for command in serving.commands if serving.is_ok else ():
                words = command.form.split()
                before = words[: words.index("--")] if "--" in words else words
                added = {*words} - failed - {"--"}
                is_same = len(added) <= 1 and all(map(_ADDED.fullmatch, added))
                if command.name == name and option not in before and is_same:
                    return command.form
        return ""


def did_not_run(result: str) -> bool:
    """Whether a command, or a task, did not exist, by its result."""
    found = head_and_tail(result, _MESSAGE)
    return _NO_PROGRAM.search(found) is not None or _NO_TASK.search(found) is not None


def head_and_tail(result: str, most: int = READ) -> str:
    """Return the beginning and the end of a result, which is all that is searched."""
    if len(result) <= 2 * most:
        return result
    return f"{result[:most]}\n{result[-most:]}"


def is_made(call: Call) -> bool:
    """Whether a call makes a file, which therefore need not exist."""
    if operation_of(call.tool, call.arguments) in CHANGES[1:]:
        return True
    line = shell_command(call.tool, call.arguments)
    programs = {words[0] for words in pipelines(line)} if line else set()
    is_written = _WRITES.search(line) is not None
    return is_written or not programs.isdisjoint(("touch", "mkdir", "cp", "mv", "tee", "ln"))
