"""Decodes escapes in a text and joins tokens that a line break split. Each result keeps a map of
offsets, so that a secret found in it can be replaced in the original text.
"""

import base64
import binascii
import html
import json
import re
from array import array
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

_MAX_LEVELS = 6
"""How many levels of escapes are decoded; each level of JSON in JSON doubles them."""

_ESCAPE = re.compile(
    r"\\(?:u\{?[0-9a-fA-F]{4}\}?|x[0-9a-fA-F]{2}|[\"'\\/nrtbf])"
    r"|(?:%[0-9a-fA-F]{2})+|&(?:[a-z]{2,6}|#\d{2,6}|#x[0-9a-fA-F]{2,5});"
    r"|\x1b\[[\d;]{0,12}m"
)
_SIMPLE_ESCAPES = {"\\n": "\n", "\\r": "\r", "\\t": "\t", "\\b": "\b", "\\f": "\f"}
_SIMPLE_ESCAPES |= {f"\\{sign}": sign for sign in "\"'\\/"}
_RARE_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}|&(?:[a-z]{2,6}|#x?[0-9a-f]{2,6});|\x1b\[|\\[uxbf]|\0")

_CHARACTER = "[A-Za-z0-9_+/=.~$-]"
_LAST = "[A-Za-z0-9_+/=-]"
_WORD = r"(?:[A-Za-z][a-z]*)?(?:[-_./](?:[A-Za-z][a-z]*)?)*\d?[.]?|[\d.:/-]+"
_PLAIN_WORD = re.compile(r"[A-Za-z][a-z]*[.]?|[\d.:/-]+")
_LINE_BREAK_IN_TOKEN = re.compile(
    rf"\n(?:(?<={_LAST}\n)|(?<={_LAST}[\r\\]\n)|(?<={_LAST}\\\r\n))[ \t]{{0,80}}(?:[>|#*+] ?)?"
    rf"(?!(?:{_WORD})(?:[^\w+/.~-]|\Z))"
    r"(?=([A-Za-z0-9_+/.~-]{16,4000}=[A-Za-z0-9-]{1,64}|[A-Za-z0-9_+/.~-]{2,4000}={0,2})"
    r"(?:[\s\"'`,;)}\]<&\\@:?$!#%^*]|\Z))"
)
_REVERSED_TOKEN = re.compile(rf"{_CHARACTER}*")
_MIN_HALF = 4

_RUN_HINT = re.compile(r"[A-Za-z0-9+/_-]{16}")
_RUN = re.compile(
    r"[A-Za-z0-9+/_-]{16,}"
    r"(?:(?<=[A-Za-z0-9+/]{60})(?:\r?\n|\\n)[A-Za-z0-9+/]{4,})*={0,2}"  # wrapped lines
)
_READABLE_BYTES = bytes(range(32, 127)) + b"\t\n\r"
_PROBE_LENGTH = 16
_MAX_RUN = 2_000_000


def parse_json(text: str) -> object:
    """Return the value of JSON in brackets or quotes, or None for any other text."""
    if not text[:64].lstrip().startswith(("{", "[", '"')):
        return None
    if not text[-64:].rstrip().endswith(("}", "]", '"')):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class MappedText(NamedTuple):
    """A decoded text, with the start and end of each of its characters in the original. A line
    break was removed at each offset in `joins`.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    joins: Sequence[int] = ()

    def first_join(self, start: int, end: int) -> int:
        """Return the first removed line break between `start` and `end`, or 0."""
        at = bisect_right(self.joins, start)
        return self.joins[at] if at < len(self.joins) and self.joins[at] < end else 0


def decodings(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the text, then the text with one more level of escapes decoded each time. The flag says
    whether more than line breaks and quotes were decoded, so that tokens may differ.
    """
    yield text, True
    for _ in range(_MAX_LEVELS):
        has_rare = _RARE_ESCAPE.search(text) is not None
        if not has_rare and "\\" not in text:
            return
        decoded = _ESCAPE.sub(_decode_escape, text)
        if decoded == text:
            return
        text = decoded
        yield text, has_rare


def mapped_decoding(text: str, level: int) -> MappedText:
    """Return one level of `decodings` with its map of offsets."""
    mapped = MappedText(text, range(len(text)), range(1, len(text) + 1))
    for _ in range(level):
        matches = _ESCAPE.finditer(mapped.text)
        mapped = _with_replacements(
            mapped, ((*match.span(), _decode_escape(match)) for match in matches)
        )
    return mapped


def join_broken_tokens(
    original: str, level: int, text: str, secret_starts: Container[int]
) -> MappedText | None:
    """Return the text without line breaks that may split a token, or None if there are none. A
    break before one of `secret_starts` stays.
    """
    if "\n" not in text:
        return None
    spans = []
    for line_break in _LINE_BREAK_IN_TOKEN.finditer(text):
        start = line_break.start()
        while text[start - 1] in "\r\\":
            start -= 1
        reversed_left = _REVERSED_TOKEN.match(text[max(0, start - 200) : start][::-1])
        left = reversed_left[0][::-1] if reversed_left else ""
        if len(left) < _MIN_HALF or _PLAIN_WORD.fullmatch(left):
            continue
        if line_break.end() not in secret_starts:
            spans.append((start, line_break.end(), ""))
    return _with_replacements(mapped_decoding(original, level), spans) if spans else None


def _with_replacements(mapped: MappedText, spans: Iterable[tuple[int, int, str]]) -> MappedText:
    """Return the text with these ranges replaced."""
    pieces: list[str] = []
    joins, copied_to = list[int](), 0
    starts, ends = array("L"), array("L")
    for start, end, replacement in (*spans, (len(mapped.text), len(mapped.text), "")):
        pieces += (mapped.text[copied_to:start], replacement)
        starts.extend(mapped.starts[copied_to:start])
        ends.extend(mapped.ends[copied_to:start])
        joins.append(len(starts))
        if replacement:
            starts.extend([mapped.starts[start]] * len(replacement))
            ends.extend([mapped.ends[end - 1]] * len(replacement))
        copied_to = end
    return MappedText("".join(pieces), starts, ends, joins[:-1])


def _decode_escape(match: re.Match[str]) -> str:
    escape = match[0]
    plain = _SIMPLE_ESCAPES.get(escape)
    if plain is not None:
        return plain
    if escape[0] == "%":
        return unquote_to_bytes(escape).decode("utf-8", "replace")
    if escape[0] == "&":
        return html.unescape(escape)
    return "" if escape[0] == "\x1b" else chr(int(escape[2:].strip("{}"), 16))


def long_runs(text: str) -> list[re.Match[str]]:
    """Return the runs of letters and digits that may be base64, or a token."""
    return list(_RUN.finditer(text)) if _RUN_HINT.search(text) else []


def find_base64(runs: Iterable[re.Match[str]]) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and decoded text of each run that decodes to readable text."""
    for match in runs:
        run = match[0]
        if run.islower() or run.isupper() or run.isdigit() or len(run) > _MAX_RUN:
            continue
        if run.count("/") * 8 > len(run):
            continue  # a path
        start = binascii.a2b_base64(run[:_PROBE_LENGTH].replace("-", "+").replace("_", "/"))
        if _decode_utf8(start) is not None and (readable := _decode_base64(run)) is not None:
            yield *match.span(), readable


def _decode_utf8(raw: bytes) -> str | None:
    """Return the bytes as text, or None; the last character may be cut off."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        return raw.decode("utf-8", "ignore") if error.start >= len(raw) - 3 else None


def _decode_base64(run: str) -> str | None:
    clean = run.replace("\\n", "").replace("\n", "").replace("\r", "").rstrip("=")
    clean = clean[: len(clean) - (len(clean) % 4 == 1)].replace("-", "+").replace("_", "/")
    try:
        raw = base64.b64decode(clean + "=" * (-len(clean) % 4))
    except (binascii.Error, ValueError):
        return None
    if len(raw.translate(None, _READABLE_BYTES)) <= len(raw) // 20:
        return raw.decode("utf-8", "replace")
    readable = _decode_utf8(raw)
    if readable is None:
        return None
    odd = sum(not letter.isprintable() and letter not in "\n\r\t" for letter in readable)
    return readable if odd <= len(readable) // 20 else None
