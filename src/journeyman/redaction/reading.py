"""A text as a model may read it: wrappings opened, escapes spelled out, unseen characters gone, and
for sentences one case, single spaces and no marks between the words. Rules then need to know only
one spelling. What the text says is for `quarantine`.
"""

import html
import re
import unicodedata
from collections.abc import Iterator

from journeyman.redaction.encoded import Json, find_base64, may_hold_base64, open_json
from journeyman.redaction.invisible import UNSEEN

_LONGEST_CODED = 200_000
_DEEPEST_CODE = 2
_DEEPEST_JSON = 4

_ESCAPE = re.compile(r"\\{1,8}+(?:([nrt])|x([0-9a-fA-F]{2})|u\{?([0-9a-fA-F]{4})\}?|([\"'/]))")
_BREAKS = {"n": "\n", "r": "\n", "t": "\t"}
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}){1,60}")
_ANSI = re.compile(
    r"\x1b(?:\[[0-9;?]{0,20}[A-Za-z]|\][^\x07\x1b]{0,80}(?:\x07|\x1b\\)|[()][0-9A-B])"
)
_HEX = re.compile(r"[0-9A-Fa-f]{32,2000}")
_UNSEEN = re.compile(f"[{UNSEEN}]")

_TAG = re.compile(r"</?[a-z][^<>]{0,100}>|<!--")
_MARKS = re.compile(r"[*_`~#|>\"()\[\]{}<\\+=-]+")
_LONE_MARKS = (" // ", " / ", " ; ", " ;; ", " % ")
_ACCENTS = re.compile("[\u0300-\u036f]+")
_SPELLING = re.compile(r"[ ._-]\w[ ._-]\w[ ._-]")
_SPELLED = re.compile(r"\b\w[ ._-]\w[ ._-](?:\w[ ._-]){0,38}\w\b(?!')")
_LATIN = str.maketrans(
    "асеіјорԛѕԝхуԁһӏѵАВЕКМНОРСТХІЈЅУαοινρτυκεΑΒΕΖΗΙΚΜΝΟΡΤΥΧᴀʙᴄᴅᴇғɢʜɪᴊᴋʟᴍɴᴏᴘʀᴛᴜᴠᴡʏᴢıłđøŁĐØ",
    "aceijopqswxydhlvABEKMHOPCTXIJSYaoivptukeABEZHIKMNOPTYXabcdefghijklmnoprtuvwyzildoLDO",
)
_LOOK_ALIKE = re.compile(f"[{''.join(map(chr, _LATIN))}]+")


def pieces(text: str, *, depth: int = 0) -> Iterator[str]:
    """What there is to read in a text: itself or, of JSON, its strings in their order; and what is
    coded in base64 or as hexadecimal digits.
    """
    opened = open_json(text)
    read = text if opened is None else "\n".join(_strings(opened.value, _DEEPEST_JSON))
    yield read
    if opened is not None and "role" in text and "content" in text:
        yield text  # roles show only in the objects
    if depth == _DEEPEST_CODE or not may_hold_base64(read):
        return
    for run in find_base64(read[:_LONGEST_CODED]):
        yield from pieces(run.text, depth=depth + 1)
    for found in _HEX.finditer(read[:_LONGEST_CODED]):
        spelled = bytes.fromhex(found[0][: len(found[0]) // 2 * 2])
        if spelled.isascii():
            yield spelled.decode()


def _strings(value: Json, depth: int) -> Iterator[str]:
    """The strings of a value; those that are JSON themselves are opened as well."""
    rest: list[tuple[Json, int]] = [(value, depth)]
    while rest:
        one, left = rest.pop()
        if isinstance(one, dict):
            pairs = [(part, left) for pair in one.items() for part in pair]
            rest += reversed(pairs)
        elif isinstance(one, list):
            rest += [(part, left) for part in reversed(one)]
        elif isinstance(one, str):
            opened = open_json(one) if left else None
            if opened is None:
                yield one
            else:
                rest.append((opened.value, left - 1))


def as_shown(text: str) -> str:
    """The text with escapes spelled out, and without what is not seen."""
    if "\\" in text:
        text = _ESCAPE.sub(_unescaped, text)
    if "%" in text:
        text = _PERCENT.sub(_decoded, text)
    if "&" in text:
        text = html.unescape(text)
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _UNSEEN.sub("", text))
    return text


def _unescaped(found: re.Match[str]) -> str:
    broken, two, four, sign = found.groups()
    if broken:
        return _BREAKS[broken]
    return sign or chr(int(two or four, 16))


def _decoded(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace")


def readings(shown: str) -> list[str]:
    """The sentences of a text for rules to read: as they are, and if there are letters beyond ASCII
    also with plain Latin ones for those that look like them.
    """
    if shown.isascii():
        return [_sentences(shown)]
    latin = _LOOK_ALIKE.sub(lambda found: found[0].translate(_LATIN), shown)
    latin = unicodedata.normalize("NFD", latin)
    first, second = _sentences(shown), _sentences(_ACCENTS.sub("", latin))
    return [first] if first == second else [first, second]


def _sentences(text: str) -> str:
    text = text.casefold().replace("\u2019", "'")
    if "<" in text:
        text = _TAG.sub(" ", text)
    if _SPELLING.search(text):
        text = _SPELLED.sub(_joined, text)
    text = " ".join(_MARKS.sub(" ", text).split())
    for mark in _LONE_MARKS:
        text = text.replace(mark, " ")
    return text


def _joined(found: re.Match[str]) -> str:
    return found[0][::2]
