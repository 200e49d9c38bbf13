"""What a value in a secret-looking place is: a secret itself, or only a reference, a type, a name
or a stand-in for one. References are what makes an example worth learning, so they stay.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from journeyman.redaction.families import table

Place = Literal["password", "secret", "loose", "code", "header", "cookie", "phone", "card"]
"""`password` and `secret`: what stands here goes, unless it only refers to something. `loose`: the
name is used for other things too, so the value must look random. `code`: short numbers such as a
PIN. `header`: a scheme and then the secret. `cookie`: pairs. `phone`, `card`: enough digits."""

_NAMES = table().names
_CODES = frozenset(code.replace(" ", "") for code in _NAMES.code)
_GLUED_PASS = frozenset(owner + end for owner in _NAMES.owners_of_pass for end in ("pass", "pw"))
_GLUED_KEYS = frozenset(owner + "key" for owner in _NAMES.owners_of_key)

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+[a-z]*")

VALUE_NAMES = frozenset({"value", "text", "val", "content", "string", "input", "default"})
NAMING = ("name", "key", "field", "variable", "selector", "element", "label", "locator", "env")

_PIECE = re.compile(r"[\w-]{2,60}")

PLACEHOLDER = re.compile(r"<([a-z][a-z_]{2,24}):(\d{1,9})>")
"""What stands in the place of a secret."""

FAMILIES: dict[Place, str] = dict.fromkeys(get_args(Place), "secret") | {
    own: own for own in ("password", "cookie", "phone", "card")
}

_TAME = r"(?:[^\d]|\d{1,2}(?![A-Za-z\d]))"
"""No digit before a letter, as in `Tr0ub4dor`: so are names written, and few passwords."""
_REFERENCE = re.compile(
    rf"""
      \$(?:[A-Z][A-Z0-9_]*|[A-Za-z_]+(?:\d{{1,2}})?(?:_[A-Za-z]+)*_?)(?:(?:->|[.:\[?]).*)?  # $TOKEN
    | \$[\d@\#?*] | \$[({{\[].* | `.*             # $1, ${{TOKEN}}, $(pass show x)
    | %\w+% | %[sdr] | %\(\w+\)s | ![A-Za-z]+(?:[ .:/|].*)?  # %TOKEN%, a format, a YAML tag
    | (?:[\w"' ]*\{{\{{.*\}}\}}.*) | f?(?:(?=\{{){_TAME}*)(?<=\}})     # {{{{ secret }}}}, {{token}}
    | <[^<>]*> | \[[^\]]*\] | (?=[<\[(])(?:(?=[\w\s"'.,:/|<\[()-]){_TAME})*  # <your token>, (hidden
    | \([^()]*\)
    | (?:os\.|process\.|import\.|Deno\.|System\.|ENV\[|env\.|getenv|secrets\.|vars?\.|config\.
        |settings\.|self\.|this\.|args\.|options\.|params\.|request\.|ctx\.|data\.|await\ )
        (?:{_TAME}*|.*[(\["'].*|.*\.[A-Z][A-Z0-9_]*)
    | (?:op|vault|ssm|secretsmanager|keychain|env|awssm|gcp-secret|doppler)://?.*
    | arn:aws:.* | projects/.*/secrets/.*
    | (?:localhost|[\w-]+(?:\.[\w-]+)+):\d{{2,5}}(?:/[\w-]*)?  # a host and its port
    | (?:exports|module)\.[\w.]+
    | [~^]?\d+\.\d+\.\d+(?:-[\w.]{{1,20}})?           # a version
    | sha(?:1|256|384|512)-[A-Za-z0-9+/=]+          # what a lock file holds
    | https?://[\w.-]+(?::\d+)?(?:/[A-Za-z0-9.\#_-]{{0,30}})*  # an address without a query
    | [*.•…xX#_?\-]+                              # ***, xxx, ...
    | [\w.-]*(?:\*{{3,}}|\.{{3,}}|…|x{{4,}}|X{{4,}})[\w.-]{{0,4}}  # sk-***abcd, abc...
    | (?:your|example|sample|dummy|fake|mock|placeholder)(?:[-_ ][a-z]+)+
    | (?:my|the|a|an|some|any|new|old|another)(?:[-_ ][a-z]+)*[-_ ]
        (?:pass|password|pw|passphrase|secret|token|key|value|name|string|one|here|id|credentials?)
    | YOUR[A-Z_]* | MY_?[A-Z_]+\d? | your[A-Za-z]+
    | (?i:redacted|masked|hidden|removed|placeholder|example|dummy|todo|tbd|none|null|nil|undefined
        |true|false|yes|no|on|off|required|optional|missing|invalid|expired|unset|empty|unknown
        |n/a|nan|include|omit|same-origin|bearer|basic|digest|oauth2?|default|enabled|disabled
        |str|string|int|integer|bool|boolean|float|number|bytes|object|any|text|varchar|char|void
        |string\?|name|username|filename|split|not-required
        |(?:scram|cram|digest)-(?:md5|sha-?\d+)|xoauth2|utf-?8|latin-?1|base64|md5|bcrypt
        |secretstr|file|path|value|varies|not[ _]set|set|changed|ok)
    """,
    re.VERBOSE | re.DOTALL,
)
_REGEX = re.compile(
    r"\[\^?(?:a-z|A-Z|0-9|\\[\[\]wsdu])|(?:a-z|A-Z|0-9){2}|\(\?[:=!P<]"
    r"|\A[^A-Za-z0-9]?(?i:abcdefghijklmnopqrstuvwxyz)"
)
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w.@+-]+(?:[/\\][\w.@+-]+)*[/\\]?")
_NAME = re.compile(r"[A-Za-z][a-z]*(?:[A-Z][a-z]+)*(?:[_.:/ -][A-Za-z]+)*[_.-]?[vV]?\d{0,3}")
_IDENTIFIER = re.compile(r"[A-Za-z_][\w.]*")
_CONSTANT = re.compile(r"[A-Z][A-Z_]{2,}")
_VERSION_OR_TIME = re.compile(r"v?\d+(?:[.:/-]\d+)*(?:[T ][\d:.+Z-]*)?")
_SETTING = re.compile(r"[a-z_]+=\d{1,6}")
_DIGIT, _LETTER, _TURN = re.compile(r"\d"), re.compile("[A-Za-z]"), re.compile("[a-z][A-Z]")
_JUDGED = 200
_SECRET_WORD = re.compile(
    r"(?i)(?:pass(?:word|wd|phrase)?|secret|token|api|key|auth|access|my|user)"
)

_SEPARATE = re.compile(r"[()\[\]{}<>,;:\s]|\.\w+\.")
_MIXED = re.compile(r"(?=.*?[a-z])(?=.*?[A-Z])(?=.*?\d)", re.DOTALL)
_HEXADECIMAL = re.compile(r"[0-9a-f]{32,}|[0-9A-F]{32,}")


@lru_cache(maxsize=4096)
def place_of(name: str) -> Place | None:
    """The kind of place that a name marks; None for an ordinary one, and for one in which a secret
    was replaced: redacting again must change nothing.
    """
    if "<" in name and PLACEHOLDER.search(name):
        return None
    if not name.isascii() and name.lower().endswith(_NAMES.foreign_password):
        return "password"
    words = [word.lower() for word in _WORD.findall(name[-80:])]
    while len(words) > 1 and words[-1] in _NAMES.which:
        words.pop()
    if not words:
        return None
    last = words[-1]
    before = words[-2] if len(words) > 1 else ""
    glued = before + last
    singular = glued.removesuffix("s") if not glued.endswith("ss") else glued
    if last in ("authorization", "authorisation"):
        return "header"
    if last.rstrip("s") in ("cookie", "setcookie"):
        return "cookie"
    if singular.endswith(_NAMES.password) or last in ("pwd", "passe", "psk") or words == ["pw"]:
        return "password"
    if name == "PASS":  # of a test that passed
        return None
    if (last in ("pass", "pw") and before in _NAMES.owners_of_pass) or last in _GLUED_PASS:
        return "password"
    three = "".join(words[-3:])
    if not _CODES.isdisjoint((last, glued, three)):
        return "code"
    if singular.endswith(_NAMES.secret) or three in _NAMES.secret or _is_secret_key(last, before):
        return "secret"
    if last in _NAMES.phone or glued in _NAMES.phone:
        return "phone"
    if glued in _NAMES.card or three in _NAMES.card:
        return "card"
    return "loose" if _is_loose(name, last, before) else None


def _is_secret_key(last: str, before: str) -> bool:
    if last in ("key", "keys"):
        return before in _NAMES.owners_of_key
    return last.removesuffix("s") in _GLUED_KEYS or last.endswith(("apikey", "secretkey"))


def _is_loose(name: str, last: str, before: str) -> bool:
    if last in ("key", "keys"):
        if before in _NAMES.owners_of_loose_key:
            return True
        return bool(before) and name.isupper() and before not in _NAMES.ordinary_keys
    if last == "id" and before == "secret":
        return True
    if last == "pat":
        return bool(before) or name == "PAT"
    return last in _NAMES.loose or last.removesuffix("s") in _NAMES.loose


def place_of_value(fields: Mapping[str, object]) -> Place | None:
    """The place that one field names for another: `{"name": "DB_PASSWORD", "value": "…"}`, or a
    form that is filled in: `{"selector": "#password", "text": "…"}`.
    """
    if VALUE_NAMES.isdisjoint(fields):
        return None
    for naming in NAMING:
        name = fields.get(naming)
        if isinstance(name, str) and 2 < len(name) < 200:
            words = [place_of(word) for word in _PIECE.findall(name)]
            for place in ("password", "secret", "code"):
                if place in words:
                    return place
    return None


class Found(NamedTuple):
    """Where a secret stands. `wants_quotes` says that the text around it wants quotes; `value` is
    what tells equal secrets from others, where that is not the text itself.
    """

    start: int
    end: int
    family: str
    wants_quotes: bool = False
    value: str = ""


def refers(value: str) -> bool:
    """Whether a value only says where the secret comes from, what it is called or of what type."""
    value = value[:_JUDGED].strip()
    return bool(
        not value
        or len(set(value)) == 1
        or _REFERENCE.fullmatch(value)
        or PLACEHOLDER.search(value)
        or _REGEX.search(value)
        # Base64 can look like a path, but its pieces are no names.
        or (_PATH.fullmatch(value) and not any(map(looks_generated, re.split(r"[/\\]", value))))
        # `password: "Password"`, `token: access_token`: the name of the place, no value for it.
        or (len(value) < 40 and not _SECRET_WORD.sub("", value).strip("_- .:*").rstrip("s?!"))
    )


def looks_random(value: str) -> bool:
    """Whether a value looks made by a machine: digits among letters, or letters in wild case."""
    if (
        len(value) < 8
        or " " in value
        or _NAME.fullmatch(value.strip("?!"))
        or _VERSION_OR_TIME.fullmatch(value)
        or _SETTING.fullmatch(value)
    ):
        return False
    if _DIGIT.search(value):
        return _LETTER.search(value) is not None
    return len(value) >= 16 and len(_TURN.findall(value)) > len(value) / 8


def has_wild_case(value: str) -> bool:
    """Whether letters change their case as in no name: `kYIeiFbnwiGE`. Too little to tell alone."""
    return (
        len(value) >= 8
        and value.isalnum()
        and not _NAME.fullmatch(value)
        and len(_TURN.findall(value)) >= 2
    )


def looks_generated(value: str) -> bool:
    """Whether a value is surely made by a machine: both cases and digits, or long hexadecimal."""
    if not looks_random(value) or _SEPARATE.search(value):
        return False
    return _MIXED.match(value) is not None or _HEXADECIMAL.fullmatch(value) is not None


CHECKS: dict[str, Callable[[str], bool]] = {
    "": lambda _value: True,
    "random": looks_random,
    "generated": looks_generated,
}
"""What rows of the table ask of a value."""


def is_secret(value: str, place: Place) -> bool:
    """Whether a whole value, such as a string of JSON, is a secret in its place."""
    if place == "code":
        digits = sum(map(str.isdigit, value))
        return 3 <= digits <= 12 and all(letter.isdigit() or letter in " -" for letter in value)
    if place in ("phone", "card"):
        return sum(map(str.isdigit, value)) >= (7 if place == "phone" else 12)
    if refers(value):
        return False
    if place == "loose":
        return looks_random(value)
    if place == "cookie":
        return "=" in value or looks_random(value)
    if place == "header":
        return looks_random(value) or (" " in value and not refers(value.split(" ", 1)[1]))
    return len(value) >= 3


def is_bare_secret(value: str, place: Place, *, literal: bool) -> bool:
    """The same for a value without quotes, which may as well be a piece of a program. `literal`
    says that in this place it cannot be one: behind an option, in a query, in an environment.
    """
    if not is_secret(value, place) or (
        _IDENTIFIER.fullmatch(value) and place_of(value.removesuffix("s").removesuffix("Type"))
    ):
        return False
    if literal or place in ("code", "phone", "card", "cookie"):
        return True
    return looks_random(value) and "(" not in value


def is_plain_name(value: str) -> bool:
    """Whether a value may be the name of something in a program: letters, a small number behind."""
    return bool(_NAME.fullmatch(value) or _CONSTANT.fullmatch(value))
