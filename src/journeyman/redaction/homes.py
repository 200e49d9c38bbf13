"""User names: those in the paths of home folders, and then the same names where they stand bare.
Names that machines give their accounts stay.
"""

import re

from journeyman.redaction.placeholders import Placeholders

GENERIC = frozenset(
    {
        *("root", "user", "users", "ubuntu", "runner", "admin", "administrator", "dev", "node"),
        *("app", "vscode", "public", "shared", "default", "all", "guest", "ec2-user", "centos"),
        *("debian", "fedora", "opc", "azureuser", "vagrant", "pi", "jovyan", "coder", "git"),
        *("codespace", "circleci", "gitpod", "sandbox", "agent", "agents", "builder", "build"),
        *("jenkins", "www-data", "postgres", "mysql", "redis", "linuxbrew", "username", "you"),
        *("yourname", "your-name", "your_name", "yourusername", "your-username", "user_name"),
        *("your_username", "me", "someone", "somebody", "nobody", "test", "tester", "testuser"),
        *("docker", "deploy", "openhands", "swe-agent", "nonroot", "code", "workspace", "work"),
        *("workspaces", "project", "projects", "src", "data", "tmp", "runneradmin", "bot", "ci"),
        *("containeradministrator", "appuser", "myuser", "foo", "bar", "name", "python", "conda"),
        *("airflow", "hadoop", "spark", "steam", "server", "service", "support", "system", "demo"),
        *("example", "index", "home", "oem", "student", "developer", "operator", "worker", "web"),
        *("api", "lib", "bin", "...", "..", "default user", "all users"),
    }
)
_POSIX = re.compile(r"(/(?:home|Users)/)([A-Za-z_][\w.@+-]{0,63})")
_INSIDE_A_PATH = re.compile(
    r"[\w.)}\]*@%-](?<!\\[nrt])(?<!/var)(?<!/export)(?<!/mnt/c)(?<![:/][A-Za-z])\Z"
)
_DRIVE = re.compile(r"(?:\A|[^\w])[A-Za-z]:\Z")
_WINDOWS = re.compile(
    r"([A-Za-z]:(?P<cut>\\{1,8})(?i:Users|Documents and Settings)(?P=cut))"
    r"([^\\/:*?\"<>|\r\n]{1,64})(?=(?P=cut)|[\"'\s,;)\]]|\Z)"
)
_SLUG = re.compile(r"(-(?:Users|home)-)([A-Za-z_][A-Za-z0-9_]{0,63})(?=-)")
_FILE = re.compile(r".+\.(?:html?|[jt]sx?|py|md|json|php|css|vue|go|rs|txt)")
_MOST_NAMES = 50
"""How many names are looked for where they stand bare: no pattern is about more people."""


def without_homes(text: str, placeholders: Placeholders) -> str:
    """The text without the names of its home folders, which are added to those that are known,
    and without the known ones where they are words of their own.
    """
    names = placeholders.names

    def replaced(found: re.Match[str]) -> str:
        name = found[found.lastindex or 0]
        if not _is_personal(name) or (found[0][0] in "/-" and _is_inside(text, found.start())):
            return found[0]
        if len(names) < _MOST_NAMES and sum(map(str.isalpha, name)) >= 3:
            names.add(name)
        return found[1] + placeholders.put("user", name)

    if "/home/" in text or "/Users/" in text:
        text = _POSIX.sub(replaced, text)
    if ":\\" in text:
        text = _WINDOWS.sub(replaced, text)
    if "-Users-" in text or "-home-" in text:
        text = _SLUG.sub(replaced, text)
    for name in sorted(names, key=len, reverse=True) if names else ():
        if name in text:
            text = _as_a_word(name).sub(placeholders.put("user", name), text)
    return text


def _is_inside(text: str, start: int) -> bool:
    """Whether the folder is only a part of another path, such as a page of a web site."""
    before = text[max(0, start - 8) : start]
    return _INSIDE_A_PATH.search(before) is not None and _DRIVE.search(before) is None


def _is_personal(name: str) -> bool:
    return name.casefold() not in GENERIC and not name.isdigit() and not _FILE.fullmatch(name)


def _as_a_word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?:(?<![A-Za-z0-9_<])|(?<=\\[nrt])){re.escape(name)}(?![A-Za-z0-9_>])")
