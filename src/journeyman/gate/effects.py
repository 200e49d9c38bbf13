"""Which files a command writes, deletes or reads, read off its words by a table of programs. What
to think of that is for the rules.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from journeyman.gate.command import Command
from journeyman.gate.words import Word, names
from journeyman.gate.wrappers import found_names, starting_points

_PIECES = re.compile(r"[=,@]|^(?=-)")
_WRITING = frozenset({">", ">>", ">|", "&>", "&>>", "<>", ">&"})


class Writer(NamedTuple):
    """How a program says what it writes: by its last operand, by all of them, by none, or by the
    values of options; `only_with` names the option without which operands are not written.
    """

    operands: str = "none"
    options: tuple[str, ...] = ()
    with_value: tuple[str, ...] = ()
    only_with: tuple[str, ...] = ()
    skip: int = 0


_TARGET = ("-t", "--target-directory")
_OUT = ("-o", "--output")

WRITERS: dict[str, Writer] = {
    "cp": Writer("last", _TARGET, (*_TARGET, "-S", "--suffix")),
    "gcp": Writer("last", _TARGET, _TARGET),
    "mv": Writer("all", _TARGET, (*_TARGET, "-S", "--suffix")),
    "install": Writer("last", _TARGET, (*_TARGET, "-m", "-o", "-g", "--mode", "--owner")),
    "ln": Writer("last", _TARGET, (*_TARGET, "-S")),
    "link": Writer("last"),
    "rsync": Writer("last", ("--log-file",), ("-e", "--rsh", "--exclude", "--include", "-f")),
    "tee": Writer("all"),
    "sponge": Writer("all"),
    "touch": Writer("all", (), ("-d", "-r", "-t", "--date", "--reference")),
    "truncate": Writer("all", (), ("-s", "-r", "--size", "--reference")),
    "fallocate": Writer("all", (), ("-l", "-o", "--length", "--offset")),
    "mkdir": Writer("all", (), ("-m", "--mode")),
    "mkfifo": Writer("all", (), ("-m",)),
    "mknod": Writer("all", (), ("-m",)),
    "sed": Writer("all", (), ("-e", "-f", "-l"), ("-i", "--in-place"), 1),
    "gsed": Writer("all", (), ("-e", "-f", "-l"), ("-i", "--in-place"), 1),
    "perl": Writer("all", (), ("-e", "-E", "-I", "-M"), ("-i",)),
    "ruby": Writer("all", (), ("-e", "-I", "-r"), ("-i",)),
    "patch": Writer("none", ("-o", "--output", "-d", "--directory", "-r")),
    "curl": Writer("none", (*_OUT, "--output-dir", "-D", "--dump-header", "-c", "--cookie-jar")),
    "wget": Writer("none", ("-O", "--output-document", "-P", "--directory-prefix", "-o", "-a")),
    "aria2c": Writer("none", ("-d", "--dir", *_OUT)),
    "sort": Writer("none", _OUT),
    "shuf": Writer("none", _OUT),
    "gcc": Writer("none", ("-o",)),
    "g++": Writer("none", ("-o",)),
    "clang": Writer("none", ("-o",)),
    "cc": Writer("none", ("-o",)),
    "ld": Writer("none", _OUT),
    "as": Writer("none", ("-o",)),
    "go": Writer("none", ("-o",)),
    "rustc": Writer("none", ("-o", "--out-dir")),
    "pandoc": Writer("none", _OUT),
    "openssl": Writer("none", ("-out", "-keyout")),
    "gpg": Writer("none", _OUT),
    "objcopy": Writer("last"),
    "csplit": Writer("none", ("-f", "--prefix")),
    "tar": Writer("none", ("-C", "--directory", "--one-top-level")),
    "unzip": Writer("none", ("-d",)),
    "7z": Writer("none", ("-o",)),
    "cpio": Writer("none", ("-D", "--directory", "-O", "-F")),
    "script": Writer("all", (), ("-c", "--command")),
    "ffmpeg": Writer("last"),
    "convert": Writer("last"),
    "dos2unix": Writer("all"),
    "black": Writer("all", (), ("-l", "-t", "--config", "--line-length", "--exclude")),
    "shred": Writer("all", (), ("-n", "-s", "--iterations", "--size")),
    "ssh-keygen": Writer("none", ("-f",)),
    "strace": Writer("none", ("-o",)),
    "time": Writer("none", _OUT),
    "pip": Writer("none", ("-t", "--target", "--prefix", "--root", "-d", "--dest", "-w")),
    "virtualenv": Writer("last"),
    "make": Writer("none", ("-C", "--directory")),
    "cmake": Writer("none", ("-B", "--prefix", "--install-prefix")),
    "npm": Writer("none", ("--prefix",)),
    "logrotate": Writer("none", ("-s", "--state")),
    "find": Writer("none", ("-fprint", "-fprintf", "-fls", "-fprint0")),
    "docker": Writer("none", ("--iidfile", "--cidfile")),
    "ex": Writer("all", (), ("-c",)),
    "ed": Writer("all"),
}

_MENTIONS_ONLY = names(
    "echo printf ls test [ [[ stat touch mkdir find fd chmod chown rm rmdir unlink dirname "
    "basename realpath readlink which type command export alias unalias cd pushd du tree "
    "locate man mktemp true false : set unset return exit sleep seq expr pgrep pkill kill "
    "docker-credential exa eza lsd gh"
)
_PATTERN_FIRST = names("grep egrep fgrep rg ag ack sed awk gawk jq yq")
_NAMES_ONLY = {
    "git": names(
        "check-ignore status rm log ls-files ls-tree reset restore stash checkout branch tag "
        "commit config remote push fetch pull clone merge rebase rev-parse"
    ),
}


def _once(
    effect: Callable[[Command], list[Word]],
) -> Callable[[Command], list[Word]]:
    """Many rules ask the same of one command."""

    def found(command: Command) -> list[Word]:
        known: list[Word] | None = command.__dict__.get(effect.__name__)
        if known is None:
            known = command.__dict__[effect.__name__] = effect(command)
        return known

    return found


@_once
def writes(command: Command) -> list[Word]:
    """The files a command creates, changes or writes over."""
    found = [
        redirect.target
        for redirect in command.redirects
        if redirect.operator in _WRITING and not redirect.target.text.lstrip("-").isdecimal()
    ]
    if command.program == "dd":
        return found + _after_equals(command, "of=")
    if command.program == "git":
        return found + _git_writes(command)
    if command.program == "python" and command.subcommand()[:1] == ("venv",):
        return found + command.operands("-m")
    writer = WRITERS.get(command.program)
    if writer is None:
        return found
    found += [Word(text) for text in command.values(*writer.options)]
    if writer.only_with and not command.has(*writer.only_with):
        return found
    operands = command.operands(*writer.with_value)
    if writer.skip and not command.has("-e", "-f"):
        operands = operands[writer.skip :]
    if writer.operands == "all":
        found += operands
    elif writer.operands == "last" and not command.has(*_TARGET):
        found += operands[-1:] if len(operands) > 1 else []
    return found


@_once
def deletes(command: Command) -> list[Word]:
    """The files and folders a command removes."""
    match command.program:
        case "rm" | "unlink" | "rmdir" | "grm" | "srm" | "wipe" | "trash" | "rimraf" | "del":
            return command.operands()
        case "shred":
            return command.operands("-n", "-s") if command.has("-u", "--remove") else []
        case "find" | "gfind" if "-delete" in command.arguments:
            names = command.value("-name", "-iname")
            return [found_names(command)] if names else starting_points(command) or [Word(".")]
        case "rsync" if any(text.startswith("--delete") for text in command.arguments):
            return command.operands("-e", "--exclude", "--include")[-1:]
    return []


def removes_trees(command: Command) -> bool:
    """Whether what is deleted is deleted with all that is below it."""
    if command.program in ("find", "gfind", "rsync"):
        return True
    if command.program in ("rimraf", "trash", "del"):
        return True
    return command.program in ("rm", "grm", "srm") and command.has("-r", "-R", "--recursive", "-d")


def fetched(command: Command) -> list[str]:
    """The files that a command fetches from the network."""
    if command.program not in ("curl", "wget", "aria2c"):
        return []
    names = [text.rpartition("/")[2] for text in command.arguments if "/" in text]
    return [*names, *command.values("-o", "--output", "-O", "--output-document")]


def moved_away(command: Command) -> list[Word]:
    """Where a command moves files to, or where it packs them before it deletes them."""
    if command.program == "mv":
        target = command.values(*_TARGET)
        return [Word(text) for text in target] or command.operands(*_TARGET)[-1:]
    return []


@_once
def reads(command: Command) -> list[Word]:
    """The words of a command that may name a file it reads. Any word may, except where a program
    is known to take it for a mere name or for text.
    """
    found = [one.target for one in command.redirects if one.operator in ("<", "<>")]
    if not command.words or command.program in _MENTIONS_ONLY:
        return found
    names_only = _NAMES_ONLY.get(command.program)
    if (
        names_only
        and command.subcommand("-C", "-c")[:1]
        and (command.subcommand("-C", "-c")[0] in names_only)
    ):
        return found
    words = list(command.words[1:])
    if command.program in _PATTERN_FIRST and not command.has("-e", "-f", "--regexp"):
        first = next(iter(command.operands("-A", "-B", "-C", "-m", "-g", "-t", "--include")), None)
        words = [word for word in words if word is not first]
    for word in words:
        pieces = _PIECES.split(word.text) if len(word.text) < 400 else [word.text]
        found += [word._replace(text=piece) for piece in {word.text, *pieces}]
    return found


def _after_equals(command: Command, name: str) -> list[Word]:
    return [
        word._replace(text=word.text.removeprefix(name))
        for word in command.words[1:]
        if word.text.startswith(name)
    ]


def _git_writes(command: Command) -> list[Word]:
    words = command.operands("-C", "-c", "-b", "--branch", "--depth", "-o", "--origin", "-j")
    match [word.text for word in words]:
        case ["clone", _, _]:
            return words[2:]
        case ["worktree", "add", _, *_]:
            return words[2:3]
        case ["init", _]:
            return words[1:]
        case ["archive" | "format-patch", *_]:
            return [Word(text) for text in command.values("-o", "--output", "--output-directory")]
        case ["diff" | "log" | "show", *_]:
            return [Word(text) for text in command.values("--output")]
    return []
