"""Shell commands as a playbook counts them: which program and subcommand a command line runs, and
the form in which it was written, with the values that differ from time to time left out; and the
skill that a call shows, which is its tool and, for a shell, the program.
"""

import re
from functools import lru_cache

from msgspec import Struct

from journeyman.outcomes.commands import command_of
from journeyman.records import Pattern

_LONGEST = 8_000
"""A command line longer than this is a script; only its beginning is read."""

_LONGEST_FORM = 160
_LONGEST_WORD = 60

_HEREDOC = re.compile(
    r"<<-?[ \t]*(['\"]?)([A-Za-z_]\w*)\1[^\n]*\n"
    r"(?:(?:.*?\n)?[ \t]*\2[ \t]*(?=\n|\)|$)|.*\Z)",
    re.DOTALL,
)
_PARTS = re.compile(
    r"""(?P<mark><[a-z_]+:\d+>)|(?P<single>'[^']*'?)|(?P<double>"(?:\$\([^()]*\)|[^"\\]|\\.)*"?)|(?P<escaped>\\.)"""
    r"""|(?P<redirect>\d?(?:>>|>&|&>|<<<|<<|<|>)(?:[ \t]*(?:&?\d|[^\s;&|<>()'"]+))?)"""
    r"""|(?P<end>&&|\|\||;;?|\n|&|\$\(|[()`])|(?P<pipe>\|&?)|(?P<space>[ \t]+)|(?P<word>.)""",
    re.DOTALL,
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9]*(?:[:_.-][a-z0-9]+)*")
_PROGRAM = re.compile(r"[A-Za-z_][\w.+-]*")
_NUMBERED = re.compile(r"(?=[\w-]*\d{3})[\w-]{5,}|[0-9a-f]{7,40}")

_PREFIXES_LIST = """time command exec env nohup then do else if elif while until ! builtin nice
timeout"""
_PREFIXES = frozenset(_PREFIXES_LIST.split())
_OF_A_PREFIX = re.compile(r"-.*|\d+(?:\.\d+)?[smhd]?", re.DOTALL)
"""What a prefix takes itself: `timeout -k 5 2m`, `nice -n 10`."""

_SILENT_LIST = """cd pushd popd export set unset source . true false : done fi esac for case
function in return exit break continue local declare read shift echo printf sleep wait"""
_SILENT = frozenset(_SILENT_LIST.split())
"""What prepares, separates or announces; the commands beside it do the work."""

_ONE_PURPOSE_LIST = """ag awk base64 basename bash bat cat chmod chown cmp cp curl cut date df
diff dirname du egrep fd fgrep file find grep gunzip gzip head hexdump hostname jq kill less ln
ls md5sum mkdir more mv nl node od open patch perl pgrep php ping pkill ps pwd python python3
readlink realpath rg rm rmdir rsync ruby scp sed seq sh sha256sum shasum sort ssh stat strings
tail tar tee test touch tr tree type uname uniq unzip vim wc wget which whoami xargs xxd yq zip
zsh [ [["""
_ONE_PURPOSE = frozenset(_ONE_PURPOSE_LIST.split())
"""Programs whose first argument is a thing and not a subcommand."""

_EVERYDAY_LIST = """git-add git-branch git-checkout git-diff git-log git-show git-status"""
_EVERYDAY = frozenset(name.replace("-", " ") for name in _EVERYDAY_LIST.split())

_SECRET_OPTION = re.compile(
    r"--?(?:[\w-]*(?:pass|pwd|token|secret|auth|user)[\w-]*|[\w-]*key|login)", re.IGNORECASE
)
_PLACE_OPTION = re.compile(
    r"-C|--(?:cwd|dir|directory|filter|prefix|workspace|namespace|context|profile)"
)
"""Options whose value, the next word, stands where a subcommand may."""

_GROUPS_LIST = """api app auth cache compose config container image issue pr release repo run
secret stack workflow x exec dlx tool script remote worktree stash submodule bisect mod env"""
_GROUPS = frozenset(_GROUPS_LIST.split())
"""Subcommands that name a kind of thing or run a named task: the word after them says which."""

_SHORT_OPTION = re.compile(r"-[A-Za-z]")

_QUIET = frozenset(("2>&1", "2>/dev/null", "2> /dev/null", "&>/dev/null", ">/dev/null"))

_SCRIPT_RUNNERS = {"python", "python3", "node", "ruby", "perl", "php", "bash", "sh", "zsh"}

_SHELLS = frozenset(
    ("bash", "sh", "shell", "terminal", "console", "powershell", "command", "cmd", "exec")
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


class Command(Struct, frozen=True, kw_only=True, gc=False):
    """The program with its subcommand, and how it was written without passing values."""

    name: str
    form: str


@lru_cache(maxsize=4_096)
def commands_of(line: str) -> tuple[Command, ...]:
    """The commands that do the work, in order, each name once. A pipeline is one command."""
    text = _HEREDOC.sub("<<…", line[:_LONGEST].replace("\\\n", " "))
    found: dict[str, Command] = {}
    for command in filter(None, map(_command, _pipelines(text))):
        found.setdefault(command.name, command)
    return tuple(found.values())


def _pipelines(text: str) -> list[list[str]]:
    """The words of each pipeline, in order; a pipe is a word of its own."""
    lines: list[list[str]] = [[]]
    word = ""
    for part in _PARTS.finditer(text):
        kind, piece = part.lastgroup, part[0]
        if kind in ("word", "single", "double", "escaped", "mark"):
            word += piece
            continue
        if word:
            lines[-1].append(word)
            word = ""
        if kind == "end":
            lines.append([])
        elif kind in ("pipe", "redirect"):
            lines[-1].append(piece.strip())
    if word:
        lines[-1].append(word)
    return [line for line in lines if line]


def _command(words: list[str]) -> Command | None:
    while words and (words[0] in _PREFIXES or _ASSIGNMENT.fullmatch(words[0])):
        is_prefix, words = words[0] in _PREFIXES, words[1:]
        while is_prefix and words and _OF_A_PREFIX.fullmatch(words[0]):
            words = words[1:]
    words = [word for word in words if word not in ("{", "}")]
    if not words:
        return None
    program = words[0].strip("'\"").rpartition("/")[2]
    if program in _SILENT or not _PROGRAM.fullmatch(program):
        return None
    first = words[: words.index("|")] if "|" in words else words
    # A program is shown as it is written; without its folder where that is quoted.
    shown = program if any(mark in words[0] for mark in "'\"\\\n") else words[0]
    return Command(name=_name(program, words[0], first[1:]), form=_form([shown, *words[1:]]))


def _name(program: str, written: str, arguments: list[str]) -> str:
    plain = [
        word
        for before, word in zip(("", *arguments), arguments, strict=False)
        if word[0] not in "-<>&12"
        and not (_SECRET_OPTION.fullmatch(before) or _PLACE_OPTION.fullmatch(before))
        # What follows a short option may be its value, and that may be a secret.
        and not (_SHORT_OPTION.fullmatch(before) and program not in _SCRIPT_RUNNERS)
    ]
    if program in _SCRIPT_RUNNERS:
        if "-m" in arguments[:-1]:
            module = arguments[arguments.index("-m") + 1]
            return f"{program} -m {module}" if _PROGRAM.fullmatch(module) else program
        script = plain[0] if plain else ""
        is_file = "." in script and not any(mark in script for mark in "'\"$(*")
        return f"{program} {script}" if is_file and len(script) <= _LONGEST_WORD else program
    if program in _ONE_PURPOSE:
        return program
    shown = written if written.startswith("./") else program
    while plain and plain[0][0] in "/~.":  # a folder before the subcommand
        plain = plain[1:]
    taken: list[str] = []
    for word in plain[:3]:
        if not _SUBCOMMAND.fullmatch(word) or len(word) > 30 or _NUMBERED.fullmatch(word):
            break
        taken.append(word)
        if word not in _GROUPS:
            break
    return " ".join((shown, *taken))


def _form(words: list[str]) -> str:
    shown: list[str] = []
    while words[-1] in _QUIET:  # unless something reads it
        words = words[:-1]
    for number, word in enumerate(words):
        written = _written(word, words[number - 1]) if number else word
        if written != "…" or shown[-1] != "…":
            shown.append(written)
    form = " ".join(shown)
    if len(form) > _LONGEST_FORM:
        form = form[: _LONGEST_FORM - 1].rsplit(" ", 1)[0] + " …"
    return form


def _written(word: str, before: str) -> str:
    """A word of a form; what names something of the moment, or may be a secret, is left out."""
    option, equals, value = word.partition("=")
    if word.startswith("-"):
        is_left_out = equals and (_SECRET_OPTION.fullmatch(option) or _is_passing(value))
        if is_left_out and not _is_passing(option):
            return f"{option}=…"
    elif _SECRET_OPTION.fullmatch(before) and word[0] not in "|<>":
        return "…"
    return "…" if _is_passing(word) else word


def _is_passing(word: str) -> bool:
    """Whether a word names something of the moment: a long value, an id, a place outside."""
    return (
        len(word) > _LONGEST_WORD
        or "\\ " in word
        or any(mark in word for mark in "'\"$`\n")
        or _NUMBERED.fullmatch(word) is not None
        or word.startswith(("/", "~", "http://", "https://"))
    )


def is_everyday(name: str) -> bool:
    """Whether a command is one that every agent knows, such as `ls` or `git status`."""
    return name in _ONE_PURPOSE or name in _EVERYDAY


def skills_of(pattern: Pattern) -> tuple[str, ...]:
    """What a pattern shows how to do, each once, in order."""
    return tuple(dict.fromkeys(skill_of(step.tool, step.arguments) for step in pattern.steps))


@lru_cache(maxsize=2_048)
def skill_of(tool: str, arguments: str) -> str:
    """The skill of one call: its tool and, for a shell, the first command that does the work."""
    if _SHELLS.isdisjoint(word.lower() for word in _WORDS.findall(tool)):
        return tool
    commands = commands_of(command_of(arguments))
    return f"{tool} {commands[0].name}" if commands else tool
