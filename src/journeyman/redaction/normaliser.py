"""Other spellings of a text: decoded, or with tokens joined that a line end had broken. Each can be
mapped back, so that what is found in it is replaced in the text as it was written.
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

_MOST_LEVELS = 6
"""JSON in JSON in JSON doubles its escapes with every level."""

_CODED = re.compile(
    r"\\(?:u\{?[0-9a-fA-F]{4}\}?|x[0-9a-fA-F]{2}|[\"'\\/nrtbf])"
    r"|(?:%[0-9a-fA-F]{2})+|&(?:[a-z]{2,6}|#\d{2,6}|#x[0-9a-fA-F]{2,5});"
    r"|\x1b\[[\d;]{0,12}m"
)
_PLAIN = {"\\n": "\n", "\\r": "\r", "\\t": "\t", "\\b": "\b", "\\f": "\f"}
_PLAIN |= {f"\\{sign}": sign for sign in "\"'\\/"}
_SELDOM = re.compile(r"%[0-9a-fA-F]{2}|&(?:[a-z]{2,6}|#x?[0-9a-f]{2,6});|\x1b\[|\\[uxbf]|\0")

_SIGN = "[A-Za-z0-9_+/=.~$-]"
_END = "[A-Za-z0-9_+/=-]"
_WORD = r"(?:[A-Za-z][a-z]*)?(?:[-_./](?:[A-Za-z][a-z]*)?)*\d?[.]?|[\d.:/-]+"
_PLAIN_WORD = re.compile(r"[A-Za-z][a-z]*[.]?|[\d.:/-]+")
_BREAK = re.compile(
    rf"\n(?:(?<={_END}\n)|(?<={_END}[\r\\]\n)|(?<={_END}\\\r\n))[ \t]{{0,80}}(?:[>|#*+] ?)?"
    rf"(?!(?:{_WORD})(?:[^\w+/.~-]|\Z))"
    r"(?=([A-Za-z0-9_+/.~-]{16,4000}=[A-Za-z0-9-]{1,64}|[A-Za-z0-9_+/.~-]{2,4000}={0,2})"
    r"(?:[\s\"'`,;)}\]<&\\@:?$!#%^*]|\Z))"
)
_REVERSED = re.compile(rf"{_SIGN}*")
_SHORTEST_HALF = 4

_HINT = re.compile(r"[A-Za-z0-9+/_-]{16}")
_RUN = re.compile(
    r"[A-Za-z0-9+/_-]{16,}"
    r"(?:(?<=[A-Za-z0-9+/]{60})(?:\r?\n|\\n)[A-Za-z0-9+/]{4,})*={0,2}"  # in lines of equal length
)
_READABLE = bytes(range(32, 127)) + b"\t\n\r"
_PROBE = 16
_LONGEST = 2_000_000


def opened(text: str) -> object:
    """The value of a text that is JSON in brackets or quotes; None for any other."""
    if not text[:64].lstrip().startswith(("{", "[", '"')):
        return None
    if not text[-64:].rstrip().endswith(("}", "]", '"')):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class View(NamedTuple):
    """A spelling of a text, with where each of its characters starts and ends in the text itself.
    At `joins` a line end was left out.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    joins: Sequence[int] = ()

    def first_join(self, start: int, end: int) -> int:
        """The first place inside a stretch at which a line end was left out, or 0."""
        at = bisect_right(self.joins, start)
        return self.joins[at] if at < len(self.joins) and self.joins[at] < end else 0


def spellings(text: str) -> Iterator[tuple[str, bool]]:
    """The text itself, then with one level of codes after the other decoded; and whether more than
    line ends and quotes were decoded, so that runs of letters and digits may be others.
    """
    yield text, True
    for _ in range(_MOST_LEVELS):
        seldom = _SELDOM.search(text) is not None
        if not seldom and "\\" not in text:
            return
        decoded = _CODED.sub(_decoded, text)
        if decoded == text:
            return
        text = decoded
        yield text, seldom


def view_of(text: str, level: int) -> View:
    """One of these spellings with its map back."""
    view = View(text, range(len(text)), range(1, len(text) + 1))
    for _ in range(level):
        found = _CODED.finditer(view.text)
        view = _rewritten(view, ((*one.span(), _decoded(one)) for one in found))
    return view


def joined(original: str, level: int, text: str, starts: Container[int]) -> View | None:
    """A spelling without line ends that may have broken a token, except where a secret `starts`."""
    if "\n" not in text:
        return None
    spans = []
    for found in _BREAK.finditer(text):
        start = found.start()
        while text[start - 1] in "\r\\":
            start -= 1
        reversed_left = _REVERSED.match(text[max(0, start - 200) : start][::-1])
        left = reversed_left[0][::-1] if reversed_left else ""
        if len(left) < _SHORTEST_HALF or _PLAIN_WORD.fullmatch(left):
            continue
        if found.end() not in starts:
            spans.append((start, found.end(), ""))
    return _rewritten(view_of(original, level), spans) if spans else None


def _rewritten(view: View, spans: Iterable[tuple[int, int, str]]) -> View:
    """The spelling with these stretches replaced."""
    pieces: list[str] = []
    joins, done = list[int](), 0
    starts, ends = array("L"), array("L")
    for start, end, new in (*spans, (len(view.text), len(view.text), "")):
        pieces += (view.text[done:start], new)
        starts.extend(view.starts[done:start])
        ends.extend(view.ends[done:start])
        joins.append(len(starts))
        if new:
            starts.extend([view.starts[start]] * len(new))
            ends.extend([view.ends[end - 1]] * len(new))
        done = end
    return View("".join(pieces), starts, ends, joins[:-1])


def _decoded(found: re.Match[str]) -> str:
    code = found[0]
    plain = _PLAIN.get(code)
    if plain is not None:
        return plain
    if code[0] == "%":
        return unquote_to_bytes(code).decode("utf-8", "replace")
    if code[0] == "&":
        return html.unescape(code)
    return "" if code[0] == "\x1b" else chr(int(code[2:].strip("{}"), 16))


def long_runs(text: str) -> list[re.Match[str]]:
    """The runs of letters and digits that may be base64, or a token."""
    return list(_RUN.finditer(text)) if _HINT.search(text) else []


def find_base64(runs: Iterable[re.Match[str]]) -> Iterator[tuple[int, int, str]]:
    """Where those of the runs are that decode to readable text, and that text."""
    for found in runs:
        run = found[0]
        if run.islower() or run.isupper() or run.isdigit() or len(run) > _LONGEST:
            continue
        if run.count("/") * 8 > len(run):
            continue  # a path
        start = binascii.a2b_base64(run[:_PROBE].replace("-", "+").replace("_", "/"))
        if _utf8(start) is not None and (readable := _bytes_of(run)) is not None:
            yield *found.span(), readable


def _utf8(raw: bytes) -> str | None:
    """The text of some bytes, whose last character may be cut off; None where they are none."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        return raw.decode("utf-8", "ignore") if error.start >= len(raw) - 3 else None


def _bytes_of(run: str) -> str | None:
    clean = run.replace("\\n", "").replace("\n", "").replace("\r", "").rstrip("=")
    clean = clean[: len(clean) - (len(clean) % 4 == 1)].replace("-", "+").replace("_", "/")
    try:
        raw = base64.b64decode(clean + "=" * (-len(clean) % 4))
    except (binascii.Error, ValueError):
        return None
    if len(raw.translate(None, _READABLE)) <= len(raw) // 20:
        return raw.decode("utf-8", "replace")
    readable = _utf8(raw)
    if readable is None:
        return None
    odd = sum(not letter.isprintable() and letter not in "\n\r\t" for letter in readable)
    return readable if odd <= len(readable) // 20 else None
