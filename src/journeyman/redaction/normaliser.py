"""Other spellings of a text: with its escapes, percent codes and entities decoded, and with tokens
joined that a line end had broken. Each spelling can be mapped back, so that what is found in it is
replaced in the text as it was written. Base64 that decodes to readable text is found here too.
"""

import base64
import binascii
import html
import re
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator
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
_USUAL = ("\\n", '\\"', "\\t", "\\'", "\\/", "\\r")
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


class View:
    """A spelling of a text, made from the one `before`. Its pieces begin `at` these places, and at
    `origins` in the spelling before; they lie alternately as they were, and replaced, beginning
    with one as it was. At `joins` a line end was left out.
    """

    def __init__(self, text: str, at: list[int], origins: list[int], before: "View | None") -> None:
        self.text = text
        self.at = at
        self.joins: list[int] = []
        self._origins = origins
        self._before = before

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Where a stretch of this spelling stands in the text itself."""
        if self.at:
            start, end = self._place(start), self._place(end - 1, behind=True)
        return self._before.origin(start, end) if self._before is not None else (start, end)

    def _place(self, position: int, *, behind: bool = False) -> int:
        piece = bisect_right(self.at, position) - 1
        if piece % 2 == 0:
            return self._origins[piece] + position - self.at[piece] + behind
        return self._origins[piece + behind]

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
        if seldom:
            decoded = _CODED.sub(_decoded, text)
        elif "\\" in text:
            decoded = _unescaped(text)
        else:
            return
        if decoded == text:
            return
        text = decoded
        yield text, seldom


def _unescaped(text: str) -> str:
    """The text decoded, faster, where only the usual escapes are there."""
    text = text.replace("\\\\", "\0")
    for code in _USUAL:
        text = text.replace(code, _PLAIN[code])
    return text.replace("\0", "\\")


def view_of(text: str, level: int) -> View:
    """One of these spellings with its map back."""
    view = View(text, [], [], None)
    for _ in range(level):
        found = _CODED.finditer(view.text)
        made = _rewritten(view, ((*one.span(), _decoded(one)) for one in found))
        view = view if made is None else made
    return view


def joined(original: str, level: int, text: str, starts: Container[int]) -> View | None:
    """A spelling without line ends that may have broken a token; None if there are none. Where a
    secret `starts`, it is no rest of another.
    """
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
    if not spans:
        return None
    made = _rewritten(view_of(original, level), spans)
    if made is not None:
        made.joins = made.at[1::2]
    return made


def _rewritten(view: View, spans: Iterable[tuple[int, int, str]]) -> View | None:
    """The spelling with these stretches replaced; None if there are none."""
    pieces: list[str] = []
    at, origins = [0], [0]
    done = length = 0
    for start, end, new in spans:
        pieces += (view.text[done:start], new)
        at += (length + start - done, length + start - done + len(new))
        origins += (start, end)
        length, done = at[-1], end
    if not pieces:
        return None
    pieces.append(view.text[done:])
    return View("".join(pieces), at, origins, view)


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


class Run(NamedTuple):
    """A run of base64 in a text that decodes to readable text."""

    start: int
    end: int
    text: str


_HINT = re.compile(r"[A-Za-z0-9+/_-]{16}")
_RUN = re.compile(
    r"[A-Za-z0-9+/_-]{16,}"
    r"(?:(?<=[A-Za-z0-9+/]{60})(?:\r?\n|\\n)[A-Za-z0-9+/]{4,})*={0,2}"  # in lines of equal length
)
_READABLE = bytes(range(32, 127)) + b"\t\n\r"
_PROBE = 16
_LONGEST = 2_000_000


def long_runs(text: str) -> list[re.Match[str]]:
    """The runs of letters and digits that may be base64, or a token."""
    return list(_RUN.finditer(text)) if _HINT.search(text) else []


def find_base64(runs: Iterable[re.Match[str]]) -> Iterator[Run]:
    """Those of the runs that decode to readable text."""
    for found in runs:
        run = found[0]
        if run.islower() or run.isupper() or run.isdigit() or len(run) > _LONGEST:
            continue
        if run.count("/") * 8 > len(run):
            continue  # a path
        start = binascii.a2b_base64(run[:_PROBE].replace("-", "+").replace("_", "/"))
        if (start.isascii() or _is_utf8(start)) and (readable := _bytes_of(run)) is not None:
            yield Run(found.start(), found.end(), readable)


def _is_utf8(start: bytes) -> bool:
    try:
        start.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(start) - 3
    return True


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
