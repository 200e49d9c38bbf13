"""Secrets known by the name before them: assignments, options, headers, columns, sentences."""

import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from journeyman.redaction.families import Pair, table
from journeyman.redaction.sentences import find_told
from journeyman.redaction.values import (
    CHECKS,
    FAMILIES,
    Found,
    Place,
    has_wild_case,
    is_bare_secret,
    is_plain_name,
    is_secret,
    looks_generated,
    looks_random,
    place_of,
    refers,
)

_HEAD, _TAIL = re.compile(r"[\w.$-]*"), re.compile(r"[\w-]{0,24}")
_LONGEST_HEAD = 60
_BEFORE = 90
_JUDGED = 256
"""How much of a value is looked at to judge it; a text can be made of the beginnings of values."""

_JOINTS = frozenset("=:|,(?)-!*\\\"'`] \t：")
_JOINT = re.compile(
    r"(\\{0,40}[\"'`]?\]?)(?:\*\*)?[ \t]{0,8}"
    r"(:[ \t]?(?:&'?(?:static )?)?[a-z_][\w.\[\]| ?]{0,30}=[ \t]?"
    r"(?=[a-z]?\\{0,40}[\"'])"  # name: str = "…"
    r"|=>|:=|!?={1,3}|->|:(?![:/]{2}|:)|："
    r"|\((?=\s?\\{0,40}[\"'])"  # set_password("…")
    r"|(?:,|\|\||\?\?|\)\.[a-z_]{2,20}\()(?=\s?\\{0,40}[\"']))"  # getenv("TOKEN", "…")
    r"(?:\*\*)?(?:[ \t]{0,8}|\s{0,40}(?=[\"']))"
)
_CALL = re.compile(r"[A-Za-z_][\w.]*[\[(]")
_ADDRESS = re.compile(r"[\w.-]+:\d{1,5}")
_PLAIN_VALUE = re.compile(r"[\w.+/=~-]+")
_NO_LETTERS = re.compile(r"[\W_]")
_SUBSCRIPT = re.compile(r"[A-Za-z_.]+\d?\[[\w.:+\[-]{0,80}")
_ARGUMENT = re.compile(r"[\w)\]]\(\s{0,40}[a-z]?\\{0,40}[\"'`]\Z")
_OPENING = re.compile(r"[fFbBrRuU]{0,2}(\\{0,40})(\"\"\"|'''|[\"'`])")
_PHRASE = re.compile(r"(?i)phrase|mnemonic|seed")
_BARE = re.compile(r"[^\s\"'`;&|<>]{1,256}")
_WIDE = re.compile(
    r"(?:(?!\\[\"'nr]|[\"'][,}\])\s]|[\"']\Z|[;&|,]\s?[\w.]{1,40}=)[^\s`]){1,256}(?=\s|\Z)"
)
"""A value alone on its line, with signs in it that end it elsewhere."""
_QUERY = re.compile(r"[\w.%~+/=-]{6,}")
_REST = re.compile(r"[^\s\"'`;&|<>\\]*")
_REST_OF_BROKEN = re.compile(r"\n[ \t]{0,40}[^\s\"'`\\]{4,200}([\"'`])")
"""The rest of a quoted value that a line end has broken."""
_NESTED = re.compile(r"[^\[\]{}]{0,2000}")
_STRING = re.compile(r"\\{0,40}\"([^\"\\]{3,4000})\\{0,40}\"")

_PREFIX = (
    r"(?:[\w./-]{1,60}:\d{1,6}[:-]|[ \t]{0,8}\d{1,6}(?:→|\t|[|:]))?[ \t]*"  # grep, a listing
    r"(?:[-*+>][ \t]+|export |set |setx |env |ENV |ARG |-e |--env |\$env:|[\"'])*\Z"
)
_LINE_START = re.compile(rf"(?:^|[\n\r{{,\"']|\\n){_PREFIX}")
_OWN_LINE = re.compile(rf"(?:^|[\n\r]){_PREFIX}")
_LINE_BEFORE = 80
_BEHIND_A_PAIR = re.compile(r"\w=(?:\"[^\"]{0,60}\"|[^\s,()=]{1,60}) \Z")
_RESOURCE = re.compile(r"\barn:[\w:-]*\Z")
_OF_A_PARSER = re.compile(r"(?i:expected|invalid|unknown|illegal|next|current|last|bad) \Z")
"""Before a token that is a piece of a program's text."""
_OPTION = re.compile(r"(?:=|[ \t]+)(\\{0,3}[\"']?)(?=[^\s-])")
SCHEME = re.compile(
    r"(?i)(?:bearer|basic|token|digest|api-?key|negotiate|bot|oauth|jwt|dpop|hawk|sharedkey"
    r"|aws4-hmac-sha256) +(?=\S{6})"
)
"""The word before the secret in an Authorization header."""
_ANY_SCHEME = re.compile(r"[A-Za-z][\w-]{2,20} +(?=\S{8})")
_LINE = re.compile(r"[^\n\r\"'`\\<>]{3,4000}")
_PAIRS = re.compile(r"[\w.%!#$&*+^|~-]{1,80}=[^\s;=]")

_PAIR_JOINTS = frozenset(" \t:\"'*`|]\r\n\\>")
_FOLLOWING = _JOINTS | _PAIR_JOINTS | frozenset(";[}#.<")
_COLUMNS = re.compile(r"\"?[A-Za-z_][\w \"-]{0,40}(?:([,;\t])\"?[A-Za-z_][\w \"-]{0,40}){1,31}")
_AFTER_HEADINGS = frozenset((",", ";", "\t", '"', "\n", "\r"))
_MOST_LINES = 1000
_SECTION = re.compile(
    r"(?:^|[\n\"])[ \t]*\[?([\w-]{2,40})(?:\]|:)[ \t]*\n"
    r"(?:[ \t]*[\w-]{1,40}[ \t]*[:=][^\n]*\n){0,4}[ \t]*\Z"
)
_SECTION_VALUE = re.compile(r"[ \t]*[:=][ \t]*[\"']?([^\s\"']{8,256})")
_DATA = re.compile(r"(?:^|\n)[ \t]*(?:data|stringData):[ \t]*\n((?:[ \t]+\S[^\n]*(?:\n|\Z))+)")
_ITEM = re.compile(r"^[ \t]+[\w.-]{1,80}:[ \t]+[\"']?([^\s\"'|>]{3,4000})", re.MULTILINE)


class Name(NamedTuple):
    """A name in a text, with the kind of place that it marks."""

    start: int
    end: int
    place: Place


def find_assigned(text: str, lower: str, hits: Sequence[tuple[int, int]]) -> Iterator[Found]:
    """Every secret that a name gives away, in no order; they may overlap. `hits` are the stretches
    of words of names, in order, and `lower` is the text in small letters.
    """
    done = assigned_to = sentence_to = columns_to = 0
    for at, hit_end in hits:
        if at >= sentence_to:
            for one in find_told(text, lower, at):
                sentence_to = one.end
                yield one
        if at < done:
            continue
        # Words that are parts of others are looked for with the sign behind them.
        word_end = hit_end - (not text[hit_end - 1].isalnum())
        tail = _TAIL.match(text, word_end)
        end = tail.end() if tail else word_end
        if text[end - 1 : end + 1] == "->":
            end -= 1
        done = end
        if text[end : end + 1] not in _FOLLOWING:
            continue
        head = _HEAD.match(text[max(0, at - _LONGEST_HEAD) : at][::-1])
        start = at - head.end() if head else at
        place = place_of(text[start:end])
        if place is None:
            if text[start:end] in ("key", "id", "value", "code"):
                yield from _key_of_section(text, Name(start, end, "secret"))
            continue
        name = Name(start, end, place)
        if at >= assigned_to and text[end : end + 1] in _JOINTS:
            one_found = _assigned(text, lower, name)
            if one_found is not None:
                assigned_to = one_found.end
                yield one_found
            else:
                yield from _nested(text, lower, name)
        yield from _elsewhere(text, name)
        if name.start >= columns_to and text[end : end + 1] in _AFTER_HEADINGS:
            columns, columns_to = _columns(text, name)
            yield from columns


def find_in_secrets(text: str) -> Iterator[Found]:
    """The values of a Secret of Kubernetes."""
    for data in _DATA.finditer(text):
        for item in _ITEM.finditer(text, *data.span(1)):
            if not refers(item[1]):
                yield Found(*item.span(1), "secret")


def _elsewhere(text: str, name: Name) -> Iterator[Found]:
    """The value in the other forms: an option, or a pair of the table."""
    if text[name.start : name.start + 1] == "-":
        yield from _option(text, name)
    if text[name.end : name.end + 1] in _PAIR_JOINTS:
        before = text[max(0, name.start - _BEFORE) : name.start]
        for row, form_before, form_after in _pairs():
            found = form_after.match(text, name.end)
            if found is None or (row.before and not form_before.search(before)):
                continue
            if is_secret(found[1], name.place) and CHECKS[row.check](found[1]):
                yield Found(*found.span(1), FAMILIES[name.place])


@cache
def _pairs() -> tuple[tuple[Pair, re.Pattern[str], re.Pattern[str]], ...]:
    return tuple((row, re.compile(row.before), re.compile(row.after)) for row in table().pair)


def _assigned(text: str, lower: str, name: Name) -> Found | None:
    found = _JOINT.match(lower, name.end)
    if found is None or text[name.start - 1 : name.start] == "<":
        return None
    written = text[name.start : name.end]
    opening = _OPENING.match(text, found.end())
    if written.startswith("$") and (found[2] == ":" or opening is None):
        return None  # a variable's value is quoted: $password = "…"
    if found[2] == "," and found[1][-1:] not in ('"', "'", "`"):
        return None
    if opening is None:
        return None if found[2][-1] in "(,|?" else _bare_value(text, found, name)
    return _quoted_value(text, found, opening, name)


def _quoted_value(
    text: str, found: re.Match[str], opening: re.Match[str], name: Name
) -> Found | None:
    if (
        not found[1]
        and found[2] == ":"
        and text[opening.end() : opening.end() + 1] in ("", " ", ",", ")", "\n")
        and text.endswith(opening[1] + opening[2], 0, name.start)
    ):
        return None  # the quote ends a label: read("Password:", …)
    at, place = opening.end(), name.place
    value = text[at : _closing(text, at, opening[1], opening[2], _JUDGED)]
    if "{" in value and opening[0][0] in "fF":
        return None
    before = text[max(0, name.start - 60) : name.start]
    is_list = found[2] == "," and text[name.start] != "-" and not _ARGUMENT.search(before)
    is_weak = place != "password" and not looks_generated(value)
    if is_list and (is_weak or _ADDRESS.fullmatch(value)):
        return None
    if found[2] == "(" and place == "loose" and not _PLAIN_VALUE.fullmatch(value):
        return None
    if _names_its_place(value, text[name.start : name.end]):
        return None
    if found[2][-1] in "(,|?" and not looks_random(value) and not has_wild_case(value):
        return None
    scheme = SCHEME.match(value) if place in ("header", "loose", "secret") else None
    skipped = scheme.end() if scheme else 0
    value = value[skipped:]
    if skipped and not refers(value) and len(value) >= 6:
        place = "secret"
    if not is_secret(value, place):
        return None
    is_json = found[1].endswith('"') and found[2] == ":"
    is_meant = is_json or value.count(" ") < 2 or _PHRASE.search(text, name.start, name.end)
    if not is_meant and all(word.strip(".,:;!?()'").isalpha() for word in value.split()):
        return None  # a sentence about a password
    end = _closing(text, at, opening[1], opening[2])
    broken = _REST_OF_BROKEN.match(text, end)
    if broken is not None and broken[1] == opening[2]:
        end = broken.start(1)
    return Found(at + skipped, end, FAMILIES[place])


def _names_its_place(value: str, name: str) -> bool:
    """`ACCESS_TOKEN = "X-Access-Token"`: the value is only the name again."""
    letters = _NO_LETTERS.sub("", value).lower()
    return (
        len(letters) >= 7
        and place_of(value) is not None
        and letters.removeprefix("x") in _NO_LETTERS.sub("", name).lower()
    )


def _closing(text: str, start: int, escape: str, quote: str, within: int = sys.maxsize) -> int:
    """Where a value in quotes ends: at its quote, at the end of its line, or where it was cut."""
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


def _bare_value(text: str, found: re.Match[str], name: Name) -> Found | None:
    at, place = found.end(), name.place
    if place in ("header", "cookie"):
        return _rest_of_line(text, at, place)
    before = text[max(0, name.start - _LINE_BEFORE) : name.start]
    own_line = _OWN_LINE.search(before) if name.start <= _LINE_BEFORE or "\n" in before else None
    bare = (_WIDE.match(text, at) if own_line and not found[1] else None) or _BARE.match(text, at)
    if bare is None:
        return None
    value = bare[0].split("\\n", 1)[0].split("\\r", 1)[0].rstrip("\\")
    if refers(value):
        return None
    in_query = before[-1:] in ("?", "&", ";")
    if in_query and text[at - 1].isspace():
        return None
    value = value.split(")](", 1)[0]
    if not in_query or "," in value:
        value = value.rstrip(",.:;)]}")
    end = at + len(value)
    if not value or text[end : end + 1] in ("(", "["):
        return None
    has_quoted_name = bool(found[1])
    is_doubtful = found[2] == "->" or (has_quoted_name and not value.isdigit())
    if (is_doubtful and not looks_random(value)) or _RESOURCE.search(before):
        return None
    if found[2] == ":" and _OF_A_PARSER.search(before) and not looks_generated(value):
        return None
    tight = text[at - 1 : at] == "=" and text[found.end(1) : found.end(1) + 1] == "="
    written = text[name.start : name.end]
    if found[2] == "=" and not tight and place == "secret" and value.isdigit() and len(value) < 6:
        return None  # a number of a program
    if _SUBSCRIPT.fullmatch(value) and not (tight and written.isupper()):
        return None
    literal = (
        in_query
        or (tight and written.replace("-", "_").isupper())
        or (tight and place == "password" and _BEHIND_A_PAIR.search(before) is not None)
        or (_fills_the_line(text, before, end) and _may_stand_alone(value, place))
        or (place == "password" and _is_like_a_password(value, told=tight or found[2] == ":"))
    )
    is_short_token = (
        before[-1:] in ("?", "&")
        and place == "loose"
        and _QUERY.fullmatch(value) is not None
        and (has_wild_case(value) or not value.isalpha())
    )
    if not is_short_token and not is_bare_secret(value, place, literal=literal):
        return None
    if len(value) == _JUDGED and (rest := _REST.match(text, end)):
        end = rest.end()
    return Found(at, end, FAMILIES[place], wants_quotes=found[1].endswith('"'))


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
    at_start = "\n" + before if len(before) < _LINE_BEFORE else before
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
    if text[at - 1 : at] == " " and _CALL.match(value):
        return None
    known = SCHEME.match(value)
    scheme = known or _ANY_SCHEME.match(value)
    secret = value[scheme.end() :] if scheme else value.split(" ", 1)[0]
    if refers(secret) or is_plain_name(secret) or len(secret) < 6:
        return None
    if not known and not looks_random(secret):
        return None
    end = at + len(value) if scheme else at + len(secret)
    return Found(end - len(secret), end, "secret")


def _nested(text: str, lower: str, name: Name) -> Iterator[Found]:
    """The strings of a list or an object behind a quoted name that mark the place of secrets."""
    found = _JOINT.match(lower, name.end)
    if found is None or not found[1] or text[found.end() : found.end() + 1] not in ("[", "{"):
        return
    place: Place = "loose" if text[found.end()] == "{" else name.place
    inside = _NESTED.match(text, found.end() + 1)
    for string in _STRING.finditer(text, found.end() + 1, inside.end() if inside else found.end()):
        if is_secret(string[1], place):
            yield Found(*string.span(1), FAMILIES[place])


def _option(text: str, name: Name) -> Iterator[Found]:
    """`--password X`, also where no equals sign joins the two."""
    found = _OPTION.match(text, name.end)
    if found is None or text[name.start - 1 : name.start].isalnum():
        return
    if found[1]:
        end = _closing(text, found.end(), found[1][:-1], found[1][-1], 16 * _JUDGED)
    else:
        bare = _BARE.match(text, found.end())
        end = bare.end() if bare else found.end()
    value = text[found.end() : end].split("\\n", 1)[0].rstrip("\\)]},")
    if value.isupper() and is_plain_name(value):
        return
    if is_secret(value, name.place):
        yield Found(found.end(), found.end() + len(value), FAMILIES[name.place])


def _key_of_section(text: str, name: Name) -> Iterator[Found]:
    """`key: …` below the heading of an API."""
    value = _SECTION_VALUE.match(text, name.end)
    if value is None or not looks_random(value[1]):
        return
    heading = _SECTION.search(text, max(0, name.start - 400), name.start)
    if heading is None:
        return
    place = place_of(f"{heading[1]}_{text[name.start : name.end]}")
    if place is not None and is_secret(value[1], place):
        yield Found(*value.span(1), FAMILIES[place])


def _columns(text: str, name: Name) -> tuple[list[Found], int]:
    """The values below telling names of columns, and where the list ends."""
    found: list[Found] = []
    line_start = text.rfind("\n", max(0, name.start - 400), name.start) + 1
    in_string = text.rfind('"', line_start, name.start) + 1  # the start of a string of JSON
    headings = (_COLUMNS.match(text, start) for start in dict.fromkeys((line_start, in_string)))
    heading = next((one for one in headings if one and one.end() >= name.end), None)
    if heading is None:
        return found, 0
    begins = heading.end() + (text[heading.end() : heading.end() + 1] == "\r")
    if text[begins : begins + 1] != "\n":
        return found, 0
    separator = heading[1]
    places = [place_of(cell.strip(' "')) for cell in heading[0].split(separator)]
    is_string = text[heading.start() - 1 : heading.start()] == '"'
    at = begins + 1
    for _ in range(_MOST_LINES):
        end = text.find("\n", at)
        line = text[at : end if end >= 0 else len(text)]
        cells = (line.split('"')[0] if is_string else line).split(separator)
        if len(cells) != len(places):
            break
        for place, cell in zip(places, cells, strict=True):
            value = cell.strip(' "\r')
            if place in ("password", "secret", "loose") and is_secret(value, place):
                start = at + cell.find(value)
                found.append(Found(start, start + len(value), FAMILIES[place]))
            at += len(cell) + 1
        if end < 0:
            break
        at = end + 1
    return found, at
