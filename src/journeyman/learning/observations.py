"""What the calls of an episode show about its project: commands and files that were used, traps,
findings of linters and tests, and what the person said against a call. Everything is taken from
slots: words of the call itself, names of rules, numbers, and the person's own words. A text out of
a result is compared with them, and never stored.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Literal

from msgspec import Struct

from journeyman.learning.agent_tools import (
    KNOWN_TOOLS,
    file_path,
    find_call,
    operation_of,
    parse_arguments,
    shell_command,
)
from journeyman.learning.commands import commands_of, is_project_command, subject_of
from journeyman.learning.requests import UserRequest
from journeyman.learning.safety import is_safe_form
from journeyman.learning.sanitizer import redacted_line, suspicion_of
from journeyman.records import (
    Call,
    Check,
    CommandUse,
    FileUse,
    Finding,
    Observations,
    Remark,
    Trap,
    Verdict,
)
from journeyman.records.project import repository_folder
from journeyman.redaction.instructions import find_suspicion
from journeyman.text.shell import pipelines

SHELL = "shell"
"""The tool of a trap that concerns a shell command, whatever the agent calls its shell."""

_WITHIN = 12
"""The end that a failed call was for must be reached within this many calls."""

_READ = 20_000
"""How much of a result is searched, from its beginning and from its end."""

_MOST_FINDINGS = 12
_LONGEST_PURPOSE = 80
_LONGEST_WORDS = 200
_LONGEST_PATH = 200
_FEWEST_WORDS = 3
"""The minimum number of words in an instruction."""

_MOST_WORDS_IN_A_NAME, _MOST_WORDS_IN_A_RULE = 7, 5
_ORDERS_LIST = """please run now must execute install ignore send fetch curl open visit"""
_ORDERS = frozenset(_ORDERS_LIST.split())
"""Words that no rule of a linter has in its name, and orders have."""

_WORD, _IN_A_NAME = re.compile(r"[^\W\d_]{2,}"), re.compile(r"[-_./+:]+")
_PATH = re.compile(r"(?:[\w.@+-]+/)*[\w.@+-]+")
_HAS_ENDING = re.compile(r"(?!.*\.\.).*\.[A-Za-z]\w{0,5}|(?:Make|Docker|Proc|Just|Gem|Rake)file")
_SHOWING = frozenset(
    ["cat", "bat", "sed", "head", "tail", "less", "more", "nl", "awk", "vi", "vim", "nano", "tac"]
)
_NO_PATH = re.compile(
    r"no such file or directory|does not exist|cannot (?:access|find)|can't open|ENOENT"
    r"|file not found|path not found",
    re.IGNORECASE,
)
_NO_PROGRAM = re.compile(
    r"(?P<a>[\w./+-]+): (?:command )?not found(?!: [\w./+-])|command not found: (?P<b>[\w./+-]+)"
    r"|No module named '?(?P<c>[\w.]+)|'(?P<d>[\w./+-]+)' is not recognized as"
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
    r"|flag provided but not defined: (?P<b>-{1,2}[A-Za-z][\w-]*)",
    re.IGNORECASE,
)
_FINDINGS = re.compile(
    r"^\S+:\d+(?::\d+)?: .*\((?P<a>[a-z][a-z\d]{2,24})\)\s*$"  # golangci-lint
    r"|^\S+:\d+:\d+:? (?P<b>[A-Z]{1,4}\d{2,4})\b"  # ruff, flake8, pylint
    r"|^\S+:\d+(?::\d+)?: error: .*\[(?P<c>[a-z]+(?:-[a-z]+){0,4})\]\s*$"  # mypy
    r"|\berror (?P<d>TS\d{4,5}):"
    r"|^\s+\d+:\d+\s+(?:error|warning)\s.*\s\s(?P<e>(?:@?[a-z\d-]+/)?[a-z\d]+(?:-[a-z\d]+){0,5})\s*$"
    r"|^(?P<i>[A-Z]{1,4}\d{2,4}) (?=[^\n]*\n +--> )"  # ruff since 0.13
    r"|\bclippy::(?P<f>[a-z_]{3,40})\b(?!-)|\b(?P<g>SC\d{4})\b"
    r"|: [CWEF]: (?:\[Correctable\] )?(?P<h>[A-Z]\w{2,30}/[A-Z]\w{2,40}):",  # rubocop
    re.MULTILINE,
)
_FAILED_TESTS = re.compile(
    r"^--- FAIL: (?P<a>Test\w{1,80})|^(?:FAILED|ERROR) (?P<b>[\w./-]{1,120}::[\w:]{1,120})"
    r"|^(?:FAIL|ERROR): (?P<c>test\w{1,80}) \(",
    re.MULTILINE,
)
CheckKind = Literal["test", "lint", "build"]
_CHECK_NAMES: dict[CheckKind, str] = {
    "test": "tests? runtests? pytest unittest doctest jest vitest mocha rspec ctest tox nox specs?",
    "lint": "lint vet check types? typecheck clippy ruff mypy pyright pylint flake8 eslint tsc "
    "shellcheck rubocop fmt format",
    "build": "build compile make gradlew? mvn cmake ninja",
}
_REPORTS: tuple[tuple[re.Pattern[str], tuple[CheckKind, ...]], ...] = (
    (_FINDINGS, ("lint", "build")),
    (_FAILED_TESTS, ("test",)),
)
"""What reports look like, and which checks make them."""

_CHECKS: dict[CheckKind, re.Pattern[str]] = {
    kind: re.compile(rf"(?:^|[\s/:_.-])(?:{'|'.join(names.split())})(?![a-z])")
    for kind, names in _CHECK_NAMES.items()
}
_REFUSAL_WORDS = re.compile(  # in the first line: what a command printed comes after its status
    r"[^\n]*?(?:the user said:|user provided the following (?:reason|feedback)[^:]*:"
    r"|with feedback:)\s*",
    re.IGNORECASE,
)
_WRITES = re.compile(r"(?:>>?|tee(?: -a)?)\s*['\"]?([\w./+-]+)")
_LOCAL = re.compile(r"\b(?:localhost|127\.0\.0\.1)\b")
_FETCHING = frozenset(["curl", "wget", "http", "https", "lynx", "w3m", "links"])
_CHANGES = ("edit", "write", "patch")
_TYPE_NAMES = {str: "text", int: "number", float: "number", bool: "true/false", list: "list"}


class ServingCall(Struct, frozen=True, kw_only=True):
    """A call of the session with all that mining needs to know about it. A safe call does nothing
    that a person would have to confirm. An example is safe, worked, and is complete and short
    enough.
    """

    call: Call
    skill: str
    request: UserRequest
    verdict: Verdict
    is_ok: bool
    is_error: bool
    is_safe: bool
    is_example: bool


def observe(
    calls: Sequence[ServingCall], folder: str, written: set[str], *, correction: str, usable: bool
) -> Observations:
    """Return what the calls show. `written` are the files that the session itself has written so
    far, and is added to; `correction` is what the person said against the work before. Of work that
    is not `usable`, because it failed or was rejected, no command counts.
    """
    scripts = {path.rpartition("/")[2] for path in written}
    scripts |= {path.rpartition("/")[2] for path in _written(calls)}
    sound = [serving for serving in calls if suspicion_of(serving.call.arguments) is None]
    observed = Observations(
        commands=tuple(_commands(sound, scripts)) if usable else (),
        files=tuple(_files(sound, folder)),
        traps=tuple(dict.fromkeys(_traps(sound, folder, scripts))),
        findings=tuple(_findings(sound)),
        check=_last_check(sound, scripts),
        remarks=tuple(_remarks(calls, folder, correction)),
        tainted=any(takes_in(serving.call) for serving in calls),
    )
    written.update(_written(calls))
    return observed


def observe_call(call: Call, verdict: Verdict, folder: str) -> Observations:
    """Return the traps and findings of one call, without what came after it."""
    serving = ServingCall(
        call=call,
        skill="",
        request=UserRequest(),
        verdict=verdict,
        is_ok=verdict.status == "ok",
        is_error=verdict.is_error,
        is_safe=True,
        is_example=False,
    )
    return Observations(
        traps=tuple(_traps([serving], folder, set())), findings=tuple(_findings([serving]))
    )


def check_kind(command: str) -> CheckKind | None:
    """Return whether a command is a test, a lint or a build, by its name; None if none of them."""
    return next((kind for kind, words in _CHECKS.items() if words.search(command)), None)


def takes_in(call: Call) -> bool:
    """Whether a call takes in content of web pages or MCP servers."""
    is_web = operation_of(call.tool, call.arguments) in ("fetch", "search_web")
    line = shell_command(call.tool, call.arguments)
    is_web = is_web or any(
        one.name in _FETCHING and not _LOCAL.search(one.form) for one in commands_of(line)
    )
    return is_web or call.tool.startswith("mcp__") or "browser" in call.tool


def _written(calls: Iterable[ServingCall]) -> Iterator[str]:
    """Yield the files that calls created, which may be throw-away scripts."""
    for serving in calls:
        tool, arguments = serving.call.tool, serving.call.arguments
        operation = operation_of(tool, arguments)
        if operation == "write":
            yield file_path(tool, arguments)
        elif operation == "run":
            yield from _WRITES.findall(shell_command(tool, arguments)[:_READ])


def _commands(calls: Sequence[ServingCall], scripts: set[str]) -> Iterator[CommandUse]:
    counts: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    purposes: dict[tuple[str, str], str] = {}
    seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
    for serving in calls:
        if not serving.is_safe or not (serving.is_ok or serving.is_error):
            continue
        call = serving.call
        line = shell_command(call.tool, call.arguments)
        commands = commands_of(line)
        for command in commands:
            is_complete = "…" not in command.form and "cd " not in line
            may_teach = is_complete or is_safe_form(command.form)
            is_own = subject_of(command.name).rpartition("/")[2] in scripts
            if not may_teach or is_own or not is_sound(command.form):
                continue
            key = redacted_line(command.name), redacted_line(command.form)
            counts[key][serving.is_error] += 1
            if serving.is_ok and key not in purposes:
                purposes[key] = redacted_line(_purpose(call.arguments))
            if len(commands) == 1 and None not in (call.asked_at, call.answered_at):
                took = (call.answered_at or 0.0) - (call.asked_at or 0.0)
                seconds[key] = max(seconds[key], round(took, 1))
    for key, (worked, failed) in counts.items():
        yield CommandUse(*key, worked, failed, purposes.get(key, ""), seconds[key])


def _purpose(arguments: str) -> str:
    """Return the agent's own description of a command, which Claude Code and others record."""
    description = parse_arguments(arguments).get("description", "")
    if not isinstance(description, str) or not is_sound(description):
        return ""
    return " ".join(description.split())[:_LONGEST_PURPOSE]


def _files(calls: Sequence[ServingCall], folder: str) -> Iterator[FileUse]:
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for serving in calls:
        if not (serving.is_ok and serving.is_safe):
            continue
        tool, arguments = serving.call.tool, serving.call.arguments
        for path in used_files(serving.call, folder):
            if is_sound(path):
                is_change = operation_of(tool, arguments) in _CHANGES
                counts[redacted_line(path)][is_change] += 1
    for path, (read, changed) in counts.items():
        yield FileUse(path, read, changed)


def used_files(call: Call, folder: str) -> list[str]:
    """Return the files that a call reads or changes, by their paths inside the project."""
    operation = operation_of(call.tool, call.arguments)
    words: Iterable[str] = ()
    if operation in ("read", *_CHANGES):
        words = (file_path(call.tool, call.arguments),)
    elif operation == "run":
        words = _shown_files(shell_command(call.tool, call.arguments))
    paths = (path_inside(word, folder) for word in words)
    return [path for path in paths if _HAS_ENDING.fullmatch(path.rpartition("/")[2])]


@lru_cache(maxsize=4_096)
def _shown_files(line: str) -> tuple[str, ...]:
    """Return the files that a command line prints or edits."""
    found: dict[str, None] = {}
    for words in pipelines(line):
        if words[0].rpartition("/")[2] in _SHOWING:
            plain = (word.strip("'\"") for word in words[1:])
            found |= dict.fromkeys(word for word in plain if _PATH.fullmatch(word.lstrip("/")))
    return tuple(found)


def path_inside(path: str, folder: str) -> str:
    """Return a path relative to the project; empty for a path outside of it."""
    if not path or "\n" in path or len(path) > _LONGEST_PATH:
        return ""
    if not path.startswith(("/", "~")) and ":" not in path[:3]:
        inside = str(PurePosixPath(path))
        return "" if inside.startswith("..") or inside == "." else inside
    absolute = PurePosixPath(path)
    for root in dict.fromkeys((folder, repository_folder(folder))):
        if root and absolute.is_relative_to(root):
            inside = str(absolute.relative_to(root))
            return "" if inside == "." else inside
    return ""


@lru_cache(maxsize=4_096)
def operands(line: str) -> tuple[str, ...]:
    """Return the words of a command line that are paths, without those in quotes that are more."""
    found: dict[str, None] = {}
    for words in pipelines(line):
        for before, word in pairwise(words):
            plain = word.strip("'\"")
            is_path = "/" in plain or _HAS_ENDING.fullmatch(plain)
            if is_path and _PATH.fullmatch(plain.removeprefix("/")) and before not in ("-e", "-m"):
                found[plain] = None
    return tuple(found)


def _traps(calls: Sequence[ServingCall], folder: str, scripts: set[str]) -> Iterator[Trap]:
    for number, serving in enumerate(calls):
        if not serving.is_error:
            continue
        call, later = serving.call, calls[number + 1 : number + 1 + _WITHIN]
        result = _read(call.result or "")
        if operation_of(call.tool, call.arguments) == "run":
            yield from _command_traps(call, result, later, folder, scripts)
        elif call.tool in KNOWN_TOOLS:
            path = path_inside(_searched_path(call), folder)
            says_so = _NO_PATH.search(result[:500]) is not None and "spawn" not in result[:500]
            if path and says_so and path.rpartition("/")[2] not in scripts:
                yield from _trap("path", SHELL, path, _same_name(path, later, folder))
        elif serving.verdict.status == "invalid" or serving.verdict.kind == "invalid_arguments":
            works = next(
                (one.call for one in later if one.is_ok and one.call.tool == call.tool), None
            )
            before, after = signature(call), signature(works) if works else ""
            if after and before != after:
                yield from _trap("arguments", call.tool, before, after)


def _command_traps(
    call: Call, result: str, later: Sequence[ServingCall], folder: str, scripts: set[str]
) -> Iterator[Trap]:
    line = shell_command(call.tool, call.arguments)
    commands = commands_of(line)
    words = {word.strip("'\"") for words in pipelines(line) for word in words}
    for match in _NO_PROGRAM.finditer(result):
        program = match["a"] or match["b"] or match["c"] or match["d"]
        command = next((one for one in commands if program in one.name.split()), None)
        if command is None or program.rpartition("/")[2] in scripts:
            continue
        named = "" if match["c"] else _named_alike(program, later)
        if named and sorted(named) == sorted(program):
            return  # mistyped
        # Whatever it was called with, its first word is what is missing.
        failed = program if named or command.name.split()[0] == program else command.name
        yield from _trap("program", SHELL, failed, named or _same_end(line, failed, later))
        return
    for match in _NO_TASK.finditer(result):
        task = match["a"] or match["b"]
        command = next((one for one in commands if task in one.name.split()[1:]), None)
        if command is not None:
            works = _same_end(line, command.name, later)
            yield from _trap("task", SHELL, command.name, works)
            return
    for match in _NO_OPTION.finditer(result):
        option = match["a"] or match["b"]
        command = next((one for one in commands if option in one.form.split()), None)
        if command is not None:
            works = _without_option(command.name, option, later)
            yield from _trap("option", SHELL, f"{command.name} {option}", works)
            return
    missing = [text for text in result.splitlines() if _NO_PATH.search(text)]
    for word in sorted(words & {*operands(line)}):
        path = path_inside(word, folder)
        if (
            path
            and any(word in text for text in missing)
            and path.rpartition("/")[2] not in scripts
        ):
            yield from _trap("path", SHELL, path, _same_name(path, later, folder))


def _trap(reason: str, tool: str, failed: str, works: str) -> Iterator[Trap]:
    if is_sound(failed) and is_sound(works) and len(failed) <= _LONGEST_PATH and failed != works:
        yield Trap(reason, redacted_line(tool), redacted_line(failed), redacted_line(works))  # type: ignore[arg-type]


def _searched_path(call: Call) -> str:
    found = find_call(call.tool, call.arguments)
    return found.fields.get("path", "") if found else ""


def _same_name(path: str, later: Sequence[ServingCall], folder: str) -> str:
    """Return the first path with the same last part that a later call found."""
    name = path.rpartition("/")[2]
    for serving in later:
        if serving.is_ok:
            tool, arguments = serving.call.tool, serving.call.arguments
            paths = (_searched_path(serving.call), *operands(shell_command(tool, arguments)))
            for other in paths:
                inside = path_inside(other, folder)
                if inside != path and inside.rpartition("/")[2] == name:
                    return inside
    return ""


def _named_alike(program: str, later: Sequence[ServingCall]) -> str:
    """Return the program of a later command whose name begins like a missing one, as `python3` for
    `python`, or has the same letters.
    """
    for serving in later:
        line = shell_command(serving.call.tool, serving.call.arguments)
        for words in pipelines(line) if line and serving.is_ok else ():
            other = words[0]
            is_alike = other.startswith(program) or program.startswith(other)
            if other != program and (is_alike or sorted(other) == sorted(program)):
                return other
    return ""


def _same_end(line: str, name: str, later: Sequence[ServingCall]) -> str:
    """Return the command that ran in the place of one that does not exist: the first one that has
    an operand in common with it, or is a check of the same kind.
    """
    about, kind = {*operands(line)}, check_kind(name)
    for serving in later:
        other = shell_command(serving.call.tool, serving.call.arguments)
        found = serving.call.result or ""
        if not (other and serving.is_safe) or _NO_PROGRAM.search(found) or _NO_TASK.search(found):
            continue
        for command in commands_of(other):
            is_same_kind = kind is not None and check_kind(command.name) == kind
            is_about_same = bool(about & {*operands(command.form)})
            is_own = is_about_same and is_project_command(command.name)
            if command.name != name and (is_same_kind or is_own):
                return command.name
    return ""


def _without_option(name: str, option: str, later: Sequence[ServingCall]) -> str:
    for serving in later:
        if serving.is_ok and serving.is_safe:
            line = shell_command(serving.call.tool, serving.call.arguments)
            for command in commands_of(line):
                if command.name == name and option not in command.form.split():
                    return command.form
    return ""


def signature(call: Call) -> str:
    """Return the names and kinds of a call's arguments."""
    values = parse_arguments(call.arguments)
    return ", ".join(
        f"{name}: {_TYPE_NAMES.get(type(value), 'object')}"
        for name, value in sorted(values.items())
    )


def _findings(calls: Sequence[ServingCall]) -> Iterator[Finding]:
    """Yield what linters and tests reported, each rule once with how often."""
    counts: Counter[tuple[str, str]] = Counter()
    for serving in calls:
        line = shell_command(serving.call.tool, serving.call.arguments)
        if not line or not (serving.is_error or serving.is_ok):
            continue
        checks = [one for one in commands_of(line) if check_kind(one.name)]
        if not checks:
            continue
        result = _read(serving.call.result or "")
        for pattern, wanted in _REPORTS:
            command = next((one.name for one in checks if check_kind(one.name) in wanted), "")
            if not command:
                continue
            for match in pattern.finditer(result):
                rule = next(filter(None, match.groups()))
                if rule == "typecheck":  # golangci-lint's word for code that does not compile
                    continue
                counts[redacted_line(command), rule] += 1
    for (command, rule), times in counts.most_common(_MOST_FINDINGS):
        words = {*_WORD.findall(rule.rpartition("/")[2].lower())}
        is_name = check_kind(command) == "test" or len(words) <= _MOST_WORDS_IN_A_RULE
        if is_sound(rule) and is_name and not words & _ORDERS:
            yield Finding(command, redacted_line(rule), times)


def _last_check(calls: Sequence[ServingCall], scripts: set[str]) -> Check | None:
    for serving in reversed(calls):
        if serving.is_ok or serving.is_error:
            line = shell_command(serving.call.tool, serving.call.arguments)
            for command in reversed(commands_of(line)):
                is_own = subject_of(command.name).rpartition("/")[2] in scripts
                if check_kind(command.name) and not is_own and is_sound(command.name):
                    return Check(redacted_line(command.name), serving.is_ok)
    return None


def _remarks(calls: Sequence[ServingCall], folder: str, correction: str) -> Iterator[Remark]:
    for serving in calls:
        if serving.verdict.status == "refused" and serving.verdict.by in ("", "person"):
            result = serving.call.result or ""
            flags = serving.call.recorded
            is_recorded = flags is not None and bool(flags.is_error or flags.refused_by)
            match = _REFUSAL_WORDS.match(result) if is_recorded else None
            if match and result[match.end() :].strip():
                yield _remark(result[match.end() :], serving.call, folder)
    if correction.strip():
        yield _remark(correction, None, folder)


def _remark(words: str, call: Call | None, folder: str) -> Remark:
    text = redacted_line(" ".join(words[: 4 * _LONGEST_WORDS].split()))[:_LONGEST_WORDS]
    if call is None:
        return Remark(text)
    commands = commands_of(shell_command(call.tool, call.arguments))
    path = path_inside(file_path(call.tool, call.arguments), folder)
    target = commands[0].name if commands else path
    return Remark(text, redacted_line(call.tool), redacted_line(target) if is_sound(target) else "")


def _read(result: str) -> str:
    if len(result) <= 2 * _READ:
        return result
    return f"{result[:_READ]}\n{result[-_READ:]}"


@lru_cache(maxsize=4_096)
def is_sound(text: str) -> bool:
    """Whether a short text contains no instruction, not even hidden in names."""
    if len(_WORD.findall(text)) < _FEWEST_WORDS:
        return True
    if any(len(_WORD.findall(name)) > _MOST_WORDS_IN_A_NAME for name in re.split(r"[\s/]", text)):
        return False  # a name that is a sentence, in whatever language
    return find_suspicion((text, _IN_A_NAME.sub(" ", text))) is None
