"""Finds secrets by the name before them: assignments, options, headers, columns."""

import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from journeyman.redaction.families import Pair, load_families
from journeyman.redaction.secret_values import (
    CHECKS,
    KIND_FAMILIES,
    FieldKind,
    Span,
    field_kind,
    has_random_case,
    is_name_like,
    is_reference,
    is_secret,
    is_unquoted_secret,
    looks_generated,
    looks_random,
)

_HEAD, _TAIL = re.compile(r"[\w.$-]*"), re.compile(r"[\w-]{0,24}")
_MAX_HEAD = 60
_PAIR_CONTEXT = 90
_MAX_JUDGED = 256
"""How much of a value is examined. It bounds the cost: a text may consist of starts of values."""

_JOINER_STARTS = frozenset("=:|,(?)-!*\\\"'`] \t：")
_JOINER = re.compile(
    r"(?i)(\\{0,40}[\"'`]?\]?)(?:\*\*)?[ \t]{0,8}"
    r"(:[ \t]?(?:&'?(?:static )?)?[a-z_][\w.\[\]| ?]{0,30}=[ \t]?"
    r"(?=[a-z]?\\{0,40}[\"'])"  # name: str = "…"
    r"|=>|:=|!?={1,3}|->|:(?![:/]{2}|:)|："
    r"|\((?=\s?\\{0,40}[\"'])"  # set_password("…")
    r"|(?:,|\|\||\?\?|\)\.[a-z_]{2,20}\()(?=\s?\\{0,40}[\"']))"  # getenv("TOKEN", "…")
    r"(?:\*\*)?(?:[ \t]{0,8}|\s{0,40}(?=[\"']))"
)
_CALL_START = re.compile(r"[A-Za-z_][\w.]*[\[(]")
_HOST_AND_PORT = re.compile(r"[\w.-]+:\d{1,5}")
_PLAIN_VALUE = re.compile(r"[\w.+/=~-]+")
_NON_LETTERS = re.compile(r"[\W_]")
_SUBSCRIPT = re.compile(r"[A-Za-z_.]+\d?\[[\w.:+\[-]{0,80}")
_FIRST_ARGUMENT = re.compile(r"[\w)\]]\(\s{0,40}[a-z]?\\{0,40}[\"'`]\Z")
_OPENING_QUOTE = re.compile(r"[fFbBrRuU]{0,2}(\\{0,40})(\"\"\"|'''|[\"'`])")
_PASSPHRASE_NAME = re.compile(r"(?i)phrase|mnemonic|seed")
_UNQUOTED = re.compile(r"[^\s\"'`;&|<>]{1,256}")
_UNQUOTED_LINE = re.compile(
    r"(?:(?!\\[\"'nr]|[\"'][,}\])\s]|[\"']\Z|[;&|,]\s?[\w.]{1,40}=)[^\s`]){1,256}(?=\s|\Z)"
)
"""A value alone on its line; it may contain characters that end a value elsewhere."""
_QUERY_VALUE = re.compile(r"[\w.%~+/=-]{6,}")
_REST_OF_VALUE = re.compile(r"[^\s\"'`;&|<>\\]*")
_REST_AFTER_LINE_BREAK = re.compile(r"\n[ \t]{0,40}[^\s\"'`\\]{4,200}([\"'`])")
"""The rest of a quoted value that a line break interrupts."""
_INSIDE_BRACKETS = re.compile(r"[^\[\]{}]{0,2000}")
_STRING = re.compile(r"\\{0,40}\"([^\"\\]{3,4000})\\{0,40}\"")

_PREFIX = (
    r"(?:[\w./-]{1,60}:\d{1,6}[:-]|[ \t]{0,8}\d{1,6}(?:→|\t|[|:]))?[ \t]*"  # grep, line numbers
    r"(?:[-*+>][ \t]+|export |set |setx |env |ENV |ARG |-e |--env |\$env:|[\"'])*\Z"
)
_LINE_START = re.compile(rf"(?:^|[\n\r{{,\"']|\\n){_PREFIX}")
_OWN_LINE = re.compile(rf"(?:^|[\n\r]){_PREFIX}")
_LINE_BEFORE = 80
_AFTER_A_PAIR = re.compile(r"\w=(?:\"[^\"]{0,60}\"|[^\s,()=]{1,60}) \Z")
_AWS_RESOURCE = re.compile(r"\barn:[\w:-]*\Z")
_PARSER_WORDS = re.compile(r"(?i:expected|invalid|unknown|illegal|next|current|last|bad) \Z")
"""Words before a token of source code, not of authentication."""
_OPTION_JOINER = re.compile(r"(?:=|[ \t]+)(\\{0,3}[\"']?)(?=[^\s-])")
AUTH_SCHEME = re.compile(
    r"(?i)(?:bearer|basic|token|digest|api-?key|negotiate|bot|oauth|jwt|dpop|hawk|sharedkey"
    r"|aws4-hmac-sha256) +(?=\S{6})"
)
"""The scheme before the secret in an Authorization header."""
_ANY_SCHEME = re.compile(r"[A-Za-z][\w-]{2,20} +(?=\S{8})")
_LINE = re.compile(r"[^\n\r\"'`\\<>]{3,4000}")
_COOKIE_PAIR = re.compile(r"[\w.%!#$&*+^|~-]{1,80}=[^\s;=]")

_PAIR_STARTS = frozenset(" \t:\"'*`|]\r\n\\>")
_AFTER_NAME = _JOINER_STARTS | _PAIR_STARTS | frozenset(";[}#.<")
_COLUMN_HEADINGS = re.compile(
    r"\"?[A-Za-z_][\w \"-]{0,40}(?:([,;\t])\"?[A-Za-z_][\w \"-]{0,40}){1,31}"
)
_AFTER_HEADINGS = frozenset((",", ";", "\t", '"', "\n", "\r"))
_MAX_TABLE_LINES = 1000
_SECTION = re.compile(
    r"(?:^|[\n\"])[ \t]*\[?([\w-]{2,40})(?:\]|:)[ \t]*\n"
    r"(?:[ \t]*[\w-]{1,40}[ \t]*[:=][^\n]*\n){0,4}[ \t]*\Z"
)
_SECTION_VALUE = re.compile(r"[ \t]*[:=][ \t]*[\"']?([^\s\"']{8,256})")
_KUBERNETES_DATA = re.compile(
    r"(?:^|\n)[ \t]*(?:data|stringData):[ \t]*\n((?:[ \t]+\S[^\n]*(?:\n|\Z))+)"
)
_KUBERNETES_ITEM = re.compile(r"^[ \t]+[\w.-]{1,80}:[ \t]+[\"']?([^\s\"'|>]{3,4000})", re.MULTILINE)


class FieldName(NamedTuple):
    """The position of a name in a text, and what the name says about its value."""

    start: int
    end: int
    kind: FieldKind


def find_named_secrets(text: str, hits: Sequence[tuple[int, int]]) -> Iterator[Span]:
    """Yield every secret that a name reveals, unordered and possibly overlapping. `hits` are the
    positions of words that occur in such names, in order.
    """
    name_to = assigned_to = columns_to = 0
    for at, hit_end in hits:
        if at < name_to:
            continue
        # Words that also occur inside others are searched for with the character after them.
        word_end = hit_end - (not text[hit_end - 1].isalnum())
        tail = _TAIL.match(text, word_end)
        end = tail.end() if tail else word_end
        if text[end - 1 : end + 1] == "->":
            end -= 1
        name_to = end
        if text[end : end + 1] not in _AFTER_NAME:
            continue
        head = _HEAD.match(text[max(0, at - _MAX_HEAD) : at][::-1])
        start = at - head.end() if head else at
        kind = field_kind(text[start:end])
        if kind is None:
            if text[start:end] in ("key", "id", "value", "code"):
                yield from _section_key(text, FieldName(start, end, "secret"))
            continue
        name = FieldName(start, end, kind)
        if at >= assigned_to and text[end : end + 1] in _JOINER_STARTS:
            assigned = _assigned_value(text, name)
            if assigned is not None:
                assigned_to = assigned.end
                yield assigned
            else:
                yield from _nested_values(text, name)
        yield from _option_and_pair_values(text, name)
        if name.start >= columns_to and text[end : end + 1] in _AFTER_HEADINGS:
            columns, columns_to = _column_values(text, name)
            yield from columns


def find_kubernetes_secrets(text: str) -> Iterator[Span]:
    """Yield the values of a Kubernetes Secret."""
    for data in _KUBERNETES_DATA.finditer(text):
        for item in _KUBERNETES_ITEM.finditer(text, *data.span(1)):
            if not is_reference(item[1]):
                yield Span(*item.span(1), "secret")


def _option_and_pair_values(text: str, name: FieldName) -> Iterator[Span]:
    """Yield the value in the other forms: an option, or a `pair` of `families.toml`."""
    if text[name.start : name.start + 1] == "-":
        yield from _option_value(text, name)
    if text[name.end : name.end + 1] in _PAIR_STARTS:
        before = text[max(0, name.start - _PAIR_CONTEXT) : name.start]
        for row, before_pattern, after_pattern in _compiled_pairs():
            match = after_pattern.match(text, name.end)
            if match is None or (row.before and not before_pattern.search(before)):
                continue
            if is_secret(match[1], name.kind) and CHECKS[row.check](match[1]):
                yield Span(*match.span(1), KIND_FAMILIES[name.kind])


@cache
def _compiled_pairs() -> tuple[tuple[Pair, re.Pattern[str], re.Pattern[str]], ...]:
    return tuple(
        (row, re.compile(row.before), re.compile(row.after)) for row in load_families().pair
    )


def _assigned_value(text: str, name: FieldName) -> Span | None:
    joiner = _JOINER.match(text, name.end)
    if joiner is None or text[name.start - 1 : name.start] == "<":
        return None
    name_text = text[name.start : name.end]
    quote = _OPENING_QUOTE.match(text, joiner.end())
    if name_text.startswith("$") and (joiner[2] == ":" or quote is None):
        return None  # the value of a variable is quoted: $password = "…"
    if joiner[2] == "," and joiner[1][-1:] not in ('"', "'", "`"):
        return None
    if quote is None:
        return None if joiner[2][-1] in "(,|?" else _unquoted_value(text, joiner, name)
    return _quoted_value(text, joiner, quote, name)


def _quoted_value(
    text: str, joiner: re.Match[str], quote: re.Match[str], name: FieldName
) -> Span | None:
    if (
        not joiner[1]
        and joiner[2] == ":"
        and text[quote.end() : quote.end() + 1] in ("", " ", ",", ")", "\n")
        and text.endswith(quote[1] + quote[2], 0, name.start)
    ):
        return None  # the quote ends a label: read("Password:", …)
    start, kind = quote.end(), name.kind
    value = text[start : _closing_quote(text, start, quote[1], quote[2], _MAX_JUDGED)]
    if "{" in value and quote[0][0] in "fF":
        return None
    before = text[max(0, name.start - 60) : name.start]
    is_list = joiner[2] == "," and text[name.start] != "-" and not _FIRST_ARGUMENT.search(before)
    is_weak = kind != "password" and not looks_generated(value)
    if is_list and (is_weak or _HOST_AND_PORT.fullmatch(value)):
        return None
    if joiner[2] == "(" and kind == "loose" and not _PLAIN_VALUE.fullmatch(value):
        return None
    if _repeats_name(value, text[name.start : name.end]):
        return None
    if joiner[2][-1] in "(,|?" and not looks_random(value) and not has_random_case(value):
        return None
    scheme = AUTH_SCHEME.match(value) if kind in ("header", "loose", "secret") else None
    scheme_length = scheme.end() if scheme else 0
    value = value[scheme_length:]
    if scheme_length and not is_reference(value) and len(value) >= 6:
        kind = "secret"
    if not is_secret(value, kind):
        return None
    is_json = joiner[1].endswith('"') and joiner[2] == ":"
    is_value = (
        is_json or value.count(" ") < 2 or _PASSPHRASE_NAME.search(text, name.start, name.end)
    )
    if not is_value and all(word.strip(".,:;!?()'").isalpha() for word in value.split()):
        return None  # a sentence about a password
    end = _closing_quote(text, start, quote[1], quote[2])
    continuation = _REST_AFTER_LINE_BREAK.match(text, end)
    if continuation is not None and continuation[1] == quote[2]:
        end = continuation.start(1)
    return Span(start + scheme_length, end, KIND_FAMILIES[kind])


def _repeats_name(value: str, name: str) -> bool:
    """Whether the value only repeats the name: `ACCESS_TOKEN = "X-Access-Token"`."""
    letters = _NON_LETTERS.sub("", value).lower()
    return (
        len(letters) >= 7
        and field_kind(value) is not None
        and letters.removeprefix("x") in _NON_LETTERS.sub("", name).lower()
    )


def _closing_quote(
    text: str, start: int, escape: str, quote: str, max_length: int = sys.maxsize
) -> int:
    """Return where a quoted value ends: at its quote, its line end, or after `max_length`."""
    stop = min(len(text), start + max_length)
    limit = text.find("\n", start, stop) if len(quote) == 1 else -1
    limit = stop if limit < 0 else limit
    at = start
    while (at := text.find(quote, at, limit)) >= 0:
        escapes = at
        while escapes > start and text[escapes - 1] == "\\":
            escapes -= 1
        if at - escapes <= len(escape):
            return max(start, at - len(escape))
        at += 1
    return limit


def _unquoted_value(text: str, joiner: re.Match[str], name: FieldName) -> Span | None:
    start, kind = joiner.end(), name.kind
    if kind in ("header", "cookie"):
        return _header_value(text, start, kind)
    before = text[max(0, name.start - _LINE_BEFORE) : name.start]
    own_line = _OWN_LINE.search(before) if name.start <= _LINE_BEFORE or "\n" in before else None
    unquoted = (
        _UNQUOTED_LINE.match(text, start) if own_line and not joiner[1] else None
    ) or _UNQUOTED.match(text, start)
    if unquoted is None:
        return None
    value = unquoted[0].split("\\n", 1)[0].split("\\r", 1)[0].rstrip("\\")
    if is_reference(value):
        return None
    in_query = before[-1:] in ("?", "&", ";")
    if in_query and text[start - 1].isspace():
        return None
    value = value.split(")](", 1)[0]
    if not in_query or "," in value:
        value = value.rstrip(",.:;)]}")
    end = start + len(value)
    if not value or text[end : end + 1] in ("(", "["):
        return None
    has_quoted_name = bool(joiner[1])
    is_doubtful = joiner[2] == "->" or (has_quoted_name and not value.isdigit())
    if (is_doubtful and not looks_random(value)) or _AWS_RESOURCE.search(before):
        return None
    if joiner[2] == ":" and _PARSER_WORDS.search(before) and not looks_generated(value):
        return None
    tight = text[start - 1 : start] == "=" and text[joiner.end(1) : joiner.end(1) + 1] == "="
    name_text = text[name.start : name.end]
    if joiner[2] == "=" and not tight and kind == "secret" and value.isdigit() and len(value) < 6:
        return None  # a number in source code
    if _SUBSCRIPT.fullmatch(value) and not (tight and name_text.isupper()):
        return None
    is_literal = (
        in_query
        or (tight and name_text.replace("-", "_").isupper())
        or (tight and kind == "password" and _AFTER_A_PAIR.search(before) is not None)
        or (_fills_line(text, before, end) and _is_plausible_alone(value, kind))
        or (kind == "password" and _is_password_like(value, is_stated=tight or joiner[2] == ":"))
    )
    is_short_token = (
        before[-1:] in ("?", "&")
        and kind == "loose"
        and _QUERY_VALUE.fullmatch(value) is not None
        and (has_random_case(value) or not value.isalpha())
    )
    if not is_short_token and not is_unquoted_secret(value, kind, literal=is_literal):
        return None
    if len(value) == _MAX_JUDGED and (rest := _REST_OF_VALUE.match(text, end)):
        end = rest.end()
    return Span(start, end, KIND_FAMILIES[kind])


def _is_password_like(value: str, *, is_stated: bool) -> bool:
    """Whether a word after `password` is one: with digits inside, or with one at its end where it
    is stated (`password: x1`, `password=x1`), not assigned as in source code (`password = x1`).
    """
    if not is_name_like(value):
        return any(map(str.isdigit, value)) and "(" not in value and "." not in value
    return is_stated and value[-1].isdigit() and len(value) >= 6 and field_kind(value[:-1]) is None


def _fills_line(text: str, before: str, end: int) -> bool:
    rest = text[end : end + 2]
    ends = rest[:1] in ("", "\n", "\r", ",", "}", '"', "'") or rest in ("\\n", '\\"', " #")
    at_start = "\n" + before if len(before) < _LINE_BEFORE else before
    return ends and _LINE_START.search(at_start) is not None


def _is_plausible_alone(value: str, kind: FieldKind) -> bool:
    """Whether a single word after `password:` or `token =` is a value, not a name or a type."""
    if any(map(str.isdigit, value)):
        return "." not in value and "(" not in value
    if kind != "password":
        return False
    return has_random_case(value) or (value.islower() and value.isalpha() and len(value) >= 5)


def _header_value(text: str, start: int, kind: FieldKind) -> Span | None:
    line = _LINE.match(text, start)
    if line is None:
        return None
    value = line[0].rstrip()
    if kind == "cookie":
        is_cookie = _COOKIE_PAIR.match(value) and not is_reference(value)
        return Span(start, start + len(value), "cookie") if is_cookie else None
    if text[start - 1 : start] == " " and _CALL_START.match(value):
        return None
    known_scheme = AUTH_SCHEME.match(value)
    scheme = known_scheme or _ANY_SCHEME.match(value)
    secret = value[scheme.end() :] if scheme else value.split(" ", 1)[0]
    if is_reference(secret) or is_name_like(secret) or len(secret) < 6:
        return None
    if not known_scheme and not looks_random(secret):
        return None
    end = start + len(value) if scheme else start + len(secret)
    return Span(end - len(secret), end, "secret")


def _nested_values(text: str, name: FieldName) -> Iterator[Span]:
    """Yield the secret strings of a list or object after a quoted name."""
    joiner = _JOINER.match(text, name.end)
    if joiner is None or not joiner[1] or text[joiner.end() : joiner.end() + 1] not in ("[", "{"):
        return
    kind: FieldKind = "loose" if text[joiner.end()] == "{" else name.kind
    inside = _INSIDE_BRACKETS.match(text, joiner.end() + 1)
    for string in _STRING.finditer(
        text, joiner.end() + 1, inside.end() if inside else joiner.end()
    ):
        if is_secret(string[1], kind):
            yield Span(*string.span(1), KIND_FAMILIES[kind])


def _option_value(text: str, name: FieldName) -> Iterator[Span]:
    """Yield the value of an option: `--password X`, with or without an equals sign."""
    joiner = _OPTION_JOINER.match(text, name.end)
    if joiner is None or text[name.start - 1 : name.start].isalnum():
        return
    if joiner[1]:
        end = _closing_quote(text, joiner.end(), joiner[1][:-1], joiner[1][-1], 16 * _MAX_JUDGED)
    else:
        unquoted = _UNQUOTED.match(text, joiner.end())
        end = unquoted.end() if unquoted else joiner.end()
    value = text[joiner.end() : end].split("\\n", 1)[0].rstrip("\\)]},")
    if value.isupper() and is_name_like(value):
        return
    if is_secret(value, name.kind):
        yield Span(joiner.end(), joiner.end() + len(value), KIND_FAMILIES[name.kind])


def _section_key(text: str, name: FieldName) -> Iterator[Span]:
    """Yield the value of `key: …` in a section named after an API."""
    value = _SECTION_VALUE.match(text, name.end)
    if value is None or not looks_random(value[1]):
        return
    heading = _SECTION.search(text, max(0, name.start - 400), name.start)
    if heading is None:
        return
    kind = field_kind(f"{heading[1]}_{text[name.start : name.end]}")
    if kind is not None and is_secret(value[1], kind):
        yield Span(*value.span(1), KIND_FAMILIES[kind])


def _column_values(text: str, name: FieldName) -> tuple[list[Span], int]:
    """Return the secrets in columns with revealing headings, and where the table ends."""
    spans: list[Span] = []
    line_start = text.rfind("\n", max(0, name.start - 400), name.start) + 1
    string_start = text.rfind('"', line_start, name.start) + 1  # the start of a JSON string
    headings = (
        _COLUMN_HEADINGS.match(text, start) for start in dict.fromkeys((line_start, string_start))
    )
    heading = next((match for match in headings if match and match.end() >= name.end), None)
    if heading is None:
        return spans, 0
    heading_end = heading.end() + (text[heading.end() : heading.end() + 1] == "\r")
    if text[heading_end : heading_end + 1] != "\n":
        return spans, 0
    separator = heading[1]
    kinds = [field_kind(cell.strip(' "')) for cell in heading[0].split(separator)]
    is_in_string = text[heading.start() - 1 : heading.start()] == '"'
    at = heading_end + 1
    for _ in range(_MAX_TABLE_LINES):
        end = text.find("\n", at)
        line = text[at : end if end >= 0 else len(text)]
        cells = (line.split('"')[0] if is_in_string else line).split(separator)
        if len(cells) != len(kinds):
            break
        for kind, cell in zip(kinds, cells, strict=True):
            value = cell.strip(' "\r')
            if kind in ("password", "secret", "loose") and is_secret(value, kind):
                start = at + cell.find(value)
                spans.append(Span(start, start + len(value), KIND_FAMILIES[kind]))
            at += len(cell) + 1
        if end < 0:
            break
        at = end + 1
    return spans, at
