"""Shell commands as playbooks count them: the program with its subcommand, the form in which it was
written without values that change from run to run, and the skill that a call demonstrates.
"""

import re
import shlex
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from journeyman.learning.agent_tools import shell_command
from journeyman.text.shell import pipelines

_LONGEST = 8_000
"""Only the beginning of a longer command line is read."""

_LONGEST_FORM = 160
_LONGEST_TASK = 30
_LONGEST_WORD = 60

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
_SUBCOMMAND = re.compile(r":?[a-z][A-Za-z0-9]*(?:[:_.-][A-Za-z0-9]+)*")
_PROGRAM = re.compile(r"[A-Za-z_][\w.+-]*", re.ASCII)
_SCRIPT = re.compile(r"(?:\./)?[\w.@+-]+(?:/[\w.@+-]+)+", re.ASCII)
"""A program by its path inside the project: `bin/test` is not `test`. Letters of other scripts may
only look like these."""
_NUMBERED = re.compile(r"(?=[\w-]*\d{3})[\w-]{5,}|[0-9a-f]{7,40}")

_PREFIXES_LIST = """time command exec env nohup then do else if elif while until ! builtin nice
timeout"""
_PREFIXES = frozenset(_PREFIXES_LIST.split())
_PREFIX_ARGUMENT = re.compile(r"-.*|\d+(?:\.\d+)?[smhd]?", re.DOTALL)
"""The arguments of a prefix itself: `timeout -k 5 2m`, `nice -n 10`."""

_SILENT_LIST = """cd pushd popd export set unset source . true false : done fi esac for case
function in return exit break continue local declare read shift echo printf sleep wait"""
_SILENT = frozenset(_SILENT_LIST.split())
"""Commands that prepare, control or announce the work that other commands do."""

_ONE_PURPOSE_LIST = """ag awk base64 basename bash bat cat chmod chown cmp cp curl cut date df
diff dirname du egrep fd fgrep file find grep gunzip gzip head hexdump hostname jq kill less ln
ls md5sum mkdir more mv nl node od open patch perl pgrep php ping pkill ps pwd python python3
readlink realpath rg rm rmdir rsync ruby scp sed seq sh sha256sum shasum sort ssh stat strings
tail tar tee test touch tr tree type uname uniq unzip vim wc wget which whoami xargs xxd yq zip
zsh [ [["""
_ONE_PURPOSE = frozenset(_ONE_PURPOSE_LIST.split())
"""Programs whose first argument is an operand, not a subcommand."""

_SECRET_OPTION = re.compile(
    r"--?(?:[\w-]*(?:pass|pwd|token|secret|auth|user)[\w-]*|[\w-]*key|login)", re.IGNORECASE
)
_FOLDER_OPTION = re.compile(
    r"-C|--(?:cwd|dir|directory|filter|prefix|workspace|namespace|context|profile)"
)
"""Options whose value, the next word, could be mistaken for a subcommand."""

_GROUPS_LIST = """api app auth cache compose config container image issue pr release repo run
secret stack workflow x exec dlx tool script remote worktree stash submodule bisect mod env"""
_GROUPS = frozenset(_GROUPS_LIST.split())
"""Subcommands followed by a second one: `gh pr create`, `npm run build`."""

_SHORT_OPTION = re.compile(r"-[A-Za-z]")

_QUIET = frozenset(("2>&1", "2>/dev/null", "2> /dev/null", "&>/dev/null", ">/dev/null"))

SCRIPT_RUNNERS = {"python", "python3", "node", "ruby", "perl", "php", "bash", "sh", "zsh"}

_TASKS_LIST = """make gmake just task rake nox tox invoke inv poe gradle mvn sbt bazel nx turbo"""
_RUN_LIST = """npm pnpm yarn bun mise pdm hatch uv poetry pipenv composer deno task rye pixi"""
_TASK_RUNNERS, _WITH_RUN = frozenset(_TASKS_LIST.split()), frozenset(_RUN_LIST.split())
"""Programs that run what a project defines: their subcommand is a name of the project's own, for
the second ones after `run`, `exec` or `test`."""

_DIRECTLY = frozenset(("pnpm", "yarn", "bun"))
"""Programs that run a project's tasks also without `run`, except for their own subcommands."""

_OWN_LIST = """add audit config create dlx exec import info init install link list ls outdated pack
patch prune publish rebuild remove store unlink up update upgrade version why workspace
workspaces x"""
_OWN = frozenset(_OWN_LIST.split())

CheckKind = Literal["test", "lint", "build"]
_CHECK_NAMES: dict[CheckKind, str] = {
    "test": "tests? runtests? pytest unittest doctest jest vitest mocha rspec ctest tox nox specs?",
    "lint": r"\w*lint vet check types? typecheck clippy ruff mypy pyright pylint flake8 eslint tsc "
    "shellcheck rubocop",
    "build": "build compile make gradlew? mvn cmake ninja",
}
_CHECKS: dict[CheckKind, re.Pattern[str]] = {
    kind: re.compile(rf"(?:^|[\s/:_.-])(?:{'|'.join(names.split())})(?![a-z])")
    for kind, names in _CHECK_NAMES.items()
}

_SOURCE = re.compile(
    r"--(?:default-|extra-)?index\b|--index-url|--find-links|--reg\w*=|registry|--extra=|--with\b"
    r"|--repository=|git\+|\b\w*(?:INDEX|MIRROR|PROXY|CONFIG|PRELOAD)\w*=|\bpip3? .*\s-i"
    r"|\buv run\b.*\s-w\b|\b(?:npm|pip3?|yarn|uv) (?:config )?set\b",
    re.IGNORECASE,
)
"""What names where software comes from."""

_REMOTE_RUNNERS = re.compile(
    r"(?:^|[\s;&|(])(?:(?:npx|bunx|uvx|pipx run|uv tool|bun x|npm (?:exec|x)|(?:pnpm|yarn) dlx"
    r"|nix run|docker run|mise (?:exec|x))(?!\w)|deno run .*(?:npm|jsr):|go run \S*@)"
)
"""Programs that fetch what they run, by a name that anyone can take."""

_PLAIN_WORD = re.compile(r"[A-Za-z]{2,}[:,.!?]?")
_MOST_PLAIN_WORDS, _MOST_WORDS_IN_A_NAME = 4, 7
"""More words than this in a row are a sentence."""

_SENTENCE = re.compile(
    rf"(?<![A-Za-z])(?:[A-Za-z]{{2,}}[:,.!?]?\s+){{{_MOST_PLAIN_WORDS},}}[A-Za-z]{{2,}}"
)

_MORE_LINES = re.compile(r"\n| #")

_ADDRESSING = frozenset(("agent", "agents", "always", "before", "must", "please"))
"""Words of sentences that no command has."""

_HOST = re.compile(
    r"(?:-\w)?(?:[\w.-]+@)?[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}[/:]\S|\d{1,3}(?:\.\d{1,3}){3}"
    r"|(?:[\w-]+\.)+(?:com|net|org|io|dev|app|ai|xyz|info|cloud|site|online|example)(?::\d+)?$"
)
"""A place on the network, also without a scheme."""

_FAR = re.compile(r"://(?!localhost\b|127\.|\[::1\])")
_NAME_OF_VALUE, _PLAIN_VALUE = (
    re.compile(r"-{0,2}[A-Za-z][\w-]*"),
    re.compile(r"[\w-]{0,30}|\d*\.\d+"),
)
"""A variable or an option before `=`, and the values that are shown: names and numbers."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


class Command(Struct, frozen=True, kw_only=True, gc=False):
    """A program with its subcommand, and its written form without volatile values."""

    name: str
    form: str


@lru_cache(maxsize=4_096)
def commands_of(line: str) -> tuple[Command, ...]:
    """Return the commands that do the work, in order, each name once. A pipeline is one command."""
    commands: dict[str, Command] = {}
    for command in filter(None, map(_command, pipelines(line[:_LONGEST]))):
        commands.setdefault(command.name, command)
    return tuple(commands.values())


def _command(words: list[str]) -> Command | None:
    while words and (words[0] in _PREFIXES or _ASSIGNMENT.fullmatch(words[0])):
        is_prefix, words = words[0] in _PREFIXES, words[1:]
        while is_prefix and words and _PREFIX_ARGUMENT.fullmatch(words[0]):
            words = words[1:]
    words = [word for word in words if word not in ("{", "}")]
    if not words:
        return None
    written = words[0].strip("'\"")
    program = written.rpartition("/")[2]
    if program in _SILENT or not _PROGRAM.fullmatch(program):
        return None
    # The program is shown as written, or without its folder where quotes make that unreadable.
    is_hidden = written.startswith(("/", "~")) or any(mark in written for mark in "'\"\\\n")
    shown = program if is_hidden else written
    first = words[: words.index("|")] if "|" in words else words
    return Command(name=_name(program, shown, first[1:]), form=_form([shown, *words[1:]]))


def _name(program: str, shown: str, arguments: list[str]) -> str:
    plain = [
        word
        for before, word in zip(("", *arguments), arguments, strict=False)
        if word[0] not in "-<>&12"
        and not (_SECRET_OPTION.fullmatch(before) or _FOLDER_OPTION.fullmatch(before))
        # The word after a short option may be its value, and a value may be a secret.
        and not (_SHORT_OPTION.fullmatch(before) and program not in SCRIPT_RUNNERS)
    ]
    if "/" in shown.strip("./") and _SCRIPT.fullmatch(shown):
        script = shown.removeprefix("./")
        # `bin/rails test` is a task of a script, `bin/test tax` is a test of something.
        is_task = plain and _is_task(plain[0]) and check_kind(script) is None
        return f"{script} {plain[0]}" if is_task else script
    if program in SCRIPT_RUNNERS:
        program = "python" if program == "python3" else program
        if "-m" in arguments[:-1]:
            module = arguments[arguments.index("-m") + 1]
            return f"{program} -m {module}" if _PROGRAM.fullmatch(module) else program
        script = plain[0].removeprefix("./") if plain else ""
        is_file = "." in script and not any(mark in script for mark in "'\"$(*")
        return f"{program} {script}" if is_file and len(script) <= _LONGEST_WORD else program
    if program in _ONE_PURPOSE:
        return program
    while plain and plain[0][0] in "/~.":  # a folder before the subcommand
        plain = plain[1:]
    taken: list[str] = []
    for word in plain[:3]:
        if not _is_task(word) or _NUMBERED.fullmatch(word):
            break
        taken.append(word)
        if word not in _GROUPS:
            break
    return " ".join((shown, *taken))


def _is_task(word: str) -> bool:
    is_short = len(word) <= _LONGEST_TASK
    return is_short and _SUBCOMMAND.fullmatch(word) is not None and not _is_volatile(word)


def _form(words: list[str]) -> str:
    shown: list[str] = []
    while words[-1] in _QUIET:  # unless something reads it
        words = words[:-1]
    for number, word in enumerate(words):
        written = _written(word, words[number - 1]) if number else word
        if written != "…" or shown[-1] != "…":
            shown.append(written)
    plain = [at for at, word in enumerate(shown) if at and _PLAIN_WORD.fullmatch(word)]
    if len(plain) > _MOST_PLAIN_WORDS:
        shown = [*shown[: plain[1]], "…"]
    form = " ".join(shown)
    if len(form) > _LONGEST_FORM:
        form = form[: _LONGEST_FORM - 1].rsplit(" ", 1)[0] + " …"
    return form


def _written(word: str, before: str) -> str:
    """Return a word of a form, or `…` for a volatile value or a possible secret."""
    option, equals, value = word.partition("=")
    if equals and _NAME_OF_VALUE.fullmatch(option):
        is_shown = _PLAIN_VALUE.fullmatch(value) and not _SECRET_OPTION.fullmatch(option)
        if not (is_shown or _is_volatile(option)):
            return f"{option}=…"
    elif not word.startswith("-") and _SECRET_OPTION.fullmatch(before) and word[0] not in "|<>":
        return "…"
    return "…" if _is_volatile(word) else word


def _is_volatile(word: str) -> bool:
    """Return whether a word changes from run to run: a long value, an id, a path outside."""
    return (
        len(word) > _LONGEST_WORD
        or "\\ " in word
        or any(mark in word for mark in ("'", '"', "$", "`", "\n", "://"))
        or not word.replace("…", "").isascii()
        or ("/" not in word and len(_WORDS.findall(word)) > _MOST_PLAIN_WORDS)
        or _NUMBERED.fullmatch(word) is not None
        or word.startswith(("/", "~", "http://", "https://"))
        or _HOST.match(word) is not None
    )


def subject_of(name: str) -> str:
    """Return the script that a command runs, whatever runs it, or else the command."""
    runner, _, script = name.partition(" ")
    return script if runner in SCRIPT_RUNNERS and script and script[0] != "-" else name


def program_of(name: str) -> str:
    """Return a command without the interpreter that runs it as a module."""
    return name.removeprefix("python -m ")


def is_project_command(name: str) -> bool:
    """Return whether a command is the project's own: a script in it, or one of its tasks."""
    words = name.split(" ")
    if "/" in words[0].strip("./") or words[0].startswith("./"):
        return not words[0].startswith(("/", "~", "node_modules/", ".venv/", "venv/"))
    if subject_of(name) != name:
        return True
    if words[0] in _TASK_RUNNERS:
        return len(words) > 1
    if words[0] in _DIRECTLY and len(words) > 1 and words[1] not in _OWN:
        return True
    return len(words) > 1 and words[0] in _WITH_RUN and words[1] in ("run", "test")


def check_kind(command: str) -> CheckKind | None:
    """Return whether a command is a test, a lint or a build, by its name or, if it runs a task, by
    that of the task; None if none of them.
    """
    program, _, task = command.partition(" ")
    judged = task if task and program in _TASK_RUNNERS else command
    return next((kind for kind, words in _CHECKS.items() if words.search(judged)), None)


def placed(command: str, folder: str) -> str:
    """Return a command as it is called in the top folder of a project."""
    return f"cd {shlex.quote(folder)} && {command}" if folder else command


def names_folder(form: str) -> bool:
    """Whether a command says itself in which folder it works."""
    return any(map(_FOLDER_OPTION.match, form.split(" ")))


def names_source(form: str) -> bool:
    """Whether a command says where software is to come from: that is never passed on."""
    return _SOURCE.search(form) is not None or _REMOTE_RUNNERS.search(form) is not None


def is_plain(line: str) -> bool:
    """Whether a command line may be an example: one line without a comment, a sentence, a place on
    the network, or one where software comes from.
    """
    is_short = not any(found.search(line) for found in (_SENTENCE, _FAR, _MORE_LINES))
    words = line.replace("'", " ").replace('"', " ").split()
    return is_short and not names_source(line) and not any(map(_is_odd, words))


def _is_odd(word: str) -> bool:
    """Whether a word may be addressed to whoever reads it."""
    name = word.rpartition("/")[2]
    most = _MOST_PLAIN_WORDS if name == word else _MOST_WORDS_IN_A_NAME
    is_said = len(_WORDS.findall(name)) > most or word.casefold() in _ADDRESSING
    return (
        is_said
        or word[0] == "~"
        or not word.isascii()
        or _HOST.match(word.rpartition("=")[2]) is not None
    )


def skill_of(tool: str, arguments: str) -> str:
    """Return the skill of one call: its tool and, for a shell, the first command that does work."""
    commands = commands_of(shell_command(tool, arguments))
    return f"{tool} {commands[0].name}" if commands else tool
