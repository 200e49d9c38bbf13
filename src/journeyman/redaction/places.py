"""Secrets that are known by the place where they stand in a text: `KEY=value`, `"api_key": "…"`
with or without escapes, options of commands, elements of XML, sentences. What a name means is for
`key_names`, what a value is for `values`; JSON that is whole is walked in `walk`.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache

from journeyman.redaction.found import Found
from journeyman.redaction.key_names import FOREIGN_PASSWORDS, Place, place_of
from journeyman.redaction.pairs import find_names, find_pairs, start_of_name
from journeyman.redaction.sections import find_in_columns, find_in_sections
from journeyman.redaction.sentences import find_sentences
from journeyman.redaction.values import (
    FAMILIES,
    has_wild_case,
    is_bare_secret,
    is_plain_name,
    is_secret,
    looks_generated,
    looks_random,
    refers,
)

_WORDS = (
    *("pass", "pwd", "secret", "token", "key", "cred", "auth", "cookie", "pin", "otp", "cvv"),
    *("cvc", "ssn", "phone", "mobile", "jwt", "conn", "kennwort", "bearer", "dsn", "mnemonic"),
    *("seed", "code", "card", "fax", "number", "pw", "sas", "webhook", "psk", "_pat", "salt"),
    *("unseal", "signing", "sess", "senha", "wachtwoord", "haslo", "heslo", "contrasena"),
    *FOREIGN_PASSWORDS,
)


@cache
def _assignment(word: str) -> re.Pattern[str]:
    """A name with the word in it, and what stands between it and its value. A pattern that begins
    with letters is found many times faster than one that begins with a choice.
    """
    return re.compile(
        rf"({word}[\w-]{{0,24}})"
        r"(\\{0,40}[\"'`]?\]?)(?:\*\*)?[ \t]{0,8}"
        r"(:[ \t]?(?:&'?(?:static )?)?[a-z_][\w.\[\]| ?]{0,30}=[ \t]?"
        r"(?=[a-z]?\\{0,40}[\"'])"  # name: str = "…"
        r"|=>|:=|!?={1,3}|->|:(?![:/]{2}|:)|："
        r"|\((?=\s?\\{0,40}[\"'])"  # set_password("…")
        r"|(?:,|\|\||\?\?|\)\.[a-z_]{2,20}\()(?=\s?\\{0,40}[\"']))"  # getenv("TOKEN", "…")
        r"(?:\*\*)?(?:[ \t]{0,8}|\s{0,40}(?=[\"']))"
    )


_OPENING = re.compile(r"[fFbBrRuU]{0,2}(\\{0,40})(\"\"\"|'''|[\"'`])")
_BARE = re.compile(r"[^\s\"'`;&|<>]{1,256}")
_WIDE = re.compile(
    r"(?:(?!\\[\"'nr]|[\"'][,}\])\s]|[\"']\Z|[;&|,]\s?[\w.]{1,40}=)[^\s`]){1,256}(?=\s|\Z)"
)
"""A value alone on its line, with signs in it that end it elsewhere."""
_REST = re.compile(r"[^\s\"'`;&|<>\\]*")
_JUDGED = 256
"""How much of a value is looked at to judge it; a text can be made of the beginnings of values."""

_PREFIX = (
    r"(?:[\w./-]{1,60}:\d{1,6}[:-]|[ \t]{0,8}\d{1,6}(?:→|\t|[|:]))?[ \t]*"  # grep, a listing
    r"(?:[-*+>][ \t]+|export |set |setx |env |ENV |ARG |-e |--env |\$env:|[\"'])*\Z"
)
_LINE_START = re.compile(rf"(?:^|[\n\r{{,\"']|\\n){_PREFIX}")
_OWN_LINE = re.compile(rf"(?:^|[\n\r]){_PREFIX}")
_BEFORE = 80
_BEHIND_A_PAIR = re.compile(r"\w=(?:\"[^\"]{0,60}\"|[^\s,()=]{1,60}) \Z")
_OF_A_PARSER = re.compile(r"(?i:expected|invalid|unknown|illegal|next|current|last|bad) \Z")
"""Before a token that is a piece of a program's text."""
_OPTION = re.compile(r"(?<![\w-])--?([a-zA-Z][\w-]{1,40})(?:=|[ \t]+)(\\{0,3}[\"']?)(?=[^\s-])")
_ELEMENT = re.compile(r"<([\w:.-]{2,40})(?: [^<>]{0,80})?>([^<>\n]{3,300})</")
SCHEME = re.compile(
    r"(?i)(?:bearer|basic|token|digest|api-?key|negotiate|bot|oauth|jwt|dpop|hawk|sharedkey"
    r"|aws4-hmac-sha256) +(?=\S{6})"
)
"""The word before the secret in an Authorization header."""
_ANY_SCHEME = re.compile(r"[A-Za-z][\w-]{2,20} +(?=\S{8})")
_LINE = re.compile(r"[^\n\r\"'`\\<>]{3,4000}")
_PAIRS = re.compile(r"[\w.%!#$&*+^|~-]{1,80}=[^\s;=]")


def find_places(text: str) -> Iterator[Found]:
    """Every secret that its place gives away, in no order; they may overlap."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = text
    words = [word for word in _WORDS if word in lower]
    if not words:
        return
    for word in words:
        yield from _assigned(text, lower, word)
    if "-" in text:
        yield from _options(text)
    if "</" in text:
        yield from _elements(text)
    names = find_names(text, lower, words)
    if names:
        yield from find_pairs(text, names)
        yield from find_in_columns(text)
    yield from find_sentences(text, lower)
    yield from find_in_sections(text)


def _assigned(text: str, lower: str, word: str) -> Iterator[Found]:
    done = 0
    for found in _assignment(word).finditer(lower):
        if found.start() < done:
            continue
        start = start_of_name(text, found.start())
        name = text[start : found.end(1)]
        if text[start - 1 : start] == "<" or not _may_be_assigned(text, found, name):
            continue
        place = place_of(name)
        if place is not None:
            one = _value(text, found, name, place, start)
            if one is not None:
                done = one.end
                yield one


def _may_be_assigned(text: str, found: re.Match[str], name: str) -> bool:
    """Whether what stands behind a name can be its value: behind a variable (`$password = "…"`)
    only what is quoted, behind a comma only if the name is quoted too.
    """
    if name.startswith("$"):
        return found[3] != ":" and _OPENING.match(text, found.end()) is not None
    return found[3] != "," or found[2][-1:] in ('"', "'", "`")


def _value(text: str, found: re.Match[str], name: str, place: Place, start: int) -> Found | None:
    at = found.end()
    opening = _OPENING.match(text, at)
    if opening is None:
        return None if found[3][-1] in "(,|?" else _bare_value(text, found, name, place, start)
    if (
        not found[2]
        and opening.start() == found.end(3)
        and text[max(0, start - 1) : start] == opening[2]
    ):
        return None  # the quote ends a label: read("Password:", …)
    start_of_value = opening.end()
    end = _closing(text, start_of_value, opening[1], opening[2], _JUDGED)
    value = text[start_of_value:end]
    if "{" in value and opening[0][0] in "fF":
        return None
    if found[3][-1] in "(,|?" and not looks_random(value) and not has_wild_case(value):
        return None
    skipped = _scheme(value) if place in ("header", "loose", "secret") else 0
    value = value[skipped:]
    if skipped and not refers(value) and len(value) >= 6:
        place = "secret"
    if not is_secret(value, place) or (value.count(" ") > 1 and _is_prose(value, name)):
        return None
    end = _closing(text, start_of_value, opening[1], opening[2])
    return Found(start_of_value + skipped, end, FAMILIES[place])


def _closing(text: str, start: int, escape: str, quote: str, within: int = sys.maxsize) -> int:
    """Where a value in quotes ends: at a quote with no more escapes before it than the first one
    had, at the end of its line, or where the text was cut.
    """
    most = min(len(text), start + within)
    limit = text.find("\n", start, most) if len(quote) == 1 else -1
    limit = most if limit < 0 else limit
    at = start
    while (at := text.find(quote, at, limit)) >= 0:
        escapes = at
        while escapes > start and text[escapes - 1] == "\\":
            escapes -= 1
        if at - escapes <= len(escape):
            return max(start, at - len(escape))
        at += 1
    return limit


def _is_prose(value: str, name: str) -> bool:
    """A sentence about a password; but a phrase that is meant as one is one."""
    return "phrase" not in name.lower() and all(
        word.strip(".,:;!?()'").isalpha() for word in value.split()
    )


def _scheme(value: str) -> int:
    scheme = SCHEME.match(value)
    return scheme.end() if scheme else 0


def _bare_value(
    text: str, found: re.Match[str], name: str, place: Place, start: int
) -> Found | None:
    at = found.end()
    if place in ("header", "cookie"):
        return _rest_of_line(text, at, place)
    before = text[max(0, start - _BEFORE) : start]
    own_line = _OWN_LINE.search(before) if start <= _BEFORE or "\n" in before else None
    bare = (_WIDE.match(text, at) if own_line and not found[2] else None) or _BARE.match(text, at)
    if bare is None:
        return None
    value = bare[0].split("\\n", 1)[0].split("\\r", 1)[0].rstrip("\\")
    in_query = before[-1:] in ("?", "&", ";")
    if not in_query or "," in value:
        value = value.rstrip(",.:;)]}")
    end = at + len(value)
    if not value or text[end : end + 1] in ("(", "["):
        return None
    has_quoted_name = bool(found[2])
    if has_quoted_name and not value.isdigit() and not looks_random(value):
        return None
    if found[3] == "->" and not looks_random(value):
        return None
    if found[3] == ":" and _OF_A_PARSER.search(before) and not looks_generated(value):
        return None
    tight = text[at - 1 : at] == "=" and text[found.end(2) : found.end(2) + 1] == "="
    literal = (
        in_query
        or (tight and name.replace("-", "_").isupper())
        or (tight and place == "password" and _BEHIND_A_PAIR.search(before) is not None)
        or (_fills_the_line(text, before, end) and _may_stand_alone(value, place))
        or (place == "password" and _is_like_a_password(value, told=tight or found[3] == ":"))
    )
    if not is_bare_secret(value, place, literal=literal):
        return None
    if len(value) == _JUDGED and (rest := _REST.match(text, end)):
        end = rest.end()
    return Found(at, end, FAMILIES[place], has_quoted_name and found[2].endswith('"'))


def _is_like_a_password(value: str, *, told: bool) -> bool:
    """Whether a word behind `password` is one: with digits inside, or with one at its end where it
    is told (`password: x1`, `password=x1`), not assigned as in a program (`password = x1`).
    """
    if not is_plain_name(value):
        return any(map(str.isdigit, value)) and "(" not in value and "." not in value
    return told and value[-1].isdigit() and len(value) >= 6 and place_of(value[:-1]) is None


def _fills_the_line(text: str, before: str, end: int) -> bool:
    rest = text[end : end + 2]
    ends = rest[:1] in ("", "\n", "\r", ",", "}", '"', "'") or rest in ("\\n", '\\"', " #")
    at_start = "\n" + before if len(before) < _BEFORE else before
    return ends and _LINE_START.search(at_start) is not None


def _may_stand_alone(value: str, place: Place) -> bool:
    """Whether a word alone behind `password:` or `token =` is a value, not a name or a type."""
    if any(map(str.isdigit, value)):
        return "." not in value and "(" not in value
    if place != "password":
        return False
    return has_wild_case(value) or (value.islower() and value.isalpha() and len(value) >= 5)


def _rest_of_line(text: str, at: int, place: Place) -> Found | None:
    line = _LINE.match(text, at)
    if line is None:
        return None
    value = line[0].rstrip()
    if place == "cookie":
        is_cookie = _PAIRS.match(value) and not refers(value)
        return Found(at, at + len(value), "cookie") if is_cookie else None
    known = SCHEME.match(value)
    scheme = known or _ANY_SCHEME.match(value)
    secret = value[scheme.end() :] if scheme else value.split(" ", 1)[0]
    if refers(secret) or is_plain_name(secret) or len(secret) < 6:
        return None
    if not known and not looks_random(secret):
        return None
    end = at + len(value) if scheme else at + len(secret)
    return Found(end - len(secret), end, "secret")


def _options(text: str) -> Iterator[Found]:
    for found in _OPTION.finditer(text):
        place = place_of(found[1])
        if place is None:
            continue
        if found[2]:
            end = _closing(text, found.end(), found[2][:-1], found[2][-1], 16 * _JUDGED)
        else:
            bare = _BARE.match(text, found.end())
            end = bare.end() if bare else found.end()
        value = text[found.end() : end].rstrip("\\")
        if value.isupper() and is_plain_name(value):
            continue
        if is_secret(value, place) and (place != "loose" or looks_random(value)):
            yield Found(found.end(), found.end() + len(value), FAMILIES[place])


def _elements(text: str) -> Iterator[Found]:
    for found in _ELEMENT.finditer(text):
        place = place_of(found[1])
        if place is not None and is_secret(found[2], place):
            yield Found(found.start(2), found.end(2), FAMILIES[place])
