"""Secrets in wrappings: JSON as text, and base64. What a wrapping holds is for others to judge;
here it is opened and, for JSON, closed again as it was.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import NamedTuple

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None

_RUN = re.compile(
    r"[A-Za-z0-9+/_-]{16,}"
    r"(?:(?<=[A-Za-z0-9+/]{60})(?:\r?\n|\\n)[A-Za-z0-9+/]{4,})*={0,2}"  # in lines of equal length
)
_READABLE = bytes(range(32, 127)) + b"\t\n\r"
_PROBE = 64
_LONGEST = 2_000_000


def may_hold_base64(text: str) -> bool:
    return _HINT.search(text) is not None


_HINT = re.compile(r"[A-Za-z0-9+/_-]{16}")


class Opened(NamedTuple):
    """A JSON value, and whether a key stood there twice, so that the text holds more than it."""

    value: Json
    repeats: bool


def open_json(text: str) -> Opened | None:
    """The object, list or string that a text is; None if it is none."""
    start = text[:64].lstrip()[:1]
    if start not in ("{", "[", '"') or not start:
        return None
    if text[-64:].rstrip()[-1:] not in ("}", "]", '"'):
        return None
    repeats = False

    def pairs(found: list[tuple[str, Json]]) -> dict[str, Json]:
        nonlocal repeats
        made = dict(found)
        repeats = repeats or len(made) < len(found)
        return made

    try:
        return Opened(json.loads(text, object_pairs_hook=pairs), repeats)
    except (ValueError, RecursionError):
        return None


class Inside(NamedTuple):
    """A JSON value that stands in a longer text."""

    start: int
    end: int
    value: Json


_BEGINNING = re.compile(r"(?:\{|\[\s{0,40}\{)\s{0,40}\"")
_MOST_TRIES = 40
"""How many beginnings may turn out to be none: each can cost a look at the whole text."""
_raw_decode = json.JSONDecoder().raw_decode


def find_json(text: str) -> Iterator[Inside]:
    """The objects, and lists of them, in a text that is more than JSON."""
    at = failed = 0
    while failed < _MOST_TRIES and (found := _BEGINNING.search(text, at)) is not None:
        try:
            value, end = _raw_decode(text, found.start())
        except (ValueError, RecursionError):
            failed += 1
            at = found.start() + 1
            continue
        yield Inside(found.start(), end, value)
        at = end


_STRING = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"")


def find_strings(text: str) -> Iterator[Inside]:
    """The strings of JSON in a text that have escapes in them."""
    at = failed = 0
    while failed < _MOST_TRIES and (at := text.find('"', at)) >= 0:
        found = _STRING.match(text, at)
        if found is None:
            failed += 1
            at += 1
            continue
        if "\\" in found[0]:
            try:
                yield Inside(found.start(), found.end(), json.loads(found[0]))
            except ValueError:
                failed += 1
        at = found.end()


_INDENT = re.compile(r"\s*[\[{]\r?\n([ \t]+)")


def close_json(value: Json, like: str) -> str:
    """JSON text for a value, spaced like the text it came from."""
    indent = _INDENT.match(like[:256])
    spaced = '": ' in like or ", " in like
    return json.dumps(
        value,
        ensure_ascii=like.isascii(),
        indent=indent[1] if indent else None,
        separators=(",", ": ") if indent else (", ", ": ") if spaced else (",", ":"),
    )


class Run(NamedTuple):
    """A run of base64 in a text that decodes to readable text."""

    start: int
    end: int
    text: str


def find_base64(text: str) -> Iterator[Run]:
    """The readable ones of the runs that may be base64."""
    for found in _RUN.finditer(text):
        if found[0].islower() or found[0].isdigit():
            continue
        readable = _decoded(found[0])
        if readable is not None:
            yield Run(found.start(), found.end(), readable)


def _decoded(run: str) -> str | None:
    if _bytes_of(run[:_PROBE]) is None or len(run) > _LONGEST:
        return None
    return _bytes_of(run)


def _bytes_of(run: str) -> str | None:
    clean = run.replace("\\n", "").replace("\n", "").replace("\r", "").rstrip("=")
    clean = clean[: len(clean) - (len(clean) % 4 == 1)].replace("-", "+").replace("_", "/")
    try:
        raw = base64.b64decode(clean + "=" * (-len(clean) % 4))
    except (binascii.Error, ValueError):
        return None
    if len(raw.translate(None, _READABLE)) <= len(raw) // 20:
        return raw.decode("utf-8", "replace")
    try:
        readable = raw.decode()
    except UnicodeDecodeError as error:
        if error.start < len(raw) - 3:
            return None
        readable = raw.decode("utf-8", "ignore")
    odd = sum(not letter.isprintable() and letter not in "\n\r\t" for letter in readable)
    return readable if odd <= len(readable) // 20 else None
