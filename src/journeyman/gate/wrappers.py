"""Programs that run another program: which of their words is the command they run. `sudo`, `env`,
`xargs`, `find -exec` and their kin; interpreters that are given code are in `interpreters`.
"""

import shlex
from collections.abc import Callable

from journeyman.gate.command import Command
from journeyman.gate.inner import Inner, Nested, Script
from journeyman.gate.prefixes import PREFIXES, SCRIPT_OPTIONS, Prefix
from journeyman.gate.words import UNKNOWN, Word, names

JOINED = frozenset({"eval", "watch", "hyperfine", "concurrently", "tmux", "screen", "ssh"})
"""Programs that join their words into a script."""

_JOINED_VALUES = {
    "watch": ("-n", "--interval"),
    "hyperfine": ("-r", "-w", "-m", "-M", "--runs", "--warmup", "--export-json"),
    "concurrently": ("-n", "-c", "--names"),
    "tmux": ("-s", "-n", "-t", "-L", "-S", "-f", "-x", "-y"),
    "screen": ("-S", "-t", "-c"),
    "ssh": ("-p", "-i", "-l", "-o", "-F", "-J", "-L", "-R", "-D"),
}
_EXECS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FD_EXECS = frozenset({"-x", "--exec", "-X", "--exec-batch"})
_XARGS_VALUES = names("-I -n -L -P -d -E -s -a --arg-file --max-args --max-procs")


def wrapped(command: Command) -> list[Inner]:
    """What a command runs besides itself."""
    special = SPECIAL.get(command.program)
    if special is not None:
        return special(command)
    found: list[Inner] = []
    options = SCRIPT_OPTIONS.get(command.program, ())
    found += [Script(text.removeprefix("!")) for text in command.values(*options)]
    prefix = PREFIXES.get(command.program)
    if prefix is not None:
        found += _after(command, prefix)
    if command.program in JOINED:
        operands = _after_options(command, _JOINED_VALUES.get(command.program, ()))
        if command.program in ("hyperfine", "concurrently"):
            found += [Script(word.text) for word in operands]
        else:
            start = 1 if command.program in ("tmux", "ssh") else 0
            found.append(Script(" ".join(word.text for word in operands[start:])))
    return found


def _after_options(command: Command, with_value: tuple[str, ...]) -> list[Word]:
    """The words from the first that is no option on."""
    words = list(command.words[1:])
    while words and words[0].text.startswith("-") and len(words[0].text) > 1:
        words = words[2 if words[0].text in with_value else 1 :]
    return words


def _after(command: Command, prefix: Prefix) -> list[Inner]:
    """The command after a prefix, with the variables that are set before it."""
    words = list(command.words[1:])
    with_value = prefix.with_value.split()
    skip = prefix.skip + bool(prefix.first)
    settings: list[tuple[str, str]] = []
    at = 0
    while at < len(words):
        text = words[at].text
        name, equals, value = text.partition("=")
        if text == "--":
            at += 1
            if skip == 0:
                break
        elif text.startswith("-") and len(text) > 1:
            if command.program == "command" and text in ("-v", "-V"):
                return []
            at += 2 if text in with_value else 1
        elif equals and name.isidentifier() and command.program in ("env", "sudo", "doas"):
            settings.append((name, value))
            at += 1
        elif skip:
            if prefix.first and skip == prefix.skip + 1 and text != prefix.first:
                if at == 0 or not words[at - 1].text.startswith("-"):
                    return []
                # It may be the value of an option that nobody has listed.
                skip += 1
            skip -= 1
            at += 1
        else:
            break
    inner = command.inner(tuple(words[at:]))._replace(settings=tuple(settings))
    return [Nested(inner)] if inner.words or settings else []


def _find(command: Command) -> list[Inner]:
    found: list[Inner] = []
    words = command.words[1:]
    place = found_names(command)
    for at, word in enumerate(words):
        if word.text in _EXECS:
            inside = []
            for each in words[at + 1 :]:
                if each.text in (";", "+"):
                    break
                inside.append(_replaced(each, "{}", place))
            found.append(Nested(command.inner(tuple(inside))))
    return found


def found_names(command: Command) -> Word:
    """The files a `find` finds, as the pattern that describes them best."""
    start = next(iter(starting_points(command)), Word("."))
    name = command.value("-name", "-iname")
    below = name if name is not None else "*"
    return Word(f"{start.text.rstrip('/') or '/'}/{below}", pattern=True)


def starting_points(command: Command) -> list[Word]:
    """Where a `find` starts."""
    found = []
    for word in command.words[1:]:
        if word.text in ("-H", "-L", "-P"):
            continue
        if word.text.startswith(("-", "(", "!")):
            break
        found.append(word)
    return found


def _xargs(command: Command) -> list[Inner]:
    words = list(command.words[1:])
    at = 0
    marker = ""
    while at < len(words) and words[at].text.startswith("-"):
        text = words[at].text
        if text == "-I" and at + 1 < len(words):
            marker = words[at + 1].text
        elif text.startswith(("-I", "-i")):
            marker = text[2:] or "{}"
        elif text.startswith("--replace"):
            marker = text.partition("=")[2] or "{}"
        at += 2 if text in _XARGS_VALUES else 1
    rest = words[at:]
    given = _given(command)
    if marker:
        rest = [_replaced(word, marker, given[0] if given else Word(UNKNOWN)) for word in rest]
    else:
        rest += given
    inner = command.inner(tuple(rest))
    return [Nested(inner._replace(stdin=None))] if words[at:] else []


def _given(command: Command) -> list[Word]:
    """The words that come in by the pipe."""
    stdin = command.stdin
    if stdin is not None and stdin.text is not None and not command.has("-a", "--arg-file"):
        return [Word(text) for text in stdin.text.split()]
    names = stdin.names if stdin is not None else ""
    return [Word(names or UNKNOWN, pattern=bool(names))]


def _parallel(command: Command) -> list[Inner]:
    words = [
        word.text
        for word in _after_options(command, ("-j", "--jobs", "-I", "-n", "-N", "--colsep"))
    ]
    marks = [at for at, text in enumerate(words) if text.startswith(":::")]
    template = words[: marks[0]] if marks else words
    given = words[marks[0] + 1 :] if marks else [word.text for word in _given(command)]
    line = " ".join(template)
    if not line:
        return [Script(each) for each in given]
    return [
        Script(line.replace("{}", each) if "{}" in line else f"{line} {shlex.quote(each)}")
        for each in given[:20] or [UNKNOWN]
    ]


def _trap(command: Command) -> list[Inner]:
    operands = command.operands()
    return [Script(operands[0].text)] if len(operands) > 1 else []


def _tar(command: Command) -> list[Inner]:
    actions = command.values("--checkpoint-action")
    scripts = [text.removeprefix("exec=") for text in actions if text.startswith("exec=")]
    return [Script(text) for text in [*scripts, *command.values(*SCRIPT_OPTIONS["tar"])]]


def _git(command: Command) -> list[Inner]:
    """What git is told to run: on every commit, in every submodule, for every difference."""
    match command.subcommand("-C", "-c", "--git-dir", "--work-tree"):
        case ("rebase", *_):
            return [Script(text) for text in command.values("-x", "--exec")]
        case ("difftool", *_):
            return [Script(text) for text in command.values("-x", "--extcmd")]
        case ("submodule", "foreach", *_):
            return _from_word(command, "foreach")
        case ("bisect", "run", *_):
            return _from_word(command, "run")
    return []


def _replaced(word: Word, marker: str, by: Word) -> Word:
    if marker not in word.text:
        return word
    return Word(word.text.replace(marker, by.text), word.pattern or by.pattern)


def _from_word(command: Command, last: str) -> list[Inner]:
    """All that follows a word, as a script."""
    texts = command.arguments
    return [Script(" ".join(texts[texts.index(last) + 1 :]).removeprefix("--recursive "))]


def _fd(command: Command) -> list[Inner]:
    texts = command.arguments
    at = next((at for at, text in enumerate(texts) if text in _FD_EXECS), len(texts))
    words = tuple(
        _replaced(word, "{}", Word("./*", pattern=True)) for word in command.words[at + 2 :]
    )
    if not words:
        return []
    given = () if "{}" in texts[at:] else (Word("./*", pattern=True),)
    return [Nested(command.inner((*words, *given)))]


def _npm(command: Command) -> list[Inner]:
    """`npm exec`, whose `-c` is not that of `npm`."""
    if command.subcommand("-w", "--prefix")[:1] not in (("exec",), ("x",)):
        return []
    scripts: list[Inner] = [Script(text) for text in command.values("-c", "--call")]
    return scripts or _after(command, Prefix("-w --prefix", first=command.subcommand()[0]))


SPECIAL: dict[str, Callable[[Command], list[Inner]]] = {
    "find": _find,
    "gfind": _find,
    "fd": _fd,
    "fdfind": _fd,
    "xargs": _xargs,
    "gxargs": _xargs,
    "parallel": _parallel,
    "trap": _trap,
    "tar": _tar,
    "git": _git,
    "npm": _npm,
}
