"""Secrets that a heading above them gives away: the values of a Secret of Kubernetes, a key in the
section of an API, a column of a list.
"""

import re
from collections.abc import Iterator

from journeyman.redaction.found import Found
from journeyman.redaction.key_names import place_of
from journeyman.redaction.values import FAMILIES, is_secret, looks_random, refers

_DATA = re.compile(r"(?:^|\n)[ \t]*(?:data|stringData):[ \t]*\n((?:[ \t]+\S[^\n]*(?:\n|\Z))+)")
_ITEM = re.compile(r"^[ \t]+[\w.-]{1,80}:[ \t]+[\"']?([^\s\"'|>]{3,4000})", re.MULTILINE)
_KEY_OF_SECTION = re.compile(
    r"(?:^|\n)[ \t]*\[?([\w-]{2,40})(?:\]|:)[ \t]*\n(?:[ \t]*[\w-]{1,40}[ \t]*[:=][^\n]*\n){0,4}?"
    r"[ \t]*(key|id|value|code)[ \t]*[:=][ \t]*[\"']?([^\s\"']{8,256})"
)
_CELL = r"\"?[A-Za-z_][\w \"-]{0,40}"
_HEADING = re.compile(rf"(?:^|\n)({_CELL}([,;\t]){_CELL}(?:\2{_CELL}){{0,30}})\r?\n")
_MOST_COLUMNS = 32
_MOST_LINES = 1000


def find_in_sections(text: str) -> Iterator[Found]:
    """What stands below a telling heading."""
    if "\n" not in text:
        return
    if "kind: Secret" in text:
        yield from _values_of_secrets(text)
    if "key:" in text or "key =" in text or "key=" in text:
        yield from _keys_of_sections(text)


def _values_of_secrets(text: str) -> Iterator[Found]:
    for data in _DATA.finditer(text):
        for item in _ITEM.finditer(text, *data.span(1)):
            if not refers(item[1]):
                yield Found(*item.span(1), "secret")


def _keys_of_sections(text: str) -> Iterator[Found]:
    for found in _KEY_OF_SECTION.finditer(text):
        place = place_of(f"{found[1]}_{found[2]}")
        if place is not None and is_secret(found[3], place) and looks_random(found[3]):
            yield Found(*found.span(3), FAMILIES[place])


def find_in_columns(text: str) -> Iterator[Found]:
    """The values below a telling name in the first line of a list in columns."""
    done = 0
    for heading in _HEADING.finditer(text):
        if heading.start() < done:
            continue
        names = heading[1].split(heading[2])
        places = [place_of(name.strip(' "')) for name in names]
        if not any(places) or len(places) > _MOST_COLUMNS:
            continue
        at = heading.end()
        for _ in range(_MOST_LINES):
            end = text.find("\n", at)
            line = text[at : end if end >= 0 else len(text)]
            cells = line.split(heading[2])
            if len(cells) != len(places):
                break
            for place, cell in zip(places, cells, strict=True):
                value = cell.strip(' "\r')
                if place in ("password", "secret", "loose") and is_secret(value, place):
                    start = at + cell.find(value)
                    yield Found(start, start + len(value), FAMILIES[place])
                at += len(cell) + 1
            done = at
            if end < 0:
                break
