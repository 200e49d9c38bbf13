"""What the calls of an episode show about its project: commands and files that were used, traps,
findings of linters and tests, and what the person said against a call. Everything is taken from
slots: words of the call itself, names of rules, numbers, and the person's own words. A text out of
a result is compared with them, and never stored.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from importlib.resources import files

from journeyman.learning.agent_tools import file_path, operation_of, shell_command
from journeyman.learning.commands import (
    CheckKind,
    check_kind,
    commands_of,
    names_source,
    placed,
)
from journeyman.learning.requests import without_quotes
from journeyman.learning.safety import is_safe_form
from journeyman.learning.sanitizer import redacted_line, suspicion_of
from journeyman.learning.slots import (
    CHANGES,
    ServingCall,
    is_script_of,
    is_sound,
    is_sound_path,
    path_inside,
    used_files,
    words_of,
)
from journeyman.learning.traps import READ, did_not_run, find_traps, head_and_tail
from journeyman.records import (
    Call,
    Check,
    CommandUse,
    FileUse,
    Finding,
    Observations,
    Remark,
    Verdict,
)
from journeyman.text.truncation import truncate

_MOST_FINDINGS = 12
_LONGEST_WORDS = 200
_MOST_WORDS_IN_A_RULE = 6
_LINT_WORDS = frozenset(
    files(__package__).joinpath("lint_words.txt").read_text(encoding="utf-8").split()
)
"""The words in the names of the rules of ESLint and its common plugins, Clippy, mypy, RuboCop and
golangci-lint. Any other word, such as the name of a package, may be an order.
"""

_RULE = re.compile(r"[\w@/-]{1,80}", re.ASCII)
_RULE_CODE = re.compile(r"[A-Z]{1,4}\d{2,4}")

_FINDINGS = re.compile(
    r"^\S+:\d+(?::\d+)?: .*\((?P<a>[a-z][a-z\d]{2,24})\)\s*$"  # golangci-lint
    r"|^\S+:\d+:\d+:? (?P<b>[A-Z]{1,4}\d{2,4})\b"  # ruff, flake8, pylint
    r"|^\S+:\d+(?::\d+)?: error: .*\[(?P<c>[a-z]+(?:-[a-z]+){0,4})\]\s*$"  # mypy
    r"|^[ \t]+\d+:\d+[ \t]+(?:error|warning)\s.*\s\s"
    r"(?P<e>(?:@?[a-z\d-]+/)?[a-z\d]+(?:-[a-z\d]+){0,5})\s*$"
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
_REPORTS: tuple[tuple[re.Pattern[str], tuple[CheckKind, ...]], ...] = (
    (_FINDINGS, ("lint", "build")),
    (_FAILED_TESTS, ("test",)),
)
"""What reports look like, and which checks make them."""

_REFUSAL_WORDS = re.compile(  # in the first line: what a command printed comes after its status
    r"[^\n]*?(?:the user said:|user provided the following (?:reason|feedback)[^:]*:"
    r"|with feedback:)\s*",
    re.IGNORECASE,
)
_WRITES = re.compile(r"(?:>>?|tee(?: -a)?)\s*['\"]?([\w./+-]+)")
_LOCAL = re.compile(r"\b(?:localhost|127\.0\.0\.1)\b")
_FAR = re.compile(r"\b(?:https?|wss?)://(?!localhost\b|127\.|\[::1\])")
_WEB_CLIENTS = frozenset(["curl", "wget", "http", "https", "xh", "lynx", "w3m", "links"])
_FORGE_READS = re.compile(
    r"g(?:h|lab) (?:api|search|(?:issue|pr|mr|run|release|gist) (?:view|list|diff|checkout))"
)
_OUTSIDE = re.compile(r"__|browser|^mcp_|^web[._]|[Mm]cpResource")
"""In the names of tools of MCP servers and browsers."""
_CHECK_KINDS: tuple[CheckKind, ...] = ("test", "build", "lint")


def observed(
    calls: Sequence[ServingCall],
    root: str,
    scripts: AbstractSet[str],
    *,
    correction: str = "",
    is_usable: bool = True,
) -> Observations:
    """Return what the calls of an episode show. `scripts` are names of files that the session wrote
    itself. `correction` is what the person said against the work before. Of work that is not
    usable, because it failed or was rejected, no command counts.
    """
    sound = [serving for serving in calls if suspicion_of(serving.call.arguments) is None]
    conclusive = [one for one in sound if one.is_safe and (one.is_ok or one.is_error)]
    return Observations(
        commands=tuple(_commands(conclusive, scripts)) if is_usable else (),
        files=tuple(_files(sound, root)),
        traps=tuple(dict.fromkeys(find_traps(sound, root, scripts))),
        findings=tuple(_findings(sound)),
        check=_last_check(conclusive, scripts),
        remarks=tuple(_remarks(calls, root, correction)),
    )


def findings_of(call: Call, verdict: Verdict) -> tuple[Finding, ...]:
    """Return what one call reported."""
    return tuple(_findings([ServingCall(call=call, verdict=verdict)]))


def takes_in(call: Call) -> bool:
    """Whether a call takes in what anyone may have written: web pages, issues, MCP servers."""
    operation = operation_of(call.tool, call.arguments)
    if operation in ("fetch", "search_web") or _OUTSIDE.search(call.tool):
        return True
    if operation in ("run", "run_code") and _FAR.search(call.arguments):
        return True
    return any(
        (one.name in _WEB_CLIENTS and not _LOCAL.search(one.form)) or _FORGE_READS.match(one.form)
        for one in commands_of(shell_command(call.tool, call.arguments))
    )


def written_names(calls: Iterable[ServingCall]) -> Iterator[str]:
    """Yield the names of files that calls created, which may be throw-away scripts."""
    for serving in calls:
        paths: list[str] = []
        if serving.operation == "write":
            paths = [file_path(serving.call.tool, serving.call.arguments)]
        elif serving.operation == "run":
            paths = _WRITES.findall(serving.line[:READ])
        yield from (path.rpartition("/")[2] for path in paths)


def _commands(calls: Sequence[ServingCall], scripts: AbstractSet[str]) -> Iterator[CommandUse]:
    counts: defaultdict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    seconds: defaultdict[tuple[str, str, str], float] = defaultdict(float)
    for serving in calls:
        call, folder, line = serving.call, serving.folder, serving.line
        if folder is None or not is_sound_path(folder or ".") or names_source(line):
            continue
        for command in serving.commands:
            is_complete = "…" not in command.form and "cd " not in line
            may_teach = is_complete or is_safe_form(command.form)
            if not may_teach or is_script_of(command, scripts) or not is_sound(command.form):
                continue
            key = redacted_line(command.name), redacted_line(command.form), folder
            counts[key][serving.is_error] += 1
            if len(serving.commands) == 1 and None not in (call.asked_at, call.answered_at):
                took = (call.answered_at or 0.0) - (call.asked_at or 0.0)
                seconds[key] = max(seconds[key], round(took, 1))
    for (name, form, where), (worked, failed) in counts.items():
        yield CommandUse(name, form, worked, failed, seconds[name, form, where], where)


def _files(calls: Sequence[ServingCall], root: str) -> Iterator[FileUse]:
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for serving in calls:
        if not (serving.is_ok and serving.is_safe):
            continue
        for path in filter(is_sound_path, used_files(serving.call, root, serving.folder)):
            counts[redacted_line(path)][serving.operation in CHANGES] += 1
    for path, (read, changed) in counts.items():
        yield FileUse(path, read, changed)


def _findings(calls: Sequence[ServingCall]) -> Iterator[Finding]:
    """Yield what linters and tests reported most often, each rule once."""
    counts: Counter[tuple[str, str]] = Counter()
    for serving in calls:
        checks = [one for one in serving.commands if check_kind(one.name)]
        if not checks or not (serving.is_error or serving.is_ok):
            continue
        result = head_and_tail(serving.call.result or "")
        for pattern, wanted in _REPORTS:
            command = next((one.name for one in checks if check_kind(one.name) in wanted), "")
            for match in pattern.finditer(result) if command else ():
                rule = next(filter(None, match.groups()))
                if rule != "typecheck":  # golangci-lint's word for code that does not compile
                    counts[redacted_line(command), rule] += 1
    for (command, rule), _ in counts.most_common(_MOST_FINDINGS):
        if is_sound(rule) and (check_kind(command) == "test" or _is_rule(rule)):
            yield Finding(command, redacted_line(rule))


def _is_rule(name: str) -> bool:
    """Whether a name is that of a rule: a code, or words that linters use."""
    if _RULE_CODE.fullmatch(name):
        return True
    words = [word.lower() for word in words_of(name)]
    is_short = _RULE.fullmatch(name) is not None and len(words) <= _MOST_WORDS_IN_A_RULE
    return is_short and _LINT_WORDS.issuperset(words)


def _last_check(calls: Iterable[ServingCall], scripts: AbstractSet[str]) -> Check | None:
    """Return how the last test ended; without a test, the last build or lint. One of another kind
    that failed since says more. A check that did not run at all is none.
    """
    last: dict[CheckKind, Check] = {}
    for serving in calls:
        if serving.folder is None or did_not_run(serving.call.result or ""):
            continue
        for command in serving.commands:
            kind = check_kind(command.name)
            name = placed(command.name, serving.folder)
            is_own = is_script_of(command, scripts) or names_source(name)
            if kind and not is_own and is_sound(name):
                last[kind] = Check(redacted_line(name), serving.is_ok)
    found = [last[kind] for kind in _CHECK_KINDS if kind in last]
    return next((check for check in found if not check.worked), found[0] if found else None)


def _remarks(calls: Iterable[ServingCall], root: str, correction: str) -> Iterator[Remark]:
    for serving in calls:
        is_refused = serving.verdict.status == "refused" and serving.verdict.by in ("", "person")
        if is_refused and _is_recorded_refusal(serving):
            result = serving.call.result or ""
            match = _REFUSAL_WORDS.match(result)
            if match and result[match.end() :].strip():
                words = _said(result[match.end() :])
                target = _target(serving, root, words)
                shown = redacted_line(target) if is_sound(target) else ""
                yield Remark(words, redacted_line(serving.call.tool), shown)
    if correction.strip():
        yield Remark(_said(correction))


def _target(serving: ServingCall, root: str, words: str) -> str:
    """Return what the words against a call are about: the command that they name or, of a call with
    only one, that one unless it says too little without what it was for; or a file.
    """
    if not serving.commands:
        return path_inside(file_path(serving.call.tool, serving.call.arguments), root)
    names = [command.name for command in serving.commands]
    named = [name for name in names if all(part in words for part in name.split())]
    only = names if len(names) == 1 and (" " in names[0] or "/" in names[0]) else []
    return next(iter(named or only), "")


def _is_recorded_refusal(serving: ServingCall) -> bool:
    """Whether the harness recorded that a call was refused. Where it only recorded an error, a tool
    that prints texts of others may have written it; one that changes files does not.
    """
    flags = serving.call.recorded
    if flags is None or flags.refused_by == "person" or flags.status in ("not_run", "denied"):
        return flags is not None
    return bool(flags.is_error) and serving.operation in CHANGES


def _said(words: str) -> str:
    said = without_quotes(words)[: 4 * _LONGEST_WORDS]
    return truncate(redacted_line(" ".join(said.split())), _LONGEST_WORDS)
