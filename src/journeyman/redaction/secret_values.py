"""Decides whether the value of a secret-looking field is a secret, or only a reference, a type, a
name or a stand-in for one. References are what make an example worth learning, so they are kept.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from journeyman.redaction.families import load_families

FieldKind = Literal["password", "secret", "loose", "code", "header", "cookie", "card"]
"""What the name of a field says about its value. `password` and `secret`: the value is redacted
unless it is a reference. `loose`: the name has other uses too, so the value must look random.
`code`: a short number such as a PIN. `header`: a scheme, then the secret. `cookie`: pairs.
`card`: enough digits."""

_NAME_WORDS = load_families().names
_CODE_NAMES = frozenset(code.replace(" ", "") for code in _NAME_WORDS.code)
_JOINED_PASS_NAMES = frozenset(
    owner + end for owner in _NAME_WORDS.owners_of_pass for end in ("pass", "pw")
)
_JOINED_KEY_NAMES = frozenset(owner + "key" for owner in _NAME_WORDS.owners_of_key)

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+[a-z]*")

VALUE_FIELDS = frozenset({"value", "text", "val", "content", "string", "input", "default"})
NAMING_FIELDS = (
    "name",
    "key",
    "field",
    "variable",
    "selector",
    "element",
    "label",
    "locator",
    "env",
)

_NAME_PIECE = re.compile(r"[\w-]{2,60}")

PLACEHOLDER = re.compile(r"<([a-z][a-z_]{2,24}):(\d{1,9})>")
"""The text that replaces a secret."""

KIND_FAMILIES: dict[FieldKind, str] = dict.fromkeys(get_args(FieldKind), "secret") | {
    own: own for own in ("password", "cookie", "card")
}

_CHAR = r"(?:[^\d]|\d{1,2}(?![A-Za-z\d]))"
"""No digit before a letter as in `Tr0ub4dor`: names rarely have one, passwords often do."""
_REFERENCE = re.compile(
    rf"""
      \$(?:[A-Z][A-Z0-9_]*|[A-Za-z_]+(?:\d{{1,2}})?(?:_[A-Za-z]+)*_?)(?:(?:->|[.:\[?]).*)?  # $TOKEN
    | \$[\d@\#?*] | \$[({{\[].* | `.*             # $1, ${{TOKEN}}, $(pass show x)
    | %\w+% | %[sdr] | %\(\w+\)s | ![A-Za-z]+(?:[ .:/|].*)?  # %TOKEN%, a format, a YAML tag
    | (?:[\w"' ]*\{{\{{.*\}}\}}.*) | f?(?:(?=\{{){_CHAR}*)(?<=\}})     # {{{{ secret }}}}, {{token}}
    | <[^<>]*> | \[[^\]]*\] | (?=[<\[(])(?:(?=[\w\s"'.,:/|<\[()-]){_CHAR})*  # <your token>, (hidden
    | \([^()]*\)
    | (?:os\.|process\.|import\.|Deno\.|System\.|ENV\[|env\.|getenv|secrets\.|vars?\.|config\.
        |settings\.|self\.|this\.|args\.|options\.|params\.|request\.|ctx\.|data\.|await\ )
        (?:{_CHAR}*|.*[(\["'].*|.*\.[A-Z][A-Z0-9_]*)
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
_DIGIT, _LETTER, _CASE_CHANGE = re.compile(r"\d"), re.compile("[A-Za-z]"), re.compile("[a-z][A-Z]")
_MAX_JUDGED = 200
_SECRET_WORD = re.compile(
    r"(?i)(?:pass(?:word|wd|phrase)?|secret|token|api|key|auth|access|my|user)"
)

_SEPARATOR = re.compile(r"[()\[\]{}<>,;:\s]|\.\w+\.")
_MIXED_CASE_AND_DIGITS = re.compile(r"(?=.*?[a-z])(?=.*?[A-Z])(?=.*?\d)", re.DOTALL)
_HEXADECIMAL = re.compile(r"[0-9a-f]{32,}|[0-9A-F]{32,}")


@lru_cache(maxsize=4096)
def field_kind(name: str) -> FieldKind | None:
    """Return what a field name says about its value, or None for an ordinary name. A name that
    contains a placeholder is ordinary too: redacting twice must change nothing.
    """
    if "<" in name and PLACEHOLDER.search(name):
        return None
    if not name.isascii() and name.lower().endswith(_NAME_WORDS.foreign_password):
        return "password"
    words = [word.lower() for word in _WORD.findall(name[-80:])]
    while len(words) > 1 and words[-1] in _NAME_WORDS.which:
        words.pop()
    if not words:
        return None
    last = words[-1]
    before = words[-2] if len(words) > 1 else ""
    pair = before + last
    singular = pair.removesuffix("s") if not pair.endswith("ss") else pair
    if last in ("authorization", "authorisation"):
        return "header"
    if last.rstrip("s") in ("cookie", "setcookie"):
        return "cookie"
    if (
        singular.endswith(_NAME_WORDS.password)
        or last in ("pwd", "passe", "psk")
        or words == ["pw"]
    ):
        return "password"
    if name == "PASS":  # the outcome of a test
        return None
    if (
        last in ("pass", "pw") and before in _NAME_WORDS.owners_of_pass
    ) or last in _JOINED_PASS_NAMES:
        return "password"
    three = "".join(words[-3:])
    if not _CODE_NAMES.isdisjoint((last, pair, three)):
        return "code"
    if (
        singular.endswith(_NAME_WORDS.secret)
        or three in _NAME_WORDS.secret
        or _is_secret_key(last, before)
    ):
        return "secret"
    if pair in _NAME_WORDS.card or three in _NAME_WORDS.card:
        return "card"
    return "loose" if _is_loose(name, last, before) else None


def _is_secret_key(last: str, before: str) -> bool:
    if last in ("key", "keys"):
        return before in _NAME_WORDS.owners_of_key
    return last.removesuffix("s") in _JOINED_KEY_NAMES or last.endswith(("apikey", "secretkey"))


def _is_loose(name: str, last: str, before: str) -> bool:
    if last in ("key", "keys"):
        if before in _NAME_WORDS.owners_of_loose_key:
            return True
        return bool(before) and name.isupper() and before not in _NAME_WORDS.ordinary_keys
    if last == "id" and before == "secret":
        return True
    if last == "pat":
        return bool(before) or name == "PAT"
    return last in _NAME_WORDS.loose or last.removesuffix("s") in _NAME_WORDS.loose


def value_field_kind(fields: Mapping[str, object]) -> FieldKind | None:
    """Return the kind that one field states for another: `{"name": "DB_PASSWORD", "value": "…"}`,
    or a form that is filled in: `{"selector": "#password", "text": "…"}`.
    """
    if VALUE_FIELDS.isdisjoint(fields):
        return None
    for field in NAMING_FIELDS:
        name = fields.get(field)
        if isinstance(name, str) and 2 < len(name) < 200:
            kinds = [field_kind(word) for word in _NAME_PIECE.findall(name)]
            for kind in ("password", "secret", "code"):
                if kind in kinds:
                    return kind
    return None


class Span(NamedTuple):
    """The position of a secret in a text. `value` identifies equal secrets, where the text itself
    does not.
    """

    start: int
    end: int
    family: str
    value: str = ""


def is_reference(value: str) -> bool:
    """Whether a value only states where the secret comes from, its name or its type."""
    value = value[:_MAX_JUDGED].strip()
    return bool(
        not value
        or len(set(value)) == 1
        or _REFERENCE.fullmatch(value)
        or PLACEHOLDER.search(value)
        or _REGEX.search(value)
        # Base64 can look like a path, but its parts are not names.
        or (_PATH.fullmatch(value) and not any(map(looks_generated, re.split(r"[/\\]", value))))
        # `password: "Password"`, `token: access_token`: the name of the field, not its value.
        or (len(value) < 40 and not _SECRET_WORD.sub("", value).strip("_- .:*").rstrip("s?!"))
    )


def looks_random(value: str) -> bool:
    """Whether a value looks machine-made: digits among letters, or letters in random case."""
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
    return len(value) >= 16 and len(_CASE_CHANGE.findall(value)) > len(value) / 8


def has_random_case(value: str) -> bool:
    """Whether case changes as in no name: `kYIeiFbnwiGE`. Not sufficient evidence alone."""
    return (
        len(value) >= 8
        and value.isalnum()
        and not _NAME.fullmatch(value)
        and len(_CASE_CHANGE.findall(value)) >= 2
    )


def looks_generated(value: str) -> bool:
    """Whether a value is certainly machine-made: both cases and digits, or long hexadecimal."""
    if not looks_random(value) or _SEPARATOR.search(value):
        return False
    return (
        _MIXED_CASE_AND_DIGITS.match(value) is not None or _HEXADECIMAL.fullmatch(value) is not None
    )


CHECKS: dict[str, Callable[[str], bool]] = {
    "": lambda _value: True,
    "random": looks_random,
    "generated": looks_generated,
}
"""The checks that a row of `families.toml` can require of a value."""


def is_secret(value: str, kind: FieldKind) -> bool:
    """Whether a complete value, such as a JSON string, is a secret in a field of this kind."""
    if kind == "code":
        digits = sum(map(str.isdigit, value))
        return 3 <= digits <= 12 and all(letter.isdigit() or letter in " -" for letter in value)
    if kind == "card":
        return sum(map(str.isdigit, value)) >= 12
    if is_reference(value):
        return False
    if kind == "loose":
        return looks_random(value)
    if kind == "cookie":
        return "=" in value or looks_random(value)
    if kind == "header":
        return looks_random(value) or (" " in value and not is_reference(value.split(" ", 1)[1]))
    return len(value) >= 3


def is_unquoted_secret(value: str, kind: FieldKind, *, literal: bool) -> bool:
    """Whether an unquoted value is a secret; it could also be source code. `literal` rules that
    out: the value follows an option, or is in a query string or an environment.
    """
    if not is_secret(value, kind) or (
        _IDENTIFIER.fullmatch(value) and field_kind(value.removesuffix("s").removesuffix("Type"))
    ):
        return False
    if literal or kind in ("code", "card", "cookie"):
        return True
    return looks_random(value) and "(" not in value


def is_name_like(value: str) -> bool:
    """Whether a value may be an identifier in source code: letters, then a small number."""
    return bool(_NAME.fullmatch(value) or _CONSTANT.fullmatch(value))
