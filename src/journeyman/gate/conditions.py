"""The conditions that rows of `rules.toml` name: what the words of a command alone do not say."""

import re
from collections.abc import Callable
from difflib import SequenceMatcher
from functools import cache

from journeyman.gate.decision import known, pairs, pattern, rules_file
from journeyman.gate.parser import OUTPUT, UNKNOWN, Command
from journeyman.gate.paths import Places

Condition = Callable[[Command, Places], bool]

_FILTERS = re.compile(r"-(?:i?name|i?path|i?regex|newer\w*|[acm](?:time|min)|empty|size|perm)")
_WORKSPACE = frozenset({"*", "./*", ".*", "**", ".git", "./.git", ".git/"})


def written(command: Command) -> list[str]:
    """The paths that a command writes, changes or removes, as far as its words say so."""
    program = command.program
    found = [path for operator, path in command.redirects if ">" in operator]
    if program in ("curl", "wget"):
        found += command.values("-o", "--output", "-O", "--output-document")
    elif program == "dd":
        found += [text[3:] for text in command.arguments if text.startswith("of=")]
    elif program in pairs("writes") and (program not in ("sed", "perl") or command.has("-i")):
        has_code = program in ("sed", "perl") and command.has("-e")
        start = 0 if has_code else int(pairs("writes")[program])
        found += command.operands("-t", "-s", "-m", "-o", "-g", "-e")[start:]
        found += command.values("-t")
    return [text for text in found if text and not text.isdigit()]


def _shown(command: Command) -> list[str]:
    """The paths of files that a command prints, copies or sends, as far as its words say so."""
    found = [path for operator, path in command.redirects if operator == "<"]
    if start := pairs("shows").get(command.program):
        end = -1 if command.program in ("cp", "mv", "scp") else None
        found += command.operands("-n", "-c", "-e", "-A", "-B", "-C")[int(start) : end]
    elif command.program == "git" and command.begins(frozenset({"add"})):
        found += command.operands()[1:]
    elif command.program in known("fetchers"):
        found += [text.rpartition("@")[2] for text in command.arguments if "@" in text[:20]]
    return [text for text in found if len(text) < 400]


def _removed_trees(command: Command) -> list[str]:
    """The folders that a command deletes with all that is in them."""
    words = command.arguments
    if command.program == "rm":
        return command.operands() if command.has("-r", "-R", "--recursive") else []
    if "-delete" not in words and "rm" not in words:
        return []
    at = next((n for n, text in enumerate(words) if text[:1] in ("-", "(", "!")), 0)
    is_filtered = any(_FILTERS.fullmatch(text) for text in words)
    return [text for text in words[:at] or (".",) if text[:1] in ("/", "~") or not is_filtered]


def hidden(command: Command, _: Places) -> bool:
    return command.said[:1] in (((UNKNOWN, False),), ((OUTPUT, False),))


def deletes_everything(command: Command, places: Places) -> bool:
    return any(places.is_vital(places.resolve(text)) for text in _removed_trees(command))


def deletes_workspace(command: Command, places: Places) -> bool:
    return any(
        text in _WORKSPACE or places.resolve(text) == places.workspace
        for text in _removed_trees(command)
    )


def deletes_many(command: Command, _: Places) -> bool:
    """Trees, patterns, and whatever is fed to it."""
    if command.program == "find":
        return "-delete" in command.arguments
    return (
        command.via in ("xargs", "find", "parallel")
        or command.has("-r", "-R", "--recursive")
        or any(re.search(r"[*?\[\x00\x01]", text) for text in command.operands())
    )


def erases_disk(command: Command, places: Places) -> bool:
    formats = command.program.startswith("mkfs") or command.program in ("wipefs", "blkdiscard")
    given = command.operands() if formats else written(command)
    return any(places.is_device(places.resolve(text)) for text in given if text.startswith("/dev"))


_UNSIGNED = re.compile(r"(?:commit|tag)\.gpgsign[= ](?:false|0|no|off)", re.IGNORECASE)
_PLAIN_PROGRAMS = frozenset({"", "cat", "less", "more", "true", ":", "false", "vim", "vi", "nano"})


def skips_checks(command: Command, _: Places) -> bool:
    return (
        command.has("--no-verify", "--no-gpg-sign", "--no-pre-commit")
        or (command.begins(frozenset({"commit"})) and command.has("-n"))
        or any(name in ("SKIP", "HUSKY", "LEFTHOOK") for name, _ in command.settings)
        or _UNSIGNED.search(" ".join(command.arguments)) is not None
    )


def steers_git(command: Command, _: Places) -> bool:
    """Settings by which git runs a program, and settings of all projects."""
    given = [text.partition("=") for text in command.values("-c", "--config-env")]
    if any(
        pattern("git_settings").fullmatch(name) and to not in _PLAIN_PROGRAMS
        for name, _, to in given
    ):
        return True
    if not command.begins(frozenset({"config"})):
        return any(text.startswith(("ext::", "fd::")) for text in command.arguments)
    said = [text for text, _ in command.said[1:] if text not in ("set", "unset")]
    is_global = command.has("--global", "--system")
    is_change = len(said) > 1 or command.has("--unset", "--edit", "-e")
    return is_change and (is_global or any(map(pattern("git_settings").fullmatch, said[:1])))


_LOOKS = re.compile(
    r"(?:describe|list|get|head|show|ls|help|view|search|lookup|wait|info|version|batch-get|test|"
    r"validate|check|filter|estimate|explain|status|tail|logs|read|decode|presign)(?:-.*)?"
)


def changes_cloud(command: Command, _: Places) -> bool:
    """Cloud programs name what they do behind the service; anything but looking is a change."""
    said = [text for text, _ in command.said]
    return len(said) > 1 and not any(map(_LOOKS.fullmatch, said[1:4]))


_SOURCE = re.compile(r"(?:^|(?:src|source)=)([/~][^:,]*|\.\.[^:,]*)")


def reaches_machine(command: Command, places: Places) -> bool:
    """A container that gets the machine's devices, its network or its folders."""
    if command.has("--privileged", "--cap-add", "--device", "--security-opt"):
        return True
    if "host" in command.values("--pid", "--net", "--network", "--ipc", "--userns", "--uts"):
        return True
    found = map(_SOURCE.search, command.values("-v", "--volume", "--mount"))
    return any(one and not places.is_inside(places.resolve(one[1])) for one in found)


_REMOTE = re.compile(r"(?!/)(?:[\w.-]+@)?[\w.\[\]-]+::?(?!\\).*|rsync://.*")
_METHODS = re.compile(r"(?:-X|--request=|--method=)?(?:POST|PUT|PATCH|DELETE)", re.IGNORECASE)
_SENDS = re.compile(
    r"-[a-zA-Z]{0,5}[dFT](?:[@\w/.{\"'\[].*)?|--(?:data|json|form|upload-file|post-|body-).*"
)
_FIELD = re.compile(r"[\w-]+(?::?=|@|=@).*")


def is_remote(command: Command, _: Places) -> bool:
    if command.program in ("nc", "ncat", "netcat"):
        return not command.has("-z")
    operands = command.operands("-e", "--rsh", "--exclude", "--include", "-f")
    return command.program != "rsync" or any(map(_REMOTE.fullmatch, operands))


def _goes_out(command: Command) -> bool:
    """Whether a request leaves the machine, or could."""
    addresses = [text for text in command.arguments if "://" in text]
    if addresses:
        return not all(map(pattern("local").fullmatch, addresses))
    return not any(map(pattern("local").fullmatch, command.arguments))


def sends(command: Command, _: Places) -> bool:
    words, program = command.arguments, command.program
    if not _goes_out(command):
        return False
    if program in ("http", "https", "xh") and any(map(_FIELD.fullmatch, words)):
        return True
    return any(
        OUTPUT in text
        or (program in known("fetchers") and (_METHODS.fullmatch(text) or _SENDS.fullmatch(text)))
        for text in words
    )


def is_unverified(command: Command, _: Places) -> bool:
    given = [f"{name}={value}" for name, value in command.settings]
    if command.program in known("fetchers") and not _goes_out(command):
        return any(map(pattern("unverified").fullmatch, given))
    if command.program not in pairs("shows") and command.program not in ("echo", "printf"):
        given += command.arguments
    return any(map(pattern("unverified").fullmatch, given)) or (
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
    """Whether a text of SQL drops, empties or changes whole tables."""
    return any(map(_LOSES.match, _QUOTED_SQL.sub("''", sql).split(";")))


def loses_database(command: Command, _: Places) -> bool:
    options = (text.partition("=")[2] for text in command.arguments if text.startswith("--"))
    texts = [*command.arguments, *options, command.document or ""]
    if command.program in ("redis-cli", "mongo", "mongosh"):
        return _LOSES_KEYS.search(" ".join(texts).lower()) is not None
    is_removal = command.program in ("dropdb", "dropuser", "mysqladmin", "pg_restore")
    return is_removal or any(map(loses_data, texts))


def writes_steering(command: Command, places: Places) -> bool:
    return any(places.is_steering(places.resolve(text)) for text in written(command))


def writes_outside(command: Command, places: Places) -> bool:
    found = (places.resolve(text) for text in written(command) if UNKNOWN not in text[:1])
    return any(not (places.is_inside(path) or places.is_scratch(path)) for path in found)


def reads_secret(command: Command, places: Places) -> bool:
    return any(places.is_secret(places.resolve(text)) for text in _shown(command))


_SHORTEST = 5
"""Shorter names have honest neighbours."""

_OWN = re.compile(r"\.{0,2}/.*|\.(\[.*\])?|\.\.|(?!.*://).*\.(whl|tar\.gz|tgz|zip|gem)|-")
_NAME = re.compile(r"@?[A-Za-z][\w./-]*")


@cache
def find_popular(name: str, registry: str) -> str:
    """The popular package that a name is one slip away from; empty if there is none, or if the name
    itself is popular.
    """
    popular = rules_file().popular[registry].split()
    given = name.casefold().replace("_", "-") if registry == "pypi" else name.casefold()
    if len(given) < _SHORTEST or given in popular:
        return ""
    return next((one for one in sorted(popular) if _is_one_slip(given, one)), "")


def _is_one_slip(one: str, other: str) -> bool:
    """Whether one letter was added, left out, changed or moved."""
    longest = max(len(one), len(other))
    if abs(len(one) - len(other)) > 1 or len(other) < _SHORTEST:
        return False
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= 1 - 1 / longest


def _packages(command: Command) -> list[str]:
    """The packages that a command installs by name, behind the word that installs."""
    operands = command.operands(*known("package_options"))
    if command.program in known("package_runners"):
        return operands[:1]
    installs = {"get", "install"} if command.program == "go" else known("installing_words")
    at = next((n for n, text in enumerate(operands[:3]) if text in installs), None)
    return [] if at is None else operands[at + 1 :]


def is_misspelt(command: Command, _: Places) -> bool:
    registry = pairs("registries").get(command.program, "other")
    found = map(_NAME.match, _packages(command))
    return any(one is not None and find_popular(one[0], registry) for one in found)


def is_from_address(command: Command, _: Places) -> bool:
    given = [*_packages(command), *command.values(*known("package_sources"))]
    return any(
        "://" in text or text.startswith(("git+", "github:", "git@", "..")) for text in given
    )


def is_unlisted(command: Command, _: Places) -> bool:
    if command.program in known("package_runners"):
        return command.program != "npx" or command.has("-y", "--yes", "-p", "--package")
    return any(not _OWN.fullmatch(text) for text in _packages(command))
