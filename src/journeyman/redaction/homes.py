"""User names: those in the paths of home folders, and then the same names where they stand bare.
Names that machines give their accounts stay.
"""

import re

from journeyman.redaction.placeholders import Placeholders
from journeyman.redaction.user_names import without_owners

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
        *("daemon", "sys", "mail", "messagebus", "syslog", "staff", "wheel", "sshd", "nginx"),
        *("apache", "chrome", "pptruser", "pwuser", "sa", "mongodb", "rabbitmq", "elasticsearch"),
        *("grafana", "prometheus", "ansible", "terraform", "backup", "github", "gitlab"),
    }
)
_ORDINARY = frozenset(
    {
        *("max", "min", "will", "mark", "grace", "claude", "bill", "rob", "art", "pat", "ray"),
        *("may", "june", "april", "august", "rose", "lily", "ivy", "hope", "faith", "joy", "dawn"),
        *("eve", "drew", "frank", "grant", "jack", "chase", "cliff", "dale", "gene", "glen"),
        *("guy", "heath", "lance", "lane", "miles", "nick", "norm", "pierce", "rich", "rod"),
        *("rusty", "sandy", "skip", "sterling", "stone", "sue", "van", "victor", "wade", "ward"),
        *("warren", "wolf", "chip", "dot", "don", "ted", "matt", "bob", "dan", "ken", "jan", "ben"),
        *(
            "sun",
            "star",
            "sky",
            "reed",
            "dean",
            "autumn",
            "storm",
            "river",
            "brook",
            "forest",
            "field",
        ),
        *("king", "cook", "baker", "carter", "mason", "hunter", "page", "major", "christian"),
        *("list", "dict", "set", "map", "key", "main", "core", "base", "local", "temp", "info"),
        *("log", "run", "ops", "qa", "prod", "model", "train", "eval", "paper", "file", "files"),
        *("type", "text", "media", "static", "host", "node", "repo", "shop", "store"),
        *("sam", "alan", "basic", "pascal", "ruby", "julia", "ada", "perl", "scala", "crystal"),
    }
)
"""Names that are words too: they are replaced in the paths and places of users, not elsewhere."""
_POSIX = re.compile(r"(/(?:home|Users)/)([^\W\d][\w.@+-]{0,63})")
_INSIDE_A_PATH = re.compile(
    r"[\w.)}\]*@%-](?<!\\[nrt])(?<!/var)(?<!/export)(?<!/usr)(?<!/nfs)(?<!/data)(?<!/private)"
    r"(?<!/mnt/[a-z])(?<!wsl\+Ubuntu)(?<!wsl\+Debian)(?<![:/][A-Za-z])\Z"
)
_OTHER = re.compile(
    r"(%2F(?:home|Users)%2F|/run/media/|/scratch/|(?<![\w/~.])~)([a-z_][a-z0-9_-]{2,31})(?=/|%2F)"
)
_SHARE = re.compile(
    r"((?:\\{2,8}[\w.$-]{1,60}(?:\\{1,4}[\w.-]{1,60})?|PATH=)\\{1,4}(?:Users|home\$?)\\{1,4})"
    r"([\w.-]{1,64})"
)
_DRIVE = re.compile(r"(?:\A|[^\w])[A-Za-z]:\Z")
_WINDOWS = re.compile(
    r"([A-Za-z]:(?P<cut>\\{1,8})(?i:Users|Documents and Settings)(?P=cut))"
    r"([^\\/:*?\"<>|\r\n]{1,64})(?=(?P=cut)|[\"'\s,;)\]>]|\Z)"
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
        if found.re is not _OTHER and found[0][0] in "/-" and _is_inside(text, found.start()):
            return found[0]
        return found[1] + put(name)

    def put(name: str) -> str:
        if not _is_personal(name):
            return name
        if len(names) < _MOST_NAMES and sum(map(str.isalpha, name)) >= 3:
            names.add(name)
        return placeholders.put("user", name)

    if "/home/" in text or "/Users/" in text:
        text = _POSIX.sub(replaced, text)
    if ":\\" in text:
        text = _WINDOWS.sub(replaced, text)
    if "-Users-" in text or "-home-" in text:
        text = _SLUG.sub(replaced, text)
    if "~" in text or "%2F" in text or "/run/media/" in text or "/scratch/" in text:
        text = _OTHER.sub(replaced, text)
    if "\\Users\\" in text or "\\home" in text:
        text = _SHARE.sub(replaced, text)
    text = without_owners(text, put)
    for name in sorted(names, key=len, reverse=True) if names else ():
        if name in text:
            text = _as_a_word(name).sub(placeholders.put("user", name), text)
    return text


def _is_inside(text: str, start: int) -> bool:
    """Whether the folder is only a part of another path, such as a page of a web site."""
    before = text[max(0, start - 12) : start]
    return _INSIDE_A_PATH.search(before) is not None and _DRIVE.search(before) is None


def _is_personal(name: str) -> bool:
    stem = name.casefold()
    return (
        stem not in GENERIC
        and stem.rstrip("0123456789") not in GENERIC
        and not name.isdigit()
        and not _FILE.fullmatch(name)
    )


def _as_a_word(name: str) -> re.Pattern[str]:
    word = re.escape(name)
    if name.casefold().rstrip("0123456789") in _ORDINARY:
        return re.compile(rf"(?:(?<=~)|(?<![\w<.-])(?={word}@[A-Za-z])){word}(?![A-Za-z0-9_>])")
    return re.compile(rf"(?:(?<![A-Za-z0-9_<])|(?<=\\[nrt])){word}(?![A-Za-z0-9_>(])")
