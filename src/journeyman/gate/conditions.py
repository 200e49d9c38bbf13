"""The conditions that rules in `rules.toml` name, for what words alone cannot express."""

import itertools
import re
from collections.abc import Callable
from difflib import SequenceMatcher
from functools import cache

from journeyman.gate.command import OUTPUT, UNKNOWN, ShellCommand
from journeyman.gate.decision import pairs, pattern, rules_file, vocabulary
from journeyman.gate.paths import Places

Condition = Callable[[ShellCommand, Places], bool]

_UNCLEAR = re.compile(r"[\x00\x01]|\{[^}]*(?:,|\.\.)|^~[^/]")
_FINAL = re.compile(
    r"(?:-X|--method=)?(?:DELETE|PUT)|.*\bmutation\b.*\b(?:delete|remove|merge).*", re.DOTALL
)
_SEARCH_VALUES = ("-A", "-B", "-C", "-m")
_FILTERS = re.compile(r"-(?:i?name|i?path|i?regex|newer\w*|[acm](?:time|min)|empty|size|perm)")
_WORKSPACE_TARGETS = frozenset({"*", "./*", ".*", "**", ".git", "./.git", ".git/"})


def written_paths(command: ShellCommand) -> list[str]:
    """The paths that a command visibly writes, changes or removes."""
    program = command.program
    paths = [path for operator, path in command.redirects if ">" in operator]
    if program in ("curl", "wget"):
        paths += command.values("-o", "--output", "-O", "--output-document")
    elif program == "dd":
        paths += [text[3:] for text in command.arguments if text.startswith("of=")]
    elif program == "find":
        paths += _changed_trees(command)
    elif program in ("tar", "bsdtar", "unzip"):
        paths += _unpacked_to(command)
    elif program in pairs("writes") and (program not in ("sed", "perl") or command.has("-i")):
        has_code = program in ("sed", "perl") and command.has("-e")
        start = 0 if has_code else int(pairs("writes")[program])
        paths += command.operands("-t", "-s", "-m", "-o", "-g", "-e")[start:]
        paths += command.values("-t")
    return [path for path in paths if path and not path.isdigit()]


def _changed_trees(command: ShellCommand) -> list[str]:
    """The folders in which `find` deletes files or runs a program that changes them."""
    words = command.arguments
    changes = "-delete" in words or any(
        before.startswith(("-exec", "-ok")) and text.rpartition("/")[2] in pairs("writes")
        for before, text in itertools.pairwise(words)
    )
    at = next((n for n, text in enumerate(words) if text[:1] in ("-", "(", "!")), len(words))
    return [*(words[:at] or (".",))] if changes else []


def _unpacked_to(command: ShellCommand) -> list[str]:
    """The folder that an archive is unpacked to."""
    if command.program == "unzip":
        is_unpacked = not command.has("-l", "-t", "-v", "-p", "-Z", "-z")
        return (command.values("-d") or ["."]) if is_unpacked else []
    letters = "".join(command.arguments[:1])
    is_unpacked = command.has("-x", "--extract", "--get") or (letters[:1] != "-" and "x" in letters)
    return (command.values("-C", "--directory") or ["."]) if is_unpacked else []


def exposed_paths(command: ShellCommand) -> list[str]:
    """The paths of files that a command visibly prints, copies or sends."""
    paths = [path for operator, path in command.redirects if operator == "<"]
    if start := pairs("shows").get(command.program):
        end = -1 if command.program in ("cp", "mv", "scp") else None
        with_value = ("-n", "-c") if command.program in ("head", "tail") else _SEARCH_VALUES
        paths += command.operands(*with_value)[int(start) : end]
    elif command.program == "git" and command.begins(frozenset({"add"})):
        paths += command.operands()[1:]
    elif command.program in vocabulary("interpreters"):
        paths += command.operands("-e", "-c", "-m")
    elif command.program in vocabulary("fetchers"):
        paths += [text.rpartition("@")[2] for text in command.arguments if "@" in text[:20]]
    return [path for path in paths if len(path) < 400]


def destroys_unclear(command: ShellCommand, _: Places) -> bool:
    """Whether it deletes or overwrites something whose path is not literal."""
    program, words = command.program, command.arguments
    targets: list[str] = []
    if program in ("rm", "unlink", "shred", "truncate", "rmdir"):
        targets = command.operands("-s", "--size", "-n", "--iterations")
    elif program in ("chmod", "chown", "chgrp"):
        targets = command.operands()[1:] if command.has("-R", "--recursive") else []
    elif program == "find":
        targets = _changed_trees(command)
    elif program == "dd":
        targets = [text for text in words if text.startswith("of=")]
    elif program == "rsync" and any(text.startswith("--del") for text in words):
        targets = command.operands()[-1:]
    return any(map(_UNCLEAR.search, targets))


def exposes_unclear(command: ShellCommand, places: Places) -> bool:
    """Whether it shows or copies a file that wildcards or the running shell choose, and that can
    hold a secret.
    """
    is_shown_whole = pairs("shows").get(command.program) == "0"
    return any(
        places.can_be_secret(text) or (is_shown_whole and text == OUTPUT)
        for text in exposed_paths(command)
    )


def overwrites_remote(command: ShellCommand, _: Places) -> bool:
    options = ("-f", "--force", "--mirror", "--delete", "-d", "--prune")
    return command.has(*options) or any(text[:1] in ("+", ":") for text in command.arguments)


def is_final(command: ShellCommand, _: Places) -> bool:
    """All but the plain requests to the interface of a site that hosts projects."""
    is_plain = command.begins(frozenset({"api"}))
    return not is_plain or any(map(_FINAL.fullmatch, command.arguments))


def _removed_trees(command: ShellCommand) -> list[str]:
    """The folders that a command deletes recursively."""
    words = command.arguments
    if command.program == "rm":
        return command.operands() if command.has("-r", "-R", "--recursive") else []
    if "-delete" not in words and "rm" not in words:
        return []
    at = next((n for n, text in enumerate(words) if text[:1] in ("-", "(", "!")), 0)
    is_filtered = any(_FILTERS.fullmatch(text) for text in words)
    return [text for text in words[:at] or (".",) if text[:1] in ("/", "~") or not is_filtered]


def hidden(command: ShellCommand, _: Places) -> bool:
    return command.subcommands[:1] in (((UNKNOWN, False),), ((OUTPUT, False),))


def deletes_everything(command: ShellCommand, places: Places) -> bool:
    return any(places.is_vital(places.resolve(text)) for text in _removed_trees(command))


def deletes_workspace(command: ShellCommand, places: Places) -> bool:
    return any(
        text in _WORKSPACE_TARGETS or places.resolve(text) == places.workspace
        for text in _removed_trees(command)
    )


def deletes_many(command: ShellCommand, _: Places) -> bool:
    """Folders, patterns, and whatever another command passes to it."""
    if command.program == "find":
        return "-delete" in command.arguments
    return (
        command.via in ("xargs", "find", "parallel")
        or command.has("-r", "-R", "--recursive")
        or any(re.search(r"[*?\[\x00\x01]", text) for text in command.operands())
    )


def erases_disk(command: ShellCommand, places: Places) -> bool:
    formats = command.program.startswith("mkfs") or command.program in ("wipefs", "blkdiscard")
    paths = command.operands() if formats else written_paths(command)
    return any(places.is_device(places.resolve(path)) for path in paths if path.startswith("/dev"))


_UNSIGNED = re.compile(r"(?:commit|tag)\.gpgsign[= ](?:false|0|no|off)", re.IGNORECASE)
_PLAIN_PROGRAMS = frozenset({"", "cat", "less", "more", "true", ":", "false", "vim", "vi", "nano"})


def skips_checks(command: ShellCommand, _: Places) -> bool:
    return (
        command.has("--no-verify", "--no-gpg-sign", "--no-pre-commit")
        or (command.begins(frozenset({"commit"})) and command.has("-n"))
        or any(name in ("SKIP", "HUSKY", "LEFTHOOK") for name, _ in command.settings)
        or _UNSIGNED.search(" ".join(command.arguments)) is not None
    )


def steers_git(command: ShellCommand, _: Places) -> bool:
    """Settings that make git run a program, and settings for all projects."""
    options = [text.partition("=") for text in command.values("-c", "--config-env")]
    if any(
        pattern("git_settings").fullmatch(name) and to not in _PLAIN_PROGRAMS
        for name, _, to in options
    ):
        return True
    if not command.begins(frozenset({"config"})):
        return any(text.startswith(("ext::", "fd::")) for text in command.arguments)
    words = [text for text, _ in command.subcommands[1:] if text not in ("set", "unset")]
    is_global = command.has("--global", "--system")
    is_change = len(words) > 1 or command.has("--unset", "--edit", "-e")
    return is_change and (is_global or any(map(pattern("git_settings").fullmatch, words[:1])))


_READ_ONLY = re.compile(
    r"(?:describe|list|get|head|show|ls|help|view|search|lookup|wait|info|version|batch-get|test|"
    r"validate|check|filter|estimate|explain|status|tail|logs|read|decode|presign)(?:-.*)?"
)


def changes_cloud(command: ShellCommand, _: Places) -> bool:
    """Cloud programs name the operation after the service; all but read-only ones are changes."""
    words = [text for text, _ in command.subcommands]
    return len(words) > 1 and not any(map(_READ_ONLY.fullmatch, words[1:4]))


_SOURCE = re.compile(r"(?:^|(?:src|source)=)([/~][^:,]*|\.\.[^:,]*)")


def reaches_machine(command: ShellCommand, places: Places) -> bool:
    """A container with access to the host's devices, network or folders."""
    if command.has("--privileged", "--cap-add", "--device", "--security-opt"):
        return True
    if "host" in command.values("--pid", "--net", "--network", "--ipc", "--userns", "--uts"):
        return True
    sources = map(_SOURCE.search, command.values("-v", "--volume", "--mount"))
    return any(match and not places.is_inside(places.resolve(match[1])) for match in sources)


_REMOTE = re.compile(r"(?!/)(?:[\w.-]+@)?[\w.\[\]-]+::?(?!\\).*|rsync://.*")
_METHODS = re.compile(r"(?:-X|--request=|--method=)?(?:POST|PUT|PATCH|DELETE)", re.IGNORECASE)
_SENDS = re.compile(
    r"-[a-zA-Z]{0,5}[dFT](?:[@\w/.{\"'\[].*)?|--(?:data|json|form|upload-file|post-|body-).*"
)
_FIELD = re.compile(r"[\w-]+(?::?=|@|=@).*")


def is_remote(command: ShellCommand, _: Places) -> bool:
    if command.program in ("nc", "ncat", "netcat"):
        return not command.has("-z")
    operands = command.operands("-e", "--rsh", "--exclude", "--include", "-f")
    return command.program != "rsync" or any(map(_REMOTE.fullmatch, operands))


def _may_leave_machine(command: ShellCommand) -> bool:
    addresses = [text for text in command.arguments if "://" in text]
    if addresses:
        return not all(map(pattern("local").fullmatch, addresses))
    return not any(map(pattern("local").fullmatch, command.arguments))


def sends(command: ShellCommand, _: Places) -> bool:
    words, program = command.arguments, command.program
    if not _may_leave_machine(command):
        return False
    if program in ("http", "https", "xh") and any(map(_FIELD.fullmatch, words)):
        return True
    if any(UNKNOWN in text for text in command.operands(*vocabulary("fetcher_options"))):
        return True
    return any(
        OUTPUT in text
        or (
            program in vocabulary("fetchers")
            and (_METHODS.fullmatch(text) or _SENDS.fullmatch(text))
        )
        for text in words
    )


def is_unverified(command: ShellCommand, _: Places) -> bool:
    texts = [f"{name}={value}" for name, value in command.settings]
    if command.program in vocabulary("fetchers") and not _may_leave_machine(command):
        return any(map(pattern("unverified").fullmatch, texts))
    if command.program not in pairs("shows") and command.program not in ("echo", "printf"):
        texts += command.arguments
    return any(map(pattern("unverified").fullmatch, texts)) or (
        command.program == "curl" and command.has("-k")
    )


_QUOTED_SQL = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
_LOSES = re.compile(
    r"\s*(?:drop|truncate|grant|revoke|flush)\b|.*\balter\s+table\b.*\bdrop\b|"
    r".*\bcopy\b.*\bprogram\b|\s*(?:with\b.*)?\b(?:delete\s+from|update)\b(?!.*\bwhere\b)",
    re.IGNORECASE | re.DOTALL,
)
_LOSES_KEYS = re.compile(r"drop|flushall|flushdb|deletemany|remove\(|shutdown|config set")


def loses_data(sql: str) -> bool:
    """Whether SQL statements drop, empty or change whole tables."""
    return any(map(_LOSES.match, _QUOTED_SQL.sub("''", sql).split(";")))


def loses_database(command: ShellCommand, _: Places) -> bool:
    options = (text.partition("=")[2] for text in command.arguments if text.startswith("--"))
    texts = [*command.arguments, *options, command.document or ""]
    if command.program in ("redis-cli", "mongo", "mongosh"):
        return _LOSES_KEYS.search(" ".join(texts).lower()) is not None
    is_removal = command.program in ("dropdb", "dropuser", "mysqladmin", "pg_restore")
    return is_removal or any(map(loses_data, texts))


def starts_unlimited(command: ShellCommand, _: Places) -> bool:
    texts = (*command.arguments, *(f"{name}={value}" for name, value in command.settings))
    return any(map(pattern("unlimited").fullmatch, texts))


def writes_steering(command: ShellCommand, places: Places) -> bool:
    return any(places.is_steering(places.resolve(text)) for text in written_paths(command))


def writes_outside(command: ShellCommand, places: Places) -> bool:
    texts = (text for text in written_paths(command) if UNKNOWN not in text[:1])
    paths = map(places.resolve, texts)
    return any(not (places.is_inside(path) or places.is_free(path)) for path in paths)


def reads_secret(command: ShellCommand, places: Places) -> bool:
    return any(places.is_secret(places.resolve(text)) for text in exposed_paths(command))


_SHORTEST_NAME = 5
"""Shorter names have legitimate neighbours."""

_LOCAL_PACKAGE = re.compile(r"\.{0,2}/.*|\.(\[.*\])?|\.\.|(?!.*://).*\.(whl|tar\.gz|tgz|zip|gem)|-")
_NAME = re.compile(r"@?[A-Za-z][\w./-]*")


@cache
def find_popular(name: str, registry: str) -> str:
    """Return the popular package that a name is one typing error away from, or an empty text if
    there is none or the name itself is popular.
    """
    popular = rules_file().popular[registry].split()
    name = name.casefold().replace("_", "-") if registry == "pypi" else name.casefold()
    if len(name) < _SHORTEST_NAME or name in popular:
        return ""
    return next((known for known in sorted(popular) if _is_one_typo(name, known)), "")


def _is_one_typo(name: str, known: str) -> bool:
    """Whether one letter was added, left out, changed or moved."""
    longest = max(len(name), len(known))
    if abs(len(name) - len(known)) > 1 or len(known) < _SHORTEST_NAME:
        return False
    return SequenceMatcher(None, name, known, autojunk=False).ratio() >= 1 - 1 / longest


def _packages(command: ShellCommand) -> list[str]:
    """The packages that a command installs by name: the operands after the installing word."""
    operands = command.operands(*vocabulary("package_options"))
    if command.program in vocabulary("package_runners"):
        return operands[:1]
    installs = {"get", "install"} if command.program == "go" else vocabulary("installing_words")
    at = next((n for n, text in enumerate(operands[:3]) if text in installs), None)
    return [] if at is None else operands[at + 1 :]


def is_misspelt(command: ShellCommand, _: Places) -> bool:
    registry = pairs("registries").get(command.program, "other")
    names = map(_NAME.match, _packages(command))
    return any(match is not None and find_popular(match[0], registry) for match in names)


def is_from_address(command: ShellCommand, _: Places) -> bool:
    sources = [*_packages(command), *command.values(*vocabulary("package_sources"))]
    return any(
        "://" in text or text.startswith(("git+", "github:", "git@", "..")) for text in sources
    )


def is_unlisted(command: ShellCommand, _: Places) -> bool:
    if command.program in vocabulary("package_runners"):
        return command.program != "npx" or command.has("-y", "--yes", "-p", "--package")
    return any(not _LOCAL_PACKAGE.fullmatch(text) for text in _packages(command))
